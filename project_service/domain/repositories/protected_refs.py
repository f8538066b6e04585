"""Protected tags and protected branches: tables, names, levels, and the rules of pushes about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, false, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.repositories.wildcards import matches
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.session import db

NO_PROTECTION, DEVELOPERS_PUSH, FULL, DEVELOPERS_MERGE, FULL_AFTER_FIRST_PUSH = range(5)
# the values of ``default_branch_protection``, with the roles that may push and merge then
DEFAULT_BRANCH_LEVELS = {
    DEVELOPERS_PUSH: (Role.DEVELOPER, Role.MAINTAINER),
    FULL: (Role.MAINTAINER, Role.MAINTAINER),
    DEVELOPERS_MERGE: (Role.MAINTAINER, Role.DEVELOPER),
    FULL_AFTER_FIRST_PUSH: (Role.MAINTAINER, Role.MAINTAINER),
}

LEVEL_TEXTS = {Role.NONE: "No one", Role.DEVELOPER: "Developers + Maintainers", Role.MAINTAINER: "Maintainers"}
# clients remove these path segments from URLs, and would then address the project itself
DOT_SEGMENTS = (".", "..")
MAX_NAME_LENGTH = 255  # fits into an index, and is longer than the names of tags and branches


@dataclass(frozen=True, slots=True)
class BranchLevel:
    """A role that may act on the branches of a protected branch, whose id this has."""

    id: int
    access_level: int


class ProtectedBranch(Timestamps, Model):
    """A branch name or wildcard, and the roles that may push to and merge into matching branches; 0 is no one.

    ``added_by_import`` marks what an import added to its archive; exports leave it out until it is changed.
    """

    __tablename__ = "protected_branches"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    name: Mapped[str]
    push_access_level: Mapped[int] = mapped_column(default=Role.MAINTAINER)
    merge_access_level: Mapped[int] = mapped_column(default=Role.MAINTAINER)
    allow_force_push: Mapped[bool] = mapped_column(default=False, server_default=false())
    added_by_import: Mapped[bool] = mapped_column(default=False, server_default=false())

    @property
    def push_access_levels(self) -> list[BranchLevel]:
        """The role that may push."""
        return [BranchLevel(self.id, self.push_access_level)]

    @property
    def merge_access_levels(self) -> list[BranchLevel]:
        """The role that may merge."""
        return [BranchLevel(self.id, self.merge_access_level)]

    @property
    def unprotect_access_levels(self) -> list[BranchLevel]:
        """The role that may unprotect."""
        return [BranchLevel(self.id, Role.MAINTAINER)]


class ProtectedTag(Timestamps, Model):
    """A tag name or wildcard, and the access levels that may create matching tags."""

    __tablename__ = "protected_tags"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        Index("ix_protected_tags_project_id", "project_id", "id"),
    )

    name: Mapped[str]
    create_access_levels: Mapped[list[Any]]
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()


def problem_of(name: str | None) -> str | None:
    """Why a text cannot be the name or wildcard of a protected ref; ``None`` if it can."""
    if not (name or "").strip():
        return "Name can't be blank"
    if name in DOT_SEGMENTS or "\0" in (name or ""):
        return "Name is invalid"
    if len(name or "") > MAX_NAME_LENGTH:
        return f"Name is too long (maximum is {MAX_NAME_LENGTH} characters)"
    return None


def levels_for(project: Project, name: str) -> list[int]:
    """The levels that may create the tag ``name``; none at all when nothing protects it."""
    protected = select(ProtectedTag).where(ProtectedTag.project_id == project.id).order_by(ProtectedTag.id)
    return [
        level for tag in db.session.scalars(protected) if matches(tag.name, name) for level in tag.create_access_levels
    ]


def protected_branches_of(project: Project) -> Select[ProtectedBranch]:
    """The protected branches of a project, oldest first."""
    return select(ProtectedBranch).where(ProtectedBranch.project_id == project.id).order_by(ProtectedBranch.id)


def protections_of(protected: list[ProtectedBranch], branch: str) -> list[ProtectedBranch]:
    """The rows that protect a branch."""
    return [row for row in protected if matches(row.name, branch)]


def may_push(role: Role, protections: list[ProtectedBranch]) -> bool:
    """Whether one of the rows that protect a branch admits a role; 0 admits no one, not even administrators."""
    levels = [row.push_access_level for row in protections]
    return any(level != Role.NONE and role >= level for level in levels)


def default_protection(project: Project) -> int:
    """The value of ``default_branch_protection`` that applies to a project."""
    level = getattr(project.namespace, "default_branch_protection", None)
    return FULL if level is None else int(level)


def protect_default_branch(project: Project, branch: str, *, added_by_import: bool = False) -> None:
    """Protect the default branch of a project as its group wants it, unless it is protected already."""
    levels = DEFAULT_BRANCH_LEVELS.get(default_protection(project))
    protected = list(db.session.scalars(protected_branches_of(project)))
    if levels is None or protections_of(protected, branch):
        return
    push, merge = levels
    db.session.add(
        ProtectedBranch(
            project_id=project.id,
            name=branch,
            push_access_level=push,
            merge_access_level=merge,
            added_by_import=added_by_import,
        )
    )
