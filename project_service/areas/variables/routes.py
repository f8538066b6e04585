"""The API of CI/CD variables of projects (variables reference)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.variables import queries, service
from project_service.areas.variables.models import AnyVariable, VariableOwner
from project_service.areas.variables.schemas import (
    VariableCreateSchema,
    VariableFilterSchema,
    VariableSchema,
    VariableUpdateSchema,
)
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.kit.http.pagination import SelectedColumns

api = ApiBlueprint("variables", __name__, description="CI/CD variables of projects, groups and the instance.")


@api.get("/projects/<project>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES, access_only=True)
@api.response(200, VariableSchema(many=True))
@api.paged
def list_variables(project: ProjectAccess) -> SelectedColumns:
    """List the variables of a project."""
    return queries.listed_variables(project)


@api.get("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableFilterSchema)
@api.response(200, VariableSchema)
def show_variable(project: Project, fields: dict[str, Any], key: str) -> AnyVariable:
    """Show one variable."""
    return find(project, key, fields)


@api.post("/projects/<project>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableCreateSchema)
@api.response(201, VariableSchema)
def create_variable(project: Project, fields: dict[str, Any]) -> AnyVariable:
    """Create a variable."""
    return service.create_variable(project, **fields)


@api.put("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableUpdateSchema)
@api.response(200, VariableSchema)
def update_variable(project: Project, fields: dict[str, Any], key: str) -> AnyVariable:
    """Change a variable."""
    return service.update_variable(find(project, key, fields), **fields)


@api.delete("/projects/<project>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableFilterSchema)
@api.response(204)
def delete_variable(project: Project, fields: dict[str, Any], key: str) -> None:
    """Delete a variable."""
    service.delete_variable(find(project, key, fields))


def find(owner: VariableOwner, key: str, fields: dict[str, Any]) -> AnyVariable:
    """Return the variable of a path; ``filter`` is taken out of the fields."""
    filters = fields.pop("filter", None) or {}
    key = key.removesuffix(".json")  # no key has a dot; clients may append a format to any URL
    return queries.find_variable(owner, key, filters.get("environment_scope"))
