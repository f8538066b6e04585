"""Tables of the job queue: tasks, and the due times of periodic jobs."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Model


class Task(Model):
    """A deferred call of a job: due, running, waiting for a retry or, with ``failed_at``, failed for good.

    The row is deleted when the job succeeds. ``fence`` is the fencing token: each claim increments it.
    """

    __tablename__ = "tasks"
    __table_args__ = (Index("ix_tasks_due", "failed_at", "run_at"),)

    name: Mapped[str]
    arguments: Mapped[list[Any]]
    queue: Mapped[str]
    request_id: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    run_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    leased_until: Mapped[dt.datetime | None]
    fence: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    failed_at: Mapped[dt.datetime | None]
    error: Mapped[str | None]


class PeriodicRun(Model):
    """The next due time of a periodic job, shared by all schedulers so that only one of them starts it."""

    __tablename__ = "periodic_runs"

    name: Mapped[str] = mapped_column(unique=True)
    due_at: Mapped[dt.datetime]
