"""The API of protected tags (protected tags reference) and branches (repositories reference, section 4.6)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access import branch_protection
from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.protected_refs import queries, schemas, service
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag
from project_service.kit.http.pagination import SelectedColumns
from project_service.kit.http.preconditions import unmodified

tags = ApiBlueprint(
    "protected_tags", __name__, description="Names of tags and wildcards, and the roles that may create matching tags."
)
branches = ApiBlueprint(
    "protected_branches", __name__, description="Branches and wildcards, and the roles that may push."
)
TAGS = "/projects/<project>/protected_tags"
BRANCHES = "/projects/<project>/protected_branches"


@tags.get(TAGS)
@tags.signed_in
@tags.allow(Ability.ADMIN_PROTECTED_TAGS, access_only=True)
@tags.response(200, schemas.ProtectedTagSchema(many=True))
@tags.paged
def list_protected_tags(project: ProjectAccess) -> SelectedColumns:
    """List the protected tags of a project."""
    return queries.listed_protected_tags(project)


@tags.get(f"{TAGS}/<name>")
@tags.signed_in
@tags.allow(Ability.ADMIN_PROTECTED_TAGS)
@tags.response(200, schemas.ProtectedTagSchema)
def show_protected_tag(project: Project, name: str) -> ProtectedTag:
    """Show one protected tag or wildcard."""
    return queries.find_protected_ref(ProtectedTag, project, name)


@tags.post(TAGS)
@tags.signed_in
@tags.allow(Ability.ADMIN_PROTECTED_TAGS)
@tags.arguments(schemas.ProtectedTagCreateSchema)
@tags.response(201, schemas.ProtectedTagSchema)
def create_protected_tag(project: Project, fields: dict[str, Any]) -> ProtectedTag:
    """Protect a tag name or wildcard."""
    return service.create_protected_tag(project, **fields)


@tags.delete(f"{TAGS}/<name>")
@tags.signed_in
@tags.allow(Ability.ADMIN_PROTECTED_TAGS)
@tags.response(204)
def delete_protected_tag(project: Project, name: str) -> None:
    """Remove the protection of a tag name or wildcard."""
    branch_protection.delete_protection(unmodified(queries.find_protected_ref(ProtectedTag, project, name)))


@branches.get(BRANCHES)
@branches.allow(Ability.READ_CODE)
@branches.arguments(schemas.ProtectedBranchListSchema)
@branches.response(200, schemas.ProtectedBranchSchema(many=True))
@branches.paged
def list_protected_branches(project: Project, fields: dict[str, Any]) -> Select[ProtectedBranch]:
    """List the protected branches of a project."""
    return queries.protected_branches_by_name(project, **fields)


@branches.get(f"{BRANCHES}/<name>")
@branches.allow(Ability.READ_CODE)
@branches.response(200, schemas.ProtectedBranchSchema)
def show_protected_branch(project: Project, name: str) -> ProtectedBranch:
    """Show one protected branch or wildcard."""
    return queries.find_protected_ref(ProtectedBranch, project, name)


@branches.post(BRANCHES)
@branches.signed_in
@branches.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@branches.arguments(schemas.ProtectedBranchCreateSchema)
@branches.response(201, schemas.ProtectedBranchSchema)
def create_protected_branch(project: Project, fields: dict[str, Any]) -> ProtectedBranch:
    """Protect a branch name or wildcard; only maintainers can unprotect it."""
    fields.pop("unprotect_access_level")
    return service.create_protected_branch(project, **fields)


@branches.patch(f"{BRANCHES}/<name>")
@branches.signed_in
@branches.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@branches.arguments(schemas.ProtectedBranchUpdateSchema)
@branches.response(200, schemas.ProtectedBranchSchema)
def update_protected_branch(project: Project, fields: dict[str, Any], name: str) -> ProtectedBranch:
    """Change the levels of a protected branch, and whether it accepts forced pushes."""
    return service.update_protected_branch(queries.find_protected_ref(ProtectedBranch, project, name), **fields)


@branches.delete(f"{BRANCHES}/<name>")
@branches.signed_in
@branches.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@branches.response(204)
def delete_protected_branch(project: Project, name: str) -> None:
    """Remove the protection of a branch name or wildcard."""
    branch_protection.delete_protection(unmodified(queries.find_protected_ref(ProtectedBranch, project, name)))
