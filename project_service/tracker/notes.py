"""Notes: what people, and the service itself, write under issues and other things."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, Select, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.core.projects import Project
from project_service.core.users import User
from project_service.kit.database import Model, Timestamps, db
from project_service.kit.errors import RecordNotFound
from project_service.tracker import issues
from project_service.tracker.issues import Issue

TARGET = "Note"
DIFF_NOTE = "DiffNote"


class Note(Timestamps, Model):
    """A comment, or a system note about what happened. An internal one is for reporters and above."""

    __tablename__ = "notes"
    __table_args__ = (
        Index("ix_notes_noteable", "noteable_type", "noteable_id", "created_at", "id"),
        Index("ix_notes_project_id", "project_id", "id"),
        Index("ix_notes_author_id", "author_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    noteable_type: Mapped[str]
    noteable_id: Mapped[int | None]
    commit_id: Mapped[str | None]
    type: Mapped[str | None]
    body: Mapped[str]
    attachment: Mapped[str | None]
    system: Mapped[bool] = mapped_column(default=False)
    confidential: Mapped[bool] = mapped_column(default=False)
    position: Mapped[dict[str, Any] | None]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship()
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)


def notes_on(issue: Issue) -> Select[Note]:
    """The notes of an issue, internal ones included; without an order."""
    return select(Note).where(Note.noteable_type == issues.TARGET, Note.noteable_id == issue.id)


def find_note(issue: Issue, note_id: int) -> Note:
    """One note of an issue; whether the caller may see it is not judged here."""
    note = db.session.scalar(notes_on(issue).where(Note.id == note_id))
    if note is None:
        raise RecordNotFound
    return note
