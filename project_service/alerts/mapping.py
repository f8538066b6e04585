"""Fields of a sample payload, and which fit which field of an alert (alert integration reference, section 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from project_service.alerts import payloads
from project_service.kit import exact

TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "title": ("Title", ("string",)),
    "description": ("Description", ("string",)),
    "start_time": ("Start time", ("datetime",)),
    "end_time": ("End time", ("datetime", "number")),
    "service": ("Service", ("string",)),
    "monitoring_tool": ("Monitoring tool", ("string",)),
    "hosts": ("Hosts", ("string", "array")),
    "severity": ("Severity", ("string",)),
    "fingerprint": ("Fingerprint", ("string", "array")),
    "gitlab_environment_name": ("Environment", ("string",)),
}
DATETIME = re.compile(r"\d{4}")
MOST_FIELDS = 2000


class Unusable(Exception):
    """A sample that cannot be mapped; the text is for people."""


@dataclass(frozen=True, slots=True)
class SampleField:
    """A field of a sample: where it stands, and what it holds."""

    path: tuple[str | int, ...]
    type: str

    @property
    def label(self) -> str:
        """``event/hosts[0]/name``."""
        text = ""
        for step in self.path:
            text += f"[{step}]" if isinstance(step, int) else f"/{step}" if text else step
        return text

    @property
    def key(self) -> str:
        """The path as a form sends it."""
        return orjson.dumps(self.path).decode()


def read_sample(text: str) -> dict[str, Any]:
    """Read a sample; ``Unusable`` says what is wrong with it."""
    try:
        sample = exact.loads(text, too_long=str)
    except ValueError as error:
        raise Unusable(f"is not valid JSON: {error}") from error
    if not isinstance(sample, dict):
        raise Unusable("has to be a JSON object")
    if len(text.encode()) > payloads.LARGEST or payloads.depth_exceeds(sample, payloads.DEEPEST):
        raise Unusable("is too big")
    return sample


def fields_of(sample: dict[str, Any]) -> list[SampleField]:
    """The fields of a sample that can be mapped."""
    found = []
    for field in _walk(sample, ()):
        found.append(field)
        if len(found) >= MOST_FIELDS:
            break
    return found


def fitting(fields: list[SampleField], target: str) -> list[SampleField]:
    """The fields whose type a target takes."""
    return [field for field in fields if field.type in TARGETS[target][1]]


def mapping_of(fields: list[SampleField], chosen: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The mapping to store for what was chosen by target; what does not fit is left out."""
    mapping = {}
    for target, key in chosen.items():
        field = next((one for one in fitting(fields, target) if one.key == key), None)
        if field is not None:
            mapping[target] = {"path": list(field.path), "type": field.type, "label": field.label}
    return mapping


def chosen_of(mapping: dict[str, dict[str, Any]]) -> dict[str, str]:
    """What is chosen by target in a stored mapping, as a form sends it."""
    return {target: orjson.dumps(entry["path"]).decode() for target, entry in mapping.items()}


def _walk(value: Any, path: tuple[str | int, ...]) -> Iterator[SampleField]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key))
    elif isinstance(value, list):
        yield SampleField(path, "array")
        for index, inner in enumerate(value):
            yield from _walk(inner, (*path, index))
    elif isinstance(value, str):
        yield SampleField(path, "datetime" if DATETIME.match(value) else "string")
    elif isinstance(value, int) and not isinstance(value, bool):
        yield SampleField(path, "number")
