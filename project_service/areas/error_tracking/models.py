"""The table of error-tracking settings."""

from __future__ import annotations

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.security.key_ring import Encrypted

API_PATH = "api/0/projects/"


class ErrorTrackingSetting(Timestamps, Model):
    """The error tracker of a project, at most one. The token is encrypted at rest."""

    __tablename__ = "error_tracking_settings"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), unique=True)
    project: Mapped[Project] = relationship()
    enabled: Mapped[bool] = mapped_column(default=False)
    integrated: Mapped[bool] = mapped_column(default=False)
    api_url: Mapped[str | None]
    token: Mapped[str | None] = mapped_column(Encrypted)
    project_name: Mapped[str | None]
    organization_name: Mapped[str | None]

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
