"""The API of groups (supporting resources reference, section 5)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.groups import queries, schemas, service
from project_service.domain.accounts.avatars import set_avatar
from project_service.domain.namespaces import Group, find_group
from project_service.domain.schemas import ShareCreateSchema
from project_service.kit.http.errors import BadRequest, Invalid
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("groups", __name__, description="Groups and subgroups.")

ACCEPTED = {"message": "202 Accepted"}


@api.get("/groups")
@api.allow(Ability.ANYBODY)
@api.arguments(schemas.GroupFilterSchema)
@api.response(200, schemas.GroupSchema(many=True))
@api.paged
def list_groups(fields: dict[str, Any]) -> Select[Group]:
    """List your groups, or all groups visible to you."""
    return queries.groups_matching(caller(), **fields)


@api.post("/groups")
@api.signed_in
@api.arguments(schemas.GroupCreateSchema)
@api.allow(Ability.SIGNED_IN)
@api.response(201, schemas.GroupDetailSchema)
def create_group(fields: dict[str, Any]) -> SimpleNamespace:
    """Create a group, or a subgroup of ``parent_id``."""
    parent = None if fields.get("parent_id") is None else find_group(fields["parent_id"])
    if parent is None:
        judge(caller(), Ability.CREATE_GROUP)
    else:
        judge(caller(), Ability.CREATE_SUBGROUP, parent)
    _refuse_plan(fields)
    avatar = fields.pop("avatar", None)
    try:
        group = service.create_group(current_user(), parent, **fields)
    except Invalid as error:
        raise BadRequest(f"Failed to save group {_as_ruby(error.message)}") from error
    if avatar:
        set_avatar(group, avatar)
    return _detailed(group)


@api.get("/groups/<group>")
@api.arguments(schemas.GroupShowSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.GroupDetailSchema)
def show_group(group: Group, fields: dict[str, Any]) -> SimpleNamespace:
    """Show one group with its projects."""
    return _detailed(group, **fields)


@api.put("/groups/<group>")
@api.signed_in
@api.arguments(schemas.GroupUpdateSchema)
@api.allow(Ability.ADMIN_GROUP)
@api.response(200, schemas.GroupDetailSchema)
def update_group(group: Group, fields: dict[str, Any]) -> SimpleNamespace:
    """Change a group."""
    _refuse_plan(fields)
    if "avatar" in fields:
        set_avatar(group, fields.pop("avatar") or None)
    return _detailed(service.update_group(caller(), group, **fields))


@api.delete("/groups/<group>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.response(202)
def delete_group(group: Group) -> dict[str, str]:
    """Delete a group with its subgroups and projects, in a background job."""
    service.delete_group(unmodified(group))
    return ACCEPTED


@api.get("/groups/<group>/subgroups")
@api.arguments(schemas.GroupFilterSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.GroupSchema(many=True))
@api.paged
def list_subgroups(group: Group, fields: dict[str, Any]) -> Select[Group]:
    """List the direct subgroups of a group."""
    return queries.subgroups_of(caller(), group, **fields)


@api.get("/groups/<group>/descendant_groups")
@api.arguments(schemas.GroupFilterSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.GroupSchema(many=True))
@api.paged
def list_descendant_groups(group: Group, fields: dict[str, Any]) -> Select[Group]:
    """List all groups below a group."""
    return queries.descendants_of(caller(), group, **fields)


@api.post("/groups/<group>/share")
@api.signed_in
@api.arguments(ShareCreateSchema)
@api.allow(Ability.ADMIN_GROUP)
@api.response(201, schemas.GroupDetailSchema)
def share_group(group: Group, fields: dict[str, Any]) -> SimpleNamespace:
    """Share a group with another group."""
    other = find_group(fields.pop("group_id"))
    judge(caller(), Ability.READ_GROUP, other)
    service.share_group(group, other, **fields)
    return _detailed(group)


@api.delete("/groups/<group>/share/<other>")
@api.signed_in
@api.allow(Ability.ADMIN_GROUP)
@api.response(204)
def unshare_group(group: Group, other: str) -> None:
    """End a share."""
    service.unshare_group(group, numeric(other))


def _detailed(group: Group, *, with_projects: bool = True) -> SimpleNamespace:
    details = queries.details_of(caller(), group, with_projects=with_projects)
    values = {name: getattr(group, name) for name, _ in group.__mapper__.columns.items()}
    values |= {"shared_with_groups": details.shared_with_groups}
    if with_projects:
        values |= {"projects": details.projects, "shared_projects": details.shared_projects}
    return SimpleNamespace(**values)


def _refuse_plan(fields: dict[str, Any]) -> None:
    if any(name in fields for name in ("plan", "trial", "trial_ends_on")):
        judge(caller(), Ability.ADMINISTER)


def _as_ruby(messages: dict[str, list[str]]) -> str:
    # clients match on this rendering of the real product (supporting resources reference, section 5.2)
    quoted = {
        name: ", ".join('"' + text.replace('"', '\\"') + '"' for text in texts) for name, texts in messages.items()
    }
    return "{" + ", ".join(f":{name}=>[{texts}]" for name, texts in quoted.items()) + "}"
