"""The projects that a user visited last, for the home page."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Model
from project_service.kit.db.session import db, insert, unit_of_work

MAX_VISITED_PROJECTS = 20  # per user
VISIT_INTERVAL = dt.timedelta(minutes=5)  # a visit within this time of the last one to the same project is not stored


class ProjectVisit(Model):
    """When a user last opened a page of a project."""

    __tablename__ = "project_visits"
    __table_args__ = (
        UniqueConstraint("user_id", "project_id"),
        Index("ix_project_visits_user_id", "user_id", "visited_at", "id"),
        Index("ix_project_visits_project_id", "project_id"),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    visited_at: Mapped[dt.datetime]


def is_noted(user_id: int, project_id: int) -> bool:
    """Whether a visit of a moment ago is stored."""
    since = clock.now() - VISIT_INTERVAL
    recent = select(ProjectVisit.id).where(
        ProjectVisit.user_id == user_id, ProjectVisit.project_id == project_id, ProjectVisit.visited_at > since
    )
    return db.session.scalar(recent) is not None


def note_visit(user_id: int, project_id: int) -> None:
    """Store a visit in a transaction of its own, and remove those that are no longer among the last."""
    values = {"user_id": user_id, "project_id": project_id, "visited_at": clock.now()}
    statement = insert(ProjectVisit).values(**values)
    update = {"visited_at": statement.excluded.visited_at}
    last = select(ProjectVisit.id).where(ProjectVisit.user_id == user_id)
    last = last.order_by(ProjectVisit.visited_at.desc(), ProjectVisit.id.desc()).limit(MAX_VISITED_PROJECTS)
    with unit_of_work():
        db.session.execute(statement.on_conflict_do_update(index_elements=["user_id", "project_id"], set_=update))
        old = delete(ProjectVisit).where(ProjectVisit.user_id == user_id, ProjectVisit.id.not_in(last))
        db.session.execute(old, execution_options={"synchronize_session": False})


def visited_by(user_id: int) -> Select[Project]:
    """The projects that a user visited last, the latest first; callers add the condition of what may be seen."""
    visits = ProjectVisit.visited_at.desc(), ProjectVisit.id.desc()
    return (
        select(Project)
        .join(ProjectVisit, ProjectVisit.project_id == Project.id)
        .where(ProjectVisit.user_id == user_id, Project.deleting_since.is_(None))
        .order_by(*visits)
        .limit(MAX_VISITED_PROJECTS)
    )
