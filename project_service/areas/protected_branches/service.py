"""Create, change and delete protected branches."""

from __future__ import annotations

from project_service.access import audit
from project_service.areas.protected_branches import queries
from project_service.domain.access_levels import Role
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_names import LEVELS, problem_of
from project_service.domain.repositories.protection import ProtectedBranch
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, Unprocessable


def create_protected_branch(
    project: Project, *, name: str | None, push_access_level: int, merge_access_level: int, allow_force_push: bool
) -> ProtectedBranch:
    """Protect a branch name or wildcard, whether or not a branch of that name exists.

    Raises:
        Conflict: the name is protected already.
        Unprocessable: the name is not valid.

    """
    if problem := problem_of(name):
        raise Unprocessable([problem])
    taken = Conflict(f"Protected branch '{name}' already exists")
    if queries.protected_branch_named(project, name or ""):
        raise taken
    branch = ProtectedBranch(
        project_id=project.id,
        name=name,
        push_access_level=push_access_level,
        merge_access_level=merge_access_level,
        allow_force_push=allow_force_push,
    )
    add_unique(branch, taken)
    push, merge = (LEVELS[Role(level)] for level in (push_access_level, merge_access_level))
    _record(
        project, branch, "created", f"Added protected branch {name} (push: {push}, merge: {merge}, {_force(branch)})"
    )
    return branch


def update_protected_branch(branch: ProtectedBranch, *, allow_force_push: bool | None = None) -> ProtectedBranch:
    """Change whether a protected branch accepts forced pushes."""
    if allow_force_push is not None and allow_force_push != branch.allow_force_push:
        branch.allow_force_push, branch.added_by_import = allow_force_push, False
        project = db.session.get_one(Project, branch.project_id)
        _record(project, branch, "updated", f"Changed protected branch {branch.name} ({_force(branch)})")
    return branch


def delete_protected_branch(branch: ProtectedBranch) -> None:
    """Delete a protected branch; the branch itself stays."""
    delete_locked(branch)
    project = db.session.get_one(Project, branch.project_id)
    _record(project, branch, "removed", f"Removed protected branch {branch.name}")


def _force(branch: ProtectedBranch) -> str:
    return f"force push: {'allowed' if branch.allow_force_push else 'not allowed'}"


def _record(project: Project, branch: ProtectedBranch, change: str, text: str) -> None:
    project.updated_at = clock.now()
    target = AuditTarget("ProtectedBranch", branch.id, branch.name)
    audit.record(f"protected_branch_{change}", project, text, target=target)
