"""The tables of releases (repositories reference, section 4.6)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import ForeignKey, Index, UniqueConstraint, delete, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import db

MAX_NAME_LENGTH = 255
MAX_INDEXED_BYTES = 1024  # of a tag and of a URL
LINK_TYPES = ("other", "runbook", "image", "package")
SCHEMES = ("http", "https", "ftp")
# the keys of a row of an archive that columns hold
COLUMN_KEYS = frozenset(
    {"id", "project_id", "tag", "name", "description", "sha", "author_id", "links"}
    | {"created_at", "updated_at", "released_at"}
)


class Release(Timestamps, Model):
    """The notes and links of a tag; it is deleted with the tag.

    ``sha`` is the commit of the tag when the release was made. ``extra`` is the row of the archive that an import
    brought, until the release changes; from then on only what no column holds.
    """

    __tablename__ = "releases"
    __table_args__ = (
        UniqueConstraint("project_id", "tag"),
        Index("ix_releases_project_id", "project_id", "id"),
        Index("ix_releases_released_at", "project_id", "released_at", "id"),
        Index("ix_releases_created_at", "project_id", "created_at", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    tag: Mapped[str]
    name: Mapped[str | None]
    description: Mapped[LargeText | None]
    sha: Mapped[str | None]
    released_at: Mapped[dt.datetime]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"), index=True)
    author: Mapped[User | None] = relationship()
    links: Mapped[list[ReleaseLink]] = relationship(order_by="ReleaseLink.id", cascade="all", passive_deletes=True)
    milestones: Mapped[list[Milestone]] = relationship(
        secondary="release_milestones", order_by="Milestone.id", passive_deletes=True
    )
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)

    @property
    def is_upcoming(self) -> bool:
        """Whether its time is in the future."""
        return self.released_at > clock.now()


class ReleaseLink(Timestamps, Model):
    """A link of a release to a file or page; names and URLs are unique in a release."""

    __tablename__ = "release_links"
    __table_args__ = (UniqueConstraint("release_id", "url"), UniqueConstraint("release_id", "name"))

    release_id: Mapped[int] = mapped_column(ForeignKey("releases.id", ondelete="CASCADE"))
    name: Mapped[str]
    url: Mapped[str]
    filepath: Mapped[str | None]
    link_type: Mapped[str] = mapped_column(default="other")


class ReleaseMilestone(Model):
    """A milestone that a release belongs to."""

    __tablename__ = "release_milestones"
    __table_args__ = (UniqueConstraint("release_id", "milestone_id"),)

    release_id: Mapped[int] = mapped_column(ForeignKey("releases.id", ondelete="CASCADE"))
    milestone_id: Mapped[int] = mapped_column(ForeignKey("milestones.id", ondelete="CASCADE"), index=True)


def is_link_url(url: str) -> bool:
    """Whether a text is a URL that a release may link to."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in SCHEMES and bool(parts.hostname) and len(url.encode()) <= MAX_INDEXED_BYTES


def delete_releases(project_id: int, tags: Sequence[str]) -> None:
    """Delete the releases of tags that are deleted."""
    of_tags = Release.project_id == project_id, Release.tag.in_(tags)
    numbers = list(db.session.scalars(select(Release.id).where(*of_tags)))
    if numbers:
        db.session.execute(delete(Release).where(Release.id.in_(numbers)))
