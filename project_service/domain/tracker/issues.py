"""Issues: the tables and finders."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, select
from sqlalchemy.ext.associationproxy import AssociationProxy, association_proxy
from sqlalchemy.orm import Mapped, mapped_column, relationship, undefer

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db import text_search
from project_service.kit.db.base import Base, Key, Model, Timestamps, index_where_present, table_of
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import one
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import RecordNotFound

OPENED = "opened"
CLOSED = "closed"
ISSUE = "issue"
INCIDENT = "incident"
UNKNOWN = "unknown"
SEVERITIES = ("critical", "high", "medium", "low", UNKNOWN)  # of incidents
TARGET = "Issue"


class Issue(Timestamps, Model):
    """An issue. A confidential one is visible to reporters and above, its author and its assignees.

    ``extra``, here and in related tables, has the attributes of an archive without a column: they are exported again.
    """

    __tablename__ = "issues"
    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        Index("ix_issues_created_at", "created_at", "id"),
        Index("ix_issues_project_id_created_at", "project_id", "created_at", "id"),
        Index("ix_issues_project_id_updated_at", "project_id", "updated_at", "id"),
        Index("ix_issues_project_id_due_date", "project_id", "due_date", "id"),
        Index("ix_issues_project_id_state", "project_id", "state", "confidential"),
        Index("ix_issues_author_id", "author_id"),
        index_where_present("ix_issues_milestone_id", "milestone_id"),
        index_where_present("ix_issues_closed_by_id", "closed_by_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    iid: Mapped[int]
    title: Mapped[str]
    description: Mapped[LargeText | None]
    state: Mapped[str] = mapped_column(default=OPENED)
    issue_type: Mapped[str] = mapped_column(default=ISSUE)
    severity: Mapped[str] = mapped_column(default=UNKNOWN, server_default=UNKNOWN)
    confidential: Mapped[bool] = mapped_column(default=False)
    discussion_locked: Mapped[bool | None]
    due_date: Mapped[dt.date | None]
    weight: Mapped[int | None]
    notes_count: Mapped[int] = mapped_column(default=0)
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship(foreign_keys=[author_id])
    closed_at: Mapped[dt.datetime | None]
    closed_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    closed_by: Mapped[User | None] = relationship(foreign_keys=[closed_by_id])
    milestone_id: Mapped[int | None] = mapped_column(ForeignKey("milestones.id", ondelete="SET NULL"))
    milestone: Mapped[Milestone | None] = relationship()
    assignees: Mapped[list[User]] = relationship(
        secondary="issue_assignees", order_by="IssueAssignee.user_id", passive_deletes=True
    )

    # not a column; set when an alert opens it as its incident
    alert_id: int | None = None

    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    label_rows: Mapped[list[IssueLabel]] = relationship(
        order_by="IssueLabel.title", cascade="all, delete-orphan", passive_deletes=True
    )
    label_titles: AssociationProxy[list[str]] = association_proxy(
        "label_rows", "title", creator=lambda title: IssueLabel(title=title)
    )

    @property
    def labels(self) -> list[str]:
        """The titles of its labels; setting the list replaces them."""
        return [row.title for row in self.label_rows]

    @labels.setter
    def labels(self, titles: list[str]) -> None:
        self.label_titles = titles

    @property
    def updated_by_id(self) -> int | None:
        """The id of the user who changed it last; archives call it so, too."""
        return (self.extra or {}).get("updated_by_id")

    @updated_by_id.setter
    def updated_by_id(self, user_id: int) -> None:
        self.extra = (self.extra or {}) | {"updated_by_id": user_id}

    @property
    def first_assignee(self) -> User | None:
        """The assignee to show where there is room for one."""
        return self.assignees[0] if self.assignees else None


class IssueLabel(Base):
    """The title of a label of an issue."""

    __tablename__ = "issue_labels"
    __table_args__ = (Index("ix_issue_labels_title", "title", "issue_id"),)

    issue_id: Mapped[int] = mapped_column(Key, ForeignKey("issues.id", ondelete="CASCADE"), primary_key=True)
    title: Mapped[str] = mapped_column(primary_key=True)


class IssueAssignee(Base):
    """A user who is assigned to an issue."""

    __tablename__ = "issue_assignees"

    issue_id: Mapped[int] = mapped_column(Key, ForeignKey("issues.id", ondelete="CASCADE"), primary_key=True)
    user_id: Mapped[int] = mapped_column(Key, ForeignKey("users.id", ondelete="CASCADE"), primary_key=True, index=True)


TEXTS = text_search.add(TextIndex(table_of(Issue), ("title", "description")))


def issues_of(project: Project) -> Select[Issue]:
    """The issues of a project, confidential ones included; without an order."""
    return select(Issue).where(Issue.project_id == project.content_id)


def for_changes(issues: Select[Issue]) -> Select[Issue]:
    """Load issues with what a change of each of them reads."""
    return issues.options(undefer(Issue.extra))


def find_issue(project: Project, iid: int) -> Issue:
    """One issue by its number in the project; whether the caller may see it is not judged here."""
    return one(for_changes(issues_of(project).where(Issue.iid == iid)), RecordNotFound())
