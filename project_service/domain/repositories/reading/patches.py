"""The differences of a commit as text that git and patch read."""

from __future__ import annotations

from collections.abc import Iterator

from project_service.domain.repositories.reading import processes
from project_service.domain.repositories.reading.history import EMPTY_TREE
from project_service.domain.repositories.reading.objects import Commit
from project_service.domain.repositories.reading.repository import CodeRepository

PATCH_SECONDS = 60.0
DIFF, PATCH = "diff", "patch"
OPTIONS = ("--patch", "--find-renames", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv")


def text_of_commit(
    repository: CodeRepository, commit: Commit, kind: str, *, slots: processes.CallerSlots
) -> Iterator[bytes]:
    """The pieces of the differences of a commit against its first parent; a ``PATCH`` is a mail for ``git am``.

    Raises ``ReadingFailed`` in the middle of it when git fails, so that the client sees that it is not complete.
    """
    if kind == PATCH:
        arguments = ["log", "-1", "--root", "--format=email", "--stat", "--diff-merges=first-parent", *OPTIONS]
        arguments += ["--end-of-options", commit.id, "--"]
    else:
        parent = commit.parent_ids[0] if commit.parent_ids else EMPTY_TREE
        arguments = ["diff-tree", "-r", *OPTIONS, "--end-of-options", parent, commit.id, "--"]
    return processes.stream(repository.folder, *arguments, seconds=PATCH_SECONDS, slots=slots)
