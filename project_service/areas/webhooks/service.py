"""Create, change, delete, test and repeat web hooks (webhooks reference, sections 3 to 7)."""

from __future__ import annotations

import hmac
import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from project_service.access import audit
from project_service.access.identity import Caller
from project_service.areas.webhooks import branch_filters, logs, queries, samples
from project_service.areas.webhooks.models import DISABLED, EVENTS, GROUP_EVENTS, WebHook, WebHookLog
from project_service.areas.webhooks.queries import Owner
from project_service.areas.webhooks.requests import (
    INTERNAL_ERROR,
    HookResponse,
    perform,
    request_of,
    url_digest,
)
from project_service.areas.webhooks.sender import policy_of
from project_service.areas.webhooks.triggers import header_of, trigger_of
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import exact_json
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import db
from project_service.kit.http.errors import BadParameters, NotFound, ServiceError, Unprocessable
from project_service.kit.security.outgoing_http import rules
from project_service.kit.security.standard_webhooks import is_signing_token

MAX_HOOKS_OF_PROJECT, MAX_HOOKS_OF_GROUP = 100, 50
MAX_URL_LENGTH = 8192
MAX_TOKEN_LENGTH = 8192
MAX_LENGTHS = {"name": 255, "description": 2048, "custom_webhook_template": 4096}
MAX_PAIRS = 20
MAX_VALUE_LENGTH = 2048
KEY = re.compile(r"[A-Za-z]+[0-9]*([._-][A-Za-z0-9]+)*")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
LINE_BREAKS = re.compile(r"[\r\n]|%0a|%0d|%5cn|%5cr|\\n|\\r", re.IGNORECASE)
URL, FILTER, HEADERS = "url", "push_events_branch_filter", "custom_headers"
TESTS = RateLimit("web_hook:test", 5)
REPETITIONS = RateLimit("web_hook:resend", 5)
LOCKED_COLUMNS = ("url", "events", "encoded_url_variables", "encoded_custom_headers")
Removed = Mapping[str, Collection[str]]
"""Names to remove, by ``url_variables`` and ``custom_headers``."""
PLAIN_FIELDS = ("name", "description", "custom_webhook_template", "enable_ssl_verification", "branch_filter_strategy")


class HookRefused(ServiceError):
    """A hook breaks a rule: 422 with the text under ``error``."""

    status = 422

    def body(self) -> dict[str, Any]:
        """Return the text under ``error``."""
        return {"error": self.message}


class HookFields(TypedDict, total=False):
    """What may be given of a hook; its events are switches."""

    url: str | None
    token: str | None
    signing_token: str | None
    name: str | None
    description: str | None
    custom_webhook_template: str | None
    enable_ssl_verification: bool | None
    push_events_branch_filter: str | None
    branch_filter_strategy: str | None
    url_variables: Sequence[dict[str, str]] | None
    custom_headers: Sequence[dict[str, str]] | None
    push_events: bool | None
    issues_events: bool | None
    confidential_issues_events: bool | None
    note_events: bool | None
    confidential_note_events: bool | None
    tag_push_events: bool | None
    merge_requests_events: bool | None
    milestone_events: bool | None
    vulnerability_events: bool | None
    alert_events: bool | None
    error_events: bool | None
    releases_events: bool | None
    job_events: bool | None
    pipeline_events: bool | None
    wiki_page_events: bool | None
    deployment_events: bool | None
    feature_flag_events: bool | None
    emoji_events: bool | None
    resource_access_token_events: bool | None
    repository_update_events: bool | None
    subgroup_events: bool | None
    member_events: bool | None
    project_events: bool | None


