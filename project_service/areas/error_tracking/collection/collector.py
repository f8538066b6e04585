"""The endpoints that SDKs of Sentry send to (error collection reference, sections 3 to 8).

The order of the checks: the size, a key (400), its project (404), the encoding (415), the form of
the body (400, 413), the rate limit (429). Every answer may be read by browsers of any origin.
"""

from __future__ import annotations

import datetime as dt
import io
import uuid
from typing import Any
from urllib.parse import urlsplit

from flask import Blueprint, Response, request
from sqlalchemy.exc import IntegrityError
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from project_service.access import guards, webhooks
from project_service.access.api import json_response
from project_service.areas.error_tracking.collection import envelopes, event_limits, ingestion, waiting
from project_service.areas.error_tracking.collection.envelopes import (
    Envelope,
    EventTooLarge,
    MalformedBody,
    UnknownEncoding,
)
from project_service.areas.error_tracking.collection.event_parsing import Arrival, parse_event, read_time
from project_service.areas.error_tracking.collection.receivers import EventReceiver, find_receiver
from project_service.areas.error_tracking.collection.scrubbing import Cleaner
from project_service.areas.error_tracking.settings import client_keys
from project_service.domain import rate_limits
from project_service.domain.rate_limits import LimitExceeded
from project_service.kit import clock
from project_service.kit.db.session import is_deadlock, reading
from project_service.kit.http import errors, responses, urls

MAX_BODY_BYTES = 20 << 20
COLLECTOR = f"{urls.API_PREFIX}/error_tracking/collector/api/<int:project_id>"
# what SDKs make of the DSN of later releases of GitLab
HOSTED_COLLECTOR = "/errortracking/api/v1/projects/api/<int:project_id>"
EXPOSED_HEADERS = "X-Sentry-Error, X-Sentry-Rate-Limits, Retry-After"
PREFLIGHT_SECONDS = "7200"
TOO_LARGE = "too_large"
ERROR_CATEGORIES = ("error", "default")
MAX_REPORT_ENTRIES = 100
# what SDKs give as the reason for an event that they did not send
DISCARD_REASONS = frozenset(
    (
        "backpressure",
        "before_send",
        "cache_overflow",
        "event_processor",
        "insufficient_data",
        "internal_sdk_error",
        "network_error",
        "queue_overflow",
        "ratelimit_backoff",
        "sample_rate",
        "send_error",
    )
)
MAX_REPORTED_EVENTS = 1_000_000
IGNORED_TYPE = "transaction"

collector = Blueprint("error_collector", __name__)


class CollectorRefused(errors.ServiceError):
    """A request is refused; the reason is sent in a header that SDKs print when they debug."""

    def __init__(self, status: int, message: str, reason: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message, {"X-Sentry-Error": reason, **(headers or {})})
        self.status = status


def _malformed(what: str) -> CollectorRefused:
    return CollectorRefused(400, f"400 Bad request - {what}", what)


def _too_large() -> CollectorRefused:
    return CollectorRefused(413, "413 Request Entity Too Large", "the event is too large")


@collector.errorhandler(Exception)
def _render(error: Exception) -> Response:
    return responses.render(_translated(error))


def _translated(error: Exception) -> errors.ServiceError:
    if isinstance(error, MalformedBody):
        return _malformed(str(error))
    if isinstance(error, UnknownEncoding):
        text = "415 Unsupported Media Type"
        return CollectorRefused(415, text, "the content encoding is not supported")
    if isinstance(error, EventTooLarge | RequestEntityTooLarge):
        return _too_large()
    if isinstance(error, BadRequest):
        return _malformed("the body cannot be read")
    return responses.as_service_error(error)


@collector.after_request
def _allow_all_origins(response: Response) -> Response:
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Access-Control-Expose-Headers"] = EXPOSED_HEADERS
    if request.method == "OPTIONS":
        response.headers["Access-Control-Allow-Methods"] = "POST, OPTIONS"
        response.headers["Access-Control-Allow-Headers"] = request.headers.get("Access-Control-Request-Headers", "*")
        response.headers["Access-Control-Max-Age"] = PREFLIGHT_SECONDS
    return response


