"""Tables of heartbeats and of the calls that they received (heartbeats reference, sections 1 and 3)."""

from __future__ import annotations

import datetime as dt
import hashlib

from sqlalchemy import Float, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps, index_where_present
from project_service.kit.http.urls import absolute
from project_service.kit.security.key_ring import Encrypted

INTERVAL, CRON, ALERT = "interval", "cron", "alert"
KINDS = (INTERVAL, CRON, ALERT)
NEW, UP, LATE, DOWN, PAUSED = "new", "up", "late", "down", "paused"
SUCCESS, FAIL, START = "success", "fail", "start"
PING_PATH = "/-/heartbeats/"


class Heartbeat(Timestamps, Model):
    """A program of a project that is expected to call regularly.

    ``kind`` says when the next call is due: ``period_seconds`` after the last one, by the cron expression ``schedule``
    in ``time_zone``, or, for ``alert``, ``period_seconds`` after the last firing alert titled ``matcher_title``.
    ``missing_at`` is when the alert is opened unless a call comes before; ``None`` where none is expected.
    ``alert_iid`` is the number of the alert that the heartbeat has opened and that a call will resolve.
    """

    __tablename__ = "heartbeats"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        Index("ix_heartbeats_project_id", "project_id", "id"),
        index_where_present("ix_heartbeats_missing_at", "missing_at"),
        index_where_present("ix_heartbeats_matcher_title", "matcher_title", "project_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    name: Mapped[str]
    kind: Mapped[str] = mapped_column(default=INTERVAL)
    period_seconds: Mapped[int]
    schedule: Mapped[str | None]
    time_zone: Mapped[str] = mapped_column(default="UTC")
    matcher_title: Mapped[str | None]  # only of the kind "alert"
    grace_seconds: Mapped[int]
    severity: Mapped[str] = mapped_column(default="critical")
    environment: Mapped[str | None]
    runbook: Mapped[str | None]
    key: Mapped[str] = mapped_column(Encrypted)
    key_digest: Mapped[str] = mapped_column(unique=True)
    stored_state: Mapped[str] = mapped_column("state", default=NEW)
    last_ping_at: Mapped[dt.datetime | None]
    last_status: Mapped[str | None]
    started_at: Mapped[dt.datetime | None]  # of a run that was announced and has not ended
    due_at: Mapped[dt.datetime | None]
    missing_at: Mapped[dt.datetime | None]
    alert_iid: Mapped[int | None]

    @property
    def state(self) -> str:
        """``new``, ``up``, ``late`` (due, but within the grace), ``down`` or ``paused``."""
        is_late = self.stored_state == UP and self.due_at is not None and self.due_at <= clock.now()
        return LATE if is_late else self.stored_state

    @property
    def grace(self) -> dt.timedelta:
        """How long a call may be late."""
        return dt.timedelta(seconds=self.grace_seconds)

    @property
    def ping_url(self) -> str:
        """The URL to call; it does not contain the path of the project, so that renaming does not change it."""
        return absolute(f"{PING_PATH}{self.key}")

    @property
    def fingerprint(self) -> str:
        """The identity of its alerts."""
        return hashlib.sha1(f"heartbeat:{self.id}".encode(), usedforsecurity=False).hexdigest()


class HeartbeatPing(Model):
    """A call of a heartbeat; only the last ones of each are stored. ``duration`` is in seconds, since the start."""

    __tablename__ = "heartbeat_pings"
    __table_args__ = (Index("ix_heartbeat_pings_heartbeat_id", "heartbeat_id", "id"),)

    heartbeat_id: Mapped[int] = mapped_column(ForeignKey("heartbeats.id", ondelete="CASCADE"))
    heartbeat: Mapped[Heartbeat] = relationship()
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    status: Mapped[str]
    exit_status: Mapped[int | None]
    duration: Mapped[float | None] = mapped_column(Float)
    method: Mapped[str | None]
    remote_address: Mapped[str | None]
    user_agent: Mapped[str | None]
    body: Mapped[str | None] = mapped_column(Encrypted)


class HeartbeatCheck(Model):
    """When heartbeats were last checked, in the only row: a gap is time in which the service did not run."""

    __tablename__ = "heartbeat_checks"

    checked_at: Mapped[dt.datetime]
