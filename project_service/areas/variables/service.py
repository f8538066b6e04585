"""Create, change and delete variables, with their rules.

Variables reference, sections 8 to 12; group and instance variables reference, sections 1 to 3.
"""

from __future__ import annotations

import re
from typing import Any, TypedDict, Unpack

from project_service.access import audit
from project_service.areas.variables import queries
from project_service.areas.variables.models import (
    ANY_SCOPE,
    ENV_VAR,
    FILE,
    AnyVariable,
    GroupVariable,
    InstanceVariable,
    Variable,
    VariableOwner,
    model_of,
)
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked, lock_row, lock_table
from project_service.kit.db.session import add_unique, db, unique
from project_service.kit.http.errors import Invalid

KEY = re.compile(r"[a-zA-Z0-9_]+")
KEY_MESSAGE = "can contain only letters, digits and '_'."
MAX_KEY_LENGTH = 255
MAX_SCOPE_LENGTH = 1024  # not a limit of GitLab: the unique index must hold it together with the longest key
SCOPE = re.compile(r"[a-zA-Z0-9_/${}. \-*]+")
SCOPE_MESSAGE = "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', '*' and spaces"
MASKABLE = re.compile(r"[a-zA-Z0-9_+=/@:.~-]{8,}")
MASKABLE_RAW = re.compile(r"\S{8,}")
MAX_DESCRIPTION_LENGTH = 255
BLANK = "can't be blank"
# what audit events call the variables of an owner
EVENT_NAMES = {Variable: "ci_variable", GroupVariable: "ci_group_variable", InstanceVariable: "ci_instance_variable"}
# how many variables an owner may have, and what the message calls them
LIMITS = {
    Variable: (8000, "project ci variables"),
    GroupVariable: (30_000, "group ci variables"),
    InstanceVariable: (25, "ci instance level variables"),
}
MAX_INSTANCE_VALUE_LENGTH = 10_000
MAX_INSTANCE_FILE_LENGTH = 50_000
HIDDEN_IS_FINAL = "The visibility setting cannot be changed for masked and hidden variables."


class VariableAttributes(TypedDict, total=False):
    """What requests and forms set of a variable; ``key`` and ``masked_and_hidden`` only of a new one."""

    key: str | None
    value: str | None
    variable_type: str | None
    description: str | None
    environment_scope: str | None
    protected: bool | None
    masked: bool | None
    masked_and_hidden: bool | None
    raw: bool | None


def create_variable(owner: VariableOwner, **requested: Unpack[VariableAttributes]) -> AnyVariable:
    """Create a variable in a project, a group or, without an owner, the instance."""
    fields: dict[str, Any] = {**requested}
    hidden = bool(fields.pop("masked_and_hidden", False))
    masked = True if hidden else fields.pop("masked", False)
    scope = fields.pop("environment_scope", ANY_SCOPE)
    model = model_of(owner)
    if model is not InstanceVariable:
        fields |= {"environment_scope": (scope or "").strip(), "hidden": hidden}
    variable = model(
        **queries.owner_columns(owner),
        key=(fields.pop("key") or "").strip(),
        masked=masked,
        protected=bool(fields.pop("protected", False)),
        raw=bool(fields.pop("raw", False)),
        **{name: value for name, value in fields.items() if name != "masked"},
    )
    _lock(owner)
    check(variable)
    limit, text = LIMITS[model]
    if queries.number_of_variables(owner) >= limit:
        raise Invalid(base=f"Maximum number of {text} ({limit}) exceeded")
    add_unique(variable, _taken(variable))
    _record(variable, "created", "Added {}", add=EVENT_NAMES[model])
    return variable


