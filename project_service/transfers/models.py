"""Tables of imports and exports, and of imported rows that have no table of their own."""

from __future__ import annotations

import datetime as dt
import secrets
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.paths import path_rules
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security.key_ring import Encrypted

NONE, SCHEDULED, STARTED, FINISHED, FAILED = "none", "scheduled", "started", "finished", "failed"
QUEUED = "queued"
LIVE = (QUEUED, STARTED)
WAITING, LOADING, FAILING, ENDED = "waiting", "loading", "failing", "ended"  # phases of imports
IN_PROGRESS = (WAITING, LOADING)
TEMPORARY_SUFFIX = "-[0-9a-f]{32}"  # of the wanted path, until the project there has been overwritten
MAX_PREFIX_LENGTH = path_rules.LONGEST - 33  # of the wanted path before this suffix


class ProjectImport(Timestamps, Model):
    """The import of a project; status and error are columns of the project.

    ``relation`` and ``line`` are the checkpoint: they change in the transaction that inserts the rows before it.
    ``storage_name`` is the uploaded archive, ``url`` the address of a remote one. ``wanted_path`` is set while the
    project at that path is to be overwritten.
    """

    __tablename__ = "project_imports"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), unique=True)
    project: Mapped[Project] = relationship()
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    user: Mapped[User | None] = relationship()
    correlation_id: Mapped[str | None]
    storage_name: Mapped[str | None]
    url: Mapped[str | None] = mapped_column(Encrypted)
    wanted_path: Mapped[str | None]
    override_params: Mapped[dict[str, Any]] = mapped_column(default=dict)
    phase: Mapped[str] = mapped_column(default=WAITING)
    relation: Mapped[str | None]
    line: Mapped[int] = mapped_column(default=0)
    rows_done: Mapped[int] = mapped_column(default=0)
    rows_total: Mapped[int | None]
    relations_done: Mapped[int] = mapped_column(default=0)
    relations_total: Mapped[int | None]
    row_counts: Mapped[dict[str, Any] | None]  # what came, by kind, since the import has finished
    ended_at: Mapped[dt.datetime | None]


class ImportFailure(Model):
    """A row or file of an archive that was left out."""

    __tablename__ = "import_failures"
    __table_args__ = (Index("ix_import_failures_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    exception_class: Mapped[str]
    exception_message: Mapped[str]
    source: Mapped[str]
    relation_name: Mapped[str]
    line_number: Mapped[int | None]


class ProjectExport(Timestamps, Model):
    """An export of a project; the newest one with a file can be downloaded."""

    __tablename__ = "project_exports"
    __table_args__ = (
        Index("ix_project_exports_project_id", "project_id", "id"),
        Index("ix_project_exports_storage_name", "storage_name", "updated_at"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    user: Mapped[User | None] = relationship()
    state: Mapped[str] = mapped_column(default=QUEUED)
    description: Mapped[str | None]
    upload_url: Mapped[str | None] = mapped_column(Encrypted)
    upload_method: Mapped[str | None]
    storage_name: Mapped[str | None]
    file_name: Mapped[str | None]
    size: Mapped[int | None]
    error: Mapped[str | None]
    rows_done: Mapped[int] = mapped_column(default=0)
    rows_total: Mapped[int | None]
    relations_done: Mapped[int] = mapped_column(default=0)
    relations_total: Mapped[int | None]


class ArchivedRow(Model):
    """An imported row without a table, or what no column holds of a row; exports write it again."""

    __tablename__ = "archived_rows"
    __table_args__ = (Index("ix_archived_rows_project_id", "project_id", "relation", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    relation: Mapped[str]
    data: Mapped[Any] = mapped_column(JSON)


def temporary_path(wanted_path: str) -> str:
    """Return the path of a project until it replaces the one at the wanted path."""
    return f"{wanted_path[:MAX_PREFIX_LENGTH]}-{secrets.token_hex(16)}"
