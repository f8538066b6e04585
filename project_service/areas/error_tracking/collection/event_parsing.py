"""Parse an event of a Sentry SDK into what is stored (error collection reference, sections 9 to 13).

A field of the wrong type is left out; no event that is a JSON object is refused.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from project_service.areas.error_tracking.collection import grouping
from project_service.areas.error_tracking.collection.derived_tags import derived_tags
from project_service.areas.error_tracking.collection.messages import message_of
from project_service.areas.error_tracking.collection.scrubbing import (
    FILTERED,
    MAX_ENTRIES,
    MAX_KEY_LENGTH,
    Cleaner,
    as_text,
)
from project_service.areas.error_tracking.collection.stacks import javascript_stacks, stack_traces
from project_service.areas.error_tracking.collection.stacks.javascript_stacks import StackKey
from project_service.areas.error_tracking.collection.stacks.native_frames import Image, images_of
from project_service.areas.error_tracking.collection.stacks.stack_traces import Entry
from project_service.areas.error_tracking.source_maps import problems
from project_service.kit import exact_json

MAX_TAGS = 100
MAX_BREADCRUMBS = 100
MAX_ERROR_MESSAGE_LENGTH = 1024
MAX_STORED_BYTES = 200_000
CLOCK_TOLERANCE = dt.timedelta(seconds=60)
MAX_AGE = dt.timedelta(days=30)
AUTO_ADDRESS = "{{auto}}"
LEVELS = ("fatal", "error", "warning", "info", "debug")
LEVEL_NAMES = {
    **{level: level for level in LEVELS},
    "critical": "fatal",
    "warn": "warning",
    "log": "info",
    "50": "fatal",
    "40": "error",
    "30": "warning",
    "20": "info",
    "10": "debug",
}
NAMES = ("platform", "logger", "server_name", "dist", "release", "transaction")
USER_FIELDS = ("id", "username", "email", "ip_address", "name")
USER_IDENTITY = ("id", "email", "username", "ip_address")
OLD_PREFIX = "sentry.interfaces."
OLD_NAMES = {
    f"{OLD_PREFIX}Exception": "exception",
    f"{OLD_PREFIX}Stacktrace": "stacktrace",
    f"{OLD_PREFIX}Http": "request",
    f"{OLD_PREFIX}User": "user",
    f"{OLD_PREFIX}Breadcrumbs": "breadcrumbs",
    f"{OLD_PREFIX}Template": "template",
    f"{OLD_PREFIX}Query": "query",
}  # that of the message is read in its module, since its parameters are quoted
SHOWN_AS_CONTEXTS = ("template", "query")
REQUEST_FIELDS = ("url", "method", "query_string", "headers", "cookies", "data", "env")
BREADCRUMB_NAMES = ("type", "category", "level")
SUMMARY_NAMES = ("message", "title", "culprit", "level", "environment", *NAMES, "user", "tags")
FRACTION = re.compile(r"\.([0-9]{1,6})[0-9]{0,12}")


@dataclass(frozen=True, slots=True)
class ParsedEvent:
    """An event as it is stored. ``digest`` decides its error; ``user`` is the kind and value of who was affected."""

    digest: str
    occurred_at: dt.datetime
    received_at: dt.datetime
    title: str
    type: str | None
    message: str | None
    culprit: str
    level: str
    logger: str | None
    platform: str | None
    environment: str
    release: str | None
    user: tuple[str, str] | None
    summary: dict[str, Any]
    details: dict[str, Any]
    stack: StackKey | None = None


@dataclass(frozen=True, slots=True)
class Arrival:
    """When and from where an event arrived; ``stores_address`` is a setting of the project."""

    received_at: dt.datetime
    sent_at: dt.datetime | None = None
    address: str | None = None
    stores_address: bool = False


def parse_event(raw: dict[str, Any], arrival: Arrival, cleaner: Cleaner) -> ParsedEvent:
    """Parse the JSON object of an event."""
    raw = _with_current_names(raw)
    images = images_of(raw.get("debug_meta"))
    exceptions = stack_traces.exceptions_of(raw.get("exception"), cleaner, images)
    stack = _own_stack(raw, exceptions, cleaner, images)
    threads = stack
    if not stack and not any(exception["frames"] for exception in exceptions):
        threads = stack_traces.threads_of(raw.get("threads"), cleaner, images)
    message = message_of(raw, cleaner)
    event: dict[str, Any] = {name: cleaner.name(raw.get(name)) for name in NAMES}
    event["environment"] = cleaner.name(raw.get("environment")) or "production"
    event["level"] = level_of(raw.get("level"))
    event["request"] = _request(raw.get("request"), cleaner)
    event["user"], identity = _user(raw, arrival, cleaner)
    event["tags"] = _tags(raw.get("tags"), cleaner)
    event["message"] = message.text
    # minidumps have the stack of a crash in the thread that crashed
    crash_stacks = exceptions + threads
    is_crash = grouping.is_native_crash(exceptions, crash_stacks, event["platform"])
    event["title"] = grouping.title_of(exceptions, message.text, crash_stacks if is_crash else ())
    event["culprit"] = grouping.culprit_of(event, exceptions, threads)
    main = grouping.main_exception(exceptions)
    value = (main["value"] if main is not None else None) or ""
    is_typed = main is not None and (is_crash or grouping.is_typed(main))
    fingerprint = _fingerprint(raw.get("fingerprint"), cleaner)
    parts = grouping.parts_of(
        exceptions, message.template or value, crash_stacks if is_crash else stack, is_crash=is_crash
    )
    details = {
        "exceptions": exceptions + threads,
        "breadcrumbs": _breadcrumbs(raw.get("breadcrumbs"), cleaner),
        "request": event["request"],
        **{name: _object(raw.get(name), cleaner) for name in ("contexts", "extra", "sdk")},
        "modules": _modules(raw.get("modules"), cleaner),
        "fingerprint": fingerprint,
        "truncated": False,
    }
    stack_key = javascript_stacks.stack_key(raw, details["exceptions"], event)
    if stack_key is not None and stack_key.debug_ids:
        details["debug_ids"] = stack_key.debug_ids
    if stack_key is None and (
        scripts := javascript_stacks.unprepared_scripts(details["exceptions"], event["platform"])
    ):
        details["source_map_problems"] = [problems.no_source(scripts[0], None, None, None)]
    summary = {name: event[name] for name in SUMMARY_NAMES}
    if derived := derived_tags(details["contexts"], event["request"]):
        summary["derived_tags"] = derived
    shown_text = (value if is_typed else message.text or value) or None
    details = _bounded(details, MAX_STORED_BYTES - len(exact_json.dumps(summary)))
    return ParsedEvent(
        digest=grouping.digest_of(fingerprint, parts),
        occurred_at=_occurred_at(raw.get("timestamp"), arrival),
        received_at=arrival.received_at,
        title=event["title"],
        type=main["type"] if main is not None and is_typed else None,
        message=shown_text and shown_text[:MAX_ERROR_MESSAGE_LENGTH],
        culprit=event["culprit"],
        level=event["level"],
        logger=event["logger"],
        platform=event["platform"],
        environment=event["environment"],
        release=event["release"],
        user=identity,
        summary=summary,
        details=details,
        stack=None if details["truncated"] else stack_key,
    )


def _with_current_names(raw: dict[str, Any]) -> dict[str, Any]:
    """Return an event without the names of old clients for its parts (error collection reference, section 22).

    The template and the query are shown with the contexts.
    """
    renamed = {new: raw[old] for old, new in OLD_NAMES.items() if old in raw and raw.get(new) is None}
    event = {**raw, **renamed}
    shown = {name: event[name] for name in SHOWN_AS_CONTEXTS if isinstance(event.get(name), dict)}
    if shown:
        event["contexts"] = {**shown, **(event["contexts"] if isinstance(event.get("contexts"), dict) else {})}
    return event


def _own_stack(raw: dict[str, Any], exceptions: list[Entry], cleaner: Cleaner, images: Sequence[Image]) -> list[Entry]:
    """Give the stack of the event itself to the newest exception that has none; return it without an exception."""
    frames = stack_traces.frames_of(raw.get("stacktrace"), cleaner, images)
    if not frames:
        return []
    if not exceptions:
        return [stack_traces.stack_of(frames)]
    if (
        without := next((exception for exception in reversed(exceptions) if not exception["frames"]), None)
    ) is not None:
        without["frames"] = frames
    return []


def level_of(raw: Any) -> str:
    """Return one of the five levels; numbers are those of Python's logging."""
    return LEVEL_NAMES.get((as_text(raw) or "")[:20].lower(), "error")


