"""Columns of integrations from the validated fields of requests to the API."""

from __future__ import annotations

from typing import Any

import orjson

from project_service.areas.alerts.integrations import service
from project_service.areas.alerts.integrations.word_tables import MAX_WORD_CHARACTERS, MAX_WORDS
from project_service.areas.alerts.models import HTTP, OPSGENIE, PROMETHEUS, AlertIntegration
from project_service.areas.alerts.payloads import payload_mapping
from project_service.areas.alerts.payloads.words import PLAIN_SEVERITIES, word_of
from project_service.areas.alerts.receivers.presets import ALERTMANAGER, PRESETS
from project_service.kit.http.errors import Invalid

OTHER_TYPE = "sends to the address of type {needed}, not of {kind}: {advice}"
NEW_TYPE = "leave the type out, or choose {needed}"
STORED_TYPE = "the type of an integration stays, add another one"
NO_SAMPLE = "of an Opsgenie integration are not read: it receives no alerts"
TWICE = "has a field twice"


def of_new(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a new integration; without ``active`` it is active."""
    preset = PRESETS.get(fields.get("preset") or "")
    kind = fields.get("type") or (preset.address if preset else HTTP)
    if kind == PROMETHEUS and preset is None:
        preset = PRESETS[ALERTMANAGER]
    default_name = preset.name if preset is not None and kind == HTTP else service.NAMES.get(kind, "")
    active = fields.get("active")
    return {
        "type": kind,
        "name": (fields.get("name") or "").strip() or default_name,
        "active": True if active is None else active,
        "target_url": fields.get("target_url") or None,
        "preset": _preset(kind, preset.id if preset else None, NEW_TYPE),
        **_words(fields),
        **_sample(kind, fields.get("payload_example"), _paths(fields) or {}),
    }


def of_stored(integration: AlertIntegration, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that a request changes; ``null`` means the default."""
    changed = _words(fields)
    if fields.get("active") is not None:
        changed["active"] = fields["active"]
    if "name" in fields:
        changed["name"] = fields["name"].strip()
    if "target_url" in fields:
        changed["target_url"] = fields["target_url"] or None
    if "preset" in fields:
        changed["preset"] = _preset(integration.type, fields["preset"] or None, STORED_TYPE)
    if fields.keys() & {"payload_example", "payload_attribute_mappings"}:
        text = fields.get("payload_example", integration.payload_example)
        paths = _paths(fields)
        stored = payload_mapping.chosen_of(integration.mapping)
        changed |= _sample(integration.type, text, stored if paths is None else paths)
    return changed


def _preset(kind: str, name: str | None, advice: str) -> str | None:
    """Return the name of a preset; ``Invalid`` if its tool sends to the address of another type."""
    if name is not None and (needed := PRESETS[name].address) != kind:
        raise Invalid(preset=OTHER_TYPE.format(needed=needed, kind=kind, advice=advice.format(needed=needed)))
    return name


def _paths(fields: dict[str, Any]) -> dict[str, str] | None:
    """Return the paths by field, as forms send them; ``None`` if the request has no mappings."""
    if "payload_attribute_mappings" not in fields:
        return None
    entries = fields["payload_attribute_mappings"] or []
    paths = {entry["field_name"]: orjson.dumps(entry["path"]).decode() for entry in entries}
    if len(paths) < len(entries):
        raise Invalid(payload_attribute_mappings=TWICE)
    return paths


def _sample(kind: str, text: str | None, paths: dict[str, str]) -> dict[str, Any]:
    if kind == OPSGENIE and (text or paths):
        raise Invalid(payload_example=NO_SAMPLE)
    try:
        return service.map_sample(text or "", paths)
    except Invalid as error:
        misfits = [f"{name} {service.MISFIT}" for name in paths if f"map_{name}" in error.message]
        raise Invalid(payload_attribute_mappings=misfits) if misfits else error from error


def _words(fields: dict[str, Any]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if "severity_mapping" in fields:
        rules["severity_mapping"] = _severities(fields["severity_mapping"])
    if "resolved_values" in fields:
        words = [word_of(value) for value in fields["resolved_values"] or ()]
        rules["resolved_values"] = _bounded("resolved_values", dict.fromkeys(word for word in words if word)) or None
    if "time_zone" in fields:
        rules["time_zone"] = (fields["time_zone"] or "").strip() or None
    return rules


def _severities(table: dict[str, Any] | None) -> dict[str, str] | None:
    names = {word_of(word): name for word, name in (table or {}).items()}
    if unknown := [name for name in names.values() if not isinstance(name, str) or name not in PLAIN_SEVERITIES]:
        allowed = ", ".join(PLAIN_SEVERITIES)
        raise Invalid(severity_mapping=f"has a value that is no severity: {str(unknown[0])[:40]}; they are {allowed}")
    _bounded("severity_mapping", names)
    return names or None


def _bounded(name: str, words: dict[str, Any]) -> list[str]:
    """Return the words; ``Invalid`` if they are too many or too long."""
    if len(words) > MAX_WORDS or any(not word or len(word) > MAX_WORD_CHARACTERS for word in words):
        limits = f"(at most {MAX_WORDS} words of 1 to {MAX_WORD_CHARACTERS} characters)"
        raise Invalid(**{name: f"has too many or too long words {limits}"})
    return list(words)