def create_hook(owner: Owner, **fields: Unpack[HookFields]) -> WebHook:
    """Create a hook of a project, a group, or the instance."""
    hook = WebHook(
        url="",
        project=owner if isinstance(owner, Project) else None,
        project_id=owner.id if isinstance(owner, Project) else None,
        group_id=owner.id if isinstance(owner, Group) else None,
        events={},
        branch_filter_strategy=branch_filters.WILDCARD,
        enable_ssl_verification=True,
        recent_failures=0,
        dropped_events=0,
    )
    with db.session.no_autoflush:
        problems = _resolve(hook, fields, {})
        problems |= _assign(hook, fields, {})
        kind, limit = _limit_of(owner)
        if limit is not None and queries.number_of_hooks(owner) >= limit:
            raise HookRefused(f"Maximum number of {kind} hooks ({limit}) exceeded")
    _refuse(problems, is_new=True)
    db.session.add(hook)
    db.session.flush()
    _audit(hook, owner, "created")
    return hook


def update_hook(
    owner: Owner, hook: WebHook, *, removed: Removed | None = None, **fields: Unpack[HookFields]
) -> WebHook:
    """Change a hook; another URL takes no secrets along. ``removed`` are names of variables and headers to remove."""
    if not fields:
        raise BadParameters("No parameters provided")
    removed = removed or {}
    with db.session.no_autoflush:
        problems = _resolve(hook, fields, removed)
        lock_row(hook, *LOCKED_COLUMNS)  # it may have changed while the name of the host was resolved
        problems |= _assign(hook, fields, removed)
    if problems:
        db.session.rollback()
    _refuse(problems, is_new=False)
    db.session.flush()
    _audit(hook, owner, "updated")
    return hook


def delete_hook(owner: Owner, hook: WebHook) -> None:
    """Remove a hook with its log; what waits for it is dropped."""
    _audit(hook, owner, "destroyed")
    delete_locked(hook)


def set_pair(owner: Owner, hook: WebHook, attribute: str, key: str, value: str) -> None:
    """Set one URL variable or custom header."""
    pairs = getattr(hook, attribute)
    is_full = key not in pairs and len(pairs) >= MAX_PAIRS
    if is_full or not _is_pair(attribute, key, value):
        raise HookRefused("Illegal key or value")
    if attribute == "url_variables":
        update_hook(owner, hook, url_variables=[{"key": key, "value": value}])
    else:
        lock_row(hook, *LOCKED_COLUMNS)
        hook.custom_headers = hook.custom_headers | {key: value}
        _audit(hook, owner, "updated")


def remove_pair(owner: Owner, hook: WebHook, attribute: str, key: str) -> None:
    """Remove one URL variable or custom header."""
    pairs = getattr(hook, attribute)
    if key not in pairs:
        raise NotFound("URL variable" if attribute == "url_variables" else "Custom header")
    if attribute == "url_variables":
        draft = WebHook(url=hook.url, project_id=hook.project_id, group_id=hook.group_id)
        draft.url_variables = _without(pairs, [key])
        if _url_problem(draft) is not None:
            raise HookRefused("Illegal key or value")
    lock_row(hook, *LOCKED_COLUMNS)
    setattr(hook, attribute, _without(getattr(hook, attribute), [key]))
    _audit(hook, owner, "updated")


def enable_hook(owner: Owner, hook: WebHook) -> None:
    """End the disabling of a hook."""
    logs.enable(hook)
    _audit(hook, owner, "updated")


def check_rate(requester: Caller, limit: RateLimit, owner: Owner) -> None:
    """Count a test or a repetition of a user."""
    limit.check("instance" if owner is None else f"{type(owner).__name__}:{owner.id}", requester.user_id or 0)


def test_hook(owner: Owner, hook: WebHook, flag: str) -> HookResponse:
    """Send an event of a kind now, whatever the hook listens to and also if it is disabled."""
    payload = samples.payload_for(owner, flag)
    if payload is None:
        raise Unprocessable(samples.MISSING.get(flag, samples.UNAVAILABLE))
    return _send_now(
        hook,
        flag=flag,
        trigger=trigger_of(flag) if not hook.is_system else "system_hooks",
        event_header=header_of(flag),
        payload=exact_json.dumps(payload).decode(),
        payload_id=None,
        idempotency_key=str(uuid.uuid4()),
    )


