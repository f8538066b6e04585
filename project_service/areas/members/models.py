"""Invitations of people without an account to groups and projects."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.base import Model, Timestamps

INVITATION_LIFETIME = dt.timedelta(days=14)


class Invitation(Timestamps, Model):
    """An invitation that was mailed to an address, in lower case; accepting or revoking it deletes the row."""

    __tablename__ = "invitations"
    __table_args__ = (
        UniqueConstraint("namespace_id", "email"),
        UniqueConstraint("project_id", "email"),
        CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        Index("ix_invitations_created_by_id", "created_by_id"),
        Index("ix_invitations_created_at", "created_at"),
    )

    email: Mapped[str]
    access_level: Mapped[int]
    expires_at: Mapped[dt.date | None]  # the membership's
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    namespace_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Group] = relationship()  # where there is no project
    created_by_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    created_by: Mapped[User] = relationship()

    @property
    def place(self) -> Project | Group:
        """The project or group."""
        return self.project or self.group
