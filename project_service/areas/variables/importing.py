"""Import of variables from a file into a project: all of them or none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from project_service.areas.variables import queries, service
from project_service.areas.variables.dotenv import DotenvEntry
from project_service.areas.variables.models import ENV_VAR, Variable
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid

CREATED, REPLACED, SKIPPED = "created", "replaced", "skipped"


@dataclass(frozen=True, slots=True)
class ImportedVariable:
    """What was done with one variable of the file."""

    key: str
    action: str


class ImportRefused(Exception):
    """Variables that a project cannot have; ``problems`` has a line for each, without values."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("nothing was imported: " + "; ".join(problems))
        self.problems = problems


def import_variables(
    project: Project, entries: Iterable[DotenvEntry], *, environment_scope: str, replace: bool, **attributes: Any
) -> list[ImportedVariable]:
    """Create the variables of a file in one environment scope; existing ones are skipped, or get the new value.

    Args:
        project: Where the variables are created.
        entries: The variables of the file.
        environment_scope: The scope that all of them get.
        replace: Whether existing ones with the same key and scope are replaced.
        attributes: ``masked``, ``masked_and_hidden``, ``protected`` and ``raw`` of the new variables.

    Raises:
        ImportRefused: at least one of them breaks a rule; the caller rolls back.

    """
    scope = environment_scope.strip()
    existing = {
        variable.key: variable
        for variable in db.session.scalars(queries.variables_of(project).filter_by(environment_scope=scope))
    }
    done, problems = [], []
    for entry in entries:
        try:
            action = _import(project, existing.get(entry.key), entry, scope, replace, attributes)
        except Invalid as error:
            problems += [
                f"line {entry.line}: {entry.key}: {name} {text}"
                for name, texts in error.message.items()
                for text in texts
            ]
        else:
            done.append(ImportedVariable(entry.key, action))
    if problems:
        raise ImportRefused(problems)
    return done


def _import(
    project: Project,
    existing: Variable | None,
    entry: DotenvEntry,
    scope: str,
    replace: bool,
    attributes: dict[str, Any],
) -> str:
    if existing is None:
        service.create_variable(
            project, key=entry.key, value=entry.value, environment_scope=scope, variable_type=ENV_VAR, **attributes
        )
        return CREATED
    if not replace:
        return SKIPPED
    if attributes.get("masked_and_hidden") and not existing.hidden:
        raise Invalid(base=service.HIDDEN_IS_FINAL)
    changes: dict[str, Any] = {name: True for name in ("masked", "protected", "raw") if attributes.get(name)}
    service.update_variable(existing, value=entry.value, **changes)
    return REPLACED
