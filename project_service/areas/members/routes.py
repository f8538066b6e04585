"""The API of members (supporting resources reference, section 7), the same for groups and projects."""

from __future__ import annotations

from typing import Any

from flask import Response
from sqlalchemy import Select

from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint, json_response
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.members import queries, schemas, service
from project_service.domain.accounts.users import User, find_user, find_user_by
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.schemas import UserBasicSchema
from project_service.kit.http.errors import NotFound
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("members", __name__, description="Members of groups and projects.")

ProjectOrGroup = Project | Group

OF_PROJECT, OF_GROUP = "/projects/<project>/members", "/groups/<group>/members"


@api.get(OF_PROJECT, endpoint="list_project_members")
@api.get(OF_GROUP, endpoint="list_group_members")
@api.signed_in
@api.arguments(schemas.MemberFilterSchema)
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(200, schemas.MemberSchema(many=True))
@api.paged
def list_members(subject: ProjectOrGroup, fields: dict[str, Any]) -> Select[Membership]:
    """List the direct members."""
    return queries.members_of(subject, **fields)


@api.get(f"{OF_PROJECT}/all", endpoint="list_all_project_members")
@api.get(f"{OF_GROUP}/all", endpoint="list_all_group_members")
@api.signed_in
@api.arguments(schemas.MemberFilterSchema)
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(200, schemas.MemberSchema(many=True))
@api.paged
def list_all_members(subject: ProjectOrGroup, fields: dict[str, Any]) -> Select[Membership]:
    """List the members, inherited and invited ones included."""
    return queries.all_members_of(subject, **fields)


@api.get(f"{OF_PROJECT}/<user>", endpoint="show_project_member")
@api.get(f"{OF_GROUP}/<user>", endpoint="show_group_member")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(200, schemas.MemberSchema)
def show_member(subject: ProjectOrGroup, user: str) -> Membership:
    """Show one direct member."""
    return queries.find_member(subject, numeric(user))


@api.get(f"{OF_PROJECT}/all/<user>", endpoint="show_any_project_member")
@api.get(f"{OF_GROUP}/all/<user>", endpoint="show_any_group_member")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(200, schemas.MemberSchema)
def show_any_member(subject: ProjectOrGroup, user: str) -> Membership:
    """Show one member, inherited or not."""
    return queries.find_any_member(subject, numeric(user))


@api.post(OF_PROJECT, endpoint="create_project_member")
@api.post(OF_GROUP, endpoint="create_group_member")
@api.signed_in
@api.arguments(schemas.MemberCreateSchema)
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(201, schemas.MemberSchema)
def create_member(subject: ProjectOrGroup, fields: dict[str, Any]) -> Membership | Response:
    """Add a member; for several ids the response is a status."""
    return _added(subject, fields)


@api.put(f"{OF_PROJECT}/<user>", endpoint="update_project_member")
@api.put(f"{OF_GROUP}/<user>", endpoint="update_group_member")
@api.signed_in
@api.arguments(schemas.MemberUpdateSchema)
@api.allow(project=Ability.ADMIN_PROJECT_MEMBERS, group=Ability.ADMIN_GROUP)
@api.response(200, schemas.MemberSchema)
def update_member(subject: ProjectOrGroup, fields: dict[str, Any], user: str) -> Membership:
    """Change the role or the expiry date of a member."""
    membership = queries.find_member(subject, numeric(user))
    return service.update_member(
        caller(),
        subject,
        membership,
        access_level=fields["access_level"],
        expires_at=fields.get("expires_at"),
        keeps_expiry="expires_at" not in fields,
    )


@api.delete(f"{OF_PROJECT}/<user>", endpoint="delete_project_member")
@api.delete(f"{OF_GROUP}/<user>", endpoint="delete_group_member")
@api.signed_in
@api.arguments(schemas.MemberDeleteSchema)
@api.allow(project=Ability.READ_PROJECT, group=Ability.READ_GROUP)
@api.response(204)
def delete_member(subject: ProjectOrGroup, fields: dict[str, Any], user: str) -> None:
    """Remove a member, or leave."""
    user_id = numeric(user)
    if user_id != caller().user_id:
        judge(caller(), service.administering(subject), subject)
    service.remove_member(caller(), subject, unmodified(queries.find_member(subject, user_id)))


def _added(subject: ProjectOrGroup, fields: dict[str, Any]) -> Membership | Response:
    values = {"access_level": fields["access_level"], "expires_at": fields.get("expires_at")}
    if fields.get("username"):
        return service.add_member(caller(), subject, find_user_by(fields["username"]), **values)
    ids = fields.get("user_id") or []
    if not ids:
        raise NotFound("User")
    if len(ids) == 1:
        return service.add_member(caller(), subject, find_user(ids[0]), **values)
    for user_id in ids:
        service.add_member(caller(), subject, find_user(user_id), **values)
    return json_response({"status": "success"}, 201)


@api.get("/projects/<project>/users")
@api.signed_in
@api.arguments(schemas.ProjectUsersSchema)
@api.allow(Ability.READ_PROJECT)
@api.response(200, UserBasicSchema(many=True))
@api.paged
def list_project_users(project: Project, fields: dict[str, Any]) -> Select[User]:
    """List the users with a role in a project: direct, inherited or through a share."""
    return queries.users_of(project, **fields)
