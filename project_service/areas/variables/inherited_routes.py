"""The API of CI/CD variables of groups and of the instance (group and instance variables reference)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.variables import queries, schemas, service
from project_service.areas.variables.models import AnyVariable
from project_service.areas.variables.routes import find
from project_service.domain.namespaces import Group
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("inherited_variables", __name__, description="CI/CD variables of groups and of the instance.")


@api.get("/groups/<group>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.response(200, schemas.VariableSchema(many=True))
@api.paged
def list_group_variables(group: Group) -> Select[Any]:
    """List the variables of a group."""
    return queries.variables_of(group)


@api.get("/groups/<group>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.VariableFilterSchema)
@api.response(200, schemas.VariableSchema)
def show_group_variable(group: Group, fields: dict[str, Any], key: str) -> AnyVariable:
    """Show one variable of a group."""
    return find(group, key, fields)


@api.post("/groups/<group>/variables")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.VariableCreateSchema)
@api.response(201, schemas.VariableSchema)
def create_group_variable(group: Group, fields: dict[str, Any]) -> AnyVariable:
    """Create a variable in a group."""
    return service.create_variable(group, **fields)


@api.put("/groups/<group>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.VariableUpdateSchema)
@api.response(200, schemas.VariableSchema)
def update_group_variable(group: Group, fields: dict[str, Any], key: str) -> AnyVariable:
    """Change a variable of a group."""
    return service.update_variable(find(group, key, fields), **fields)


@api.delete("/groups/<group>/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.arguments(schemas.VariableFilterSchema)
@api.response(204)
def delete_group_variable(group: Group, fields: dict[str, Any], key: str) -> None:
    """Delete a variable of a group."""
    variable: Any = find(group, key, fields)
    service.delete_variable(unmodified(variable))


@api.get("/admin/ci/variables")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.InstanceVariableSchema(many=True))
@api.paged
def list_instance_variables() -> Select[Any]:
    """List the variables of the instance."""
    return queries.variables_of(None)


@api.get("/admin/ci/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.InstanceVariableSchema)
def show_instance_variable(key: str) -> AnyVariable:
    """Show one variable of the instance."""
    return find(None, key, {})


@api.post("/admin/ci/variables")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.InstanceVariableCreateSchema)
@api.response(201, schemas.InstanceVariableSchema)
def create_instance_variable(fields: dict[str, Any]) -> AnyVariable:
    """Create a variable of the instance."""
    return service.create_variable(None, **fields)


@api.put("/admin/ci/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.InstanceVariableUpdateSchema)
@api.response(200, schemas.InstanceVariableSchema)
def update_instance_variable(fields: dict[str, Any], key: str) -> AnyVariable:
    """Change a variable of the instance."""
    return service.update_variable(find(None, key, {}), **fields)


@api.delete("/admin/ci/variables/<key>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(204)
def delete_instance_variable(key: str) -> None:
    """Delete a variable of the instance."""
    service.delete_variable(find(None, key, {}))
