"""The table of CI/CD variables."""

from __future__ import annotations

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.projects import Project
from project_service.kit.db.base import Model
from project_service.kit.security.key_ring import Encrypted

ENV_VAR = "env_var"
FILE = "file"


class Variable(Model):
    """A variable for the jobs of a project's pipelines; the value is encrypted at rest."""

    __tablename__ = "variables"

    key: Mapped[str]
    value: Mapped[str | None] = mapped_column(Encrypted)
    variable_type: Mapped[str] = mapped_column(default=ENV_VAR)
    protected: Mapped[bool] = mapped_column(default=False)
    masked: Mapped[bool] = mapped_column(default=False)
    hidden: Mapped[bool] = mapped_column(default=False)
    raw: Mapped[bool] = mapped_column(default=False)
    environment_scope: Mapped[str] = mapped_column(default="*")
    description: Mapped[str | None]
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()

    __table_args__ = (
        UniqueConstraint("project_id", "key", "environment_scope"),
        Index("ix_variables_project_id", "project_id", "id"),
    )
