"""Create, change and delete protected tags and branches."""

from __future__ import annotations

from project_service.access import audit
from project_service.areas.protected_refs import queries
from project_service.domain.access_levels import Role
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import LEVEL_TEXTS, ProtectedBranch, ProtectedTag, problem_of
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, ServiceError, Unprocessable

TAKEN = "Name has already been taken"
NOUNS = {ProtectedTag: "tag", ProtectedBranch: "branch"}


def create_protected_tag(project: Project, *, name: str | None, create_access_level: int) -> ProtectedTag:
    """Protect a tag name or wildcard, whether or not a tag of that name exists."""
    tag = ProtectedTag(project_id=project.id, name=name, create_access_levels=[create_access_level])
    _add(project, tag, Unprocessable([TAKEN]))
    _record(project, tag, "created", f"Added protected tag {name}")
    return tag


def create_protected_branch(
    project: Project, *, name: str | None, push_access_level: int, merge_access_level: int, allow_force_push: bool
) -> ProtectedBranch:
    """Protect a branch name or wildcard, whether or not a branch of that name exists.

    Raises:
        Conflict: the name is protected already.
        Unprocessable: the name is not valid.

    """
    branch = ProtectedBranch(
        project_id=project.id,
        name=name,
        push_access_level=push_access_level,
        merge_access_level=merge_access_level,
        allow_force_push=allow_force_push,
    )
    _add(project, branch, Conflict(f"Protected branch '{name}' already exists"))
    push, merge = (LEVEL_TEXTS[Role(level)] for level in (push_access_level, merge_access_level))
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


def delete_protected_ref(ref: ProtectedTag | ProtectedBranch) -> None:
    """Remove the protection of a name or wildcard; the tags or branches themselves stay."""
    delete_locked(ref)
    project = db.session.get_one(Project, ref.project_id)
    _record(project, ref, "removed", f"Removed protected {NOUNS[type(ref)]} {ref.name}")


def _add(project: Project, ref: ProtectedTag | ProtectedBranch, conflict: ServiceError) -> None:
    if problem := problem_of(ref.name):
        raise Unprocessable([problem])
    if queries.protected_ref_named(type(ref), project, ref.name) is not None:
        raise conflict
    add_unique(ref, conflict)


def _force(branch: ProtectedBranch) -> str:
    return f"force push: {'allowed' if branch.allow_force_push else 'not allowed'}"


def _record(project: Project, ref: ProtectedTag | ProtectedBranch, change: str, text: str) -> None:
    project.updated_at = clock.now()
    target = AuditTarget(type(ref).__name__, ref.id, ref.name)
    audit.record(f"protected_{NOUNS[type(ref)]}_{change}", project, text, target=target)
