"""Snippets, which come from imported archives only."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.large_texts import LargeText

TARGET = "Snippet"


class Snippet(Timestamps, Model):
    """A text stored with a project."""

    __tablename__ = "snippets"
    __table_args__ = (Index("ix_snippets_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    title: Mapped[str]
    file_name: Mapped[str | None]
    content: Mapped[LargeText | None]
    visibility: Mapped[int] = mapped_column(default=Visibility.PRIVATE)
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    author: Mapped[User | None] = relationship()
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
