"""Serialization of notes (comments)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, select

from project_service.domain.accounts.users import User
from project_service.domain.tracker.notes import NOTE_TYPES, Note
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.events import events_of
from project_service.transfers.exporting.serializers.json_columns import EXTRA_INDEX, parse_each, parse_json
from project_service.transfers.exporting.templates import NOTE, Line, filled

NO_ATTACHMENT = {"url": None}


class NotesByNoteable(dict[int, list[Line]]):
    """The notes of some objects by the ids of these; it reads and holds only some of the notes at a time."""

    def __init__(self, context: ExportContext, noteable_type: str, ids: Iterable[int]) -> None:
        super().__init__()
        self._context = context
        self._noteable_type = noteable_type
        self._unread = set(ids)
        self._current: set[int] = set()  # the objects whose notes it holds

    def __missing__(self, noteable_id: int) -> list[Line]:
        if noteable_id in self._current:
            return []
        if noteable_id not in self._unread:  # asked for in another order than that of the ids
            return _lines(self._context, self._noteable_type, self._all_of(noteable_id)).get(noteable_id, [])
        while noteable_id in self._unread:
            self._read()
        return self.get(noteable_id, [])

    def _read(self) -> None:
        """Replace the notes held by those of the next objects."""
        limit, ids = self._context.max_notes_at_once, sorted(self._unread)
        rows = self._context.rows(_select_some_notes, noteable_type=self._noteable_type, ids=ids)
        before, self._unread = self._unread, set()
        if len(rows) > limit:
            first, last = rows[0].noteable_id, rows[-1].noteable_id
            if first == last:
                rows = self._all_of(first)
                self._unread = {noteable_id for noteable_id in before if noteable_id > last}
            else:  # the notes of the last object may be incomplete
                rows = [row for row in rows if row.noteable_id != last]
                self._unread = {noteable_id for noteable_id in before if noteable_id >= last}
        self._current = before - self._unread
        self.clear()
        self.update(_lines(self._context, self._noteable_type, rows))

    def _all_of(self, noteable_id: int) -> Sequence[Any]:
        return self._context.rows(_select_notes, noteable_type=self._noteable_type, ids=[noteable_id])


def _select_notes(context: ExportContext) -> Select[Any]:
    columns = (
        Note.noteable_id,
        Note.id,
        Note.body,
        Note.commit_id,
        Note.type,
        Note.attachment,
        Note.system,
        Note.confidential,
        context.json_text(Note.position),
        Note.author_id,
        User.name,
        Note.discussion_id,
        context.json_text(Note.extra),
        context.iso(Note.created_at),
        context.iso_of_change(Note),
    )
    return (
        select(*columns)
        .outerjoin(User, User.id == Note.author_id)
        .where(
            Note.noteable_type == bindparam("noteable_type"),
            Note.noteable_id.in_(bindparam("ids", expanding=True)),
        )
        .order_by(Note.noteable_id, Note.id)  # as they were written, which need not be the order of their dates
    )


def _select_some_notes(context: ExportContext) -> Select[Any]:
    return _select_notes(context).limit(context.max_notes_at_once + 1)


def notes_of(context: ExportContext, noteable_type: str, ids: Sequence[int]) -> NotesByNoteable:
    """Return the notes of objects by the ids of these."""
    return NotesByNoteable(context, noteable_type, ids)


def _lines(context: ExportContext, noteable_type: str, rows: Sequence[Any]) -> dict[int, list[Line]]:
    """The lines of rows, by the ids of the objects that the notes are about."""
    lines: dict[int, list[Line]] = {}
    by_id: dict[int, Line] = {}
    authors: dict[str | None, Line] = {}  # shared by many notes
    project_id = context.project.id
    extras = parse_each(row[EXTRA_INDEX] for row in rows)
    for extra, (
        noteable_id,
        number,
        body,
        commit_id,
        kind,
        attachment,
        system,
        confidential,
        position,
        author_id,
        author,
        discussion_id,
        _,
        created_at,
        updated_at,
    ) in zip(extras, rows, strict=True):
        line = filled(NOTE, extra)
        line["id"] = number
        line["note"] = body
        line["noteable_type"] = noteable_type
        line["author_id"] = author_id
        line["created_at"] = created_at
        line["updated_at"] = updated_at or created_at
        line["project_id"] = project_id
        line["attachment"] = NO_ATTACHMENT if attachment is None else {"url": attachment}
        line["commit_id"] = commit_id
        line["system"] = bool(system)
        if position:
            line["position"] = parse_json(position)
        if confidential:
            line["confidential"] = True
        line["type"] = kind
        if discussion_id is not None:
            line["discussion_id"] = discussion_id
        line["author"] = authors.get(author) or authors.setdefault(author, {"name": author})
        by_id[number] = line
        lines.setdefault(noteable_id, []).append(line)
    if context.notes_have_events:
        for number, events in events_of(context, NOTE_TYPES, list(by_id)).items():
            by_id[number]["events"] = events
    return lines
