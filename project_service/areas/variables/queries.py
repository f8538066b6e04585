"""Queries of variables."""

from __future__ import annotations

from sqlalchemy import Select, select

from project_service.areas.variables.models import Variable
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import Conflict, NotFound

AMBIGUOUS = "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"


def variables_of(project: Project) -> Select[Variable]:
    """The variables of a project, oldest first."""
    return select(Variable).where(Variable.project_id == project.id).order_by(Variable.id)


def find_variable(project: Project, key: str, environment_scope: str | None = None) -> Variable:
    """One variable by its key and, where several share it, its scope; both compared literally."""
    statement = variables_of(project).where(Variable.key == key)
    if environment_scope:
        statement = statement.where(Variable.environment_scope == environment_scope)
    found = list(db.session.scalars(statement.limit(2)))
    if not found:
        raise NotFound("Variable")
    if len(found) > 1:
        raise Conflict(AMBIGUOUS)
    return found[0]


def has_twin(variable: Variable) -> bool:
    """Whether another variable of the project has this key and scope."""
    same = select(Variable.id).where(
        Variable.project_id == variable.project_id,
        Variable.key == variable.key,
        Variable.environment_scope == variable.environment_scope,
        Variable.id != (variable.id or 0),
    )
    return db.session.scalar(same) is not None


def find_variable_by_id(project: Project, variable_id: int) -> Variable:
    """One variable of a project by its number, as the pages address it."""
    variable = db.session.scalar(variables_of(project).where(Variable.id == variable_id))
    if variable is None:
        raise NotFound("Variable")
    return variable