def read_time(raw: Any) -> dt.datetime | None:
    """Parse an RFC 3339 text (UTC without a zone) or seconds since 1970; ``None`` for everything else."""
    try:
        if isinstance(raw, str):
            # the standard library takes at most six digits of a fraction
            moment = dt.datetime.fromisoformat(FRACTION.sub(r".\1", raw.strip()[:64].upper()))
            return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).astimezone(dt.UTC)
        if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw):
            return dt.datetime.fromtimestamp(raw, dt.UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _occurred_at(raw: Any, arrival: Arrival) -> dt.datetime:
    received = arrival.received_at
    occurred = read_time(raw) or received
    try:
        if arrival.sent_at is not None and abs(received - arrival.sent_at) > CLOCK_TOLERANCE:
            occurred += received - arrival.sent_at
    except OverflowError:
        return received
    return occurred if received - MAX_AGE <= occurred <= received + CLOCK_TOLERANCE else received


def _user(raw: dict[str, Any], arrival: Arrival, cleaner: Cleaner) -> tuple[dict[str, str] | None, Any]:
    """Return the user as stored, and kind and value of who is counted."""
    user = raw["user"] if isinstance(raw.get("user"), dict) else {}
    user = {name: text for name in USER_FIELDS if (text := cleaner.optional_text(user.get(name)))}
    sdk = raw["sdk"] if isinstance(raw.get("sdk"), dict) else {}
    settings = sdk["settings"] if isinstance(sdk.get("settings"), dict) else {}
    is_auto = user.get("ip_address") == AUTO_ADDRESS
    if is_auto:
        del user["ip_address"]
    identity = next(((kind, user[kind]) for kind in USER_IDENTITY if kind in user), None)
    if arrival.address and (is_auto or (settings.get("infer_ip") == "auto" and "ip_address" not in user)):
        identity = identity or ("ip_address", arrival.address)
        if arrival.stores_address:
            user["ip_address"] = arrival.address
    return user or None, identity


def _tags(raw: Any, cleaner: Cleaner) -> list[dict[str, str]]:
    pairs = list(raw.items()) if isinstance(raw, dict) else raw if isinstance(raw, list) else []
    tags: list[dict[str, str]] = []
    for pair in pairs[:MAX_TAGS]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            continue
        key, value = as_text(pair[0]), as_text(pair[1])
        if key and value is not None:
            cleaned = FILTERED if cleaner.is_secret(key) else cleaner.text(value, MAX_KEY_LENGTH)
            tags.append({"key": cleaner.text(key, MAX_KEY_LENGTH), "value": cleaned})
    return tags


def _request(raw: Any, cleaner: Cleaner) -> dict[str, Any] | None:
    if not isinstance(raw, dict):
        return None
    request: dict[str, Any] = cleaner.data({name: raw[name] for name in REQUEST_FIELDS if raw.get(name) is not None})
    return request or None


def _breadcrumbs(raw: Any, cleaner: Cleaner) -> list[dict[str, Any]]:
    values = raw.get("values") if isinstance(raw, dict) else raw
    breadcrumbs = (
        [breadcrumb for breadcrumb in values if isinstance(breadcrumb, dict)] if isinstance(values, list) else []
    )
    crumbs = []
    for breadcrumb in breadcrumbs[-MAX_BREADCRUMBS:]:
        moment = read_time(breadcrumb.get("timestamp"))
        crumb: dict[str, Any] = {"timestamp": moment.isoformat().replace("+00:00", "Z") if moment else None}
        crumb |= {name: cleaner.name(breadcrumb.get(name)) for name in BREADCRUMB_NAMES}
        crumb["message"] = cleaner.optional_text(breadcrumb.get("message"))
        crumb["data"] = cleaner.data(breadcrumb["data"]) if isinstance(breadcrumb.get("data"), dict) else None
        crumbs.append(crumb)
    return crumbs


def _object(raw: Any, cleaner: Cleaner) -> dict[str, Any]:
    return cleaner.data(raw) if isinstance(raw, dict) else {}


def _modules(raw: Any, cleaner: Cleaner) -> dict[str, str]:
    """Return packages and their versions; their names say nothing about secrets (``google-auth``)."""
    pairs = list(raw.items())[:MAX_ENTRIES] if isinstance(raw, dict) else []
    modules = ((cleaner.text(name, MAX_KEY_LENGTH), cleaner.optional_text(version)) for name, version in pairs)
    return {name: version for name, version in modules if version is not None}


def _fingerprint(raw: Any, cleaner: Cleaner) -> list[str]:
    values = [raw] if isinstance(raw, str) else raw if isinstance(raw, list) else []
    return [cleaner.text(text) for part in values[:MAX_ENTRIES] if (text := as_text(part)) is not None]


def _bounded(details: dict[str, Any], max_bytes: int) -> dict[str, Any]:
    """Leave out what is least needed, part by part, until the details are at most ``max_bytes`` long."""
    size = len(exact_json.dumps(details))
    if size <= max_bytes:
        return details
    details["truncated"] = True
    for shorten in SHORTENINGS:
        shorten(details)
        if len(exact_json.dumps(details)) <= max_bytes:
            break
    return details


def _drop_from_frames(*names: str) -> Any:
    def shorten(details: dict[str, Any]) -> None:
        for entry in details["exceptions"]:
            for frame in entry["frames"]:
                for name in names:
                    frame.pop(name, None)

    return shorten


def _empty(name: str, value: Any) -> Any:
    def shorten(details: dict[str, Any]) -> None:
        details[name] = type(value)()

    return shorten


def _keep_exceptions(count: int, frames: int) -> Any:
    def shorten(details: dict[str, Any]) -> None:
        details["exceptions"] = details["exceptions"][-count:]
        for entry in details["exceptions"]:
            entry["frames"] = entry["frames"][-frames:]

    return shorten


SHORTENINGS = (
    _drop_from_frames("vars"),
    _empty("extra", {}),
    _empty("contexts", {}),
    _empty("breadcrumbs", []),
    _drop_from_frames("pre_context", "context_line", "post_context"),
    _empty("request", {}),
    _empty("modules", {}),
    _empty("sdk", {}),
    _empty("fingerprint", []),
    _keep_exceptions(5, 50),
    _keep_exceptions(1, 10),
    _empty("exceptions", []),
)
