"""Events of incidents that people and channels are notified of (notifications reference, section 1)."""

from __future__ import annotations

from typing import Any

from project_service.domain import page_paths
from project_service.domain.accounts.users import User
from project_service.domain.notifications import events
from project_service.domain.notifications.events import EventFields
from project_service.domain.notifications.models import INCIDENT_CLOSED, INCIDENT_OPENED
from project_service.domain.tracker.issues import INCIDENT, Issue
from project_service.kit.http import urls

KINDS = {"open": INCIDENT_OPENED, "reopen": INCIDENT_OPENED, "close": INCIDENT_CLOSED}


def record(author: User, issue: Issue, action: str) -> None:
    """Record that an incident was opened, reopened or closed."""
    kind = KINDS.get(action)
    if kind is None or issue.issue_type != INCIDENT or not events.is_listened_to(issue.project_id):
        return
    fields = EventFields(kind, issue.id, issue.severity or "unknown", None, _snapshot(issue), author.id)
    events.record(issue.project_id, [fields])


def _snapshot(issue: Issue) -> dict[str, Any]:
    return {
        "id": issue.id,
        "iid": issue.iid,
        "title": events.cut(issue.title, events.MAX_VALUE),
        "description": events.cut(issue.description),
        "state": issue.state,
        "url": urls.absolute(f"/{issue.project.full_path}{page_paths.issue(issue.iid)}"),
        "confidential": issue.confidential,
        "author_id": issue.author_id,
    }
