"""Mapping of fields of a sample payload to fields of an alert (alert integrations reference, section 7)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from project_service.areas.alerts.payloads import bodies
from project_service.areas.alerts.payloads.elements import is_batch
from project_service.areas.alerts.payloads.payload_values import (
    exact_text,
    is_blank,
    items,
    label_of,
    object_in_text,
    value_at,
)
from project_service.areas.alerts.receivers.reports import ParsedAlert

# Types of the fields of a sample. "null" and "objects", an array with objects, are stored as the type that is expected.
TEXT = ("string", "datetime", "number", "boolean")
TIME = ("string", "datetime", "number", "null")
STORED_TYPES = {"null": "datetime", "objects": "array"}
TARGETS: dict[str, tuple[str, tuple[str, ...]]] = {
    "title": ("Title", TEXT),
    "description": ("Description", TEXT),
    "start_time": ("Start time", TIME),
    "end_time": ("End time", TIME),
    "service": ("Service", TEXT),
    "monitoring_tool": ("Monitoring tool", TEXT),
    "hosts": ("Hosts", (*TEXT, "array")),
    "severity": ("Severity", TEXT),
    "fingerprint": ("Fingerprint", (*TEXT, "array", "objects")),
    "gitlab_environment_name": ("Environment", TEXT),
}
HINTS: dict[tuple[str, ...], str] = {TEXT: "one value", TIME: "a time or number"}
LIST_HINT = "one value or a list"
LABELS = {name: label for name, (label, _) in TARGETS.items()}
BATCH_PATH = re.compile(r'\A\["alerts",\d+,')  # of an alert, as the value of a form field
DATETIME = re.compile(r"\d{4}")
MAX_FIELDS = 2000  # that a page offers
MAX_SHOWN_CHARACTERS = 40  # of a value of the sample


class Unusable(Exception):
    """The sample cannot be mapped; the text is shown to users."""


@dataclass(frozen=True, slots=True)
class SampleField:
    """A field of a sample: its path, its type and its value as text."""

    path: tuple[str | int, ...]
    type: str
    value: str = field(default="", compare=False)

    @property
    def label(self) -> str:
        """``event/hosts[0]/name``."""
        return label_of(self.path)

    @property
    def key(self) -> str:
        """The path as the value of a form field."""
        return orjson.dumps(self.path).decode()


def read_sample(text: str) -> dict[str, Any]:
    """Parse a sample; ``Unusable`` has the problem."""
    body = text.removeprefix("\ufeff").encode("utf-8", "replace")
    if len(body) > bodies.MAX_PAYLOAD_BYTES:
        raise Unusable("is too big")
    if not body.strip():
        raise Unusable("is blank")
    try:
        return bodies.read(body)
    except bodies.MalformedPayload as error:
        raise Unusable(f"is not valid JSON: {str(error).removeprefix('not JSON: ')}") from error
    except bodies.Unreadable as error:
        raise Unusable("has to be a JSON object" if str(error) == bodies.NOT_AN_OBJECT else "is too big") from error


def mappable(sample: dict[str, Any]) -> dict[str, Any]:
    """Return what the paths of a mapping begin at: of a batch, its first alert."""
    if is_batch(sample):
        return next((element for element in sample["alerts"] if isinstance(element, dict)), {})
    return sample


def in_element(sample: dict[str, Any], chosen: dict[str, str]) -> dict[str, str]:
    """Return chosen fields whose paths begin at the first alert of a batch, also where they were given from its top."""
    if not is_batch(sample):
        return chosen
    return {target: BATCH_PATH.sub("[", key) for target, key in chosen.items()}


def fields_of(sample: dict[str, Any], most: int) -> list[SampleField]:
    """Return the first fields of a sample that can be mapped."""
    return list(islice(_walk(sample, ()), most))


def fitting(fields: list[SampleField], target: str) -> list[SampleField]:
    """Return the fields whose type a target accepts."""
    return [field for field in fields if field.type in TARGETS[target][1]]


def mapped_fields(sample: dict[str, Any], chosen: dict[str, str]) -> dict[str, SampleField]:
    """Return the chosen fields by target; those not in the sample or that do not fit their target are left out."""
    fields = {target: _field_at(sample, key) for target, key in chosen.items()}
    return {target: field for target, field in fields.items() if field is not None and fitting([field], target)}


def mapping_of(sample: dict[str, Any], chosen: dict[str, str]) -> dict[str, dict[str, Any]]:
    """Return the mapping to store, without fields that do not fit."""
    return {
        target: {"path": list(field.path), "type": STORED_TYPES.get(field.type, field.type), "label": field.label}
        for target, field in mapped_fields(sample, chosen).items()
    }


def hint_of(target: str) -> str:
    """Say which values a target accepts."""
    return HINTS.get(TARGETS[target][1], LIST_HINT)


def values_of(alert: ParsedAlert) -> dict[str, Any]:
    """Return by target what an alert stores."""
    return {name: getattr(alert, name, None) for name in TARGETS} | {
        "start_time": alert.started_at,
        "end_time": alert.ended_at,
        "severity": alert.severity.title,
        "gitlab_environment_name": alert.environment,
    }


def has_fingerprint(sample: dict[str, Any], mapping: dict[str, dict[str, Any]]) -> bool:
    """Whether a sample has a fingerprint, where it is mapped or by its plain name."""
    paths = [mapping["fingerprint"]["path"]] if "fingerprint" in mapping else []
    return any(not is_blank(value_at(sample, path)) for path in (*paths, ["fingerprint"]))


def chosen_of(mapping: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the fields of a stored mapping by target, as values of form fields."""
    return {target: orjson.dumps(entry["path"]).decode() for target, entry in mapping.items()}


def _field_at(sample: dict[str, Any], key: str) -> SampleField | None:
    """Return the field named by a form value, also one that is not offered."""
    try:
        path = orjson.loads(key)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(path, list) or not path:
        return None
    value, (*above, name) = value_at(sample, path), path
    parent = value_at(sample, above) if above else sample
    if value is None and not (isinstance(parent, dict) and isinstance(name, str) and name in parent):
        return None
    kind = _type_of(value)
    return SampleField(tuple(path), kind, _shown(value)) if kind else None


def _walk(value: Any, path: tuple[str | int, ...], *, in_text: bool = False) -> Iterator[SampleField]:
    if kind := _type_of(value):
        yield SampleField(path, kind, _shown(value))
    if isinstance(value, str) and not in_text and (held := object_in_text(value)) is not None:
        for key, inner in held.items():
            yield from _walk(inner, (*path, key), in_text=True)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*path, key), in_text=in_text)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            if inner is not None:
                yield from _walk(inner, (*path, index), in_text=in_text)


def _type_of(value: Any) -> str | None:
    """Return the type of a value for the mapping; ``None`` for objects."""
    if isinstance(value, list):
        return "objects" if any(isinstance(item, dict) for item in items(value)) else "array"
    if isinstance(value, str):
        return "datetime" if DATETIME.match(value) else "string"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    return "null" if value is None else None


def _shown(value: Any) -> str:
    """Return a value of the sample on one line."""
    text = "null" if value is None else exact_text(value[:MAX_SHOWN_CHARACTERS] if isinstance(value, list) else value)
    text = " ".join(text[: 4 * MAX_SHOWN_CHARACTERS].split())
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 1]}…"
