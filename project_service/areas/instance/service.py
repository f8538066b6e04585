"""Changes of features and application settings."""

from __future__ import annotations

import itertools
import re
from typing import Any, Required, TypedDict, Unpack

from project_service.access import audit
from project_service.areas.instance.schemas import SettingsUpdateSchema
from project_service.domain import instance_settings
from project_service.domain.accounts import two_factor
from project_service.domain.accounts.users import user_by
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.instance_settings import FeatureGate
from project_service.domain.namespaces import GROUP, namespace_by
from project_service.domain.paths import path_rules
from project_service.domain.projects import project_by
from project_service.kit.http.errors import BadParameters, BadRequest, Invalid
from project_service.kit.http.schemas import load
from project_service.kit.security.outgoing_http import rules

PERCENTAGE = re.compile(r"[0-9]{1,3}")
# with an actor, 0, 1 and 100 mean off and on
BOOLEANS = {"true": True, "1": True, "100": True, "false": False, "0": False}
PERCENTAGE_KEYS = ("percentage_of_actors", "percentage_of_time")


class FeatureFields(TypedDict, total=False):
    """What a feature is set to, and for whom, by the names of the API."""

    value: Required[str | None]
    key: str | None
    feature_group: str | None
    user: str | None
    group: str | None
    project: str | None
    force: bool | None


def set_feature(name: str, **fields: Unpack[FeatureFields]) -> dict[str, Any]:
    """Set a feature for all, for some actors or for a percentage; an unknown name creates a feature."""
    if len(name) > path_rules.LONGEST:
        raise Invalid(name=path_rules.TOO_LONG)
    if len(fields.get("feature_group") or "") > path_rules.LONGEST:
        raise Invalid(feature_group=path_rules.TOO_LONG)
    instance_settings.lock_gates()
    value = (fields["value"] or "").strip().lower()
    actors = _actors(fields)
    feature_group = fields.get("feature_group")
    groups = [feature_group] if feature_group else []
    if value in BOOLEANS if actors or groups else value in ("true", "false"):
        _set_boolean(name, on=BOOLEANS[value], actors=actors, groups=groups)
    elif PERCENTAGE.fullmatch(value) and int(value) <= 100:
        if int(value) == 0:
            _set_boolean(name, on=False, actors=[], groups=[])
        else:
            if not instance_settings.gates_of(name):
                instance_settings.set_gate(name, "boolean", "false")
            instance_settings.replace_gate(name, fields.get("key") or "percentage_of_time", str(int(value)))
    else:
        raise BadParameters("value is invalid")
    changed = feature(name)
    details: dict[str, Any] = {key: str(text) for key, text in fields.items() if text}
    text = f"Set feature flag {name}, which is now {changed['state']}"
    audit.record("feature_flag_updated", None, text, target=AuditTarget("Feature", name, name), **details)
    return changed


def delete_feature(name: str) -> None:
    """Delete a feature; one that does not exist is ignored."""
    instance_settings.lock_gates()
    if instance_settings.gates_of(name):
        target = AuditTarget("Feature", name, name)
        audit.record("feature_flag_deleted", None, f"Deleted feature flag {name}", target=target)
    instance_settings.clear_gates(name)


def features() -> list[dict[str, Any]]:
    """Return all features that have been set."""
    by_name = itertools.groupby(instance_settings.all_gates(), key=lambda gate: gate.feature)
    return [_serialize(name, list(gates)) for name, gates in by_name]


def feature(name: str) -> dict[str, Any]:
    """Return one feature in the form of the API."""
    return _serialize(name, instance_settings.gates_of(name))


def _serialize(name: str, gates: list[FeatureGate]) -> dict[str, Any]:
    boolean = any(gate.key == "boolean" and gate.value == "true" for gate in gates)
    serialized: list[dict[str, Any]] = [{"key": "boolean", "value": boolean}]
    sets = {key: [gate.value for gate in gates if gate.key == key] for key in ("groups", "actors")}
    serialized += [{"key": key, "value": values} for key, values in sets.items() if values]
    for key in PERCENTAGE_KEYS:
        serialized += [
            {"key": key, "value": int(gate.value)} for gate in gates if gate.key == key and gate.value != "0"
        ]
    state = "on" if boolean else "conditional" if len(serialized) > 1 else "off"
    return {"name": name, "state": state, "gates": serialized}


def change_settings(changes: dict[str, Any]) -> dict[str, Any]:
    """Change application settings; invalid values change nothing."""
    for entry in changes.get("outbound_local_requests_whitelist") or []:
        try:
            rules.check_allow_list_entry(entry)
        except ValueError as error:
            raise Invalid(outbound_local_requests_whitelist=f"{entry} is invalid: {error}") from error
    changes = {
        name: entry.default if changes[name] is None else changes[name]
        for name, entry in instance_settings.SETTINGS.items()
        if name in changes
    }
    former = instance_settings.all_settings()
    instance_settings.change_settings(changes)
    if changes.get(two_factor.REQUIRED) is False:
        two_factor.forget_grace()
    current = instance_settings.all_settings()
    audit.record_changes("application_setting", None, former, current)
    return current


def change_settings_from_text(texts: dict[str, str]) -> dict[str, Any]:
    """Change application settings from a form or the command line, where all values are texts.

    Raises:
        Invalid: some values are not; the messages are those of their settings.

    """
    changes: dict[str, Any] = {}
    problems: dict[str, str | list[str]] = {}
    for name, text in texts.items():
        try:
            changes |= load(SettingsUpdateSchema(), parameters={name: text})
        except BadParameters as error:
            problems[name] = str(error).removeprefix(f"{name} ")
    if problems:
        raise Invalid(**problems)
    return change_settings(changes)


def _set_boolean(name: str, *, on: bool, actors: list[str], groups: list[str]) -> None:
    gates = instance_settings.gates_of(name)
    if not actors and not groups:
        instance_settings.clear_gates(name)
        instance_settings.set_gate(name, "boolean", "true" if on else "false")
        return
    if not any(gate.key == "boolean" for gate in gates):
        instance_settings.set_gate(name, "boolean", "false")
    for key, values in (("actors", actors), ("groups", groups)):
        for value in values:
            if on:
                instance_settings.set_gate(name, key, value)
            else:
                instance_settings.remove_gate(name, key, value)


def _actors(fields: FeatureFields) -> list[str]:
    actors = []
    for text in _split(fields.get("user")):
        user = user_by(text)
        if user is None:
            raise BadRequest(f"400 Bad request - {text} is not found!")
        actors.append(f"User:{user.id}")
    for text in _split(fields.get("group")):
        group = namespace_by(text)
        if group is None or group.kind != GROUP:
            raise BadRequest(f"400 Bad request - {text} is not found!")
        actors.append(f"Group:{group.id}")
    for text in _split(fields.get("project")):
        project = project_by(text)
        if project is None:
            raise BadRequest(f"400 Bad request - {text} is not found!")
        actors.append(f"Project:{project.id}")
    return actors


def _split(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]
