"""Serialization of events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Select, bindparam, select

from project_service.domain.events.models import Action, Event
from project_service.transfers.exporting.context import ExportContext
from project_service.transfers.exporting.serializers.json_columns import parse_json
from project_service.transfers.exporting.templates import Line

ACTION_NAMES = {int(action): action.name.lower() for action in Action}


def events_of(context: ExportContext, target_types: Iterable[str], ids: Sequence[int]) -> dict[int, list[Line]]:
    """Return the events of targets by the ids of these."""
    events: dict[int, list[Line]] = {}
    rows = context.rows(_select_events, target_types=list(target_types), ids=ids)
    for project_id, target_id, number, author_id, kind, action, data, extra, created_at in rows:
        if project_id != context.project.id:
            continue  # an archive may state any target
        line = {
            "id": number,
            "project_id": project_id,
            "author_id": author_id,
            "created_at": created_at,
            "updated_at": created_at,
            "target_type": kind,
            "group_id": None,
            "fingerprint": None,
            "action": ACTION_NAMES.get(action, action),
        }
        line |= parse_json(extra) or {}
        if data := parse_json(data):
            line["push_event_payload"] = data
        events.setdefault(target_id, []).append(line)
    return events


def _select_events(context: ExportContext) -> Select[Any]:
    columns = (
        Event.project_id,
        Event.target_id,
        Event.id,
        Event.author_id,
        Event.target_type,
        Event.action,
        context.json_text(Event.data),
        context.json_text(Event.extra),
        context.iso(Event.created_at),
    )
    return (
        select(*columns)
        .where(
            Event.target_type.in_(bindparam("target_types", expanding=True)),
            Event.target_id.in_(bindparam("ids", expanding=True)),
        )
        .order_by(Event.created_at, Event.id)
    )
