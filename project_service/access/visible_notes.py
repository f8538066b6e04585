"""Notes that the caller may see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import joinedload

from project_service.access.abilities import Ability, judge
from project_service.access.identity import Caller
from project_service.access.rules import visible_notes
from project_service.domain.tracker.notes import Note, Noteable, find_note, notes_on
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.fields import whole_number
from project_service.kit.http.pagination import ShownPage, read_page

NOTES_PER_PAGE = 100


class HasIid(Protocol):
    """A row with its number in the project."""

    iid: Any


def notes_matching(caller: Caller, noteable: Noteable, **filters: Any) -> Select[Note]:
    """The notes of an issue or a merge request that the caller may see."""
    statement = notes_on(noteable).where(visible_notes(caller, noteable.project))
    return filtered(statement.options(joinedload(Note.author), NO_LAZY_LOADING), **filters)


def filtered(statement: Select[Note], **filters: Any) -> Select[Note]:
    """The notes of a statement that match the filters of a list, in its order."""
    if filters.get("activity_filter") == "only_comments":
        statement = statement.where(Note.system.is_(False))
    if filters.get("activity_filter") == "only_activity":
        statement = statement.where(Note.system.is_(True))
    column = getattr(Note, filters.get("order_by") or "created_at")
    statement = statement.order_by(None)
    if filters.get("sort") == "asc":
        return statement.order_by(column.asc(), Note.id.asc())
    return statement.order_by(column.desc(), Note.id.desc())


def read_notes(listed: Select[Note], asked: Mapping[str, str]) -> ShownPage:
    """A page of notes, oldest first: the one that contains ``note``, or number ``page``."""
    note_id = whole_number(asked.get("note", ""))
    number = asked.get("page") if note_id is None else str(_page_of_note(listed, note_id))
    return read_page(listed, number, NOTES_PER_PAGE)


def in_discussions(notes: Iterable[Note]) -> list[Note]:
    """The notes of a page with each reply after the first note of its discussion there."""
    together: dict[str, list[Note]] = {}
    for note in notes:
        same = together.setdefault(note.discussion, [])
        note.is_reply = bool(same)
        same.append(note)
    return [note for same in together.values() for note in same]


def _page_of_note(listed: Select[Note], note_id: int) -> int:
    note = one(listed.where(Note.id == note_id), RecordNotFound())
    before = or_(Note.created_at < note.created_at, and_(Note.created_at == note.created_at, Note.id < note.id))
    earlier = listed.where(before).order_by(None).with_only_columns(Note.id).subquery()
    return (db.session.scalar(select(func.count()).select_from(earlier)) or 0) // NOTES_PER_PAGE + 1


def find_visible_note(caller: Caller, noteable: Noteable, note_id: int) -> Note:
    """One note, if the caller may see it."""
    note = find_note(noteable, note_id)
    judge(caller, Ability.READ_NOTE, note)
    note.noteable_iid = noteable.iid
    return note


def add_iids(noteable: HasIid, notes: Iterable[Note]) -> None:
    """Set ``noteable_iid`` on each note: the number of its issue, merge request or alert."""
    for note in notes:
        note.noteable_iid = noteable.iid
