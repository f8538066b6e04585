"""The API of CI/CD variables (variables reference; group and instance variables reference)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.variables import queries, service
from project_service.areas.variables.models import AnyVariable, VariableOwner
from project_service.areas.variables.schemas import (
    InstanceVariableCreateSchema,
    InstanceVariableSchema,
    InstanceVariableUpdateSchema,
    VariableCreateSchema,
    VariableFilterSchema,
    VariableSchema,
    VariableUpdateSchema,
)
from project_service.domain.namespaces import Group
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.kit.http.pagination import SelectedColumns
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("variables", __name__, description="CI/CD variables of projects, groups and the instance.")
inherited_api = ApiBlueprint(
    "inherited_variables", __name__, description="CI/CD variables of groups and of the instance."
)

OF_PROJECT, OF_GROUP = "/projects/<project>/variables", "/groups/<group>/variables"


@api.get(OF_PROJECT)
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES, access_only=True)
@api.response(200, VariableSchema(many=True))
@api.paged
def list_variables(project: ProjectAccess) -> SelectedColumns:
    """List the variables of a project."""
    return queries.listed_variables(project)


@api.get(f"{OF_PROJECT}/<key>")
@inherited_api.get(f"{OF_GROUP}/<key>", endpoint="show_group_variable")
@api.signed_in
@api.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP)
@api.arguments(VariableFilterSchema)
@api.response(200, VariableSchema)
def show_variable(owner: Project | Group, fields: dict[str, Any], key: str) -> AnyVariable:
    """Show one variable."""
    return find(owner, key, fields)


@api.post(OF_PROJECT)
@inherited_api.post(OF_GROUP, endpoint="create_group_variable")
@api.signed_in
@api.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP)
@api.arguments(VariableCreateSchema)
@api.response(201, VariableSchema)
def create_variable(owner: Project | Group, fields: dict[str, Any]) -> AnyVariable:
    """Create a variable."""
    return service.create_variable(owner, **fields)


@api.put(f"{OF_PROJECT}/<key>")
@inherited_api.put(f"{OF_GROUP}/<key>", endpoint="update_group_variable")
@api.signed_in
@api.allow(project=Ability.ADMIN_VARIABLES, group=Ability.ADMIN_GROUP)
@api.arguments(VariableUpdateSchema)
@api.response(200, VariableSchema)
def update_variable(owner: Project | Group, fields: dict[str, Any], key: str) -> AnyVariable:
    """Change a variable."""
    return service.update_variable(find(owner, key, fields), **fields)


@api.delete(f"{OF_PROJECT}/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_VARIABLES)
@api.arguments(VariableFilterSchema)
@api.response(204)
def delete_variable(project: Project, fields: dict[str, Any], key: str) -> None:
    """Delete a variable."""
    service.delete_variable(find(project, key, fields))


@inherited_api.get("/groups/<group>/variables")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMIN_GROUP)
@inherited_api.response(200, VariableSchema(many=True))
@inherited_api.paged
def list_group_variables(group: Group) -> Select[Any]:
    """List the variables of a group."""
    return queries.variables_of(group)


@inherited_api.delete("/groups/<group>/variables/<key>")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMIN_GROUP)
@inherited_api.arguments(VariableFilterSchema)
@inherited_api.response(204)
def delete_group_variable(group: Group, fields: dict[str, Any], key: str) -> None:
    """Delete a variable of a group."""
    variable: Any = find(group, key, fields)
    service.delete_variable(unmodified(variable))


@inherited_api.get("/admin/ci/variables")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMINISTER)
@inherited_api.response(200, InstanceVariableSchema(many=True))
@inherited_api.paged
def list_instance_variables() -> Select[Any]:
    """List the variables of the instance."""
    return queries.variables_of(None)


@inherited_api.get("/admin/ci/variables/<key>")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMINISTER)
@inherited_api.response(200, InstanceVariableSchema)
def show_instance_variable(key: str) -> AnyVariable:
    """Show one variable of the instance."""
    return find(None, key, {})


@inherited_api.post("/admin/ci/variables")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMINISTER)
@inherited_api.arguments(InstanceVariableCreateSchema)
@inherited_api.response(201, InstanceVariableSchema)
def create_instance_variable(fields: dict[str, Any]) -> AnyVariable:
    """Create a variable of the instance."""
    return service.create_variable(None, **fields)


@inherited_api.put("/admin/ci/variables/<key>")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMINISTER)
@inherited_api.arguments(InstanceVariableUpdateSchema)
@inherited_api.response(200, InstanceVariableSchema)
def update_instance_variable(fields: dict[str, Any], key: str) -> AnyVariable:
    """Change a variable of the instance."""
    return service.update_variable(find(None, key, {}), **fields)


@inherited_api.delete("/admin/ci/variables/<key>")
@inherited_api.signed_in
@inherited_api.allow(Ability.ADMINISTER)
@inherited_api.response(204)
def delete_instance_variable(key: str) -> None:
    """Delete a variable of the instance."""
    service.delete_variable(find(None, key, {}))


def find(owner: VariableOwner, key: str, fields: dict[str, Any]) -> AnyVariable:
    """Return the variable of a path; ``filter`` is taken out of the fields."""
    filters = fields.pop("filter", None) or {}
    key = key.removesuffix(".json")  # no key has a dot; clients may append a format to any URL
    return queries.find_variable(owner, key, filters.get("environment_scope"))
