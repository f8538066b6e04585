"""Merge requests: the tables and finders."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import ForeignKey, Index, Select, UniqueConstraint, select
from sqlalchemy.ext.associationproxy import AssociationProxy, association_proxy
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db.base import Base, Key, Model, Timestamps
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import one
from project_service.kit.http.errors import RecordNotFound

TARGET = "MergeRequest"
# "Closes #1, #2 and #3", as GitLab reads it; one kind of white space between the parts, so that no text takes long
CLOSING = re.compile(
    r"\b(?:clos(?:e[sd]?|ing)|fix(?:e[sd]|ing)?|resolv(?:e[sd]?|ing)|implement(?:s|ed|ing)?):? "
    r"((?:issues? )?#[0-9]{1,9}(?:(?:, | and |, and )#[0-9]{1,9})*)",
    re.IGNORECASE | re.ASCII,
)
NUMBER = re.compile(r"#([0-9]{1,9})")
MAX_SEARCHED_CHARACTERS = 100_000


class MergeRequest(Timestamps, Model):
    """A proposed change of a repository."""

    __tablename__ = "merge_requests"
    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        Index("ix_merge_requests_project_id_created_at", "project_id", "created_at", "id"),
        Index("ix_merge_requests_project_id_updated_at", "project_id", "updated_at", "id"),
        Index("ix_merge_requests_author_id", "author_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    iid: Mapped[int]
    title: Mapped[str]
    description: Mapped[LargeText | None]
    state: Mapped[str] = mapped_column(default="opened")
    source_branch: Mapped[str | None]
    target_branch: Mapped[str | None]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship()
    milestone_id: Mapped[int | None] = mapped_column(ForeignKey("milestones.id", ondelete="SET NULL"), index=True)
    milestone: Mapped[Milestone | None] = relationship()
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)
    label_rows: Mapped[list[MergeRequestLabel]] = relationship(
        order_by="MergeRequestLabel.title", cascade="all, delete-orphan", passive_deletes=True
    )
    label_titles: AssociationProxy[list[str]] = association_proxy(
        "label_rows", "title", creator=lambda title: MergeRequestLabel(title=title)
    )
    # not columns; set by queries for a response
    notes_count: int

    @property
    def labels(self) -> list[str]:
        """The titles of its labels; setting the list replaces them."""
        return [row.title for row in self.label_rows]

    @labels.setter
    def labels(self, titles: list[str]) -> None:
        self.label_titles = titles


class MergeRequestLabel(Base):
    """The title of a label of a merge request."""

    __tablename__ = "merge_request_labels"
    __table_args__ = (Index("ix_merge_request_labels_title", "title", "merge_request_id"),)

    merge_request_id: Mapped[int] = mapped_column(
        Key, ForeignKey("merge_requests.id", ondelete="CASCADE"), primary_key=True
    )
    title: Mapped[str] = mapped_column(primary_key=True)


def merge_requests_of(project: Project) -> Select[MergeRequest]:
    """The merge requests of a project; without an order."""
    return select(MergeRequest).where(MergeRequest.project_id == project.content_id)


def closed_iids(merge_request: MergeRequest) -> list[int]:
    """The numbers of the issues of the project that the description says are closed by a merge request."""
    text = (merge_request.description or "")[:MAX_SEARCHED_CHARACTERS]
    mentions = (NUMBER.findall(mention) for mention in CLOSING.findall(text))
    return sorted({int(number) for numbers in mentions for number in numbers})


def find_merge_request(project: Project, iid: int) -> MergeRequest:
    """One merge request by its number in the project."""
    return one(merge_requests_of(project).where(MergeRequest.iid == iid), RecordNotFound())