def receive_envelope(project_id: int) -> Response:
    """Take the event and the reports of an envelope."""
    _check_size()
    key = _sent_key()
    if key is not None:
        receiver = _receiver(project_id, key)
        body = _body()
        header = envelopes.read_header(body)
    else:
        body, header, key = _header_with_key()
        receiver = _receiver(project_id, key)
    try:
        envelope = envelopes.read_items(header, body, receiver.max_event_bytes)
    except EventTooLarge:
        _count_too_large(receiver)
        raise
    return _store(receiver, envelope)


def receive_event(project_id: int) -> Response:
    """Take one event that is the whole body."""
    _check_size()
    key = _sent_key()
    if key is None:
        raise _keyless()
    receiver = _receiver(project_id, key)
    try:
        raw = envelopes.read_store_body(_body(), receiver.max_event_bytes)
    except EventTooLarge:
        _count_too_large(receiver)
        raise
    return _store(receiver, Envelope({}, raw), ignored_type=IGNORED_TYPE)


def answer_options(**_url: Any) -> Response:
    """Answer preflights of browsers."""
    return Response(status=200)


def refuse_method(**_url: Any) -> Response:
    """Answer other methods."""
    return responses.render(errors.MethodNotAllowed("405 Not Allowed", allow="OPTIONS, POST"))


def _register() -> None:
    for prefix, name in ((COLLECTOR, ""), (HOSTED_COLLECTOR, "_hosted")):
        for end, view in (("envelope", receive_envelope), ("store", receive_event)):
            rule = f"{prefix}/{end}/"
            options: dict[str, Any] = {"provide_automatic_options": False}
            guards.mark(view, body_bytes=MAX_BODY_BYTES)
            collector.add_url_rule(rule, f"{end}{name}", view, methods=["POST"], **options)
            collector.add_url_rule(rule, f"{end}{name}_options", answer_options, methods=["OPTIONS"], **options)
            other_methods = [method for method in webhooks.OTHER_METHODS if method != "OPTIONS"]
            collector.add_url_rule(rule, f"{end}{name}_other", refuse_method, methods=other_methods, **options)


_register()


def _sent_key() -> str | None:
    """Return the key in the query or the headers; ``None`` without one."""
    if key := request.args.get("sentry_key"):
        return key
    for name in ("X-Sentry-Auth", "Authorization"):
        scheme, _, text = request.headers.get(name, "").strip().partition(" ")
        if scheme.lower() != "sentry":
            continue
        pairs = (pair.strip().partition("=") for pair in text.split(","))
        key = next((value.strip() for key, _, value in pairs if key.strip() == "sentry_key"), "")
        if key:
            return key
    return None


def _header_with_key() -> tuple[io.BufferedReader, dict[str, Any], str]:
    """Read the header of an envelope that has the key; without one the request has none."""
    try:
        body = _body()
        header = envelopes.read_header(body)
    except (MalformedBody, UnknownEncoding) as error:
        raise _keyless() from error
    dsn = header.get("dsn")
    try:
        key = urlsplit(dsn).username if isinstance(dsn, str) else None
    except ValueError:
        key = None
    if not key:
        raise _keyless()
    return body, header, key


def _keyless() -> CollectorRefused:
    text = "400 Bad request - Failed to parse sentry request"
    return CollectorRefused(400, text, "there is no key")


def _receiver(project_id: int, key: str) -> EventReceiver:
    receiver = None
    if client_keys.PUBLIC_KEY.fullmatch(key):
        with reading():
            receiver = find_receiver(project_id, key)
    if receiver is None:
        raise CollectorRefused(404, "404 Not Found", "the project or the key is unknown")
    return receiver


def _check_size() -> None:
    request.max_content_length = MAX_BODY_BYTES
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise _too_large()


