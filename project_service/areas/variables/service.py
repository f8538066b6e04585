"""Create, change and delete variables, with their rules (variables reference, sections 8 to 12)."""

from __future__ import annotations

import re
from typing import Any

from project_service.access import audit
from project_service.areas.variables import queries
from project_service.areas.variables.models import ENV_VAR, Variable
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked
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
# the value is not among them: events never contain secrets
AUDITED = ("environment_scope", "masked", "hidden", "protected", "raw", "variable_type")
HIDDEN_IS_FINAL = "The visibility setting cannot be changed for masked and hidden variables."


def create_variable(project: Project, **fields: Any) -> Variable:
    """Create a variable in a project."""
    hidden = bool(fields.pop("masked_and_hidden", False))
    masked = True if hidden else fields.pop("masked", False)
    scope = fields.pop("environment_scope", "*")
    variable = Variable(
        project_id=project.id,
        key=(fields.pop("key") or "").strip(),
        environment_scope=(scope or "").strip(),
        masked=masked,
        hidden=hidden,
        protected=bool(fields.pop("protected", False)),
        raw=bool(fields.pop("raw", False)),
        **{name: value for name, value in fields.items() if name != "masked"},
    )
    check(variable)
    add_unique(variable, _taken(variable))
    _record(variable, "ci_variable_created", "Added ci variable", add="ci_variable")
    return variable


def update_variable(variable: Variable, **fields: Any) -> Variable:
    """Change attributes of a variable, all or none of them."""
    if variable.hidden and fields.get("masked") is False:
        raise Invalid(base=HIDDEN_IS_FINAL)
    if "environment_scope" in fields:
        fields["environment_scope"] = (fields["environment_scope"] or "").strip()
    for flag in ("protected", "raw"):
        if flag in fields:
            fields[flag] = bool(fields[flag])
    if fields.get("variable_type", ENV_VAR) is None:
        del fields["variable_type"]
    former, former_value = audit.values_of(variable, *AUDITED), variable.value
    with unique(_taken(variable)), db.session.no_autoflush:
        for name, value in fields.items():
            setattr(variable, name, value)
        check(variable)
    project = db.session.get_one(Project, variable.project_id)
    audit.record_changes("ci_variable", project, former, audit.values_of(variable, *AUDITED), target=_target(variable))
    if variable.value != former_value:
        _record(variable, "ci_variable_updated", "Changed ci variable value", change="value")
    return variable


def delete_variable(variable: Variable) -> None:
    """Delete a variable."""
    delete_locked(variable)
    _record(variable, "ci_variable_deleted", "Removed ci variable", remove="ci_variable")


def _record(variable: Variable, event_name: str, message: str, **details: Any) -> None:
    project = db.session.get_one(Project, variable.project_id)
    audit.record(event_name, project, f"{message} {variable.key}", target=_target(variable), **details)


def _target(variable: Variable) -> AuditTarget:
    return AuditTarget("Ci::Variable", variable.id, variable.key)


def check(variable: Variable) -> None:
    """Validate a variable; ``Invalid`` carries all problems."""
    problems = {
        "key": _key_problems(variable),
        "value": _value_problems(variable),
        "masked": ["is not included in the list"] if variable.masked is None else [],
        "environment_scope": _scope_problems(variable.environment_scope),
        "description": _length_problems(variable.description, MAX_DESCRIPTION_LENGTH),
    }
    found = {name: texts for name, texts in problems.items() if texts}
    if found:
        raise Invalid(**found)


def _key_problems(variable: Variable) -> list[str]:
    if not variable.key:
        return [BLANK, KEY_MESSAGE]
    found = _length_problems(variable.key, MAX_KEY_LENGTH)
    if not KEY.fullmatch(variable.key):
        found.append(KEY_MESSAGE)
    if not found and queries.has_twin(variable):
        found.append(_taken_text(variable))
    return found


def _value_problems(variable: Variable) -> list[str]:
    if not variable.masked:
        return []
    pattern = MASKABLE_RAW if variable.raw else MASKABLE
    return [] if pattern.fullmatch(variable.value or "") else ["is invalid"]


def _scope_problems(scope: str) -> list[str]:
    if not scope:
        return [BLANK, SCOPE_MESSAGE]
    return _length_problems(scope, MAX_SCOPE_LENGTH) + ([] if SCOPE.fullmatch(scope) else [SCOPE_MESSAGE])


def _length_problems(text: str | None, max_length: int) -> list[str]:
    return [f"is too long (maximum is {max_length} characters)"] if len(text or "") > max_length else []


def _taken_text(variable: Variable) -> str:
    return f"({variable.key}) has already been taken"


def _taken(variable: Variable) -> Invalid:
    return Invalid(key=_taken_text(variable))
