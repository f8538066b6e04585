"""Events of alerts that people and channels are notified of (notifications reference, section 1)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from project_service.areas.alerts.effects.hooks import ENDED, attributes_of
from project_service.areas.alerts.models import Alert, Severity, Status
from project_service.domain.accounts.users import User
from project_service.domain.notifications import events
from project_service.domain.notifications.events import EventFields
from project_service.domain.notifications.models import (
    ALERT_ACKNOWLEDGED,
    ALERT_IGNORED,
    ALERT_REOPENED,
    ALERT_RESOLVED,
    ALERT_TRIGGERED,
)

KINDS = {Status.ACKNOWLEDGED: ALERT_ACKNOWLEDGED, Status.RESOLVED: ALERT_RESOLVED, Status.IGNORED: ALERT_IGNORED}


def record_status(alert: Alert, user: User, before: Status) -> None:
    """Record that a user has changed the status of an alert."""
    now = Status(alert.status)
    kind = ALERT_REOPENED if before in ENDED and now not in ENDED else KINDS.get(now)
    if kind is not None and events.is_listened_to(alert.project_id):
        events.record(alert.project_id, [_fields(alert, kind, user.id)])


def record_ingested(project_id: int, opened: Iterable[Alert], ended: Iterable[Alert]) -> None:
    """Record alerts that a receiver has opened, and others that it has ended, if there are rules or hooks for them."""
    fields = [_fields(alert, ALERT_TRIGGERED) for alert in opened]
    events.record(project_id, fields + [_fields(alert, ALERT_RESOLVED) for alert in ended])


def record_open_after_silence(project_id: int, alerts: Iterable[Alert], silence_id: int) -> None:
    """Record alerts still open at the end of the silence that held them back, if there are rules or hooks for them."""
    fields = [_fields(alert, ALERT_TRIGGERED) for alert in alerts]
    if fields and events.is_listened_to(project_id):
        after = {"after_silence": silence_id}
        events.record(
            project_id, [replace(event_fields, snapshot=event_fields.snapshot | after) for event_fields in fields]
        )


def _fields(alert: Alert, kind: str, author_id: int | None = None) -> EventFields:
    environment = None if alert.environment is None else alert.environment.name
    severity = Severity(alert.severity).name.lower()
    return EventFields(kind, alert.id, severity, environment, _snapshot(alert), author_id)


def _snapshot(alert: Alert) -> dict[str, Any]:
    """Return the attributes of web hooks with long texts cut, and what only rules compare."""
    attributes = attributes_of(alert)
    return attributes | {
        "title": events.cut(alert.title, events.MAX_VALUE),
        "description": events.cut(alert.description),
        "hosts": alert.hosts[:20],
        "integration_id": alert.integration_id,
        "integration": None if alert.integration is None else alert.integration.name,
        "payload": events.trimmed(alert.payload),
    }
