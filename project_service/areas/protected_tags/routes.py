"""The API of protected tags (protected tags reference)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.protected_tags import queries, service
from project_service.areas.protected_tags.schemas import ProtectedTagCreateSchema, ProtectedTagSchema
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_tags import ProtectedTag
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint(
    "protected_tags", __name__, description="Names of tags and wildcards, and the roles that may create matching tags."
)


@api.get("/projects/<project>/protected_tags")
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_TAGS)
@api.response(200, ProtectedTagSchema(many=True))
@api.paged
def list_protected_tags(project: Project) -> Select[ProtectedTag]:
    """List the protected tags of a project."""
    return queries.protected_tags_of(project)


@api.get("/projects/<project>/protected_tags/<name>")
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_TAGS)
@api.response(200, ProtectedTagSchema)
def show_protected_tag(project: Project, name: str) -> ProtectedTag:
    """Show one protected tag or wildcard."""
    return queries.find_protected_tag(project, name)


@api.post("/projects/<project>/protected_tags")
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_TAGS)
@api.arguments(ProtectedTagCreateSchema)
@api.response(201, ProtectedTagSchema)
def create_protected_tag(project: Project, fields: dict[str, Any]) -> ProtectedTag:
    """Protect a tag name or wildcard."""
    return service.create_protected_tag(project, **fields)


@api.delete("/projects/<project>/protected_tags/<name>")
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_TAGS)
@api.response(204)
def delete_protected_tag(project: Project, name: str) -> None:
    """Remove the protection of a tag name or wildcard."""
    service.delete_protected_tag(unmodified(queries.find_protected_tag(project, name)))
