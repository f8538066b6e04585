"""The API of the groups around a project or group (supporting resources reference, section 5.2)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller
from project_service.areas.groups import lookups, schemas
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project

api = ApiBlueprint("group_lookups", __name__, description="The groups above a project, and those it is shared with.")


@api.get("/projects/<project>/groups")
@api.arguments(schemas.ProjectGroupsSchema)
@api.allow(Ability.READ_PROJECT)
@api.response(200, schemas.GroupIdentitySchema(many=True))
@api.paged
def list_project_groups(project: Project, fields: dict[str, Any]) -> Select[Group]:
    """List the groups above a project; ``with_shared`` adds those that it is shared with."""
    return lookups.groups_of_project(caller(), project, **fields)


@api.get("/projects/<project>/invited_groups")
@api.arguments(schemas.InvitedGroupsSchema)
@api.allow(Ability.READ_PROJECT)
@api.response(200, schemas.GroupIdentitySchema(many=True))
@api.paged
def list_project_invited_groups(project: Project, fields: dict[str, Any]) -> Select[Group]:
    """List the groups that a project, or a group above it, is shared with."""
    return lookups.invited_to_project(caller(), project, **fields)


@api.get("/groups/<group>/invited_groups")
@api.arguments(schemas.InvitedGroupsSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.GroupSchema(many=True))
@api.paged
def list_group_invited_groups(group: Group, fields: dict[str, Any]) -> Select[Group]:
    """List the groups that a group, or one above it, is shared with."""
    return lookups.invited_to_group(caller(), group, **fields)


@api.get("/groups/<group>/groups/shared")
@api.arguments(schemas.SharedGroupsSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.GroupSchema(many=True))
@api.paged
def list_shared_groups(group: Group, fields: dict[str, Any]) -> Select[Group]:
    """List the groups that are shared with a group."""
    return lookups.shared_with(caller(), group, **fields)
