"""API of branches and tags, for reading (repositories reference, sections 4.1 and 4.2)."""

from __future__ import annotations

from typing import Any

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.repositories import ref_queries, ref_schemas
from project_service.domain.projects import Project
from project_service.kit.http.errors import NotFound

api = ApiBlueprint("refs", __name__, description="Branches and tags of the repository of a project.")

BRANCHES = "/projects/<project>/repository/branches"
TAGS = "/projects/<project>/repository/tags"


@api.get(BRANCHES)
@api.allow(Ability.READ_CODE)
@api.arguments(ref_schemas.BranchListSchema)
@api.response(200, ref_schemas.BranchSchema(many=True))
@api.paged
def list_branches(project: Project, fields: dict[str, Any]) -> Any:
    """List the branches of a repository."""
    return ref_queries.branches_of(project, **fields)


@api.get(f"{BRANCHES}/<name>")
@api.allow(Ability.READ_CODE)
@api.response(200, ref_schemas.BranchSchema)
def show_branch(project: Project, name: str) -> ref_queries.BranchRow:
    """Show one branch."""
    return ref_queries.find_branch(project, name)


@api.get(TAGS)
@api.allow(Ability.READ_CODE)
@api.arguments(ref_schemas.TagListSchema)
@api.response(200, ref_schemas.TagSchema(many=True))
@api.paged
def list_tags(project: Project, fields: dict[str, Any]) -> Any:
    """List the tags of a repository."""
    return ref_queries.tags_of(project, **fields)


@api.get(f"{TAGS}/<name>")
@api.allow(Ability.READ_CODE)
@api.response(200, ref_schemas.TagSchema)
def show_tag(project: Project, name: str) -> ref_queries.TagRow:
    """Show one tag."""
    return ref_queries.find_tag(project, name)


@api.get(f"{TAGS}/<name>/signature")
@api.allow(Ability.READ_CODE)
@api.response(200)
def show_tag_signature(project: Project, name: str) -> None:
    """Refuse: signatures are not verified here."""
    ref_queries.find_tag(project, name)
    raise NotFound("Signature")
