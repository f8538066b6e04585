"""Notes: comments of users, and system notes, on issues, merge requests and other noteables."""

from __future__ import annotations

import datetime as dt
import re
import secrets
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Index, Select, and_, or_, select
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker import issues, merge_requests
from project_service.domain.tracker.documents import designs
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.kit.db.base import Model, Timestamps
from project_service.kit.db.large_texts import LargeText
from project_service.kit.db.session import db, one
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.fields import read_moment, whole_number

TARGET = "Note"
DISCUSSION_ID = re.compile(r"[0-9a-f]{40}")
DERIVED_ID = re.compile(r"0{24}[0-9a-f]{16}")  # of a note that an archive brought without an id of its discussion
COMMIT = "Commit"  # what notes of a commit are under; they name it with ``commit_id``
DIFF_NOTE = "DiffNote"
DISCUSSION_NOTE = "DiscussionNote"
NOTE_TYPES = (TARGET, DIFF_NOTE, DISCUSSION_NOTE, "LegacyDiffNote")  # what events call their notes

Noteable = Issue | MergeRequest
TYPES: dict[type[Any], str] = {Issue: issues.TARGET, MergeRequest: merge_requests.TARGET}


@dataclass(frozen=True, slots=True)
class Subject:
    """A noteable of another area, as feeds name it; ``page`` is the path below that of its project."""

    title: str
    noun: str
    page: str


Finder = Callable[[Collection[int]], dict[int, Subject]]
FINDERS: dict[str, Finder] = {}


def add_finder(noteable_type: str, find: Finder) -> None:
    """Register the finder of a noteable type of an area; ``find`` takes ids."""
    FINDERS[noteable_type] = find


def new_discussion_id() -> str:
    """A new id of a discussion: 40 hex digits."""
    return secrets.token_hex(20)


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
    discussion_id: Mapped[str | None] = mapped_column(default=new_discussion_id)  # shared with its replies
    body: Mapped[LargeText]
    attachment: Mapped[str | None]
    system: Mapped[bool] = mapped_column(default=False)
    confidential: Mapped[bool] = mapped_column(default=False)
    position: Mapped[dict[str, Any] | None]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship()
    extra: Mapped[dict[str, Any] | None] = mapped_column(deferred=True)

    @property
    def discussion(self) -> str:
        """The id of its discussion; of notes that archives brought without one it is made of their own id."""
        return self.discussion_id or f"{self.id:040x}"

    @property
    def updated_by_id(self) -> int | None:
        """The id of the user who changed the text last; archives call it so, too."""
        return (self.extra or {}).get("updated_by_id")

    @updated_by_id.setter
    def updated_by_id(self, user_id: int) -> None:
        self.extra = (self.extra or {}) | {"updated_by_id": user_id}

    # not columns
    shortened: tuple[str, ...] = ()  # set when a page is loaded: the texts of which it has the beginning
    noteable_iid: int | None = None  # set when notes are loaded for a response
    is_reply: bool = False  # set when a page is loaded: the note follows the comment that it replies to
    resolution: Resolution | None = None  # set by ``add_resolutions``


@dataclass(frozen=True, slots=True)
class Resolution:
    """When a note was marked as settled, and by whom."""

    at: dt.datetime
    by: User | None


def is_resolvable(note: Note) -> bool:
    """Whether a note can be marked as settled: those of discussions under merge requests and designs."""
    if note.noteable_type not in (merge_requests.TARGET, designs.TARGET) or note.system:
        return False
    return note.type == DIFF_NOTE or (note.type == DISCUSSION_NOTE and note.noteable_type == merge_requests.TARGET)


def add_resolutions(notes: Iterable[Note]) -> None:
    """Set ``resolution`` on each note that can be settled: archives say when and by whom, in what has no column."""
    open_to_it = {note.id: note for note in notes if is_resolvable(note)}
    if not open_to_it:
        return
    at, by = Note.extra["resolved_at"].as_string(), Note.extra["resolved_by_id"].as_string()
    settled = db.session.execute(select(Note.id, at, by).where(Note.id.in_(open_to_it), at.is_not(None))).all()
    settlers = {number: whole_number(person or "") for number, _, person in settled}
    user_ids = {person for person in settlers.values() if person is not None}
    people = {user.id: user for user in db.session.scalars(select(User).where(User.id.in_(user_ids)))}
    for number, moment, _ in settled:
        with suppress(ValueError):  # archives may say anything
            user = people.get(settlers[number] or 0)
            open_to_it[number].resolution = Resolution(read_moment(moment), user)


def notes_on(noteable: Noteable) -> Select[Note]:
    """The notes of an issue or a merge request, internal ones included; without an order."""
    return select(Note).where(Note.noteable_type == TYPES[type(noteable)], Note.noteable_id == noteable.id)


def find_note(noteable: Noteable, note_id: int) -> Note:
    """One of these notes; whether the caller may see it is not judged here."""
    return one(notes_on(noteable).where(Note.id == note_id), RecordNotFound())


def in_discussion(discussion_id: str) -> ColumnElement[bool]:
    """The condition for the notes of a discussion."""
    named = Note.discussion_id == discussion_id
    if not DERIVED_ID.fullmatch(discussion_id):
        return named
    return or_(named, and_(Note.discussion_id.is_(None), Note.id == int(discussion_id, 16)))
