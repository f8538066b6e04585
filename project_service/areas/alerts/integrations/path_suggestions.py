"""Suggested paths of a sample whose tool has no preset, by the names of its keys.

Alert integrations reference, section 4.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from project_service.areas.alerts.payloads.payload_mapping import SampleField, fitting
from project_service.areas.alerts.payloads.payload_values import is_blank

# best first; a number under a name of STATES is a code, and no end
NAMES: dict[str, tuple[str, ...]] = {
    "title": ("title", "name", "alertname", "summary", "subject", "message"),
    "description": ("description", "message", "msg", "text", "details"),
    "start_time": (
        *("start_time", "started_at", "startsat", "starts_at", "fireddatetime"),
        *("created_at", "timestamp", "date", "time"),
    ),
    "end_time": ("end_time", "ended_at", "endsat", "resolved_at", "closed_at", "status", "state", "transition"),
    "severity": ("severity", "priority", "level", "urgency"),
    "hosts": ("hosts", "host", "hostname", "instance", "node", "server"),
    "service": ("service", "service_name", "component", "job"),
    "fingerprint": ("fingerprint", "dedup_key", "incident_key", "alert_id", "incident_id", "id"),
    "gitlab_environment_name": ("environment", "env"),
}
STATES = ("status", "state", "transition")
TIMES = ("datetime", "number")


def suggested_fields(sample: dict[str, Any], fields: Iterable[SampleField]) -> dict[str, str]:
    """Return the suggested fields by target, as values of form fields.

    A target whose plain key the sample has needs none. Of fields of the same name the least deep one is suggested, and
    each for one target only.
    """
    named = [field for field in fields if isinstance(field.path[-1], str) and field.value != ""]
    chosen: dict[str, SampleField] = {}
    for target, names in NAMES.items():
        if is_blank(sample.get(target)):
            field = _best(target, names, [field_path for field_path in named if field_path not in chosen.values()])
            if field is not None:
                chosen[target] = field
    return {target: field.key for target, field in chosen.items()}


def _best(target: str, names: Collection[str], fields: list[SampleField]) -> SampleField | None:
    fields = [field for field in fitting(fields, target) if _is_plausible(target, field)]
    for name in names:
        same = [field for field in fields if _name_of(field) == name]
        if same:
            return min(same, key=lambda field: len(field.path))
    return None


def _is_plausible(target: str, field: SampleField) -> bool:
    """Whether the value in the sample is of a kind that the target can have."""
    if target == "start_time":
        return field.type in TIMES
    if target == "end_time":
        return _name_of(field) not in STATES or field.type == "string"
    return field.type != "null"


def _name_of(field: SampleField) -> str:
    return str(field.path[-1]).lower()