def update_variable(variable: AnyVariable, **requested: Unpack[VariableAttributes]) -> AnyVariable:
    """Change attributes of a variable, all or none of them."""
    fields: dict[str, Any] = {**requested}
    if variable.hidden and fields.get("masked") is False:
        raise Invalid(base=HIDDEN_IS_FINAL)
    if "environment_scope" in fields:
        fields["environment_scope"] = (fields["environment_scope"] or "").strip()
    for flag in ("protected", "raw"):
        if flag in fields:
            fields[flag] = bool(fields[flag])
    if fields.get("variable_type", ENV_VAR) is None:
        del fields["variable_type"]
    former, former_value = audit.settings_of(variable), variable.value
    with unique(_taken(variable)), db.session.no_autoflush:
        for name, value in fields.items():
            setattr(variable, name, value)
        check(variable)
    kind, changed = EVENT_NAMES[type(variable)], audit.settings_of(variable)
    audit.record_changes(kind, owner_of(variable), former, changed, target=_target(variable))
    if variable.value != former_value:
        _record(variable, "updated", "Changed {} value", change="value")
    return variable


def delete_variable(variable: AnyVariable) -> None:
    """Delete a variable."""
    delete_locked(variable)
    _record(variable, "deleted", "Removed {}", remove=EVENT_NAMES[type(variable)])


def owner_of(variable: AnyVariable) -> VariableOwner:
    """Return the project or group that a variable belongs to; ``None`` for the instance."""
    if isinstance(variable, Variable):
        return db.session.get_one(Project, variable.project_id)
    return db.session.get_one(Group, variable.namespace_id) if isinstance(variable, GroupVariable) else None


def _lock(owner: VariableOwner) -> None:
    """Let one transaction at a time create variables of an owner, so that none of them exceeds the limit."""
    if owner is None:
        lock_table(InstanceVariable)
    else:
        lock_row(owner)


def _record(variable: AnyVariable, verb: str, message: str, **details: Any) -> None:
    kind = EVENT_NAMES[type(variable)]
    text = f"{message.format(kind.replace('_', ' '))} {variable.key}"
    audit.record(f"{kind}_{verb}", owner_of(variable), text, target=_target(variable), **details)


def _target(variable: AnyVariable) -> AuditTarget:
    return AuditTarget(f"Ci::{type(variable).__name__}", variable.id, variable.key)


def check(variable: AnyVariable) -> None:
    """Validate a variable; ``Invalid`` carries all problems."""
    problems = {
        "key": _key_problems(variable),
        "value": _value_problems(variable),
        "masked": ["is not included in the list"] if variable.masked is None else [],
        "environment_scope": _scope_problems(variable.environment_scope),
        "description": _length_problems(variable.description, MAX_DESCRIPTION_LENGTH),
    }
    problem_texts = {name: texts for name, texts in problems.items() if texts}
    if problem_texts:
        raise Invalid(**problem_texts)


def _key_problems(variable: AnyVariable) -> list[str]:
    if not variable.key:
        return [BLANK, KEY_MESSAGE]
    problems = _length_problems(variable.key, MAX_KEY_LENGTH)
    if not KEY.fullmatch(variable.key):
        problems.append(KEY_MESSAGE)
    if not problems and queries.has_twin(variable):
        problems.append(_taken_text(variable))
    return problems


def _value_problems(variable: AnyVariable) -> list[str]:
    if isinstance(variable, InstanceVariable) and len(variable.value or "") > (limit := _instance_limit(variable)):
        return [f"The value of the provided variable exceeds the {limit} character limit"]
    if not variable.masked:
        return []
    pattern = MASKABLE_RAW if variable.raw else MASKABLE
    return [] if pattern.fullmatch(variable.value or "") else ["is invalid"]


def _instance_limit(variable: InstanceVariable) -> int:
    return MAX_INSTANCE_FILE_LENGTH if variable.variable_type == FILE else MAX_INSTANCE_VALUE_LENGTH


def _scope_problems(scope: str) -> list[str]:
    if not scope:
        return [BLANK, SCOPE_MESSAGE]
    return _length_problems(scope, MAX_SCOPE_LENGTH) + ([] if SCOPE.fullmatch(scope) else [SCOPE_MESSAGE])


def _length_problems(text: str | None, max_length: int) -> list[str]:
    return [f"is too long (maximum is {max_length} characters)"] if len(text or "") > max_length else []


def _taken_text(variable: AnyVariable) -> str:
    return f"({variable.key}) has already been taken"


def _taken(variable: AnyVariable) -> Invalid:
    return Invalid(key=_taken_text(variable))
