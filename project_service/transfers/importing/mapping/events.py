"""Mapping of events: who did what to an object."""

from __future__ import annotations

from typing import Any

from project_service.domain.events.models import Action, Event
from project_service.domain.tracker.notes import NOTE_TYPES
from project_service.kit import exact_json
from project_service.transfers.archive import layout
from project_service.transfers.importing.mapping.context import (
    MAPPED_BY_ALL,
    ImportContext,
    MappedKeys,
    VisibilityRule,
)
from project_service.transfers.importing.mapping.tables import ImportedEvent
from project_service.transfers.importing.mapping.values import moment_of, objects_in
from project_service.transfers.importing.refusals import unreadable

MAX_PAYLOAD_BYTES = 64 << 10  # of JSON; lists show it
EVENT_KEYS = MappedKeys(
    MAPPED_BY_ALL | {"author_id", "action", "target_type", "push_event_payload"}, frozenset(layout.EVENT)
)


def map_events(context: ImportContext, rows: Any, target_type: str, target_id: int, visibility: VisibilityRule) -> None:
    """Add the events of an object, except those without an author."""
    for row in objects_in(rows):
        if row.get("author_id") is None:
            continue
        payload = row.get("push_event_payload")
        extra = context.extra_of(row, EVENT_KEYS)
        is_shown = isinstance(payload, dict) and len(exact_json.dumps(payload)) <= MAX_PAYLOAD_BYTES
        if payload is not None and not is_shown:
            extra = (extra or {}) | {"push_event_payload": context.users.map_references(payload)}
        if row.get("updated_at") not in (None, row.get("created_at")):
            extra = (extra or {}) | {"updated_at": row["updated_at"]}
        context.batch.add(
            Event,
            ImportedEvent(
                id=next(context.ids[Event]),
                action=action_of(row.get("action")),
                kind=visibility.kind,
                restriction=visibility.restriction,
                author_id=context.users.author(row["author_id"]),
                project_id=context.project_id,
                issue_id=visibility.issue_id,
                target_type=target_type_of(row, target_type),
                target_id=target_id,
                data=payload if is_shown else None,
                extra=extra,
                created_at=moment_of(row.get("created_at")) or context.now,
            ),
        )


def target_type_of(row: dict[str, Any], expected: str) -> str:
    """Return the type of the target that an event states, if it is one of the types of notes like the expected one."""
    named = row.get("target_type")
    return named if isinstance(named, str) and expected in NOTE_TYPES and named in NOTE_TYPES else expected


def action_of(value: Any) -> int:
    """Parse an action, which is a word or a number (archive format reference, section 4.1)."""
    try:
        return Action[value.upper()] if isinstance(value, str) else Action(value)
    except (KeyError, ValueError, TypeError):
        raise unreadable(f"'{str(value)[:50]}' is not a valid action") from None
