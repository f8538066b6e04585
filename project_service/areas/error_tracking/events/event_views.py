"""Events as the API and the pages show them: exceptions with the source lines around each frame."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from project_service.areas.error_tracking.errors.models import TrackedErrorEvent

FRAME_FIELDS = ("filename", "abs_path", "module", "function", "lineno", "colno", "in_app")
LEAST_SECONDS = 0.005
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
OPTIONAL_FIELDS = ("data", "minified", "package", "instruction_addr", "image_addr", "offset")


@dataclass(frozen=True, slots=True)
class EventView:
    """An event as pages show it; exceptions and frames are in the order they were sent, oldest first."""

    id: str
    occurred_at: dt.datetime | None
    message: str | None
    exceptions: list[dict[str, Any]]
    facts: dict[str, Any] = field(default_factory=dict)
    user: dict[str, Any] | None = None
    tags: Sequence[dict[str, Any]] = ()
    request: dict[str, Any] | None = None
    breadcrumbs: Sequence[dict[str, Any]] = ()
    contexts: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    modules: dict[str, Any] = field(default_factory=dict)
    truncated: bool = False
    source_map_problems: Sequence[dict[str, Any]] = ()
    is_resolvable: bool = False


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """Neighbouring frames: one of the application, or several of libraries, which pages fold."""

    frames: list[dict[str, Any]]
    is_folded: bool
    is_open: bool = False


def view_of(event: TrackedErrorEvent) -> EventView:
    """Return a stored event as pages show it."""
    names = ("environment", "release", "dist", "transaction", "logger", "platform", "server_name")
    details = event.details
    return EventView(
        id=event.event_id,
        occurred_at=event.occurred_at,
        message=event.summary.get("message"),
        exceptions=exceptions_of(event),
        facts={name: event.summary.get(name) for name in names},
        user=event.summary.get("user"),
        tags=event.summary.get("tags") or [],
        request=details.get("request"),
        breadcrumbs=details.get("breadcrumbs") or [],
        contexts=details.get("contexts") or {},
        extra=details.get("extra") or {},
        modules=details.get("modules") or {},
        truncated=bool(details.get("truncated")),
        source_map_problems=details.get("source_map_problems") or [],
        is_resolvable=event.stack is not None,
    )


def offset_of(moment: Any, event: dt.datetime | None) -> str:
    """Return a time of a breadcrumb (RFC 3339 or nothing) as people read it: relative to the event."""
    try:
        seconds = (dt.datetime.fromisoformat(moment) - event).total_seconds() if moment and event else None
    except (TypeError, ValueError):
        seconds = None
    if seconds is None:
        return "" if moment is None else str(moment)
    if abs(seconds) < LEAST_SECONDS:
        return "at the event"
    size = abs(seconds)
    unit, name = next((unit_entry for unit_entry in UNITS if size >= unit_entry[0]), UNITS[-1])
    number = f"{size / unit:.2f}".rstrip("0").rstrip(".") if unit == 1 else f"{size / unit:.0f}"
    return f"{number} {name} {'before' if seconds < 0 else 'after'}"


def frame_groups(frames: Sequence[dict[str, Any]], *, opens: bool) -> Iterator[FrameGroup]:
    """Group frames for a page, innermost first; with ``opens`` the first of the application is open."""
    has_own = any(frame["in_app"] for frame in frames)
    folded: list[dict[str, Any]] = []
    for frame in reversed(frames):
        if has_own and not frame["in_app"]:
            folded.append(frame)
            continue
        if folded:
            yield FrameGroup(folded, is_folded=True)
            folded = []
        yield FrameGroup([frame], is_folded=False, is_open=opens)
        opens = False
    if folded:
        yield FrameGroup(folded, is_folded=True)


def exceptions_of(event: TrackedErrorEvent) -> list[dict[str, Any]]:
    """Return the exceptions of an event, oldest first; the stack of a thread has neither type nor value."""
    return [
        {
            **{name: exception.get(name) for name in ("type", "value", "module", "mechanism")},
            "frames": [shown_frame(frame) for frame in exception.get("frames", ())],
        }
        for exception in event.details.get("exceptions", ())
    ]


def shown_frame(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a frame with its source lines as pairs of number and text, and with addresses or what was sent, if any."""
    return {
        **{name: frame.get(name) for name in FRAME_FIELDS},
        **{name: frame[name] for name in OPTIONAL_FIELDS if name in frame},
        "context": _context(frame),
        "vars": frame.get("vars") or {},
    }


def _context(frame: dict[str, Any]) -> list[list[Any]]:
    line = frame.get("context_line")
    if line is None:
        return []
    before, after = frame.get("pre_context") or [], frame.get("post_context") or []
    number = frame.get("lineno")
    lines = [*before, line, *after]
    first = None if number is None else number - len(before)
    return [[None if first is None else first + position, text] for position, text in enumerate(lines)]


def application_frames(exceptions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the frames of the application of the newest exception that has frames, innermost first; else all."""
    frames: list[dict[str, Any]] = next(
        (exception["frames"] for exception in reversed(exceptions) if exception["frames"]), []
    )
    return list(reversed([frame for frame in frames if frame["in_app"]] or frames))
