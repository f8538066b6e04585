"""The variables that a job gets, merged by precedence (group and instance variables reference, sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import or_, select

from project_service.access import audit
from project_service.areas.variables.models import (
    ANY_SCOPE,
    FILE,
    AnyVariable,
    GroupVariable,
    InstanceVariable,
    Variable,
    VariableOwner,
)
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.repositories import wildcards
from project_service.kit.db.session import db

MAX_AUDITED_KEYS = 100
Precedence = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class EffectiveVariable:
    """A variable as a job gets it, and where it comes from.

    ``value`` is ``None`` if it is hidden or cannot be computed; ``note`` says why, or what is unusual about it.
    ``source`` is ``project``, ``group`` or ``instance``, ``source_path`` the full path of the first two. ``overridden``
    are the variables with the same key that have lower precedence, highest first.
    """

    key: str
    value: str | None
    variable_type: str
    protected: bool
    masked: bool
    hidden: bool
    raw: bool
    environment_scope: str
    source: str
    source_path: str | None
    note: str | None = None
    overridden: tuple[EffectiveVariable, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether a job gets the path of a file with the value."""
        return self.variable_type == FILE


def effective_variables(
    project: Project, environment: str, *, protected: bool, with_hidden: bool = False
) -> list[EffectiveVariable]:
    """Return what a job of a project gets, by key.

    Args:
        project: The project of the job.
        environment: The name of its environment, which need not exist; empty without one.
        protected: Whether the job runs on a protected branch or tag.
        with_hidden: Whether to return the values of hidden variables: never to a client.

    """
    by_key: dict[str, list[tuple[Precedence, EffectiveVariable]]] = {}
    for precedence, variable in _candidates(project, environment, protected=protected, with_hidden=with_hidden):
        by_key.setdefault(variable.key, []).append((precedence, variable))
    merged = []
    for key in sorted(by_key):
        candidates = sorted(by_key[key], key=lambda candidate: candidate[0], reverse=True)
        winner, *others = (variable for _, variable in candidates)
        merged.append(replace(winner, overridden=tuple(others)))
    return merged


def groups_above(project: Project) -> list[Namespace]:
    """Return the groups of a project, the nearest first."""
    above = select(Namespace).join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Namespace.id)
    groups = db.session.scalars(above.where(NamespaceAncestor.namespace_id == project.namespace_id))
    return sorted(groups, key=lambda group: group.full_path.count("/"), reverse=True)


def covers(scope: str, environment: str) -> bool:
    """Whether an environment scope applies to an environment; without one only ``*`` does."""
    return scope == ANY_SCOPE or wildcards.matches(scope, environment)


def record_reading(owner: VariableOwner, variables: Iterable[Any], how: str) -> None:
    """Add one audit event for the masked and hidden values among those that were read; none without any.

    ``how`` ends the name of the event: ``api``, ``page`` or ``export``.
    """
    secret = sorted(
        {variable.key for variable in variables if (variable.masked or variable.hidden) and variable.value is not None}
    )
    if secret:
        named = ", ".join(secret[:MAX_AUDITED_KEYS])
        text = f"Read the values of masked or hidden variables: {named}"
        audit.record(f"variable_viewed_{how}", owner, text, variables=named, number_of_variables=len(secret))


def _candidates(
    project: Project, environment: str, *, protected: bool, with_hidden: bool
) -> Iterator[tuple[Precedence, EffectiveVariable]]:
    groups = {group.id: (group, group.full_path.count("/")) for group in groups_above(project)}
    for variable in _read(environment, select(InstanceVariable), protected=protected):
        yield (0, 0, *_rank(variable, environment)), _of(variable, "instance", None, with_hidden)
    in_groups = select(GroupVariable).where(GroupVariable.namespace_id.in_(groups))
    for variable in _read(environment, in_groups, protected=protected):
        group, depth = groups[variable.namespace_id]
        yield (1, depth, *_rank(variable, environment)), _of(variable, "group", group.full_path, with_hidden)
    for variable in _read(environment, select(Variable).where(Variable.project_id == project.id), protected=protected):
        yield (2, 0, *_rank(variable, environment)), _of(variable, "project", project.full_path, with_hidden)


def _read(environment: str, statement: Any, *, protected: bool) -> list[Any]:
    """Load the variables whose scope covers the environment; other exact scopes are not read and decrypted."""
    model = statement.column_descriptions[0].get("entity")
    if model is not InstanceVariable:
        scope = model.environment_scope
        statement = statement.where(or_(scope == environment, scope.contains("*", autoescape=True)))
    if not protected:
        statement = statement.where(model.protected.is_(False))
    return [variable for variable in db.session.scalars(statement) if covers(variable.environment_scope, environment)]


def _rank(variable: AnyVariable, environment: str) -> tuple[int, int, int]:
    """Order the variables of one owner: ``*``, wildcards by the characters they fix, the exact scope, then age."""
    scope = variable.environment_scope
    kind = 0 if scope == ANY_SCOPE else 2 if scope == environment else 1
    return kind, len(scope.replace("*", "")), variable.id


def _of(variable: AnyVariable, source: str, path: str | None, with_hidden: bool) -> EffectiveVariable:
    return EffectiveVariable(
        key=variable.key,
        value=None if variable.hidden and not with_hidden else variable.value or "",
        variable_type=variable.variable_type,
        protected=variable.protected,
        masked=variable.masked,
        hidden=variable.hidden,
        raw=variable.raw,
        environment_scope=variable.environment_scope,
        source=source,
        source_path=path,
    )