def resend(hook: WebHook, attempt: WebHookLog) -> HookResponse:
    """Repeat a logged attempt: the same body and the same key.

    Raises:
        Unprocessable: the hook has another URL now, is disabled, or the body is not kept any more.

    """
    if not hmac.compare_digest(attempt.url_digest, url_digest(hook.filled_url)):
        raise Unprocessable("The hook URL has changed. This log entry cannot be retried.")
    if hook.alert_status == DISABLED:
        raise Unprocessable("Hook disabled")
    if attempt.payload is None:
        raise Unprocessable("The request is not kept any more.")
    flag = next((flag for flag in (*EVENTS, *GROUP_EVENTS) if _has_trigger(flag, attempt.trigger)), EVENTS[0])
    return _send_now(
        hook,
        flag=flag,
        trigger=attempt.trigger,
        event_header=attempt.event_header,
        payload=attempt.payload.body,
        payload_id=attempt.payload_id,
        idempotency_key=attempt.idempotency_key,
        uses_template=False,
    )


def _has_trigger(flag: str, trigger: str) -> bool:
    return flag.removesuffix("_events").removesuffix("s") == trigger.removesuffix("_hooks")


def _send_now(hook: WebHook, **request: Any) -> HookResponse:
    """Send in this request, and log it. No transaction is open on the network."""
    message = request_of(hook, policy_of(hook), event_uuid=None, attempt=1, **request)
    hook_id = hook.id
    db.session.commit()
    response = perform(message)
    stored = db.session.get(WebHook, hook_id, populate_existing=True)
    if stored is not None:
        logs.record_attempt(stored, response)
    return response


def failure_text(response: HookResponse) -> str | None:
    """Return why a test failed, ``None`` if it did not."""
    if response.is_success:
        return None
    return response.error if response.status == INTERNAL_ERROR else response.text or f"HTTP {response.status}"


def _assign(hook: WebHook, requested: Mapping[str, Any], removed: Removed) -> dict[str, list[str]]:
    """Set fields and return the problems by attribute, but for those of the URL, see ``_resolve``."""
    old_url = hook.url
    fields = dict(requested)
    flags = {name: fields.pop(name) for name in (*EVENTS, *GROUP_EVENTS) if name in fields}
    hook.events = hook.events | {name: value for name, value in flags.items() if value is not None}
    for name in PLAIN_FIELDS:
        if name in fields and (fields[name] is not None or name in MAX_LENGTHS):
            setattr(hook, name, fields[name])
    if FILTER in fields:
        text = fields[FILTER]
        hook.push_events_branch_filter = None if text is None else " ".join(text.split(" ")).strip()
    if hook.branch_filter_strategy == branch_filters.ALL_BRANCHES:
        hook.push_events_branch_filter = None
    _assign_url(hook, fields, removed)
    headers = hook.custom_headers | _pairs(fields.get(HEADERS))
    hook.custom_headers = _without(headers, removed.get(HEADERS, ()))
    if old_url and hook.url != old_url:
        hook.token = hook.signing_token = None
        logs.enable(hook)
    for name in ("token", "signing_token"):
        if name in fields:
            setattr(hook, name, fields[name] or None)
    return _problems(hook)


def _assign_url(hook: WebHook, requested: Mapping[str, Any], removed: Removed) -> None:
    """Set the URL and its variables, and drop secrets that were given for another URL."""
    old_url, old_filled = hook.url, hook.filled_url if hook.url else ""
    variables = _pairs(requested.get("url_variables"))
    if requested.get("url") is not None:
        hook.url = requested["url"].strip()
    hook.url_variables = _without(hook.url_variables | variables, removed.get("url_variables", ()))
    if not old_url or hook.filled_url == old_filled:
        return
    if (
        hook.url != old_url
        or rules.URL.match(hook.filled_url) is None
        or _origin(hook.filled_url) != _origin(old_filled)
    ):
        hook.url_variables = variables
    hook.custom_headers = {}


