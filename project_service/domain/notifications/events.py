"""Recording of events, in the transaction of a change (notifications reference, sections 1 and 2).

A row is written only where a rule or the level of a user may be interested; routing decides who is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, insert, or_, select, true

from project_service.domain.namespaces import NamespaceAncestor
from project_service.domain.notifications.models import (
    CUSTOM,
    SUBJECTS,
    WATCH,
    NotificationEvent,
    NotificationRule,
    NotificationSetting,
)
from project_service.domain.projects import Project
from project_service.kit import clock, exact_json
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db

MAX_TEXT = 2000
MAX_VALUE = 255
MAX_PAYLOAD_BYTES = 4096


@dataclass(frozen=True, slots=True)
class EventFields:
    """An event to be recorded; ``author_id`` is the user who caused it, if it was one."""

    kind: str
    subject_id: int
    severity: str
    environment: str | None
    snapshot: dict[str, Any]
    author_id: int | None = None


def has_listeners(project_id: Any, namespace_id: Any) -> ColumnElement[bool]:
    """Return the condition that rules, channels or levels may match events of a project."""
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
    above = above.correlate_except(NamespaceAncestor)
    rules, levels = NotificationRule, NotificationSetting
    is_everywhere = and_(levels.project_id.is_(None), levels.group_id.is_(None))
    return or_(
        exists().where(rules.project_id == project_id, rules.enabled == true()),
        exists().where(rules.group_id.in_(above), rules.enabled == true()),
        exists().where(
            levels.level.in_((WATCH, CUSTOM)),
            or_(levels.project_id == project_id, levels.group_id.in_(above), is_everywhere),
        ),
    )


def is_listened_to(project_id: int) -> bool:
    """Whether rules, channels or levels may match events of a project."""
    here = select(Project.id).where(Project.id == project_id, has_listeners(project_id, Project.namespace_id))
    return db.session.scalar(here) is not None


def record(project_id: int, events: Sequence[EventFields]) -> None:
    """Write events of a project for which there are rules or hooks, in one statement."""
    if not events:
        return
    now = clock.now()
    rows: list[dict[str, Any]] = [
        {
            "project_id": project_id,
            "kind": event.kind,
            "subject_type": SUBJECTS[event.kind],
            "subject_id": event.subject_id,
            "severity": event.severity,
            "environment": event.environment,
            "author_id": event.author_id,
            "snapshot": event.snapshot,
            "created_at": now,
            "silence_ids": [],
            "reasons": [],
        }
        for event in events
    ]
    db.session.connection().execute(insert(table_of(NotificationEvent)), rows if len(rows) > 1 else rows[0])


def cut(text: str | None, length: int = MAX_TEXT) -> str | None:
    """Return the beginning of a text."""
    return text if text is None or len(text) <= length else f"{text[: length - 1]}…"


def trimmed(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a payload that a snapshot has room for: short values, in their order."""
    trimmed_payload: dict[str, Any] = {}
    room = MAX_PAYLOAD_BYTES
    for key, value in payload.items():
        short = _short(value)
        size = len(exact_json.dumps({key: short}))
        if size <= room:
            trimmed_payload[key], room = short, room - size
    return trimmed_payload


def _short(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_short(item) for item in value]
    return value[:MAX_VALUE] if isinstance(value, str) else value
