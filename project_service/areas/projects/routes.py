"""API of projects (supporting resources reference, section 6)."""

from __future__ import annotations

from typing import Any

from project_service.access import first_commits
from project_service.access.abilities import Ability, allowed, judge
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import Caller, caller, current_user
from project_service.areas.projects import queries, schemas, service
from project_service.areas.projects.shown_project import shown_project
from project_service.domain.accounts.avatars import set_avatar
from project_service.domain.accounts.users import User, find_user, find_user_by
from project_service.domain.memberships import Share
from project_service.domain.namespaces import Group, find_group, find_namespace, namespace_by, namespace_of
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.schemas import ProjectBasicSchema, ShareCreateSchema
from project_service.kit.http import pagination
from project_service.kit.http.errors import MethodNotAllowed
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("projects", __name__, description="Projects.", path_names={"user": "user_id"})

ACCEPTED = {"message": "202 Accepted"}
NO_KEYSET = "Keyset pagination is not yet available for this type of request"


@api.get("/projects")
@api.allow(Ability.ANYBODY)
@api.arguments(schemas.ProjectListSchema)
@api.response(200, schemas.ProjectWithAccessSchema(many=True))
@api.paged
def list_projects(fields: dict[str, Any]) -> WithSchema:
    """List the projects you can see."""
    return _listed(fields, queries.projects_matching(caller(), **fields))


@api.get("/users/<user>/projects")
@api.allow(Ability.ANYBODY)
@api.arguments(schemas.ProjectListSchema)
@api.response(200, schemas.ProjectWithAccessSchema(many=True))
@api.paged
def list_user_projects(fields: dict[str, Any], user: str) -> WithSchema:
    """List the personal projects of a user."""
    return _listed(fields, queries.projects_of_user(caller(), find_user_by(user), **fields))


@api.get("/groups/<group>/projects")
@api.arguments(schemas.GroupProjectsSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.ProjectWithAccessSchema(many=True))
@api.paged
def list_group_projects(group: Group, fields: dict[str, Any]) -> WithSchema:
    """List the projects of a group."""
    return _listed(fields, queries.projects_of_group(caller(), group, **fields))


@api.get("/groups/<group>/projects/shared")
@api.arguments(schemas.ProjectFilterSchema)
@api.allow(Ability.READ_GROUP)
@api.response(200, schemas.ProjectWithAccessSchema(many=True))
@api.paged
def list_projects_shared_with_group(group: Group, fields: dict[str, Any]) -> WithSchema:
    """List the projects that are shared with a group."""
    return _listed(fields, queries.projects_shared_with(caller(), group, **fields))


@api.get("/projects/<project>")
@api.arguments(schemas.ProjectShowSchema)
@api.allow(Ability.READ_PROJECT, access_only=True)
@api.response(200, schemas.ProjectFullWithAccessSchema)
def show_project(project: ProjectAccess, fields: dict[str, Any]) -> WithSchema:
    """Show one project."""
    row = shown_project(caller(), project)
    if caller().user_id is None:
        return WithSchema(ProjectBasicSchema, row)
    maintains = allowed(caller(), Ability.ADMIN_PROJECT, project)
    return WithSchema(schemas.ProjectFullWithAccessSchema if maintains else schemas.ProjectWithAccessSchema, row)


@api.post("/projects")
@api.signed_in
@api.arguments(schemas.ProjectCreateSchema)
@api.allow(Ability.SIGNED_IN)
@api.response(201, schemas.ProjectFullSchema)
def create_project(fields: dict[str, Any]) -> Project:
    """Create a project in your namespace, or in ``namespace_id``."""
    return _created(current_user(), fields)


@api.post("/projects/user/<user>")
@api.signed_in
@api.arguments(schemas.ProjectCreateSchema)
@api.allow(Ability.ADMINISTER)
@api.response(201, schemas.ProjectFullSchema)
def create_project_for_user(fields: dict[str, Any], user: str) -> Project:
    """Create a project for another user."""
    return _created(find_user(numeric(user)), fields)


