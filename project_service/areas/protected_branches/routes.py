"""The API of protected branches (repositories reference, section 4.6)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.areas.protected_branches import queries, schemas, service
from project_service.domain.projects import Project
from project_service.domain.repositories.protection import ProtectedBranch
from project_service.kit.http.preconditions import unmodified

api = ApiBlueprint("protected_branches", __name__, description="Branches and wildcards, and the roles that may push.")

LIST = "/projects/<project>/protected_branches"
ONE = f"{LIST}/<name>"


@api.get(LIST)
@api.allow(Ability.READ_CODE)
@api.arguments(schemas.ProtectedBranchListSchema)
@api.response(200, schemas.ProtectedBranchSchema(many=True))
@api.paged
def list_protected_branches(project: Project, fields: dict[str, Any]) -> Select[ProtectedBranch]:
    """List the protected branches of a project."""
    return queries.protected_branches_by_name(project, **fields)


@api.get(ONE)
@api.allow(Ability.READ_CODE)
@api.response(200, schemas.ProtectedBranchSchema)
def show_protected_branch(project: Project, name: str) -> ProtectedBranch:
    """Show one protected branch or wildcard."""
    return queries.find_protected_branch(project, name)


@api.post(LIST)
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@api.arguments(schemas.ProtectedBranchCreateSchema)
@api.response(201, schemas.ProtectedBranchSchema)
def create_protected_branch(project: Project, fields: dict[str, Any]) -> ProtectedBranch:
    """Protect a branch name or wildcard; only maintainers can unprotect it."""
    fields.pop("unprotect_access_level")
    return service.create_protected_branch(project, **fields)


@api.patch(ONE)
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@api.arguments(schemas.ProtectedBranchUpdateSchema)
@api.response(200, schemas.ProtectedBranchSchema)
def update_protected_branch(project: Project, fields: dict[str, Any], name: str) -> ProtectedBranch:
    """Change whether a protected branch accepts forced pushes."""
    return service.update_protected_branch(queries.find_protected_branch(project, name), **fields)


@api.delete(ONE)
@api.signed_in
@api.allow(Ability.ADMIN_PROTECTED_BRANCHES)
@api.response(204)
def delete_protected_branch(project: Project, name: str) -> None:
    """Remove the protection of a branch name or wildcard."""
    service.delete_protected_branch(unmodified(queries.find_protected_branch(project, name)))
