"""The frames in the details of an event, and what follows from them: digest and culprit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from project_service.areas.error_tracking.collection import grouping
from project_service.areas.error_tracking.collection.stacks.stack_traces import Entry, Frame


def with_frames(details: dict[str, Any], frames: Sequence[list[Frame]], problems: Sequence[Any]) -> dict[str, Any]:
    """Return the details of an event with other frames; variables stay, they differ from event to event."""
    entries = details["exceptions"]
    if [len(entry["frames"]) for entry in entries] != [len(new_frames) for new_frames in frames]:
        return details
    replaced = [
        {**entry, "frames": [_with_variables(new, old) for new, old in zip(new_frames, entry["frames"], strict=True)]}
        for entry, new_frames in zip(entries, frames, strict=True)
    ]
    return {**details, "exceptions": replaced, "source_map_problems": list(problems)}


def digest_of(digest: str, details: dict[str, Any]) -> str:
    """Return the digest of an event by its present frames, if frames decide it; else the given one."""
    exceptions, _ = split(details)
    if not exceptions or not grouping.is_typed(exceptions[-1]):
        return digest
    parts = grouping.parts_of(exceptions, "", [], is_crash=False)
    fingerprint = details["fingerprint"]
    return grouping.digest_of(fingerprint, parts)


def decide_group(details: dict[str, Any]) -> bool:
    """Whether the frames of an event decide its error: not a fingerprint alone, nor the text of a message."""
    exceptions, _ = split(details)
    fingerprint = details["fingerprint"]
    by_frames = not fingerprint or any(grouping.DEFAULT_FINGERPRINT.search(part) for part in fingerprint)
    return by_frames and bool(exceptions) and grouping.is_typed(exceptions[-1])


def culprit_of(summary: dict[str, Any], details: dict[str, Any]) -> str:
    """Return the culprit of an event by its present frames."""
    exceptions, threads = split(details)
    return grouping.culprit_of({**summary, "request": details.get("request")}, exceptions, threads)


def split(details: dict[str, Any]) -> tuple[list[Entry], list[Entry]]:
    """Return the exceptions and the stacks of threads of an event."""
    entries = details["exceptions"]
    exceptions = [entry for entry in entries if entry["type"] or entry["value"] or entry["mechanism"]]
    return exceptions, [] if exceptions else list(entries)


def _with_variables(new: Frame, old: Frame) -> Frame:
    return {**new, "vars": old["vars"]} if "vars" in old else new
