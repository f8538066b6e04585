"""What the serializers of all relations share: the snapshot of the project, and how much of it is read at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    ColumnElement,
    Connection,
    LargeBinary,
    String,
    case,
    cast,
    exists,
    func,
    literal,
    select,
    type_coerce,
)
from sqlalchemy.orm import InstrumentedAttribute

from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.tracker.notes import NOTE_TYPES, Note
from project_service.transfers.archive import layout
from project_service.transfers.exporting.templates import Line
from project_service.transfers.importing.mapping.values import MAX_INTEGER
from project_service.transfers.models import ArchivedRow
from project_service.transfers.project_settings import settings_changed_since, settings_in

MAX_ROWS_AT_ONCE = 100
MAX_NOTES_AT_ONCE = 2000
MAX_BYTES_AT_ONCE = 8 << 20
MAX_NOTE_BYTES_AT_ONCE = 32 << 20  # a note may have a megabyte, and most are small
MAX_NESTED_BYTES = 16 << 20  # of the labels and milestones that stay in memory
JSON_MEMORY_FACTOR = 25  # bytes of memory for a byte of JSON: an empty object takes 70
IIDS_AT_ONCE = 10_000


class ExportContext:
    """Reads the rows of a project; all of one export within one transaction, and so of one moment."""

    def __init__(self, connection: Connection, project: Project, *, with_group_members: bool) -> None:
        self.connection = connection
        self.project = project
        self.with_group_members = with_group_members
        self.is_sqlite = connection.dialect.name == "sqlite"
        # as they are nested in other rows; filled by serializers.nested.load_nested
        self.labels: dict[str, Line] = {}
        self.undescribed_labels: list[Line] = []
        self.milestones: dict[int, Line] = {}
        self.nested_bytes_left = MAX_NESTED_BYTES
        self.max_notes_at_once = self.rows_at_once(
            Note, Note.body, Note.position, Note.extra, most=MAX_NOTES_AT_ONCE, size=MAX_NOTE_BYTES_AT_ONCE
        )
        of_notes = exists().where(Event.project_id == project.id, Event.target_type.in_(NOTE_TYPES))
        self.notes_have_events = bool(connection.scalar(select(of_notes)))
        self._statements: dict[Callable[[ExportContext], Any], Any] = {}

    def rows(self, build: Callable[[ExportContext], Any], **parameters: Any) -> Sequence[Any]:
        """Return all rows of a statement that is built once and executed for each portion."""
        if build not in self._statements:
            self._statements[build] = build(self)
        return self.connection.execute(self._statements[build], parameters).all()

    @functools.cached_property
    def changed_settings(self) -> Line:
        """The settings that differ from the archive that the project was imported from, if it was."""
        imported = settings_in(*map(self.archived_object, (layout.PROJECT, layout.AUTO_DEVOPS, layout.CI_CD)))
        return settings_changed_since(imported, self.project.attributes or {})

    def archived_object(self, relation: str) -> Line:
        """Return the stored row of a relation that is a single object, the last one; empty if there is none."""
        of_relation = ArchivedRow.project_id == self.project.id, ArchivedRow.relation == relation
        return self.archived_data(self.connection.scalar(select(func.max(ArchivedRow.id)).where(*of_relation)))

    def archived_data(self, number: int | None) -> Line:
        """Return a stored row by its id; empty if there is none."""
        data: Line = self.connection.scalar(select(ArchivedRow.data).where(ArchivedRow.id == number)) or {}
        return data

    def archived(self, relation: str) -> Iterator[Line]:
        """Generate the stored rows of a relation."""
        for _, line in self.archived_rows(relation):
            yield line

    def archived_rows(self, relation: str) -> Iterator[tuple[int, Line]]:
        """Generate the stored rows of a relation with their ids."""
        these = ArchivedRow.relation == relation
        statement = select(ArchivedRow.id, ArchivedRow.data).where(ArchivedRow.project_id == self.project.id, these)
        for rows in self.portions(
            statement, ArchivedRow.id, self.rows_at_once(ArchivedRow, ArchivedRow.data, these=these)
        ):
            yield from rows

    def all_rows(self, model: Any, *columns: Any) -> Iterator[Any]:
        """Select all rows of the project from a small table, with their timestamps as the last columns."""
        statement = select(*columns, self.iso(model.created_at), self.iso(model.updated_at))
        return iter(self.execute(statement.where(model.project_id == self.project.id).order_by(model.id)))

    def portions(self, statement: Any, key: InstrumentedAttribute[int], at_once: int) -> Iterator[Sequence[Any]]:
        """Generate the rows in portions (keyset pagination); ``key`` is the first column."""
        last = -1
        ordered = statement.order_by(key).limit(at_once)
        while rows := list(self.execute(ordered.where(key > last))):
            last = rows[-1][0]
            yield rows
            rows.clear()  # before the next portion is read

    def iid_ranges(self, model: Any, *columns: Any) -> list[tuple[int, int]]:
        """Divide the rows of the project into ranges of iids (exclusive, inclusive) to read at once, by their sizes."""
        sizes = select(model.iid, self._bytes_of(*columns))
        sizes = sizes.where(model.project_id == self.project.id).order_by(model.iid)
        ranges: list[tuple[int, int]] = []
        start = last = -1
        count = size = 0
        for iid, row_size in self.connection.execute(sizes, execution_options={"yield_per": IIDS_AT_ONCE}):
            if count == MAX_ROWS_AT_ONCE or (count and size + row_size > MAX_BYTES_AT_ONCE):
                ranges.append((start, last))
                start, count, size = last, 0, 0
            last, count, size = iid, count + 1, size + row_size
        return [*ranges, (start, MAX_INTEGER)]

    def rows_at_once(
        self, model: Any, *columns: Any, these: Any = None, most: int = MAX_ROWS_AT_ONCE, size: int | None = None
    ) -> int:
        """Return how many rows to read at once: as many as fit if all are as large as the largest."""
        bytes_of_one = self._bytes_of(*columns)
        conditions = [model.project_id == self.project.id, *(() if these is None else (these,))]
        largest = self.connection.scalar(select(func.max(bytes_of_one)).where(*conditions)) or 1
        return max(1, min(most, (size or MAX_BYTES_AT_ONCE) // max(1, largest)))

    def _bytes_of(self, *columns: Any) -> ColumnElement[Any]:
        return sum((func.coalesce(self._size_of(column), 0) for column in columns), literal(0))

    def _size_of(self, column: Any) -> ColumnElement[Any]:
        """The bytes that a text takes in memory, or JSON may take."""
        weight = JSON_MEMORY_FACTOR if isinstance(column.type, JSON) else 1
        if self.is_sqlite:
            return func.length(cast(column, LargeBinary)) * weight
        return func.octet_length(cast(column, String)) * weight

    def iso(self, column: Any) -> ColumnElement[Any]:
        """An expression for a timestamp in the notation of archives; the database formats faster than Python."""
        if self.is_sqlite:
            return func.replace(func.substr(type_coerce(column, String), 1, 23), " ", "T") + literal("Z")
        return func.to_char(func.timezone("UTC", column), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')

    def iso_of_change(self, model: Any) -> ColumnElement[Any]:
        """The same of ``updated_at``; null if it equals ``created_at``, which saves formatting it."""
        return case((model.updated_at != model.created_at, self.iso(model.updated_at)))

    def json_text(self, column: Any) -> ColumnElement[Any]:
        """An expression for a JSON column as text."""
        return type_coerce(column, String) if self.is_sqlite else cast(column, String)

    def execute(self, statement: Any) -> Sequence[Any]:
        """Return all rows of a statement."""
        return self.connection.execute(statement).all()
