"""The API of environments."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.areas.environments import queries, schemas, service
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import Environment, find_environment

api = ApiBlueprint("environments", __name__, description="Where a project runs.")

ENVIRONMENTS = "/projects/<project>/environments"


@api.get(ENVIRONMENTS)
@api.signed_in
@api.arguments(schemas.EnvironmentFilterSchema)
@api.allow(Ability.ADMIN_ENVIRONMENTS)
@api.response(200, schemas.EnvironmentSchema(many=True))
@api.paged
def list_environments(project: Project, fields: dict[str, Any]) -> Select[Environment]:
    """List the environments of a project."""
    return queries.environments_matching(project, **fields)


@api.get(f"{ENVIRONMENTS}/<environment>")
@api.signed_in
@api.allow(Ability.ADMIN_ENVIRONMENTS)
@api.response(200, schemas.EnvironmentSchema)
def show_environment(project: Project, environment: str) -> Environment:
    """Show one environment."""
    return find_environment(project, numeric(environment))


@api.post(ENVIRONMENTS)
@api.signed_in
@api.arguments(schemas.EnvironmentCreateSchema)
@api.allow(Ability.ADMIN_ENVIRONMENTS)
@api.response(201, schemas.EnvironmentSchema)
def create_environment(project: Project, fields: dict[str, Any]) -> Environment:
    """Create an environment."""
    return service.create_environment(project, **fields)


@api.put(f"{ENVIRONMENTS}/<environment>")
@api.signed_in
@api.arguments(schemas.EnvironmentUpdateSchema)
@api.allow(Ability.ADMIN_ENVIRONMENTS)
@api.response(200, schemas.EnvironmentSchema)
def update_environment(project: Project, fields: dict[str, Any], environment: str) -> Environment:
    """Change an environment."""
    return service.update_environment(find_environment(project, numeric(environment)), **fields)


@api.delete(f"{ENVIRONMENTS}/<environment>")
@api.signed_in
@api.allow(Ability.ADMIN_ENVIRONMENTS)
@api.response(204)
def delete_environment(project: Project, environment: str) -> None:
    """Delete an environment; its alerts are kept."""
    service.delete_environment(find_environment(project, numeric(environment)))
