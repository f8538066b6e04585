"""The activity events as they are stored."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.core.projects import Project
from project_service.core.users import User
from project_service.kit import clock
from project_service.kit.database import Model


class Action(enum.IntEnum):
    """What was done; the numbers are those of export archives (events reference, section 2)."""

    CREATED = 1
    UPDATED = 2
    CLOSED = 3
    REOPENED = 4
    PUSHED = 5
    COMMENTED = 6
    MERGED = 7
    JOINED = 8
    LEFT = 9
    DESTROYED = 10
    EXPIRED = 11
    APPROVED = 12


class Event(Model):
    """Somebody did something in a project."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_author_id_created_at", "author_id", "created_at", "id"),
        Index("ix_events_project_id_created_at", "project_id", "created_at", "id"),
        Index("ix_events_created_at", "created_at", "id"),
        Index("ix_events_target", "target_type", "target_id"),
    )

    action: Mapped[int]
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    author: Mapped[User] = relationship()
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    target_type: Mapped[str | None]
    target_id: Mapped[int | None]
    data: Mapped[dict[str, Any] | None]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
