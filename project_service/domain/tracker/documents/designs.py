"""Designs of issues, which come from imported archives only."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.base import Model

TARGET = "DesignManagement::Design"


class Design(Model):
    """A picture of an issue; visible to those who see the issue."""

    __tablename__ = "designs"
    __table_args__ = (Index("ix_designs_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    issue_id: Mapped[int] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"), index=True)
    issue: Mapped[Issue] = relationship()
    iid: Mapped[int | None]
    filename: Mapped[str]
