"""What runs in the background: the preparation of messages in the sending job, retention, failing channels."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete

from project_service.areas.notifications import health, monitoring, sender
from project_service.areas.notifications.models import NotificationAnnouncement, NotificationDelivery
from project_service.areas.notifications.routing import grouping, reminders, router
from project_service.domain.notifications.models import NotificationEvent
from project_service.kit import clock, deliveries, jobs
from project_service.kit.db.session import db

RETENTION = dt.timedelta(days=30)
ANNOUNCED_RETENTION = dt.timedelta(days=400)  # of an alert that is never resolved

MAX_ROUTING_WAIT = dt.timedelta(seconds=30)  # of groups that are due while older events are routed

__all__ = ["monitoring", "prune_notifications", "sender"]


def prepare_messages() -> bool:
    """Route events, then make messages of groups that were due before; true if there may be more to do.

    Groups wait for the events that happened before they were due, so that a storm is not split; for those that happen
    afterwards they do not wait.
    """
    now = clock.now()
    is_routed = router.route_waiting()
    until = max(router.routed_until(now), now - MAX_ROUTING_WAIT) if is_routed else now
    is_sent = grouping.send_due(until)
    return is_routed or is_sent or reminders.send_due(now)


deliveries.add_source(prepare_messages)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("notifications.jobs.prune_notifications")
def prune_notifications() -> None:
    """Remove events and messages after 30 days; disable channels that have failed for two weeks."""
    with jobs.step():
        health.disable_failing()
    oldest = clock.now() - RETENTION
    for model, moment, limit in (
        (NotificationEvent, NotificationEvent.created_at, oldest),
        (NotificationDelivery, NotificationDelivery.created_at, oldest),
        (NotificationAnnouncement, NotificationAnnouncement.announced_at, clock.now() - ANNOUNCED_RETENTION),
    ):
        with jobs.step():
            db.session.execute(delete(model).where(moment < limit), execution_options={"synchronize_session": False})
