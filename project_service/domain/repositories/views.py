"""Local bare repositories for reading: the only way to the objects and refs of a project's repository."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project_service.domain.projects import Project
from project_service.domain.repositories.models import CODE, bare, repository_of, root


@contextmanager
def repository_view(project: Project, kind: str = CODE) -> Iterator[Path | None]:
    """Provide a bare repository with all refs of a project as they are now; ``None`` if it has no repository.

    The folder shows one consistent state, is shared with other readers, must not be changed, and is there until the
    block ends. ``kind`` is one of ``models.KINDS``. Open it with ``git.opened`` or pass it to ``git.run``.
    """
    found = repository_of(project, kind)
    yield None if found is None else bare(found)


@contextmanager
def served_view(project: Project, kind: str = CODE) -> Iterator[Path]:
    """The same for clients of git: an empty repository if there is none."""
    with repository_view(project, kind) as found:
        yield _empty("main") if found is None else found


def machine_folder() -> Path:
    """The directory of this machine for repositories."""
    return root()


def _empty(head: str) -> Path:
    """Return an empty bare repository whose HEAD is a branch."""
    wanted = root() / f"empty-{head}.git"
    if not wanted.exists():
        incomplete = wanted.with_name(f".{wanted.name}.{secrets.token_hex(4)}")
        (incomplete / "objects").mkdir(parents=True)
        (incomplete / "refs").mkdir()
        (incomplete / "HEAD").write_text(f"ref: refs/heads/{head}\n")
        incomplete.rename(wanted)
    return wanted
