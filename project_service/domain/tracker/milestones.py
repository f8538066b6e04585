"""Milestones: the table and finders."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db import text_search
from project_service.kit.db.base import Model, Timestamps, table_of
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import one
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import NotFound

ACTIVE = "active"
CLOSED = "closed"
TARGET = "Milestone"


class Milestone(Timestamps, Model):
    """A milestone of a project, optionally with a start and a due date."""

    __tablename__ = "milestones"
    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        UniqueConstraint("project_id", "title"),
        Index("ix_milestones_project_id", "project_id", "due_date", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    iid: Mapped[int]
    title: Mapped[str]
    description: Mapped[LargeText | None]
    state: Mapped[str] = mapped_column(default=ACTIVE)
    start_date: Mapped[dt.date | None]
    due_date: Mapped[dt.date | None]
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)


TEXTS = text_search.add(TextIndex(table_of(Milestone), ("title", "description")))


def milestones_of(project: Project) -> Select[Milestone]:
    """The milestones of a project; without an order."""
    return select(Milestone).where(Milestone.project_id == project.content_id)


def find_milestone(project: Project, milestone_id: int) -> Milestone:
    """One milestone of a project by its id."""
    return one(milestones_of(project).where(Milestone.id == milestone_id), NotFound("Milestone"))


def find_milestone_by_iid(project: Project, iid: int) -> Milestone:
    """One milestone by its number in the project, as the pages address it."""
    return one(milestones_of(project).where(Milestone.iid == iid), NotFound("Milestone"))
