"""The table of protected tags."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps


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
