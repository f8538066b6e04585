"""The table of activity events."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Model


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


class Kind(enum.IntEnum):
    """The subject of an event, which selects its visibility rule (events reference, section 5)."""

    PROJECT = 1
    CODE = 2
    ISSUE = 3
    MERGE_REQUEST = 4
    MILESTONE = 5
    WIKI = 6
    SNIPPET = 7


class Restriction(enum.IntEnum):
    """A further limit on the users who may see an event of its kind."""

    NONE = 0
    CONFIDENTIAL = 1  # reporters and above, and the author and assignees of the issue
    INTERNAL = 2  # reporters and above
    MEMBERS = 3  # guests and above
    SIGNED_IN = 4  # members, and signed-in users who are not external
    DEVELOPERS = 5  # developers and above


FILTERED = ("kind", "restriction", "issue_id", "action", "target_type")


class Event(Model):
    """An action of a user in a project.

    ``kind``, ``restriction`` and ``issue_id`` decide the visibility, so that no target has to be loaded for it. The
    indexes of the feeds contain all columns that are filtered by: deep pages and totals are read from an index alone.
    """

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_author_id_created_at", "author_id", "created_at", "id", *FILTERED, "project_id"),
        Index("ix_events_author_id_project_id", "author_id", "project_id", "restriction"),
        Index("ix_events_project_id_created_at", "project_id", "created_at", "id", *FILTERED),
        Index("ix_events_created_at", "created_at", "id", "project_id", "kind", "restriction"),
        Index("ix_events_target", "target_type", "target_id"),
        Index("ix_events_issue_id", "issue_id"),
    )

    action: Mapped[int]
    kind: Mapped[int]
    restriction: Mapped[int] = mapped_column(default=Restriction.NONE)
    author_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    author: Mapped[User] = relationship()
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    issue_id: Mapped[int | None] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"))
    target_type: Mapped[str | None]
    target_id: Mapped[int | None]
    data: Mapped[dict[str, Any] | None]
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    target: Any = None  # set when a page of a feed is loaded
