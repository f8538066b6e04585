"""Queries of the variables of a project, a group or the instance (``None``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Select, bindparam, func, select
from sqlalchemy.orm import defer

from project_service.areas.variables.models import (
    AnyVariable,
    GroupVariable,
    Variable,
    VariableOwner,
    model_of,
)
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import Conflict, NotFound
from project_service.kit.http.pagination import ColumnList, SelectedColumns

AMBIGUOUS = "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"


def owner_columns(owner: VariableOwner) -> dict[str, int]:
    """Return the column, with its value, that ties a variable to its owner; none for the instance."""
    if owner is None:
        return {}
    return {"project_id" if model_of(owner) is Variable else "namespace_id": owner.id}


_variables = table_of(Variable).c
_listed_variables = ColumnList(
    select(*(column for column in _variables if column.name not in ("id", "project_id")))
    .where(_variables.project_id == bindparam("project_id"))
    .order_by(_variables.id)
)


def listed_variables(project: ProjectAccess) -> SelectedColumns:
    """The columns of the variables of a project, oldest first."""
    return _listed_variables.of(project_id=project.id)


def variables_of(owner: VariableOwner) -> Select[Any]:
    """The variables of an owner, oldest first."""
    model = model_of(owner)
    return select(model).filter_by(**owner_columns(owner)).order_by(model.id)


def inherited_by(project: Project) -> Select[GroupVariable]:
    """The variables of the groups above a project without their values: of the nearest group first, then by key."""
    above = select(GroupVariable).join(NamespaceAncestor, NamespaceAncestor.ancestor_id == GroupVariable.namespace_id)
    above = above.join(Namespace, Namespace.id == GroupVariable.namespace_id)
    above = above.where(NamespaceAncestor.namespace_id == project.namespace_id)
    nearest = func.length(Namespace.full_path).desc()  # of groups above one another the inner one has the longer path
    return above.order_by(nearest, GroupVariable.key, GroupVariable.id).options(
        defer(GroupVariable.value, raiseload=True)
    )


def keys_and_scopes(project: Project, keys: Iterable[str]) -> Select[str, str]:
    """The keys and environment scopes of the variables of a project with some keys."""
    return select(Variable.key, Variable.environment_scope).where(
        Variable.project_id == project.id, Variable.key.in_(keys)
    )


def number_of_variables(owner: VariableOwner) -> int:
    """The number of variables of an owner."""
    counted = select(func.count()).select_from(model_of(owner)).filter_by(**owner_columns(owner))
    return db.session.scalar(counted) or 0


def find_variable(owner: VariableOwner, key: str, environment_scope: str | None = None) -> AnyVariable:
    """One variable by its key and, where several share it, its scope; both compared literally."""
    statement = variables_of(owner).filter_by(key=key)
    if environment_scope:
        statement = statement.filter_by(environment_scope=environment_scope)
    candidates: list[AnyVariable] = list(db.session.scalars(statement.limit(2)))
    if not candidates:
        raise NotFound(model_of(owner).__name__)
    if len(candidates) > 1:
        raise Conflict(AMBIGUOUS)
    return candidates[0]


def has_twin(variable: AnyVariable) -> bool:
    """Whether another variable of the same owner has this key and scope."""
    model = type(variable)
    names: dict[str, Any] = {"key": variable.key}
    if isinstance(variable, Variable):
        names |= {"environment_scope": variable.environment_scope, "project_id": variable.project_id}
    elif isinstance(variable, GroupVariable):
        names |= {"environment_scope": variable.environment_scope, "namespace_id": variable.namespace_id}
    same = select(model.id).filter_by(**names).where(model.id != (variable.id or 0))
    return db.session.scalar(same) is not None


def find_variable_by_id(owner: VariableOwner, variable_id: int) -> AnyVariable:
    """One variable of an owner by its number, as the pages address it."""
    model = model_of(owner)
    variable: AnyVariable = one(variables_of(owner).where(model.id == variable_id), NotFound(model.__name__))
    return variable
