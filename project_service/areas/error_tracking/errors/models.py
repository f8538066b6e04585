"""Tables of errors, their events and their counters (error collection reference, sections 11 to 14)."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain import page_paths
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db import text_search
from project_service.kit.db.base import Base, Key, Model, table_of
from project_service.kit.db.text_search import TextIndex

HOUR_SECONDS = 3600
DAY_SECONDS = 24 * HOUR_SECONDS
TARGET = "ErrorTracking::Error"  # what the notes of an error are under
HAS_ISSUE = text("issue_id IS NOT NULL")
HAS_STACK = text("stack IS NOT NULL")


class ErrorStatus(enum.IntEnum):
    """Status of an error."""

    UNRESOLVED = 0
    RESOLVED = 1
    IGNORED = 2

    @property
    def text(self) -> str:
        """The name in the API."""
        return self.name.lower()

    @classmethod
    def of(cls, name: str) -> ErrorStatus:
        """Return the status with a name of the API; raise ``KeyError`` if there is none."""
        return cls[name.upper()]


class Facet(enum.IntEnum):
    """What the values of ``TrackedErrorFacet`` are."""

    ENVIRONMENT = 0
    RELEASE = 1


class TrackedError(Model):
    """An error: all events with one of its digests. Title, culprit and level are those of the newest event.

    ``count`` is the number of occurrences ever, ``stored_events`` that of the events at hand. ``environment_count`` and
    ``release_count`` are the numbers of its facets. ``resolved_after`` is set while it is resolved in the next release:
    when the newest release in which it had occurred was first seen.
    """

    __tablename__ = "tracked_errors"
    __table_args__ = (
        Index("ix_tracked_errors_last_seen", "project_id", "last_seen", "id"),
        Index("ix_tracked_errors_first_seen", "project_id", "first_seen", "id"),
        Index("ix_tracked_errors_count", "project_id", "count", "id"),
        Index("ix_tracked_errors_status_last_seen", "project_id", "status", "last_seen", "id"),
        Index("ix_tracked_errors_status_first_seen", "project_id", "status", "first_seen", "id"),
        Index("ix_tracked_errors_status_count", "project_id", "status", "count", "id"),
        Index(
            "uq_tracked_errors_issue_id",
            "issue_id",
            unique=True,
            sqlite_where=HAS_ISSUE,
            postgresql_where=HAS_ISSUE,
        ),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    title: Mapped[str]
    type: Mapped[str | None]
    message: Mapped[str | None]
    culprit: Mapped[str]
    level: Mapped[str]
    logger: Mapped[str | None]
    platform: Mapped[str | None]
    status: Mapped[int] = mapped_column(default=ErrorStatus.UNRESOLVED)
    count: Mapped[int] = mapped_column(default=0)
    user_count: Mapped[int] = mapped_column(default=0)
    environment_count: Mapped[int] = mapped_column(default=0)
    release_count: Mapped[int] = mapped_column(default=0)
    stored_events: Mapped[int] = mapped_column(default=0)
    first_seen: Mapped[dt.datetime]
    last_seen: Mapped[dt.datetime]
    first_release: Mapped[str | None]
    first_release_at: Mapped[dt.datetime | None]
    last_release: Mapped[str | None]
    last_release_at: Mapped[dt.datetime | None]
    resolved_at: Mapped[dt.datetime | None]
    resolved_after: Mapped[dt.datetime | None]
    regressed_at: Mapped[dt.datetime | None]
    issue_id: Mapped[int | None] = mapped_column(ForeignKey("issues.id", ondelete="SET NULL"))
    issue: Mapped[Issue | None] = relationship()
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    assignee: Mapped[User | None] = relationship()
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)

    @property
    def path(self) -> str:
        """The path of its page."""
        return f"/{self.project.full_path}{page_paths.error(self.id)}"


TEXTS = text_search.add(TextIndex(table_of(TrackedError), ("title", "culprit")))


class TrackedErrorDigest(Base):
    """A digest that belongs to an error; an error may have several."""

    __tablename__ = "tracked_error_digests"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"), index=True)


class TrackedErrorEvent(Model):
    """One stored event. ``summary`` has what lists show, ``details`` the stack traces and all else.

    ``stack`` is the digest of a stack that source maps may resolve.
    """

    __tablename__ = "tracked_error_events"
    __table_args__ = (
        UniqueConstraint("project_id", "event_id"),
        Index("ix_tracked_error_events_occurred_at", "error_id", "occurred_at", "id"),
        Index(
            "ix_tracked_error_events_stack",
            "project_id",
            "stack",
            "id",
            sqlite_where=HAS_STACK,
            postgresql_where=HAS_STACK,
        ),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"))
    event_id: Mapped[str]
    occurred_at: Mapped[dt.datetime]
    received_at: Mapped[dt.datetime]
    stack: Mapped[str | None]
    summary: Mapped[dict[str, Any]]
    details: Mapped[dict[str, Any]] = mapped_column(deferred=True)


class TrackedErrorCount(Base):
    """The occurrences of an error in a period of ``seconds`` (an hour or a day) that begins at ``start`` (epoch)."""

    __tablename__ = "tracked_error_counts"
    __table_args__ = (Index("ix_tracked_error_counts_start", "seconds", "start"),)

    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"), primary_key=True)
    seconds: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    count: Mapped[int]


class TrackedErrorFacet(Base):
    """An environment or a release in which an error has occurred; of releases how many events named it."""

    __tablename__ = "tracked_error_facets"
    __table_args__ = (Index("ix_tracked_error_facets_kind", "project_id", "kind", "value", "error_id"),)

    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    value: Mapped[str] = mapped_column(primary_key=True)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    count: Mapped[int] = mapped_column(default=0, server_default="0")


class TrackedErrorUser(Base):
    """A user whom an error has affected, as a keyed digest."""

    __tablename__ = "tracked_error_users"

    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)


class MergedError(Base):
    """The former id of an error that was merged into another one: its address leads there.

    ``undo`` has what is needed to separate them again, if a user merged them.
    """

    __tablename__ = "tracked_error_merges"

    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), index=True)
    error_id: Mapped[int] = mapped_column(ForeignKey("tracked_errors.id", ondelete="CASCADE"), index=True)
    title: Mapped[str | None]
    merged_at: Mapped[dt.datetime | None]
    merged_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    merged_by: Mapped[User | None] = relationship()
    undo: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)


class DroppedEventCount(Base):
    """The events of a project that were not stored in an hour (``start``, epoch), by reason."""

    __tablename__ = "error_tracking_drops"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    start: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    reason: Mapped[str] = mapped_column(primary_key=True)
    count: Mapped[int]
