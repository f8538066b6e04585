"""Events of incidents that people and channels are notified of (notifications reference, section 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from project_service.domain.accounts.users import User
from project_service.domain.hooks import hook_payloads
from project_service.domain.notifications import events
from project_service.domain.notifications.events import EventFields
from project_service.domain.notifications.models import INCIDENT_CLOSED, INCIDENT_OPENED
from project_service.domain.tracker.issues import INCIDENT, Issue

KINDS = {"open": INCIDENT_OPENED, "reopen": INCIDENT_OPENED, "close": INCIDENT_CLOSED}
MAX_LABELS = 20


def record(author: User, issue: Issue, action: str, labels: Callable[[], list[dict[str, Any]]]) -> None:
    """Record that an incident was opened, reopened or closed; ``labels`` are described where they are needed."""
    kind = KINDS.get(action)
    if kind is None or issue.issue_type != INCIDENT or not events.is_listened_to(issue.project_id):
        return
    fields = EventFields(
        kind, issue.id, issue.severity or "unknown", None, _snapshot(issue, action, labels()), author.id
    )
    events.record(issue.project_id, [fields])


def _snapshot(issue: Issue, action: str, labels: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what web hooks have of an incident, with texts cut (webhooks reference, section 13.3)."""
    attributes = hook_payloads.issue_attributes(issue)
    return attributes | {
        "title": events.cut(issue.title, events.MAX_VALUE),
        "description": events.cut(attributes["description"]),
        "labels": [label | {"description": events.cut(label["description"])} for label in labels[:MAX_LABELS]],
        "action": action,
        "alert_id": issue.alert_id,
    }
