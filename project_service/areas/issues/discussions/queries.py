"""Queries of discussions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Select, String, cast, func, select
from sqlalchemy.orm import joinedload

from project_service.access import visible_notes
from project_service.access.identity import Caller
from project_service.access.rules import visible_notes as visible
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note, in_discussion, notes_on
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.errors import BadRequest, NotFound

MAX_NOTES = 2000  # in one response
TOO_MANY_NOTES = (
    f"400 Bad request - These discussions have more than {MAX_NOTES} notes. Ask for fewer with per_page, or list the"
    " notes, which are paged."
)
# notes of one discussion have the same; a note that an archive brought without one is its own discussion
_KEY: Any = func.coalesce(Note.discussion_id, cast(Note.id, String))


@dataclass(frozen=True, slots=True)
class Discussion:
    """A comment with its replies, oldest first."""

    notes: list[Note]

    @property
    def id(self) -> str:
        """Its id: 40 hex digits."""
        return self.notes[0].discussion

    @property
    def individual_note(self) -> bool:
        """Whether it is a plain comment or a system note, which nobody has replied to."""
        return self.notes[0].type is None


@dataclass(frozen=True, slots=True)
class DiscussionListing:
    """The discussions of an issue, as far as the caller may read their notes; the oldest first."""

    caller: Caller
    issue: Issue

    @property
    def total(self) -> int:
        """Their number."""
        return db.session.scalar(select(func.count(_KEY.distinct())).where(*self._visible())) or 0

    def rows(self, offset: int, limit: int) -> list[Discussion]:
        """Return some of them, with two statements.

        Raises:
            BadRequest: together they have more than ``MAX_NOTES`` notes.

        """
        keys = select(_KEY).where(*self._visible()).group_by(_KEY)
        ordered = keys.order_by(func.min(Note.created_at), func.min(Note.id)).offset(offset).limit(limit)
        page_keys = list(db.session.scalars(ordered))
        notes = _notes(select(Note).where(*self._visible(), _KEY.in_(page_keys)))
        by_id = {discussion.id: discussion for discussion in _grouped(self.issue, notes)}
        return sorted(by_id.values(), key=lambda each: (each.notes[0].created_at, each.notes[0].id))

    def _visible(self) -> tuple[Any, ...]:
        of_issue = notes_on(self.issue).whereclause
        return of_issue, visible(self.caller, self.issue.project)


def find_discussion(caller: Caller, issue: Issue, discussion_id: str, missing: str = "Discussion") -> Discussion:
    """One discussion of an issue, as far as the caller may read it."""
    matching = notes_on(issue).where(visible(caller, issue.project), in_discussion(discussion_id))
    for discussion in _grouped(issue, _notes(matching)):
        return discussion
    raise NotFound(missing)


def find_first_note(caller: Caller, issue: Issue, discussion_id: str) -> Note:
    """The note that a discussion of an issue begins with, however many it has."""
    matching = notes_on(issue).where(visible(caller, issue.project), in_discussion(discussion_id)).limit(1)
    first = list(db.session.scalars(matching.options(joinedload(Note.author), NO_LAZY_LOADING)))
    for discussion in _grouped(issue, first):
        return discussion.notes[0]
    raise NotFound("Discussion")


def _notes(statement: Select[Note]) -> list[Note]:
    """Load the notes of discussions, which are not paged, or refuse if there are too many for one response."""
    loaded = statement.options(joinedload(Note.author), NO_LAZY_LOADING).limit(MAX_NOTES + 1)
    notes = list(db.session.scalars(loaded))
    if len(notes) > MAX_NOTES:
        raise BadRequest(TOO_MANY_NOTES)
    return notes


def _grouped(issue: Issue, notes: Iterable[Note]) -> Iterable[Discussion]:
    ordered = sorted(notes, key=lambda note: (note.discussion, note.created_at, note.id))
    visible_notes.add_iids(issue, ordered)
    for _, together in groupby(ordered, key=attrgetter("discussion")):
        yield Discussion(list(together))
