"""Local bare repositories for reading: the only way to the objects and refs of a project's repository."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from project_service.domain.projects import Project
from project_service.domain.repositories.models import CODE, bare, repository_of


@contextmanager
def repository_view(project: Project, kind: str = CODE) -> Iterator[Path | None]:
    """Provide a bare repository with all refs of a project as they are now; ``None`` if it has no repository.

    The folder shows one consistent state, is shared with other readers, must not be changed, and is there until the
    block ends. ``kind`` is one of ``models.KINDS``. Open it with ``git.opened`` or pass it to ``git.run``.
    """
    found = repository_of(project, kind)
    yield None if found is None else bare(found)