def _body() -> io.BufferedReader:
    return envelopes.decompressed(request.stream, request.headers.get("Content-Encoding", ""))


def _store(receiver: EventReceiver, envelope: Envelope, ignored_type: str | None = None) -> Response:
    now = clock.now()
    raw = None if envelope.event is None else _read_event(envelope.event)
    if raw is not None and ignored_type is not None and raw.get("type") == ignored_type:
        envelope.pass_over(ignored_type)
        raw = None
    if envelope.passed_over:
        event_limits.count_passed_over(receiver.project_id, now, envelope.passed_over)
    discarded = _discarded(envelope.reports)
    if raw is None:
        if discarded:
            webhooks.in_unit_of_work(lambda: _count_discarded(receiver, discarded))
        return json_response({})
    event_id = envelopes.read_event_id(envelope.header.get("event_id"))
    event_id = event_id or envelopes.read_event_id(raw.get("event_id")) or uuid.uuid4().hex
    if receiver.wait is not None:
        raise _over_limit(receiver, receiver.wait)
    counter = event_limits.counter_of(receiver.project_id, receiver.event_limit)
    arrival = Arrival(now, read_time(envelope.header.get("sent_at")), request.remote_addr, receiver.stores_addresses)
    event = parse_event(raw, arrival, Cleaner(receiver.hidden_keys))

    def store() -> None:
        waiting.receive(receiver, event_id, event)
        _count_discarded(receiver, discarded)
        rate_limits.count_in_unit(counter)  # last: other events of the project wait for this row

    try:
        webhooks.in_unit_of_work(store, _is_transient)
    except LimitExceeded as error:  # several came at once
        raise _over_limit(receiver, error.wait) from error
    return json_response({"id": event_id})


def _over_limit(receiver: EventReceiver, wait: dt.timedelta) -> CollectorRefused:
    event_limits.count_refused(receiver.project_id, clock.now())
    seconds = str(rate_limits.seconds_of(wait))
    headers = {"Retry-After": seconds, "X-Sentry-Rate-Limits": f"{seconds}:default;error:project:rate_limited"}
    return CollectorRefused(429, "429 Too Many Requests", "too many events", headers)


def _is_transient(error: Exception) -> bool:
    """Whether storing may succeed the next time: after a deadlock, or when the error was removed a moment ago."""
    return is_deadlock(error) or isinstance(error, IntegrityError)


def _read_event(payload: bytes) -> dict[str, Any]:
    try:
        raw = envelopes.read_json(payload)
    except ValueError as error:
        raise MalformedBody("the event is not JSON") from error
    if not isinstance(raw, dict):
        raise MalformedBody("the event is no object")
    return raw


def _discarded(reports: list[bytes]) -> dict[str, int]:
    """Return how many events SDKs have discarded, by reason; malformed reports are ignored."""
    discarded: dict[str, int] = {}
    for report in reports:
        try:
            raw = envelopes.read_json(report)
        except ValueError:
            continue
        entries = raw.get("discarded_events") if isinstance(raw, dict) else None
        for entry in entries[:MAX_REPORT_ENTRIES] if isinstance(entries, list) else []:
            if not isinstance(entry, dict) or entry.get("category") not in ERROR_CATEGORIES:
                continue
            reason, quantity = entry.get("reason"), entry.get("quantity")
            if isinstance(reason, str) and isinstance(quantity, int) and 0 < quantity <= MAX_REPORTED_EVENTS:
                name = f"sdk:{reason if reason in DISCARD_REASONS else 'other'}"
                discarded[name] = discarded.get(name, 0) + int(quantity)
    return discarded


def _count_discarded(receiver: EventReceiver, discarded: dict[str, int]) -> None:
    for reason in sorted(discarded):
        ingestion.count_dropped(receiver.project_id, clock.now(), reason, discarded[reason])


def _count_too_large(receiver: EventReceiver) -> None:
    webhooks.in_unit_of_work(lambda: ingestion.count_dropped(receiver.project_id, clock.now(), TOO_LARGE))
