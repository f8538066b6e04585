"""Protection of single branches by the old routes of branches, and the audit of all changes of protected refs.

Repositories reference, section 4.6.
"""

from __future__ import annotations

from sqlalchemy import select

from project_service.access import audit
from project_service.domain.access_levels import Role
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import LEVEL_TEXTS, ProtectedBranch, ProtectedTag
from project_service.kit import clock
from project_service.kit.db.locking import delete_locked, lock_row
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict

NOUNS = {ProtectedTag: "tag", ProtectedBranch: "branch"}


def protect_branch(project: Project, name: str, developers_push: bool | None, developers_merge: bool | None) -> None:
    """Protect a branch, or change which roles may push to it and merge; ``None`` leaves a level as it is.

    A new protection admits maintainers only where developers are not admitted. Forced pushes stay as they are.
    """
    branch = _protection_of(project, name)
    if branch is None:
        push, merge = (_level_of(bool(developers)) for developers in (developers_push, developers_merge))
        branch = ProtectedBranch(project_id=project.id, name=name, push_access_level=push, merge_access_level=merge)
        add_unique(branch, Conflict(f"Protected branch '{name}' already exists"))
        record(project, branch, "created", f"Added protected branch {name} ({levels(branch)}, {force(branch)})")
        return
    lock_row(branch, "push_access_level", "merge_access_level", "allow_force_push")
    before = levels(branch)
    if developers_push is not None:
        branch.push_access_level = _level_of(developers_push)
    if developers_merge is not None:
        branch.merge_access_level = _level_of(developers_merge)
    record_update(project, branch, before, was_forced=branch.allow_force_push)


def unprotect_branch(project: Project, name: str) -> None:
    """Remove the protection of exactly this name, if there is one; a wildcard stays."""
    branch = _protection_of(project, name)
    if branch is not None:
        delete_protection(branch)


def delete_protection(ref: ProtectedTag | ProtectedBranch) -> None:
    """Remove the protection of a name or wildcard; the tags or branches themselves stay."""
    delete_locked(ref)
    project = db.session.get_one(Project, ref.project_id)
    record(project, ref, "removed", f"Removed protected {NOUNS[type(ref)]} {ref.name}")


def levels(branch: ProtectedBranch) -> str:
    """Return the levels of a protected branch in words."""
    push, merge = (LEVEL_TEXTS[Role(level)] for level in (branch.push_access_level, branch.merge_access_level))
    return f"push: {push}, merge: {merge}"


def force(branch: ProtectedBranch) -> str:
    """Say whether forced pushes are allowed."""
    return f"force push: {'allowed' if branch.allow_force_push else 'not allowed'}"


def record_update(project: Project, branch: ProtectedBranch, before: str, *, was_forced: bool) -> None:
    """Audit a changed protected branch, given its former levels, unless nothing has changed."""
    if (before, was_forced) != (levels(branch), branch.allow_force_push):
        branch.added_by_import = False
        changed = "" if before == levels(branch) else f"{levels(branch)}, "
        record(project, branch, "updated", f"Changed protected branch {branch.name} ({changed}{force(branch)})")


def record(project: Project, ref: ProtectedTag | ProtectedBranch, change: str, text: str) -> None:
    """Audit a change of a protected ref; it is a change of its project, too."""
    project.updated_at = clock.now()
    target = AuditTarget(type(ref).__name__, ref.id, ref.name)
    audit.record(f"protected_{NOUNS[type(ref)]}_{change}", project, text, target=target)


def _protection_of(project: Project, name: str) -> ProtectedBranch | None:
    statement = select(ProtectedBranch).where(ProtectedBranch.project_id == project.id, ProtectedBranch.name == name)
    return db.session.scalar(statement)


def _level_of(developers: bool) -> Role:
    return Role.DEVELOPER if developers else Role.MAINTAINER
