"""Exceptions, stack traces and threads of an event (error collection reference, section 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from project_service.areas.error_tracking.collection.scrubbing import MAX_ENTRIES, Cleaner
from project_service.areas.error_tracking.collection.stacks.native_frames import Image, native_fields
from project_service.kit import exact_json

MAX_EXCEPTIONS = 50
MAX_FRAMES = 250
MAX_LINE_NUMBER = 2**31

Frame = dict[str, Any]
Entry = dict[str, Any]
"""An exception, or the stack of a thread, with its frames, oldest first."""


def exceptions_of(raw: Any, cleaner: Cleaner, images: Sequence[Image] = ()) -> list[Entry]:
    """Return the exceptions of an event, oldest first: the newest 50."""
    return [
        {
            "type": cleaner.name(exception.get("type")),
            "value": _value(exception.get("value"), cleaner),
            "module": cleaner.name(exception.get("module")),
            "mechanism": cleaner.data(exception["mechanism"]) if isinstance(exception.get("mechanism"), dict) else None,
            "frames": frames_of(exception.get("stacktrace"), cleaner, images),
        }
        for exception in _values(raw)[-MAX_EXCEPTIONS:]
    ]


def threads_of(raw: Any, cleaner: Cleaner, images: Sequence[Image] = ()) -> list[Entry]:
    """Return the stacks of threads; the last is the one that crashed, else the current one, else the first."""
    threads = [thread for thread in _values(raw)[:MAX_EXCEPTIONS] if _raw_frames(thread.get("stacktrace"))]
    if not threads:
        return []
    chosen = next(
        (thread for mark in ("crashed", "current") for thread in threads if thread.get(mark) is True), threads[0]
    )
    ordered = [thread for thread in threads if thread is not chosen] + [chosen]
    return [stack_of(frames_of(thread.get("stacktrace"), cleaner, images)) for thread in ordered]


def stack_of(frames: list[Frame]) -> Entry:
    """Return a stack that belongs to no exception."""
    return {**dict.fromkeys(("type", "value", "module", "mechanism")), "frames": frames}


def frames_of(raw: Any, cleaner: Cleaner, images: Sequence[Image] = ()) -> list[Frame]:
    """Return the frames of a stack trace, oldest first; of more than 250 the first and the last 125."""
    frames = _raw_frames(raw)
    if len(frames) > MAX_FRAMES:
        frames = frames[: MAX_FRAMES // 2] + frames[-MAX_FRAMES // 2 :]
    return [_frame(frame, cleaner, images) for frame in frames]


def _raw_frames(raw: Any) -> list[dict[str, Any]]:
    frames = raw.get("frames") if isinstance(raw, dict) else None
    if not isinstance(frames, list):
        return []
    if len(frames) > MAX_FRAMES:
        frames = frames[: MAX_FRAMES // 2] + frames[-MAX_FRAMES // 2 :]
    return [frame for frame in frames if isinstance(frame, dict)]


def _frame(raw: dict[str, Any], cleaner: Cleaner, images: Sequence[Image]) -> Frame:
    names = ("filename", "abs_path", "module", "function")
    frame: Frame = {name: cleaner.optional_text(raw.get(name), 1024) for name in names}
    frame |= {name: _number(raw.get(name)) for name in ("lineno", "colno")}
    frame["in_app"] = raw["in_app"] if isinstance(raw.get("in_app"), bool) else None
    frame |= {name: _lines(raw.get(name), cleaner) for name in ("pre_context", "post_context")}
    line = raw.get("context_line")
    frame["context_line"] = _line(line, cleaner) if isinstance(line, str) else None
    if isinstance(raw.get("vars"), dict):
        frame["vars"] = cleaner.data(raw["vars"])
    if platform := cleaner.name(raw.get("platform")):
        frame["platform"] = platform
    if any(name in raw for name in ("instruction_addr", "package", "image_addr")):
        frame |= native_fields(raw, cleaner, images)
        frame["filename"] = frame["filename"] or frame.get("image")
    return frame


def _value(raw: Any, cleaner: Cleaner) -> str | None:
    """Return the value of an exception; a list or an object as JSON."""
    if isinstance(raw, list | dict):
        raw = exact_json.dumps(cleaner.data(raw))
    return cleaner.optional_text(raw.decode() if isinstance(raw, bytes) else raw)


def _values(raw: Any) -> list[dict[str, Any]]:
    """Return what is sent as ``{"values": […]}``, as a list, or alone."""
    if isinstance(raw, dict):
        raw = raw["values"] if isinstance(raw.get("values"), list) else [raw]
    return [value for value in raw if isinstance(value, dict)] if isinstance(raw, list) else []


def _lines(raw: Any, cleaner: Cleaner) -> list[str]:
    lines = raw[:MAX_ENTRIES] if isinstance(raw, list) else []
    return [_line(line, cleaner) for line in lines if isinstance(line, str)]


def _line(text: str, cleaner: Cleaner) -> str:
    return cleaner.text(text.rstrip("\r\n"))


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_LINE_NUMBER
    return value if is_number else None
