"""Apply the difference of two trees to a third one, by git's three-way merge with its recognition of renames."""

from __future__ import annotations

from pathlib import Path

from project_service.domain.repositories import git
from project_service.kit.http.errors import BadRequest

MAX_MERGE_SECONDS = 30
CLEAN, CONFLICTED = 0, 1  # exit status of git merge-tree
FAILED = "Unknown error performing git operation"
WHO = "Project Service <noreply@localhost> 0 +0000"  # of commits that no branch gets


def merge(folder: Path, *, base: str | None, ours: str, theirs: str | None) -> str | None:
    """Return the tree ``ours`` with what changed from ``base`` to ``theirs``; ``None`` if that conflicts.

    Trees are ids, ``None`` is the empty one. ``folder`` is a repository that takes new objects.
    """
    empty = _write(folder, b"", "mktree")
    # git 2.39 takes the base of a merge from the history only: three commits that nothing points to give it one
    root = _commit(folder, base or empty)
    sides = [_commit(folder, tree or empty, root) for tree in (ours, theirs)]
    done = git.run("merge-tree", "--write-tree", "--name-only", *sides, folder=folder, max_seconds=MAX_MERGE_SECONDS)
    if done.returncode not in (CLEAN, CONFLICTED):
        raise BadRequest(FAILED)
    return done.stdout.decode(errors="replace").partition("\n")[0] if done.returncode == CLEAN else None


def _commit(folder: Path, tree: str, parent: str | None = None) -> str:
    line = f"parent {parent}\n" if parent else ""
    text = f"tree {tree}\n{line}author {WHO}\ncommitter {WHO}\n\n"
    return _write(folder, text.encode(), "hash-object", "-t", "commit", "-w", "--stdin")


def _write(folder: Path, data: bytes, *arguments: str) -> str:
    done = git.run(*arguments, folder=folder, data=data)
    if done.returncode:
        raise BadRequest(FAILED)
    return done.stdout.decode().strip()