def _resolve(hook: WebHook, requested: Mapping[str, Any], removed: Removed) -> dict[str, list[str]]:
    """Return the problem of the URL that a hook is to have; called before the hook is changed.

    The transaction is ended, so that no lock is held while the name of the host is resolved.
    """
    draft = WebHook(url=hook.url, project_id=hook.project_id, group_id=hook.group_id)
    draft.url_variables = hook.url_variables
    _assign_url(draft, requested, removed)
    problem = _url_problem(draft)
    return {} if problem is None else {URL: [problem]}


def _origin(url: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"


def _without(pairs: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    return {name: value for name, value in pairs.items() if name not in names}


def _pairs(given: Sequence[dict[str, str]] | None) -> dict[str, str]:
    return {pair["key"]: pair["value"] for pair in given or ()}


def _is_pair(attribute: str, key: str, value: str) -> bool:
    if KEY.fullmatch(key) is None or not 1 <= len(value) <= MAX_VALUE_LENGTH:
        return False
    return attribute == "url_variables" or (value == value.strip() and not LINE_BREAKS.search(value))


def _problems(hook: WebHook) -> dict[str, list[str]]:
    problems: dict[str, list[str]] = {}
    branch_filter = hook.push_events_branch_filter
    if branch_filter and not branch_filters.is_valid(hook.branch_filter_strategy, branch_filter):
        problems[FILTER] = ["is invalid"]
    for attribute in (HEADERS, "url_variables"):
        pairs = getattr(hook, attribute)
        if len(pairs) > MAX_PAIRS or not all(_is_pair(attribute, *pair) for pair in pairs.items()):
            problems[attribute] = ["must be a valid json schema"]
    if hook.token and (len(hook.token) > MAX_TOKEN_LENGTH or "\n" in hook.token):
        problems["token"] = ["is invalid"]
    if hook.signing_token and not is_signing_token(hook.signing_token):
        problems["signing_token"] = ["is invalid"]
    for name, length in MAX_LENGTHS.items():
        if len(getattr(hook, name) or "") > length:
            problems[name] = [f"is too long (maximum is {length} characters)"]
    return problems


def _url_problem(hook: WebHook) -> str | None:
    url = hook.filled_url if hook.url else ""
    if not url or len(hook.url) > MAX_URL_LENGTH or PLACEHOLDER.search(url):
        return "is invalid"
    policy = policy_of(hook)
    db.session.commit()
    try:
        rules.validate(url, policy)
    except rules.Blocked as error:
        return f"is blocked: {error}"
    return None


def _refuse(problems: dict[str, list[str]], *, is_new: bool) -> None:
    """Raise the error for problems (webhooks reference, section 4)."""
    if not problems:
        return
    if URL in problems:
        raise HookRefused("Invalid url given")
    if FILTER in problems:
        raise HookRefused("Invalid branch filter given")
    if HEADERS in problems:
        raise HookRefused(
            "Custom headers must be a valid json schema" if is_new else "Custom headers validation failed"
        )
    if is_new:
        sentences = (
            f"{name.replace('_', ' ').capitalize()} {text}" for name, texts in problems.items() for text in texts
        )
        raise HookRefused(", ".join(sentences))
    raise Unprocessable(problems)


def _limit_of(owner: Owner) -> tuple[str, int | None]:
    if owner is None:
        return "system", None
    return ("project", MAX_HOOKS_OF_PROJECT) if isinstance(owner, Project) else ("group", MAX_HOOKS_OF_GROUP)


def _audit(hook: WebHook, owner: Owner, what: str) -> None:
    kind = "system_hook" if owner is None else "web_hook"
    host = rules.redact(hook.url)
    audit.record(f"{kind}_{what}", owner, f"{what.capitalize()} web hook {host}")