@api.put("/projects/<project>")
@api.signed_in
@api.arguments(schemas.ProjectUpdateSchema)
@api.allow(Ability.ADMIN_PROJECT)
@api.response(200, schemas.ProjectFullSchema)
def update_project(project: Project, fields: dict[str, Any]) -> Project:
    """Change a project; its name and visibility only as its owner."""
    if "avatar" in fields:
        set_avatar(project, fields.pop("avatar") or None)
    service.check_changes(caller(), project, fields)
    return _detailed(service.update_project(caller(), project, **fields))


@api.delete("/projects/<project>")
@api.signed_in
@api.allow(Ability.OWN_PROJECT)
@api.response(202)
def delete_project(project: Project) -> dict[str, str]:
    """Delete a project; a background job removes its data."""
    service.delete_project(unmodified(project))
    return ACCEPTED


@api.post("/projects/<project>/archive")
@api.signed_in
@api.allow(Ability.OWN_PROJECT)
@api.response(201, schemas.ProjectFullSchema)
def archive_project(project: Project) -> Project:
    """Archive a project."""
    return _detailed(service.archive_project(project, archived=True))


@api.post("/projects/<project>/unarchive")
@api.signed_in
@api.allow(Ability.OWN_PROJECT)
@api.response(201, schemas.ProjectFullSchema)
def unarchive_project(project: Project) -> Project:
    """Unarchive a project."""
    return _detailed(service.archive_project(project, archived=False))


@api.put("/projects/<project>/transfer")
@api.signed_in
@api.arguments(schemas.ProjectTransferSchema)
@api.allow(Ability.OWN_PROJECT)
@api.response(200, schemas.ProjectFullSchema)
def transfer_project(project: Project, fields: dict[str, Any]) -> Project:
    """Move a project to another namespace, given by id or path, in which you may create projects."""
    namespace = find_namespace(fields["namespace"])
    judge(caller(), Ability.CREATE_PROJECT, namespace)
    return _detailed(service.transfer_project(project, namespace))


@api.post("/projects/<project>/share")
@api.signed_in
@api.arguments(ShareCreateSchema)
@api.allow(Ability.ADMIN_PROJECT)
@api.response(201, schemas.ProjectGroupLinkSchema)
def share_project(project: Project, fields: dict[str, Any]) -> Share:
    """Share a project with a group."""
    group = find_group(fields.pop("group_id"))
    judge(caller(), Ability.READ_GROUP, group)
    return service.share_project(project, group, **fields)


@api.delete("/projects/<project>/share/<group_id>")
@api.signed_in
@api.allow(Ability.ADMIN_PROJECT)
@api.response(204)
def unshare_project(project: Project, group_id: str) -> None:
    """Stop sharing a project with a group."""
    service.unshare_project(project, numeric(group_id))


def _detailed(project: Project) -> Project:
    queries.add_details(caller(), [project])
    return project


def _listed(fields: dict[str, Any], statement: Any) -> WithSchema:
    current = caller()
    listed = statement
    if fields.get("pagination") == "keyset":
        if fields["order_by"] != "id":
            raise MethodNotAllowed(NO_KEYSET)
        listed = pagination.Keyset(statement, Project.id, descending=fields["sort"] == "desc")
    if current.user_id is None or fields["simple"]:
        return WithSchema(ProjectBasicSchema, listed)

    def prepare(rows: list[Project]) -> None:
        queries.add_permissions(current, rows)
        queries.add_details(current, rows)

    return WithSchema(schemas.ProjectWithAccessSchema, listed, prepare)


def _created(owner: User, fields: dict[str, Any]) -> Project:
    namespace_id = fields.pop("namespace_id", None)
    namespace = namespace_of(owner) if namespace_id is None else namespace_by(namespace_id)
    if namespace is None or not allowed(Caller.of(owner), Ability.CREATE_PROJECT, namespace):
        raise service.namespace_is_unusable()
    with_readme = fields.pop("initialize_with_readme", False)
    avatar = fields.pop("avatar", None)
    project = service.create_project(owner, namespace, **fields)
    if avatar:
        set_avatar(project, avatar)
    if with_readme:
        first_commits.add_readme(owner, project)
    return _detailed(project)
