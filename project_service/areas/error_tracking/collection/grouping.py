"""Which error an event belongs to, and what the error is called (error collection reference, sections 11 and 12)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

import orjson

from project_service.areas.error_tracking.collection.scrubbing import ELLIPSIS, MAX_NAME_LENGTH
from project_service.areas.error_tracking.collection.stacks.stack_traces import Entry, Frame

VERSION = 1
MAX_FRAME_KEYS = 30
MAX_CAUSES = 5
MAX_NORMALISED_LENGTH = 500
MAX_CONTEXT_LINE_LENGTH = 200
MAX_FILE_LENGTH = 255
NO_MESSAGE = "<no message>"
DEFAULT_FINGERPRINT = re.compile(r"\{\{\s*default\s*\}\}")
PATH_SEPARATOR = re.compile(r"[/\\]")
HASH_IN_NAME = re.compile(r"[-._](?=[a-f]{0,255}[0-9])[0-9a-f]{6,}(?=\.|$)", re.IGNORECASE)
UUID = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE)
HEX = re.compile(r"\b(?:0x[0-9a-f]+|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,})\b", re.IGNORECASE)
NUMBER = re.compile(r"[0-9]+(?:[.,:][0-9]+)*")
# types, values and mechanisms of crash handlers: sentry-native, Cocoa, the Android NDK, minidumps
CRASH = re.compile(r"SIG[A-Z0-9]{2,12}\b|EXC(?:EPTION)?_[A-Z]|Segfault\b|Fatal Error\b|(?i:minidump\b)")
JAVASCRIPT = ("javascript", "node")


def main_exception(exceptions: Sequence[Entry]) -> Entry | None:
    """Return the newest exception."""
    return exceptions[-1] if exceptions else None


def is_typed(exception: Entry | None) -> bool:
    """Whether an exception has a type of its own: not one that an SDK made up for a message or another object."""
    return exception is not None and bool(exception["type"]) and not _mechanism(exception).get("synthetic")


def is_native_crash(exceptions: Sequence[Entry], stacks: Sequence[Entry], platform: str | None) -> bool:
    """Whether a crash handler of a native program made up the newest exception: its frames say more than its text.

    ``stacks`` are the exceptions, or the threads if no exception has frames.
    """
    main = main_exception(exceptions)
    if main is None or not _mechanism(main).get("synthetic") or platform in JAVASCRIPT:
        return False
    names = (main["type"], main["value"], _mechanism(main).get("type"))
    is_crash = any(isinstance(name, str) and CRASH.match(name) for name in names)
    return is_crash and bool(frame_keys(relevant_frames(stacks)))


def digest_of(fingerprint: Sequence[str], default_parts: Sequence[Any]) -> str:
    """Return the digest that decides the error; ``default_parts`` are those without a fingerprint."""
    default = _digest(default_parts)
    if not fingerprint or all(DEFAULT_FINGERPRINT.fullmatch(part.strip()) for part in fingerprint):
        return default
    return _digest(["fingerprint", *(DEFAULT_FINGERPRINT.sub(default, part) for part in fingerprint)])


def parts_of(exceptions: Sequence[Entry], text: str, stack: Sequence[Entry], *, is_crash: bool) -> list[Any]:
    """Return what decides the error of an event without a fingerprint.

    ``text`` is the template of the message, or the value; ``stack`` that of a crash, or of an event
    without an exception.
    """
    main = main_exception(exceptions)
    if main is None:
        keys = frame_keys(relevant_frames(stack))
        return ["stack", keys] if keys else ["message", normalised(text)]
    if is_crash:
        return ["crash", frame_keys(relevant_frames(stack))]
    if not is_typed(main):
        return ["message", normalised(text)]
    causes: list[str] = []
    if not _mechanism(main).get("is_exception_group"):
        causes = [exception["type"] or "" for exception in reversed(exceptions[:-1])][:MAX_CAUSES]
    if keys := frame_keys(relevant_frames(exceptions)):
        return ["frames", main["type"], causes, keys]
    return ["value", main["type"], causes, normalised(main["value"] or "")]


def relevant_frames(exceptions: Sequence[Entry]) -> list[Frame]:
    """Return the frames of the newest exception that has any: those of the application, or all if none is."""
    frames: list[Frame] = next((exception["frames"] for exception in reversed(exceptions) if exception["frames"]), [])
    return [frame for frame in frames if frame["in_app"]] or frames


def frame_keys(frames: Sequence[Frame]) -> list[tuple[str, str]]:
    """Return file and function of each frame, innermost first, each pair once."""
    keys: dict[tuple[str, str], None] = {}
    for position, frame in enumerate(reversed(frames)):
        function = frame["function"] or frame.get("offset") or ""
        # a name that a build made up changes with the next one
        if is_anonymous(function) or frame.get("data", {}).get("minified_function"):
            line = (frame["context_line"] or "").strip()[:MAX_CONTEXT_LINE_LENGTH]
            if position or not line:
                continue
            function = line
        keys[file_of(frame), function] = None
        if len(keys) == MAX_FRAME_KEYS:
            break
    return list(keys)


def is_anonymous(function: str) -> bool:
    """Whether a function has no name that says which it is."""
    name = function.strip()
    last = re.split(r"[.#]", name)[-1]
    # the name of a closure of PHP contains its file and line
    if not last or last in ("?", "anonymous") or name.startswith("{closure") or last.startswith("{closure"):
        return True
    return last.startswith("<") and last.endswith(">")


def file_of(frame: Frame) -> str:
    """Return the module of a frame, else the name of its file without the hash of a build."""
    if frame["module"]:
        return str(frame["module"])
    path = (frame["filename"] or frame["abs_path"] or "").partition("?")[0]
    return HASH_IN_NAME.sub("", PATH_SEPARATOR.split(path)[-1][:MAX_FILE_LENGTH])


def normalised(text: str) -> str:
    """Return the first line of a text with ids and numbers replaced."""
    line = first_line(text)[:MAX_NORMALISED_LENGTH]
    return NUMBER.sub("<num>", HEX.sub("<hex>", UUID.sub("<uuid>", line)))


def title_of(exceptions: Sequence[Entry], message: str | None, crash_stacks: Sequence[Entry] = ()) -> str:
    """Return the title: type and first line of the exception, or the first line of the message.

    Of a native crash with the given stacks the function and the signal.
    """
    main = main_exception(exceptions)
    value = (main["value"] if main is not None else None) or ""
    if main is not None and crash_stacks:
        return _cut(f"{_location_of(relevant_frames(crash_stacks)[-1])}: {main['type'] or first_line(value)}")
    if main is not None and is_typed(main):
        line = first_line(value)
        return _cut(f"{main['type']}: {line}" if line else str(main["type"]))
    return _cut(first_line(message or "") or first_line(value) or NO_MESSAGE)


def _location_of(frame: Frame) -> str:
    """Return the function of a frame, or image and offset where the program has no symbols."""
    if frame["function"]:
        return str(frame["function"])
    name = frame["module"] or frame["filename"] or frame["abs_path"] or "?"
    return f"{name} + {frame['offset']}" if frame.get("offset") else str(name)


def culprit_of(event: dict[str, Any], exceptions: Sequence[Entry], threads: Sequence[Entry]) -> str:
    """Return where the error happened, as Sentry shows it; empty if nothing says so."""
    if event["transaction"]:
        return str(event["transaction"])
    if frames := relevant_frames(exceptions) or relevant_frames(threads):
        frame = frames[-1]
        location = frame["module"] or frame["filename"] or frame["abs_path"] or ""
        function = frame["function"] or frame.get("offset") or "?"
        is_javascript = event["platform"] in JAVASCRIPT
        return (f"{function}({location})" if is_javascript else f"{location} in {function}")[:MAX_NAME_LENGTH]
    url = (event["request"] or {}).get("url")
    if isinstance(url, str) and url:
        return url.partition("?")[0][:MAX_NAME_LENGTH]
    return event["logger"] or ""


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank at its start, trimmed."""
    return text.strip().partition("\n")[0].strip()


def _cut(title: str) -> str:
    return title if len(title) <= MAX_NAME_LENGTH else title[:MAX_NAME_LENGTH] + ELLIPSIS


def _mechanism(exception: Entry) -> dict[str, Any]:
    return exception["mechanism"] or {}


def _digest(parts: Any) -> str:
    return hashlib.sha256(orjson.dumps([VERSION, parts])).hexdigest()
