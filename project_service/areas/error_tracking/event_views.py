"""Events as the API and the pages show them: exceptions with the source lines around each frame."""

from __future__ import annotations

from typing import Any

from project_service.areas.error_tracking.error_models import TrackedErrorEvent

FRAME_FIELDS = ("filename", "abs_path", "module", "function", "lineno", "colno", "in_app")


def exceptions_of(event: TrackedErrorEvent) -> list[dict[str, Any]]:
    """Return the exceptions of an event, oldest first; the stack of a thread has neither type nor value."""
    return [
        {
            **{name: one.get(name) for name in ("type", "value", "module", "mechanism")},
            "frames": [shown_frame(frame) for frame in one.get("frames", ())],
        }
        for one in event.details.get("exceptions", ())
    ]


def shown_frame(frame: dict[str, Any]) -> dict[str, Any]:
    """Return a frame with its source lines as pairs of number and text."""
    return {
        **{name: frame.get(name) for name in FRAME_FIELDS},
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
    frames: list[dict[str, Any]] = next((one["frames"] for one in reversed(exceptions) if one["frames"]), [])
    return list(reversed([one for one in frames if one["in_app"]] or frames))
