"""Events of errors that people and channels are notified of (notifications reference, section 1)."""

from __future__ import annotations

from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.domain import page_paths
from project_service.domain.notifications import events
from project_service.domain.notifications.events import EventFields
from project_service.domain.notifications.models import ERROR_REGRESSION, NEW_ERROR
from project_service.kit import clock
from project_service.kit.http import urls

SEVERITIES = {"fatal": "critical", "error": "high", "warning": "medium"}  # others are ``info``


def record(error: TrackedError, *, environment: str | None, regressed: bool) -> None:
    """Record that an error is new, or that it came back, if there are rules or hooks for it."""
    if not events.is_listened_to(error.project_id):
        return
    snapshot = {
        "id": error.id,
        "title": events.cut(error.title, events.MAX_VALUE),
        "culprit": events.cut(error.culprit, events.MAX_VALUE),
        "level": error.level,
        "count": error.count,
        "user_count": error.user_count,
        "release": error.last_release,
        "first_seen": clock.isoformat(error.first_seen),
        "url": urls.absolute(f"/{error.project.full_path}{page_paths.error(error.id)}"),
    }
    kind = ERROR_REGRESSION if regressed else NEW_ERROR
    severity = SEVERITIES.get(error.level, "info")
    events.record(error.project_id, [EventFields(kind, error.id, severity, environment, snapshot)])
