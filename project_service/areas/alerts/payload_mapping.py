"""Mapping of fields of a sample payload to fields of an alert (alert integration reference, section 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import orjson

from project_service.areas.alerts import payloads
from project_service.areas.alerts.payload_values import value_at
from project_service.kit import bigint_json

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
LABELS = {name: label for name, (label, _) in TARGETS.items()}
DATETIME = re.compile(r"\d{4}")
MAX_FIELDS = 2000  # that a page offers


class Unusable(Exception):
    """The sample cannot be mapped; the text is shown to users."""


@dataclass(frozen=True, slots=True)
class SampleField:
    """A field of a sample: its path and its type."""

    path: tuple[str | int, ...]
    type: str

    @property
    def label(self) -> str:
        """``event/hosts[0]/name``."""
        return payloads.label_of(self.path)

    @property
    def key(self) -> str:
        """The path as the value of a form field."""
        return orjson.dumps(self.path).decode()


def read_sample(text: str) -> dict[str, Any]:
    """Parse a sample; ``Unusable`` has the problem."""
    if len(text.encode()) > payloads.MAX_PAYLOAD_BYTES:
        raise Unusable("is too big")
    try:
        sample = bigint_json.loads(text, too_long=str)
    except ValueError as error:
        raise Unusable(f"is not valid JSON: {error}") from error
    if not isinstance(sample, dict):
        raise Unusable("has to be a JSON object")
    if payloads.depth_exceeds(sample, payloads.MAX_NESTING_LEVELS):
        raise Unusable("is too big")
    return sample


def fields_of(sample: dict[str, Any], most: int) -> list[SampleField]:
    """Return the first fields of a sample that can be mapped."""
    return list(islice(_walk(sample, ()), most))


def fitting(fields: list[SampleField], target: str) -> list[SampleField]:
    """Return the fields whose type a target accepts."""
    return [field for field in fields if field.type in TARGETS[target][1]]


def mapping_of(sample: dict[str, Any], chosen: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the mapping to store; fields that are not in the sample or do not fit their target are left out."""
    found = {target: _field_at(sample, key) for target, key in chosen.items()}
    return {
        target: {"path": list(field.path), "type": field.type, "label": field.label}
        for target, field in found.items()
        if field is not None and fitting([field], target)
    }


def fields_in(mapping: dict[str, dict[str, Any]]) -> list[SampleField]:
    """Return the fields of a stored mapping."""
    return [SampleField(tuple(entry["path"]), entry["type"]) for entry in mapping.values()]


def chosen_of(mapping: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the fields of a stored mapping by target, as values of form fields."""
    return {target: orjson.dumps(entry["path"]).decode() for target, entry in mapping.items()}


def _field_at(sample: dict[str, Any], key: str) -> SampleField | None:
    """Return the field named by a form value, also one that is not offered."""
    try:
        path = orjson.loads(key)
    except orjson.JSONDecodeError:
        return None
    kind = _type_of(value_at(sample, path)) if isinstance(path, list) else None
    return SampleField(tuple(path), kind) if kind else None


def _walk(value: Any, path: tuple[str | int, ...]) -> Iterator[SampleField]:
    if kind := _type_of(value):
        yield SampleField(path, kind)
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _walk(inner, (*path, key))


def _type_of(value: Any) -> str | None:
    """Return the type of a value for the mapping; ``None`` for objects, null, booleans and fractions."""
    if isinstance(value, list):
        return "array"
    if isinstance(value, str):
        return "datetime" if DATETIME.match(value) else "string"
    return "number" if isinstance(value, int) and not isinstance(value, bool) else None
