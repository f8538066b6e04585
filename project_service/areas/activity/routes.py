"""The API of activity events (events reference)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.identity import caller
from project_service.areas.activity import queries, schemas
from project_service.areas.activity.targets import events_with_targets
from project_service.domain.accounts.users import find_user_by
from project_service.domain.project_access import ProjectAccess

api = ApiBlueprint("events", __name__, description="Activity events of users and projects.")


@api.get("/events", reads_repository=True)
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.OwnEventFilterSchema)
@api.response(200, schemas.EventSchema(many=True))
@api.paged
def list_events(fields: dict[str, Any]) -> WithSchema:
    """List your events, or with ``scope=all`` those of your projects."""
    if fields.pop("scope", None) == "all":
        return WithSchema(schemas.EventSchema, queries.events_of_memberships(caller(), **fields), events_with_targets)
    return WithSchema(
        schemas.EventSchema, queries.events_of_author(caller(), caller().user_id or 0, **fields), events_with_targets
    )


@api.get("/users/<user>/events", reads_repository=True)
@api.scopes("read_user")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(schemas.EventFilterSchema)
@api.response(200, schemas.EventSchema(many=True))
@api.paged
def list_user_events(fields: dict[str, Any], user: str) -> WithSchema:
    """List the events of a user."""
    return WithSchema(
        schemas.EventSchema, queries.events_of_user(caller(), find_user_by(user), **fields), events_with_targets
    )


@api.get("/projects/<project>/events", reads_repository=True)
@api.signed_in
@api.arguments(schemas.EventFilterSchema)
@api.allow(Ability.READ_PROJECT, access_only=True)
@api.response(200, schemas.ProjectEventSchema(many=True))
@api.paged
def list_project_events(project: ProjectAccess, fields: dict[str, Any]) -> WithSchema:
    """List the events of a project."""
    return WithSchema(
        schemas.ProjectEventSchema, queries.events_of_project(caller(), project, **fields), events_with_targets
    )
