"""Tables of error-tracking settings and client keys."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, false
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security.key_ring import Encrypted

API_PATH = "api/0/projects/"
IGNORE_PATTERNS = ("title", "release", "environment", "file")


class ErrorTrackingSetting(Timestamps, Model):
    """The error tracker of a project, at most one. The token is encrypted at rest.

    ``hidden_keys`` are further names whose values are removed from events. ``user_digest_key`` keys the digests of the
    users that errors affected. ``sentry_project_id`` is the id of the project on the Sentry server, once known.
    """

    __tablename__ = "error_tracking_settings"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), unique=True)
    project: Mapped[Project] = relationship()
    enabled: Mapped[bool] = mapped_column(default=False)
    integrated: Mapped[bool] = mapped_column(default=False)
    api_url: Mapped[str | None]
    token: Mapped[str | None] = mapped_column(Encrypted)
    project_name: Mapped[str | None]
    organization_name: Mapped[str | None]
    store_addresses: Mapped[bool] = mapped_column(default=False, server_default=false())
    hidden_keys: Mapped[list[Any]] = mapped_column(default=list, server_default="[]")
    resolve_after_days: Mapped[int] = mapped_column(default=0, server_default="0")
    user_digest_key: Mapped[str | None] = mapped_column(Encrypted)
    sentry_project_id: Mapped[str | None]

    @property
    def external_url(self) -> str | None:
        """The URL of the tracker's pages: the API URL without the path of the API."""
        return self.api_url.replace(API_PATH, "", 1) if self.api_url else None

    @property
    def shown_name(self) -> str | None:
        """The stored name, or one made from the last part of the address (``sentry-project`` → ``Sentry Project``)."""
        name = (self.project_name or "").strip()
        if name or not self.api_url:
            return name or None
        slug = self.api_url.rstrip("/").rpartition("/")[2]
        return " ".join(word.capitalize() for word in slug.replace("_", "-").split("-") if word)


class ClientKey(Model):
    """A key with which applications send events. It is public: it ships in web pages."""

    __tablename__ = "error_tracking_client_keys"
    __table_args__ = (Index("ix_error_tracking_client_keys_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    active: Mapped[bool] = mapped_column(default=True)
    public_key: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


class ErrorIgnoreRule(Model):
    """Events that are not stored: those that match all patterns of a rule. ``*`` stands for any characters."""

    __tablename__ = "error_ignore_rules"
    __table_args__ = (Index("ix_error_ignore_rules_project_id", "project_id", "id"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    title: Mapped[str | None]
    release: Mapped[str | None]
    environment: Mapped[str | None]
    file: Mapped[str | None]
    dropped_events: Mapped[int] = mapped_column(default=0)
    last_dropped_at: Mapped[dt.datetime | None]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)

    @property
    def text(self) -> str:
        """The patterns in words."""
        named = ((name, getattr(self, name)) for name in IGNORE_PATTERNS)
        return ", ".join(f"{name} {pattern}" for name, pattern in named if pattern)


class SentryIssueLink(Model):
    """The issue that is linked to an error of a Sentry server; an error and an issue have at most one of each other."""

    __tablename__ = "sentry_issue_links"
    __table_args__ = (UniqueConstraint("project_id", "sentry_id"), UniqueConstraint("issue_id"))

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    sentry_id: Mapped[str]
    issue_id: Mapped[int] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"))
    issue: Mapped[Issue] = relationship()
