"""The first commit of a new project: the area of projects asks for it, that of repositories makes it."""

from __future__ import annotations

from collections.abc import Callable

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project

AddReadme = Callable[[User, Project], str | None]
_makers: list[AddReadme] = []


def register(make: AddReadme) -> None:
    """Register what makes the commit; registering it twice, as a second application does, is once."""
    if make not in _makers:
        _makers.append(make)


def add_readme(author: User, project: Project) -> str | None:
    """Commit a README with the name and the description of an empty project to its default branch.

    The transaction of the request ends, since git works without one. Return why the commit was not made, because a rule
    of pushes refuses it or the repository cannot be written; ``None`` if it was made.
    """
    return next((refusal for make in _makers if (refusal := make(author, project)) is not None), None)
