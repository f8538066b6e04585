"""Tables of releases, uploaded source maps, and resolved stacks (source maps reference, sections 12, 16 and 19)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Base, Model

OK, FAILED, WAITING = "ok", "error", "created"  # states of a bundle, as clients know them
PENDING, MISSING, RESOLVED, PARTIAL, BROKEN = "pending", "missing", "resolved", "partial", "broken"  # of a stack
MINIFIED, SOURCE_MAP, SOURCE = "minified_source", "source_map", "source"


class ErrorRelease(Model):
    """A release of an application, as clients name it in uploads and events; not one of a tag of the repository.

    ``commits`` are those that clients gave, or that were read from the repository, newest first.
    """

    __tablename__ = "error_releases"
    __table_args__ = (
        UniqueConstraint("project_id", "version"),
        Index("ix_error_releases_newest", "project_id", "status", text("coalesce(released_at, created_at)"), "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    version: Mapped[str]
    status: Mapped[str] = mapped_column(default="open")
    ref: Mapped[str | None]
    url: Mapped[str | None]
    started_at: Mapped[dt.datetime | None]
    released_at: Mapped[dt.datetime | None]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    commit_count: Mapped[int] = mapped_column(default=0, server_default="0")
    last_commit: Mapped[dict[str, Any] | None]
    commits: Mapped[list[Any] | None] = mapped_column(deferred=True)


class ReleaseDeploy(Model):
    """A deployment of a release to an environment."""

    __tablename__ = "error_release_deploys"
    __table_args__ = (Index("ix_error_release_deploys_finished_at", "release_id", "finished_at", "id"),)

    release_id: Mapped[int] = mapped_column(ForeignKey("error_releases.id", ondelete="CASCADE"))
    environment: Mapped[str]
    name: Mapped[str | None]
    url: Mapped[str | None]
    started_at: Mapped[dt.datetime | None]
    finished_at: Mapped[dt.datetime]


class SourceMapBundle(Model):
    """An upload for one project: its files, or the reason why it failed."""

    __tablename__ = "source_map_bundles"
    __table_args__ = (
        Index("ix_source_map_bundles_project_id", "project_id", "id"),
        Index("ix_source_map_bundles_checksum", "project_id", "checksum"),
        Index("ix_source_map_bundles_release", "project_id", "release", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    release: Mapped[str | None]
    dist: Mapped[str | None]
    checksum: Mapped[str]
    state: Mapped[str]
    error: Mapped[str | None]
    files: Mapped[int] = mapped_column(default=0)
    bytes: Mapped[int] = mapped_column(default=0)
    uploaded_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    uploader_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    uploader: Mapped[User | None] = relationship()


class SourceMapArtifact(Model):
    """A file of a bundle. Its content is in the storage, once for each project, under its SHA-256.

    Old clients compare by ``sha1``, which files from before it was stored do not have.
    """

    __tablename__ = "source_map_artifacts"
    __table_args__ = (
        Index("ix_source_map_artifacts_debug_id", "project_id", "debug_id", "id"),
        Index("ix_source_map_artifacts_url_digest", "project_id", "url_digest", "id"),
        Index("ix_source_map_artifacts_sha256", "project_id", "sha256"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    bundle_id: Mapped[int] = mapped_column(ForeignKey("source_map_bundles.id", ondelete="CASCADE"), index=True)
    bundle: Mapped[SourceMapBundle] = relationship()
    type: Mapped[str]
    debug_id: Mapped[str | None]
    url: Mapped[str]
    url_digest: Mapped[str]
    source_map_url: Mapped[str | None]
    sha256: Mapped[str]
    sha1: Mapped[str | None]
    size: Mapped[int]
    last_used_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


class WaitingEvent(Model):
    """An accepted event whose frames source maps resolve before it is grouped and counted.

    ``fields`` are those of the parsed event. ``user_digest`` is the keyed digest of the user whom it affected.
    """

    __tablename__ = "error_waiting_events"
    __table_args__ = (
        UniqueConstraint("project_id", "event_id"),
        Index("ix_error_waiting_events_stack", "project_id", "stack", "id"),
        Index("ix_error_waiting_events_received_at", "received_at", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    event_id: Mapped[str]
    stack: Mapped[str]
    occurred_at: Mapped[dt.datetime]
    received_at: Mapped[dt.datetime]
    user_digest: Mapped[str | None]
    fields: Mapped[dict[str, Any]] = mapped_column(deferred=True)


class ResolvedStack(Base):
    """What became of the frames of one stack; events with the same digest are resolved alike.

    ``frames`` has a list of frames for each exception, once they are resolved. ``problems`` say why others are not.
    """

    __tablename__ = "error_resolved_stacks"
    __table_args__ = (Index("ix_error_resolved_stacks_created_at", "project_id", "created_at"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), primary_key=True)
    digest: Mapped[str] = mapped_column(primary_key=True)
    state: Mapped[str]
    release: Mapped[str | None]
    dist: Mapped[str | None]
    debug_ids: Mapped[list[Any]] = mapped_column(default=list)
    frames: Mapped[list[Any]] = mapped_column(default=list)
    problems: Mapped[list[Any]] = mapped_column(default=list)
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
