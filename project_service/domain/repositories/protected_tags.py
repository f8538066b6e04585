"""The table of protected tags."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.domain.repositories.wildcards import matches
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.session import db


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


def levels_for(project: Project, name: str) -> list[int]:
    """The levels that may create the tag ``name``; none at all when nothing protects it."""
    protected = select(ProtectedTag).where(ProtectedTag.project_id == project.id).order_by(ProtectedTag.id)
    return [
        level for tag in db.session.scalars(protected) if matches(tag.name, name) for level in tag.create_access_levels
    ]
