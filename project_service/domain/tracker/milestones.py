"""Milestones of projects and groups: the table and finders. A project's issues use those of the groups above, too."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import CheckConstraint, ColumnElement, ForeignKey, Index, Select, UniqueConstraint, select, union_all
from sqlalchemy.orm import Mapped, joinedload, mapped_column, relationship

from project_service.domain.namespaces import Group, groups_above
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import NO_PROJECT, Project
from project_service.kit.db import text_search
from project_service.kit.db.base import Model, Timestamps, table_of
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import one
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import NotFound

ACTIVE = "active"
CLOSED = "closed"
TARGET = "Milestone"


class Milestone(Timestamps, Model):
    """A milestone of a project or, for all projects below it, of a group; optionally with a start and a due date."""

    __tablename__ = "milestones"
    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        UniqueConstraint("project_id", "title"),
        Index("ix_milestones_project_id", "project_id", "due_date", "id"),
        Index("ix_milestones_title", "title", "id"),
        Index("ix_milestones_group_id", "group_id", "due_date", "id"),
        Index("ix_milestones_group_id_iid", "group_id", "iid", unique=True),
        Index("ix_milestones_group_id_title", "group_id", "title", unique=True),
        CheckConstraint("(project_id IS NULL) <> (group_id IS NULL)", name="owner"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Group | None] = relationship()
    iid: Mapped[int]
    title: Mapped[str]
    description: Mapped[LargeText | None]
    state: Mapped[str] = mapped_column(default=ACTIVE)
    start_date: Mapped[dt.date | None]
    due_date: Mapped[dt.date | None]
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)

    @property
    def owner(self) -> Project | Group:
        """The project or the group that it belongs to; the database demands exactly one."""
        owner = self.group if self.project is None else self.project
        if owner is None:
            raise LookupError(f"milestone {self.id} has no owner")
        return owner

    def belong_to(self, owner: Project | Group) -> None:
        """Set its owner, when it is created."""
        if isinstance(owner, Group):
            self.group_id, self.group = owner.id, owner
        else:
            self.project_id, self.project = owner.id, owner


# outer joins only: for a join inside of an outer join SQLite reads the tables completely
WITH_OWNER = (joinedload(Milestone.project).joinedload(Project.namespace, innerjoin=False), joinedload(Milestone.group))


TEXTS = text_search.add(TextIndex(table_of(Milestone), ("title", "description")))


def milestones_of(owner: Project | Group) -> Select[Milestone]:
    """The milestones of a project or a group, without those of groups above; without an order."""
    if isinstance(owner, Group):
        return select(Milestone).where(Milestone.group_id == owner.id)
    return select(Milestone).where(Milestone.project_id == owner.content_id)


def usable_in(project: Project | ProjectAccess) -> ColumnElement[bool]:
    """The condition for the milestones that issues of a project may have: its own and those of the groups above."""
    if project.content_id == NO_PROJECT:
        return Milestone.project_id == NO_PROJECT
    own = select(Milestone.id).where(Milestone.project_id == project.id)
    inherited = select(Milestone.id).where(Milestone.group_id.in_(groups_above(project.namespace_id)))
    return Milestone.id.in_(union_all(own, inherited))  # each looked up by an index of its own


def find_milestone(owner: Project | Group, milestone_id: int) -> Milestone:
    """One milestone of a project or a group by its id."""
    return one(_loaded(owner).where(Milestone.id == milestone_id), NotFound("Milestone"))


def find_milestone_by_iid(owner: Project | Group, iid: int) -> Milestone:
    """One milestone by its number in the project or group, as the pages address it."""
    return one(_loaded(owner).where(Milestone.iid == iid), NotFound("Milestone"))


def _loaded(owner: Project | Group) -> Select[Milestone]:
    return milestones_of(owner).options(*WITH_OWNER)
