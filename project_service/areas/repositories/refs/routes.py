"""API of branches and tags (repositories reference, sections 4.1 and 4.2)."""

from __future__ import annotations

from typing import Any

from project_service.access import branch_protection
from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.identity import caller
from project_service.areas.repositories.refs import changes, queries, schemas
from project_service.areas.repositories.refs.queries import RefRows
from project_service.domain.projects import Project
from project_service.domain.repositories import bundles
from project_service.kit.http.errors import NotFound
from project_service.kit.http.pagination import ListedRows

api = ApiBlueprint("refs", __name__, description="Branches and tags of the repository of a project.")

BRANCHES = "/projects/<project>/repository/branches"
ACCEPTED = {"message": "202 Accepted"}
TAGS = "/projects/<project>/repository/tags"


@api.get(BRANCHES, reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(schemas.BranchListSchema)
@api.response(200, schemas.BranchSchema(many=True))
@api.paged
def list_branches(project: Project, fields: dict[str, Any]) -> RefRows | ListedRows:
    """List the branches of a repository."""
    return queries.branches_of(project, **fields)


@api.get(f"{BRANCHES}/<name>", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200, schemas.BranchSchema)
def show_branch(project: Project, name: str) -> queries.BranchRow:
    """Show one branch."""
    return queries.find_branch(project, name)


@api.post(BRANCHES, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(schemas.BranchCreateSchema)
@api.response(201, schemas.BranchSchema)
def create_branch(project: Project, fields: dict[str, Any]) -> queries.BranchRow:
    """Create a branch."""
    changes.create_branch(caller(), project, **fields)
    return queries.find_branch(project, fields["branch"])


@api.delete(f"{BRANCHES}/<name>", reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.response(204)
def delete_branch(project: Project, name: str) -> None:
    """Delete a branch; the default branch cannot be deleted."""
    changes.delete_ref(caller(), project, bundles.BRANCHES, name)


@api.put(f"{BRANCHES}/<name>/protect", reads_repository=True)
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@api.arguments(schemas.BranchProtectSchema)
@api.response(200, schemas.BranchSchema)
def protect_branch(project: Project, fields: dict[str, Any], name: str) -> queries.BranchRow:
    """Protect a branch, as clients did before there were protected branches of their own."""
    queries.find_branch(project, name)
    developers = (fields.get(f"developers_can_{act}") for act in ("push", "merge"))
    branch_protection.protect_branch(project, name, *developers)
    return queries.find_branch(project, name)


@api.put(f"{BRANCHES}/<name>/unprotect", reads_repository=True)
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@api.response(200, schemas.BranchSchema)
def unprotect_branch(project: Project, name: str) -> queries.BranchRow:
    """Remove the protection of exactly this branch; it may still match a wildcard."""
    queries.find_branch(project, name)
    branch_protection.unprotect_branch(project, name)
    return queries.find_branch(project, name)


@api.delete("/projects/<project>/repository/merged_branches")
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.response(202)
def delete_merged_branches(project: Project) -> dict[str, str]:
    """Delete the branches that the default one contains, in a background job; protected ones stay."""
    changes.delete_merged_branches(caller(), project)
    return ACCEPTED


@api.get(TAGS, reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.arguments(schemas.TagListSchema)
@api.response(200, schemas.TagSchema(many=True))
@api.paged
def list_tags(project: Project, fields: dict[str, Any]) -> RefRows | ListedRows:
    """List the tags of a repository."""
    return queries.tags_of(project, **fields)


@api.get(f"{TAGS}/<name>", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200, schemas.TagSchema)
def show_tag(project: Project, name: str) -> queries.TagRow:
    """Show one tag."""
    return queries.find_tag(project, name)


@api.post(TAGS, reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.arguments(schemas.TagCreateSchema)
@api.response(201, schemas.TagSchema)
def create_tag(project: Project, fields: dict[str, Any]) -> queries.TagRow:
    """Create a tag, if no protected tag forbids it."""
    changes.create_tag(caller(), project, **fields)
    return queries.find_tag(project, fields["tag_name"])


@api.delete(f"{TAGS}/<name>", reads_repository=True)
@api.signed_in
@api.allow(Ability.PUSH_CODE)
@api.response(204)
def delete_tag(project: Project, name: str) -> None:
    """Delete a tag; a protected one needs a maintainer."""
    changes.delete_ref(caller(), project, bundles.TAGS, name)


@api.get(f"{TAGS}/<name>/signature", reads_repository=True)
@api.allow(Ability.READ_CODE)
@api.response(200)
def show_tag_signature(project: Project, name: str) -> None:
    """Refuse: signatures are not verified here."""
    queries.find_tag(project, name)
    raise NotFound("Signature")
