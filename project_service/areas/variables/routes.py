"""The API of CI/CD variables (variables reference)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.variables import queries, service
from project_service.areas.variables.models import Variable
from project_service.areas.variables.schemas import (
    VariableCreateSchema,
    VariableFilterSchema,
    VariableSchema,
    VariableUpdateSchema,
)
from project_service.domain.projects import Project

api = ApiBlueprint("variables", __name__, description="CI/CD variables of a project.")


@api.get("/projects/<project>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.response(200, VariableSchema(many=True))
@api.paged
def list_variables(project: Project) -> Select[Variable]:
    """List the variables of a project."""
    return queries.variables_of(project)


@api.get("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableFilterSchema)
@api.response(200, VariableSchema)
def show_variable(project: Project, fields: dict[str, Any], key: str) -> Variable:
    """Show one variable."""
    return _find(project, key, fields)


@api.post("/projects/<project>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableCreateSchema)
@api.response(201, VariableSchema)
def create_variable(project: Project, fields: dict[str, Any]) -> Variable:
    """Create a variable."""
    return service.create_variable(project, **fields)


@api.put("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableUpdateSchema)
@api.response(200, VariableSchema)
def update_variable(project: Project, fields: dict[str, Any], key: str) -> Variable:
    """Change a variable."""
    return service.update_variable(_find(project, key, fields), **fields)


@api.delete("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableFilterSchema)
@api.response(204)
def delete_variable(project: Project, fields: dict[str, Any], key: str) -> None:
    """Delete a variable."""
    service.delete_variable(_find(project, key, fields))


def _find(project: Project, key: str, fields: dict[str, Any]) -> Variable:
    filters = fields.pop("filter", None) or {}
    key = key.removesuffix(".json")  # no key has a dot; clients may append a format to any URL
    return queries.find_variable(project, key, filters.get("environment_scope"))
