"""Metrics and checks: the age of what waits, and channels that fail (notifications reference, section 14)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select

from project_service.areas.notifications import health
from project_service.domain.notifications.models import NotificationEvent
from project_service.kit import clock, deliveries, health_checks, metrics
from project_service.kit.db.session import db

MAX_UNROUTED_SECONDS = 60
MAX_WAITING = dt.timedelta(minutes=15)


def unrouted_seconds() -> float:
    """Return how long the oldest event waits to be compared with the rules."""
    oldest = db.session.scalar(
        select(func.min(NotificationEvent.created_at)).where(NotificationEvent.routed_at.is_(None))
    )
    return 0.0 if oldest is None else max((clock.now() - oldest).total_seconds(), 0.0)


def number_unrouted() -> float:
    """Return how many events wait to be compared with the rules."""
    return float(db.session.scalar(select(func.count()).where(NotificationEvent.routed_at.is_(None))) or 0)


def waiting_seconds() -> float:
    """Return how long the oldest delivery waits for its first attempt."""
    since = deliveries.waiting_since()
    return 0.0 if since is None else max((clock.now() - since).total_seconds(), 0.0)


def _check() -> str:
    problems = []
    if (seconds := unrouted_seconds()) > MAX_UNROUTED_SECONDS:
        problems.append(f"events have waited for {seconds:.0f} s to be routed: is a worker for deliveries running?")
    if (number := health.number_failing()) > 0:
        problems.append(f"{number} channels fail; their pages say why, and their maintainers have got a mail")
    if (waiting := waiting_seconds()) > MAX_WAITING.total_seconds():
        problems.append(f"a delivery has waited for {waiting / 60:.0f} min without an attempt")
    if problems:
        raise health_checks.CheckFailed("; ".join(problems))
    return "events are routed, deliveries are attempted, no channel fails"


health_checks.add_check("notifications", _check)
metrics.add_gauge("notification_events_unrouted", "Events that wait to be routed.", number_unrouted)
metrics.add_gauge("notification_event_age_seconds", "Seconds the oldest event waits to be routed.", unrouted_seconds)
metrics.add_gauge("notification_channels_failing", "Channels that fail.", lambda: float(health.number_failing()))
metrics.add_gauge("delivery_age_seconds", "Seconds the oldest delivery waits for its first attempt.", waiting_seconds)
