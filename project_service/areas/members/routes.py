"""The API of members (supporting resources reference, section 7), the same for groups and projects."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability, judge
from project_service.access.api import ApiBlueprint, json_response
from project_service.access.guards import numeric
from project_service.access.identity import caller
from project_service.areas.members import queries, schemas, service
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.users import find_user, find_user_by
from project_service.kit.http.errors import NotFound
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("members", __name__, description="Members of groups and projects.")

ProjectOrGroup = Project | Group


def register(kind: str, reads: Ability, administers: Ability) -> None:
    """Register the seven operations of projects or of groups."""
    members = f"/{kind}s/<{kind}>/members"

    @api.get(members, endpoint=f"list_{kind}_members")
    @api.signed_in
    @api.arguments(schemas.MemberFilterSchema)
    @api.allow(reads)
    @api.response(200, schemas.MemberSchema(many=True))
    @api.paged
    def list_members(subject: ProjectOrGroup, fields: dict[str, Any]) -> Any:
        """List the direct members."""
        return queries.members_of(subject, **fields)

    @api.get(f"{members}/all", endpoint=f"list_all_{kind}_members")
    @api.signed_in
    @api.arguments(schemas.MemberFilterSchema)
    @api.allow(reads)
    @api.response(200, schemas.MemberSchema(many=True))
    @api.paged
    def list_all_members(subject: ProjectOrGroup, fields: dict[str, Any]) -> Any:
        """List the members, inherited and invited ones included."""
        return queries.all_members_of(subject, **fields)

    @api.get(f"{members}/<user>", endpoint=f"show_{kind}_member")
    @api.signed_in
    @api.allow(reads)
    @api.response(200, schemas.MemberSchema)
    def show_member(subject: ProjectOrGroup, user: str) -> Membership:
        """Show one direct member."""
        return queries.find_member(subject, numeric(user))

    @api.get(f"{members}/all/<user>", endpoint=f"show_any_{kind}_member")
    @api.signed_in
    @api.allow(reads)
    @api.response(200, schemas.MemberSchema)
    def show_any_member(subject: ProjectOrGroup, user: str) -> Membership:
        """Show one member, inherited or not."""
        return queries.find_any_member(subject, numeric(user))

    @api.post(members, endpoint=f"create_{kind}_member")
    @api.signed_in
    @api.arguments(schemas.MemberCreateSchema)
    @api.allow(administers)
    @api.response(201, schemas.MemberSchema)
    def create_member(subject: ProjectOrGroup, fields: dict[str, Any]) -> Any:
        """Add a member; for several ids the response is a status."""
        return _added(subject, fields)

    @api.put(f"{members}/<user>", endpoint=f"update_{kind}_member")
    @api.signed_in
    @api.arguments(schemas.MemberUpdateSchema)
    @api.allow(administers)
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

    @api.delete(f"{members}/<user>", endpoint=f"delete_{kind}_member")
    @api.signed_in
    @api.arguments(schemas.MemberDeleteSchema)
    @api.allow(reads)
    @api.response(204)
    def delete_member(subject: ProjectOrGroup, fields: dict[str, Any], user: str) -> None:
        """Remove a member, or leave."""
        user_id = numeric(user)
        if user_id != caller().user_id:
            judge(caller(), administers, subject)
        service.remove_member(caller(), subject, unmodified(queries.find_member(subject, user_id)))


def _added(subject: ProjectOrGroup, fields: dict[str, Any]) -> Any:
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
def list_project_users(project: Project, fields: dict[str, Any]) -> Any:
    """List the users with a role in a project: direct, inherited or through a share."""
    return queries.users_of(project, **fields)


register("project", Ability.READ_PROJECT, Ability.ADMIN_PROJECT_MEMBERS)
register("group", Ability.READ_GROUP, Ability.ADMIN_GROUP)
