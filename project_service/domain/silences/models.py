"""Tables of silences, and of the alerts that they matched (silences reference, section 1)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, false, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Base, Key, Model, Timestamps, index_where_present

PENDING, ACTIVE, EXPIRED = "pending", "active", "expired"
STATES = (PENDING, ACTIVE, EXPIRED)


class Silence(Timestamps, Model):
    """A time in which nobody is notified of new alerts of a project, or of all projects below a group, that match.

    They meet all ``matchers``; without any these are all alerts.

    ``begun_at``: the alerts that were open at its start have been matched. ``finished_at``: what it held back and is
    still open has been announced. ``ended_at``: when it was ended early. ``cleared_at``: since when nothing is
    open that it matched.
    """

    __tablename__ = "silences"
    __table_args__ = (
        CheckConstraint("(project_id IS NULL) <> (group_id IS NULL)", name="one_owner"),
        Index("ix_silences_project_id", "project_id", "id"),
        index_where_present("ix_silences_group_id", "group_id", "id"),
        Index("ix_silences_finished_at", "finished_at", "ends_at"),
        index_where_present("ix_silences_created_by_id", "created_by_id"),
        index_where_present("ix_silences_ended_by_id", "ended_by_id"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace | None] = relationship()
    matchers: Mapped[list[Any]] = mapped_column(default=list)
    starts_at: Mapped[dt.datetime]
    ends_at: Mapped[dt.datetime]
    comment: Mapped[str]
    hold_incidents: Mapped[bool] = mapped_column(default=True, server_default=true())
    ends_when_resolved: Mapped[bool] = mapped_column(default=False, server_default=false())
    cleared_at: Mapped[dt.datetime | None]
    created_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    created_by: Mapped[User | None] = relationship(foreign_keys=[created_by_id])
    ended_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    ended_by: Mapped[User | None] = relationship(foreign_keys=[ended_by_id])
    ended_at: Mapped[dt.datetime | None]
    begun_at: Mapped[dt.datetime | None]
    finished_at: Mapped[dt.datetime | None]
    # not a column; set by queries for a response
    matched_count: int

    @property
    def scope(self) -> str:
        """``project`` or ``group``."""
        return "project" if self.project_id is not None else "group"

    @property
    def state(self) -> str:
        """``pending``, ``active`` or ``expired``."""
        now = clock.now()
        if self.ends_at <= now:
            return EXPIRED
        return ACTIVE if self.starts_at <= now else PENDING


class SilencedAlert(Base):
    """An alert that was open while a silence matched it; ``held_back``: its opening was announced to nobody."""

    __tablename__ = "silenced_alerts"
    __table_args__ = (Index("ix_silenced_alerts_alert_id", "alert_id"),)

    silence_id: Mapped[int] = mapped_column(Key, ForeignKey("silences.id", ondelete="CASCADE"), primary_key=True)
    alert_id: Mapped[int] = mapped_column(Key, ForeignKey("alerts.id", ondelete="CASCADE"), primary_key=True)
    held_back: Mapped[bool] = mapped_column(default=False)
