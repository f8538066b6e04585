"""Environments of a project: where it runs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.session import NO_LAZY_LOADING, one
from project_service.kit.http.errors import NotFound

AVAILABLE = "available"


class Environment(Timestamps, Model):
    """A place that a project is deployed to; alerts point at it by its name."""

    __tablename__ = "environments"
    __table_args__ = (UniqueConstraint("project_id", "name"), Index("ix_environments_project_id", "project_id", "id"))

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    name: Mapped[str]
    slug: Mapped[str]
    external_url: Mapped[str | None]
    state: Mapped[str] = mapped_column(default=AVAILABLE)
    # not columns; set by queries for a response
    open_alerts: list[Any]
    open_alerts_count: int


def environments_of(project: Project) -> Select[Environment]:
    """The environments of a project, oldest first."""
    statement = select(Environment).where(Environment.project_id == project.id)
    return statement.order_by(Environment.id).options(NO_LAZY_LOADING)


def find_environment(project: Project, environment_id: int) -> Environment:
    """One environment of a project by its id."""
    return one(environments_of(project).where(Environment.id == environment_id), NotFound("Environment"))
