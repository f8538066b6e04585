"""Cherry-pick and revert commits onto a branch (repositories reference, section 4.3)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from project_service.access.identity import Caller
from project_service.areas.repositories.code_reading import find_commit
from project_service.areas.repositories.refs import changes
from project_service.areas.repositories.transport import receiving
from project_service.areas.repositories.writing import merging, new_commits
from project_service.domain.projects import Project
from project_service.domain.repositories.bundles import BRANCHES
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository
from project_service.kit.http.errors import NotFound, ServiceError

CHERRY_PICK, REVERT = "cherry-pick", "revert"
CONFLICT, EMPTY = "conflict", "empty"
REASON = (
    "Can't perform this action automatically. It may have already been done, or a more recent commit may have updated "
    "some of this content. Please perform this action locally."
)


class NotApplied(ServiceError):
    """The change of a commit does not fit a branch, or the branch has it already."""

    status = 400

    def __init__(self, kind: str, code: str, *, dry_run: bool) -> None:
        super().__init__(f"Commit {kind} failed: {REASON}")
        self._more = {"error_code": code} | ({"dry_run": "error"} if dry_run else {})

    def body(self) -> dict[str, Any]:
        """Return the text, and ``conflict`` or ``empty``."""
        return super().body() | self._more


def apply(
    requester: Caller,
    project: Project,
    sha: str,
    *,
    kind: str,
    branch: str,
    message: str | None = None,
    dry_run: bool = False,
) -> str | None:
    """Put the change of a commit, or its reverse, on a branch; return the new commit, ``None`` of a ``dry_run``.

    A merge is compared with its first parent.

    Raises:
        Forbidden: a protected branch does not admit the requester.
        NotFound: there is no such commit, or no such branch.
        NotApplied: the change does not fit, or changes nothing.

    """
    new_commits.check_may_write(requester, project, branch)
    with ExitStack() as stack:
        view, code = changes.opened(stack, project)
        commit = find_commit(code, sha)
        present = code.ref(BRANCHES + branch)
        tip = None if present is None else code.commit_of(present)
        if tip is None:
            raise NotFound("Branch")
        folder = stack.enter_context(receiving.quarantine(view))
        before = _tree_before(code, commit)
        base, theirs = (before, commit.tree_id) if kind == CHERRY_PICK else (commit.tree_id, before)
        tree = merging.merge(folder, base=base, ours=tip.tree_id, theirs=theirs)
        if tree is None or tree == tip.tree_id:
            raise NotApplied(kind, CONFLICT if tree is None else EMPTY, dry_run=dry_run)
        if dry_run:
            return None
        text = message or _message(requester, commit, kind)
        new = new_commits.write(requester, folder, tree, tip, {"branch": branch, "commit_message": text})
        new_commits.push(requester, project, folder, branch, present, new)
    return new


def _tree_before(code: CodeRepository, commit: Commit) -> str | None:
    parent = code.commit_of(commit.parent_ids[0]) if commit.parent_ids else None
    return None if parent is None else parent.tree_id


def _message(requester: Caller, commit: Commit, kind: str) -> str:
    if kind == REVERT:
        return f'Revert "{commit.title}"\n\nThis reverts commit {commit.id}'
    text = commit.message.rstrip("\n") + f"\n\n(cherry picked from commit {commit.id})"
    author = commit.author
    if author.email == requester.load_user().email:
        return text
    return f"{text}\n\nCo-authored-by: {author.name} <{author.email}>"
