"""Mapping of a Sentry server's answers to errors and events. All that an answer says may be missing or of any type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from project_service.areas.error_tracking.collection.event_parsing import LEVELS, USER_FIELDS, read_time
from project_service.areas.error_tracking.errors.views import LAST_DAY, ErrorView
from project_service.areas.error_tracking.events.event_views import EventView
from project_service.areas.error_tracking.sentry.client import SentryFailed
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue

NUMBER = re.compile(r"[0-9]{1,30}")
UNREADABLE = "Error when connecting to Sentry"
MISSING_ID = 'Sentry API response is missing keys. key not found: "id"'
MAX_TEXT = 8192
MAX_NAME = 255
MAX_ENTRIES = 200
MAX_FRAMES = 250
FRAME_NAMES = {
    "filename": "filename",
    "absPath": "abs_path",
    "module": "module",
    "function": "function",
}


def check_issue(issue: Any) -> None:
    """Raise ``SentryFailed`` for what has no id; nothing else is necessary."""
    if not isinstance(issue, dict):
        raise SentryFailed(UNREADABLE)
    if not NUMBER.fullmatch(str(issue.get("id"))):
        raise SentryFailed(MISSING_ID)


def error_of(project: Project, issue: dict[str, Any], pages: str, link: Issue | None) -> ErrorView:
    """Return an issue of Sentry as an error; ``pages`` is the address that its pages begin with."""
    metadata = _object(issue.get("metadata"))
    stats = _object(issue.get("stats")).get("24h")
    level = _text(issue.get("level"), MAX_NAME)
    return ErrorView(
        id=str(issue["id"]),
        project=project,
        title=_text(issue.get("title"), MAX_NAME) or str(issue["id"]),
        type=_text(metadata.get("type"), MAX_NAME),
        message=_text(metadata.get("value"), MAX_TEXT),
        culprit=_text(issue.get("culprit"), MAX_NAME) or "",
        level=level if level in LEVELS else "error",
        logger=_text(issue.get("logger"), MAX_NAME),
        platform=_text(issue.get("platform"), MAX_NAME),
        status=_text(issue.get("status"), MAX_NAME) or "unresolved",
        count=_count(issue.get("count")),
        user_count=_count(issue.get("userCount")),
        first_seen=read_time(issue.get("firstSeen")),
        last_seen=read_time(issue.get("lastSeen")),
        frequency=LAST_DAY.frequency(_counts(stats)),
        first_release=_release(issue.get("firstRelease")),
        last_release=_release(issue.get("lastRelease")),
        environments=[],
        resolved_at=None,
        regressed_at=None,
        issue=link,
        integrated=False,
        external_url=f"{pages}{issue['id']}",
    )


def event_of(event: Any) -> EventView:
    """Return the newest event of an issue as pages show it."""
    if not isinstance(event, dict):
        raise SentryFailed(UNREADABLE)
    entries = {item.get("type"): item.get("data") for item in _objects(event.get("entries"))}
    user = _object(event.get("user"))
    tags = [{"key": _text(item.get("key")), "value": _text(item.get("value"))} for item in _objects(event.get("tags"))]
    named = {tag["key"]: tag["value"] for tag in tags}
    occurred = read_time(event.get("dateCreated")) or read_time(event.get("dateReceived"))
    return EventView(
        id=_text(event.get("eventID"), MAX_NAME) or _text(event.get("id"), MAX_NAME) or "",
        occurred_at=occurred,
        message=_text(event.get("message")) or None,
        exceptions=exceptions_of(entries.get("exception")),
        facts={
            "environment": named.get("environment"),
            "release": named.get("release"),
            "platform": _text(event.get("platform")),
        },
        user={name: text for name in USER_FIELDS if (text := _text(user.get(name)))} or None,
        tags=tags,
        request=_object(entries.get("request")) or None,
        breadcrumbs=[
            {name: _text(item.get(name)) for name in ("timestamp", "type", "category", "level", "message")}
            for item in _objects(_object(entries.get("breadcrumbs")).get("values"))
        ],
        contexts=_object(event.get("contexts")),
    )


def exceptions_of(entry: Any) -> list[dict[str, Any]]:
    """Return the exceptions of an entry, oldest first, in the form of the API."""
    return [
        {
            **{name: _text(exception.get(name)) for name in ("type", "value", "module")},
            "mechanism": _object(exception.get("mechanism")) or None,
            "frames": [
                _frame(frame) for frame in _objects(_object(exception.get("stacktrace")).get("frames"), MAX_FRAMES)
            ],
        }
        for exception in _objects(_object(entry).get("values"))
    ]


def _frame(frame: dict[str, Any]) -> dict[str, Any]:
    context = frame.get("context")
    lines = context[:MAX_ENTRIES] if isinstance(context, list) else []
    return {
        **{name: _text(frame.get(theirs)) for theirs, name in FRAME_NAMES.items()},
        "lineno": _line(frame.get("lineNo")),
        "colno": _line(frame.get("colNo")),
        "in_app": frame.get("inApp") is True,
        "context": [
            [_line(line[0]), _text(line[1]) or ""] for line in lines if isinstance(line, list) and len(line) == 2
        ],
        "vars": _object(frame.get("vars")),
    }


def _text(value: Any, limit: int = MAX_TEXT) -> str | None:
    if isinstance(value, str):
        return value[:limit]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _objects(value: Any, limit: int = MAX_ENTRIES) -> Sequence[dict[str, Any]]:
    return [item for item in value[-limit:] if isinstance(item, dict)] if isinstance(value, list) else []


def _line(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _count(value: Any) -> int:
    """Return a number that may come as a text."""
    return int(value) if NUMBER.fullmatch(str(value)) else 0


def _counts(stats: Any) -> dict[int, int]:
    """Return the occurrences by the beginning of each hour (epoch)."""
    pairs = (pair for pair in stats if isinstance(pair, list) and len(pair) == 2) if isinstance(stats, list) else ()
    return {start: count for start, count in pairs if isinstance(start, int) and isinstance(count, int)}


def _release(value: Any) -> str | None:
    release = _object(value)
    return _text(release.get("shortVersion"), MAX_NAME) or _text(release.get("version"), MAX_NAME)
