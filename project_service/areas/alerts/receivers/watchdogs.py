"""Alerts that are calls of heartbeats, such as the Watchdog of Prometheus (heartbeats reference, section 4)."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.alerts.payloads.payloads import ParsedRequest
from project_service.areas.alerts.receivers.endpoints import AlertReceiver
from project_service.domain.heartbeats import pings
from project_service.domain.heartbeats.models import ALERT, SUCCESS, Heartbeat
from project_service.domain.heartbeats.pings import Ping
from project_service.kit.db.session import db


def record_calls(receiver: AlertReceiver, parsed: ParsedRequest) -> bool:
    """Take the alerts out of a request that are calls of heartbeats, and record a call where one is firing.

    Return whether there were any. Resolved ones are taken out without effect.
    """
    titles = {report.parse().title for report in parsed.reports}
    matching = select(Heartbeat).where(
        Heartbeat.project_id == receiver.project_id, Heartbeat.kind == ALERT, Heartbeat.matcher_title.in_(titles)
    )
    locked = matching.order_by(Heartbeat.id).with_for_update().execution_options(populate_existing=True)
    heartbeats = db.session.scalars(locked).all()
    if not heartbeats:
        return False
    watched = {heartbeat.matcher_title for heartbeat in heartbeats}
    firing = {report.parse().title for report in parsed.reports if not report.is_recovery}
    for heartbeat in heartbeats:
        if heartbeat.matcher_title in firing:
            pings.record(heartbeat, Ping(SUCCESS, user_agent=receiver.name or None))
            parsed.notes.append(f"counted as a call of the heartbeat {heartbeat.name}")
        else:
            parsed.notes.append(f"ignored: resolved, and watched by the heartbeat {heartbeat.name}")
    parsed.reports = [report for report in parsed.reports if report.parse().title not in watched]
    return True
