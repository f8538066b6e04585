"""Stacks of minified JavaScript: which frames a source map may resolve (source maps reference, sections 10, 14, 16)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from project_service.areas.error_tracking.collection.stacks.stack_traces import Entry, Frame

JAVASCRIPT = ("javascript", "node")
MAX_IMAGES = 200
DEBUG_ID = re.compile(r"[0-9a-f]{32}")
NO_CODE = re.compile(r"\[?native(?: code\])?$|<(?:anonymous|eval)>$")
LIBRARIES = ("node_modules/", "chrome-extension:", "moz-extension:")
MAX_UNPREPARED = 5
NODE_PATH = re.compile(r"/|[A-Za-z]:[\\/]|(?:app|file|webpack|https?):")


@dataclass(frozen=True, slots=True)
class StackKey:
    """What decides how the frames of an event are resolved: equal digests are resolved alike.

    ``debug_ids`` are those of the files of the stack, by path; ``unprepared`` are scripts of browsers without one.
    """

    digest: str
    debug_ids: dict[str, str]
    release: str | None
    dist: str | None
    unprepared: tuple[str, ...] = ()


def unprepared_scripts(
    entries: Sequence[Entry], platform: str | None, debug_ids: Container[str] = ()
) -> tuple[str, ...]:
    """Return scripts of browsers without a debug id whose frames have no text: source maps would make them readable."""
    paths = dict.fromkeys(
        path
        for entry in entries
        for frame in entry["frames"]
        if (frame.get("platform") or platform) == "javascript" and frame["context_line"] is None
        if (path := path_of(frame, platform)) is not None and path not in debug_ids
        if not any(part in path for part in LIBRARIES)
    )
    return tuple(paths)[:MAX_UNPREPARED]


def stack_key(raw: dict[str, Any], entries: Sequence[Entry], event: dict[str, Any]) -> StackKey | None:
    """Return the key of the stack of an event; ``None`` if no source map can be found for it."""
    if event["platform"] not in JAVASCRIPT and not any(f.get("platform") for entry in entries for f in entry["frames"]):
        return None
    placed = [[(frame, path_of(frame, event["platform"])) for frame in entry["frames"]] for entry in entries]
    paths = {path for frames in placed for _, path in frames if path is not None}
    debug_ids = _debug_ids(raw.get("debug_meta"), paths)
    if not paths or not (debug_ids or event["release"]):
        return None
    places = [
        [
            entry["type"],
            [
                (debug_ids.get(path or "") or path or frame["filename"], frame["lineno"], frame["colno"])
                for frame, path in frames
            ],
        ]
        for entry, frames in zip(entries, placed, strict=True)
    ]
    named = None if paths <= debug_ids.keys() else (event["release"], event["dist"])
    digest = hashlib.sha256(orjson.dumps([places, named])).hexdigest()
    unprepared = unprepared_scripts(entries, event["platform"], debug_ids)
    return StackKey(digest, debug_ids, event["release"], event["dist"], unprepared)


def path_of(frame: Frame, platform: str | None) -> str | None:
    """Return the path of the script of a frame that a source map may resolve."""
    platform = frame.get("platform") or platform
    path = (frame["abs_path"] or frame["filename"] or "").removeprefix("async ")
    if platform not in JAVASCRIPT or not path or not frame["lineno"] or NO_CODE.match(path):
        return None
    return path if platform != "node" or NODE_PATH.match(path) else None


def _debug_ids(raw: Any, paths: set[str]) -> dict[str, str]:
    """Return the debug ids of the scripts of a stack, by path."""
    images = raw.get("images") if isinstance(raw, dict) else None
    debug_ids: dict[str, str] = {}
    for image in images if isinstance(images, list) else []:
        if not isinstance(image, dict) or image.get("type") != "sourcemap" or image.get("code_file") not in paths:
            continue
        debug_id = image.get("debug_id")
        plain = debug_id.replace("-", "").lower()[:32] if isinstance(debug_id, str) else ""
        if DEBUG_ID.fullmatch(plain) and len(debug_ids) < MAX_IMAGES:
            debug_ids[image["code_file"]] = plain
    return debug_ids
