"""Create, change and delete protected tags and branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

from project_service.access import branch_protection
from project_service.areas.protected_refs import queries
from project_service.areas.protected_refs.access_entries import Entry, changed_level, check_unprotect, new_level
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag, problem_of
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import add_unique, db
from project_service.kit.http.errors import Conflict, ServiceError, Unprocessable

TAKEN = "Name has already been taken"


class BranchAccess(TypedDict, total=False):
    """Who may push to, merge into and unprotect a branch: levels, or entries of the arrays ``allowed_to_…``."""

    push_access_level: int | None
    merge_access_level: int | None
    allowed_to_push: Sequence[Entry] | None
    allowed_to_merge: Sequence[Entry] | None
    allowed_to_unprotect: Sequence[Entry] | None
    code_owner_approval_required: bool | None


def create_protected_tag(
    project: Project,
    *,
    name: str | None,
    create_access_level: int | None = None,
    allowed_to_create: Sequence[Entry] | None = None,
) -> ProtectedTag:
    """Protect a tag name or wildcard, whether or not a tag of that name exists."""
    level = new_level("allowed_to_create", allowed_to_create, create_access_level)
    tag = ProtectedTag(project_id=project.id, name=name, create_access_levels=[level])
    _add(project, tag, Unprocessable([TAKEN]))
    branch_protection.record(project, tag, "created", f"Added protected tag {name}")
    return tag


def create_protected_branch(
    project: Project, *, name: str | None, allow_force_push: bool | None = False, **access: Unpack[BranchAccess]
) -> ProtectedBranch:
    """Protect a branch name or wildcard, whether or not a branch of that name exists.

    ``access`` has ``push_access_level`` and ``merge_access_level``, the arrays ``allowed_to_…`` of ``access_entries``
    and ``code_owner_approval_required``.

    Raises:
        Conflict: the name is protected already.
        Unprocessable: the name is not valid, or the access asked for is not available.

    """
    _check_access(access)
    push = new_level("allowed_to_push", access.get("allowed_to_push"), access.get("push_access_level"))
    merge = new_level("allowed_to_merge", access.get("allowed_to_merge"), access.get("merge_access_level"))
    branch = ProtectedBranch(
        project_id=project.id,
        name=name,
        push_access_level=push,
        merge_access_level=merge,
        allow_force_push=bool(allow_force_push),
    )
    _add(project, branch, Conflict(f"Protected branch '{name}' already exists"))
    access_text = f"{branch_protection.levels(branch)}, {branch_protection.force(branch)}"
    branch_protection.record(project, branch, "created", f"Added protected branch {name} ({access_text})")
    return branch


def update_protected_branch(
    branch: ProtectedBranch, *, allow_force_push: bool | None = None, **access: Unpack[BranchAccess]
) -> ProtectedBranch:
    """Change the levels of a protected branch, and whether it accepts forced pushes; ``access`` as when it is created.

    Raises:
        RecordNotFound: an entry has the id of another level.
        Unprocessable: the access asked for is not available.

    """
    _check_access(access)
    lock_row(branch, "push_access_level", "merge_access_level", "allow_force_push")
    before, was_forced = branch_protection.levels(branch), branch.allow_force_push
    push = changed_level("allowed_to_push", access.get("allowed_to_push"), branch.id, branch.push_access_level)
    merge = changed_level("allowed_to_merge", access.get("allowed_to_merge"), branch.id, branch.merge_access_level)
    branch.push_access_level, branch.merge_access_level = push, merge
    if allow_force_push is not None:
        branch.allow_force_push = allow_force_push
    project = db.session.get_one(Project, branch.project_id)
    branch_protection.record_update(project, branch, before, was_forced=was_forced)
    return branch


def _add(project: Project, ref: ProtectedTag | ProtectedBranch, conflict: ServiceError) -> None:
    if problem := problem_of(ref.name):
        raise Unprocessable([problem])
    if queries.protected_ref_named(type(ref), project, ref.name) is not None:
        raise conflict
    add_unique(ref, conflict)


def _check_access(access: BranchAccess) -> None:
    check_unprotect(access.get("allowed_to_unprotect"))
    if access.get("code_owner_approval_required"):
        raise Unprocessable(["Code owner approval is not available"])
