"""Requests of web hooks: headers, signature, the exchange itself (webhooks reference, sections 9 to 11).

What is needed is copied from the rows first (``HookRequest``), so that no transaction is open on the network.
"""

from __future__ import annotations

import hashlib
import ssl
import time
import uuid
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from project_service.areas.webhooks.models import WebHook
from project_service.areas.webhooks.templates import TemplateFailed, render
from project_service.areas.webhooks.triggers import SYSTEM_HOOK
from project_service.domain.instance_settings import COMPATIBLE
from project_service.kit import clock, exact_json
from project_service.kit.http import urls
from project_service.kit.security.outgoing_http.client import Client, RequestFailed
from project_service.kit.security.outgoing_http.rules import Blocked, Policy
from project_service.kit.security.standard_webhooks import signature

TOTAL_SECONDS = 10.0
MAX_PAYLOAD_BYTES = 25 << 20
MAX_ANSWER_BYTES = 8 << 10
MAX_RESPONSE_HEADERS = 50
MAX_HEADER_BYTES = 1 << 10
INTERNAL_ERROR = "internal error"
TOO_LARGE = f"The payload has more than {MAX_PAYLOAD_BYTES >> 20} MB"


@dataclass(frozen=True, slots=True)
class HookRequest:
    """Everything that an attempt needs."""

    hook_id: int
    url: str = field(repr=False)  # filled in
    shown_url: str
    url_variables: dict[str, str] = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    secret_headers: frozenset[str]
    signing_token: str | None = field(repr=False)
    verifies: bool
    policy: Policy
    payload: str = field(repr=False)
    template: str | None
    flag: str
    trigger: str
    idempotency_key: str
    event_uuid: str
    payload_id: int | None
    attempt: int


@dataclass(frozen=True, slots=True)
class HookResponse:
    """The result of an attempt, as the log shows it."""

    request: HookRequest
    body: str | None  # what was sent, if a template made it
    request_headers: dict[str, str]
    status: str  # digits, or ``internal error``
    headers: dict[str, str]
    text: str
    duration_seconds: float
    error: str | None
    retry_after_seconds: float | None

    @property
    def is_success(self) -> bool:
        """Whether the receiver answered 2xx."""
        return self.status.startswith("2")


def request_of(
    hook: WebHook,
    policy: Policy,
    *,
    flag: str,
    trigger: str,
    event_header: str,
    payload: str,
    payload_id: int | None,
    idempotency_key: str,
    event_uuid: str | None,
    attempt: int,
    uses_template: bool = True,
) -> HookRequest:
    """Copy what a request needs from the rows."""
    event_uuid = event_uuid or str(uuid.uuid4())
    own_headers = {
        "Content-Type": "application/json",
        "User-Agent": f"GitLab/{COMPATIBLE}",
        "X-Gitlab-Event": SYSTEM_HOOK if hook.is_system else event_header,
        "X-Gitlab-Instance": urls.base_url(),
        "X-Gitlab-Event-UUID": event_uuid,
        "Idempotency-Key": idempotency_key,
    }
    if hook.token:
        own_headers["X-Gitlab-Token"] = hook.token
    reserved_names = {name.lower() for name in (*own_headers, "X-Gitlab-Webhook-UUID", "Content-Length", "Host")}
    if hook.signing_token:
        reserved_names |= {"webhook-id", "webhook-timestamp", "webhook-signature"}
    custom = {name: value for name, value in hook.custom_headers.items() if name.lower() not in reserved_names}
    return HookRequest(
        hook_id=hook.id,
        url=hook.filled_url,
        shown_url=hook.url,
        url_variables=hook.url_variables,
        headers=custom | own_headers,
        secret_headers=frozenset({*custom, "X-Gitlab-Token"}),
        signing_token=hook.signing_token,
        verifies=hook.enable_ssl_verification,
        policy=policy,
        payload=payload,
        template=hook.custom_webhook_template if uses_template else None,
        flag=flag,
        trigger=trigger,
        idempotency_key=idempotency_key,
        event_uuid=event_uuid,
        payload_id=payload_id,
        attempt=attempt,
    )


def url_digest(url: str) -> str:
    """Return what tells whether a filled-in URL is still the same."""
    return hashlib.sha256(url.encode()).hexdigest()


def perform(request: HookRequest) -> HookResponse:
    """Send a request and read the beginning of its answer."""
    headers = request.headers | {"X-Gitlab-Webhook-UUID": str(uuid.uuid4())}
    started = time.monotonic()
    body: str | None = None
    try:
        if request.template:
            body = render(request.template, exact_json.loads(request.payload))
        content = (body or request.payload).encode()
        if len(content) > MAX_PAYLOAD_BYTES:
            raise RequestFailed(TOO_LARGE)
        if request.signing_token:
            timestamp = int(clock.now().timestamp())
            headers |= {
                "webhook-id": request.idempotency_key,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signature(request.signing_token, request.idempotency_key, timestamp, content),
            }
        client = Client(
            request.policy,
            read_timeout=TOTAL_SECONDS,
            total_timeout=TOTAL_SECONDS,
            max_redirects=0,
            tls=None if request.verifies else _unverified_tls(),
        )
        with client.request("POST", request.url, headers=headers, body=content) as response:
            chunk = next(response.iter_chunks(MAX_ANSWER_BYTES), b"")
            result: dict[str, Any] = {"status": str(response.status), "text": _text(chunk), "error": None}
            answered = dict(response.headers.items())
    except (Blocked, RequestFailed, TemplateFailed) as error:
        result = {"status": INTERNAL_ERROR, "text": "", "error": str(error)}
        answered = {}
    return HookResponse(
        request=request,
        body=body,
        request_headers=headers,
        headers=_shown_headers(answered, request.url_variables),
        duration_seconds=round(time.monotonic() - started, 6),
        retry_after_seconds=_seconds(answered),
        **result,
    )


def _text(chunk: bytes) -> str:
    return chunk.decode("utf-8", errors="replace").replace("\0", "")


def _seconds(headers: dict[str, str]) -> float | None:
    value = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    return float(value) if value.isascii() and value.isdigit() and len(value) < 10 else None


def _shown_headers(headers: dict[str, str], variables: dict[str, str]) -> dict[str, str]:
    shown_headers: dict[str, Any] = {}
    for name, value in list(headers.items())[:MAX_RESPONSE_HEADERS]:
        masked = value
        for key, secret in variables.items():
            masked = masked.replace(secret, f"{{{key}}}")
        cut = masked.encode("utf-8", errors="replace")[:MAX_HEADER_BYTES].decode("utf-8", errors="ignore")
        shown_headers["-".join(part.capitalize() for part in name.split("-"))] = cut
    return shown_headers


@cache
def _unverified_tls() -> ssl.SSLContext:
    """Return the TLS settings of hooks whose owners have switched verification off."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
