"""The log of attempts, the counting of failures, and disabling (webhooks reference, sections 6 and 12)."""

from __future__ import annotations

import datetime as dt

from project_service.areas.webhooks.models import FAILURES_OF_TEMPORARY_DISABLING, WebHook, WebHookLog
from project_service.areas.webhooks.requests import HookResponse, url_digest
from project_service.kit import clock, deliveries
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db
from project_service.kit.security.outgoing_http.rules import URL

REDACTED = "[REDACTED]"
FIRST_DISABLING = dt.timedelta(minutes=1)
MAX_DISABLING = dt.timedelta(days=1)


def record_attempt(hook: WebHook, response: HookResponse) -> WebHookLog:
    """Write the log row of an attempt and count its result."""
    request = response.request
    payload_id = request.payload_id
    if response.body is not None or payload_id is None:
        payload_id = deliveries.add_payload(response.body or request.payload).id
    row = WebHookLog(
        hook_id=hook.id,
        trigger=request.trigger,
        url=shown_url(request.shown_url),
        url_digest=url_digest(request.url),
        request_headers={
            name: REDACTED if name in request.secret_headers else value
            for name, value in response.request_headers.items()
        },
        payload_id=payload_id,
        idempotency_key=request.idempotency_key,
        event_header=request.headers["X-Gitlab-Event"],
        response_headers=response.headers,
        response_body=response.text,
        execution_duration=response.duration_seconds,
        response_status=response.status,
        error=response.error,
        attempt=request.attempt,
    )
    db.session.add(row)
    db.session.flush()
    count_result(hook, response)
    return row


def count_result(hook: WebHook, response: HookResponse) -> None:
    """Count a failure in a row, or end the counting; a hook that fails too often is disabled."""
    if hook.is_system:
        return
    if response.is_success:
        if hook.recent_failures:
            enable(hook)
        return
    lock_row(hook, "recent_failures", "disabled_until")
    hook.recent_failures += 1
    hook.last_error = response.error or f"HTTP {response.status}"
    excess = hook.recent_failures - FAILURES_OF_TEMPORARY_DISABLING
    if excess >= 0:
        hook.disabled_until = clock.now() + min(FIRST_DISABLING * 2 ** min(excess, 20), MAX_DISABLING)


def enable(hook: WebHook) -> None:
    """End the disabling of a hook."""
    hook.recent_failures, hook.disabled_until, hook.dropped_events, hook.last_error = 0, None, 0, None


def shown_url(url: str) -> str:
    """Return a URL whose password is masked."""
    match = URL.fullmatch(url)
    userinfo = match["userinfo"] if match else None
    if not userinfo or ":" not in userinfo:
        return url
    return url.replace(f"{userinfo}@", f"{userinfo.partition(':')[0]}:{REDACTED}@", 1)
