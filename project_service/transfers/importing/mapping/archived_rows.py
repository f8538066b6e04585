"""Rows of relations without a table: stored as they are, and written by the next export."""

from __future__ import annotations

from typing import Any

from project_service.domain.events.models import Kind
from project_service.domain.tracker import notes
from project_service.transfers.archive import layout
from project_service.transfers.archive.parsing import MAX_DEPTH
from project_service.transfers.importing.mapping.context import ImportContext, VisibilityRule
from project_service.transfers.importing.mapping.labels import map_mentioned_labels
from project_service.transfers.importing.mapping.notes import body_of, map_notes
from project_service.transfers.importing.mapping.values import NESTED, objects_in
from project_service.transfers.importing.refusals import RowRefused, too_deep
from project_service.transfers.models import ArchivedRow

KEYS_OF_NOTES = frozenset({"notes", "commit_notes"})


def store_row(context: ImportContext, relation: str, row: Any) -> None:
    """Add a row as it is, with references to users mapped and secrets removed."""
    attribute_notes(context, {relation: [row]}, MAX_DEPTH + 2)  # two levels more than the row itself may have
    context.batch.add(ArchivedRow, (context.project_id, relation, context.users.map_references(row, relation)))


def attribute_notes(context: ImportContext, value: Any, levels_left: int, kind: str = "") -> None:
    """Add the author's name to the text of nested notes whose author has no account here.

    Archive format reference, section 6.2.
    """
    if levels_left == 0:
        raise too_deep()
    if isinstance(value, dict):
        for name in KEYS_OF_NOTES & value.keys():
            for note in objects_in(value[name]):
                if "note" in note and (isinstance(note["note"], str | None) or note.get("author_id") is not None):
                    note["note"] = body_of(context, note, note.get("author_id"))
                    if isinstance(note.get("author"), dict) and not context.users.knows(note.get("author_id")):
                        note["author"] = {"name": context.users.importer_name}
        free = layout.FREE_FORM_COLUMNS.get(kind, layout.NOT_FREE)
        nested = [(name, inner) for name, inner in value.items() if name not in free]
    else:
        nested = [(kind, inner) for inner in value]
    for name, inner in nested:
        if isinstance(inner, NESTED):
            attribute_notes(context, inner, levels_left - 1, name)


def map_trigger(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a pipeline trigger."""
    if row.get("owner_id") is not None:  # without an owner it is skipped (archive format reference, section 6.4)
        store_row(context, "triggers", row)


def map_board(context: ImportContext, row: dict[str, Any]) -> None:
    """Add an issue board, and the labels of its lists."""
    map_mentioned_labels(context, row.get("lists"))
    store_row(context, "boards", row)


def map_pipeline(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a pipeline, and the notes of its commit that have events."""
    _map_notes_with_events(context, row.get("notes"))
    store_row(context, "ci_pipelines", row)


def map_commit_note(context: ImportContext, row: dict[str, Any]) -> None:
    """Add a note of a commit."""
    _map_notes_with_events(context, [row])
    store_row(context, "commit_notes", row)


def _map_notes_with_events(context: ImportContext, rows: Any) -> None:
    """Add the notes of a commit that events are about; the row that holds them is stored as it is as well."""
    for row in [row for row in objects_in(rows) if row.get("events")]:
        savepoint = context.batch.savepoint()
        try:
            map_notes(context, [row], notes.COMMIT, None, VisibilityRule(Kind.CODE))
        except RowRefused:
            context.batch.rollback(savepoint)  # without its event
