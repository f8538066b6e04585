"""Label events: which labels an issue got and lost, when and by whom."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from sqlalchemy import ForeignKey, Index, Select, select
from sqlalchemy.orm import Mapped, joinedload, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.base import Model
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound

ADD, REMOVE = "add", "remove"
ACTIONS = (ADD, REMOVE)


class LabelEvent(Model):
    """A label that an issue got or lost, with the title that the label has today.

    Events of archives whose label was deleted have no title.
    """

    __tablename__ = "issue_label_events"
    __table_args__ = (
        Index("ix_issue_label_events_issue_id", "issue_id", "id"),
        Index("ix_issue_label_events_title", "title", "issue_id"),
        Index("ix_issue_label_events_author_id", "author_id"),
    )

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    issue_id: Mapped[int] = mapped_column(ForeignKey("issues.id", ondelete="CASCADE"))
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship()
    title: Mapped[str | None]
    action: Mapped[str]


def record(author: User, issue: Issue, former: Collection[str]) -> None:
    """Add the events of a change of labels; ``former`` are the titles before it."""
    titles = set(issue.labels)
    changes = [(ADD, titles.difference(former)), (REMOVE, set(former) - titles)]
    events = [
        LabelEvent(issue_id=issue.id, author_id=author.id, title=title, action=action)
        for action, changed in changes
        for title in sorted(changed)
    ]
    db.session.add_all(events)


def events_of(issue: Issue) -> Select[LabelEvent]:
    """The events of an issue with their authors, the oldest first."""
    loaded = select(LabelEvent).options(joinedload(LabelEvent.author), NO_LAZY_LOADING)
    return loaded.where(LabelEvent.issue_id == issue.id).order_by(LabelEvent.id)


def find_event(issue: Issue, event_id: int) -> LabelEvent:
    """One event of an issue by its id."""
    return one(events_of(issue).where(LabelEvent.id == event_id), RecordNotFound())
