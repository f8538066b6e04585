"""Which heartbeats are missing, with an allowance for time in which the service did not run."""

from __future__ import annotations

import datetime as dt

import structlog
from sqlalchemy import or_, select

from project_service.domain.heartbeats import pings
from project_service.domain.heartbeats.models import UP, Heartbeat, HeartbeatCheck
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.locking import lock_table
from project_service.kit.db.session import db

DOWNTIME_SECONDS = 60  # without a check: the service did not run, or was not working
BATCH = 500

log = structlog.get_logger(__name__)


def allow_for_downtime() -> None:
    """Record that heartbeats are checked now; after a gap, expect the calls that could not come later.

    A call that was due in the gap may have been lost. It is not missing before a grace has passed and the next one
    is due (heartbeats reference, section 5).
    """
    now = clock.now()
    lock_table(HeartbeatCheck)
    check = db.session.scalar(select(HeartbeatCheck).order_by(HeartbeatCheck.id).limit(1))
    if check is None:
        db.session.add(HeartbeatCheck(checked_at=now))
        return
    gap = now - check.checked_at
    if gap > dt.timedelta(seconds=DOWNTIME_SECONDS):
        count = _postpone(check.checked_at, now)
        log.warning("heartbeats were not checked for a while", seconds=round(gap.total_seconds()), postponed=count)
    check.checked_at = max(now, check.checked_at)


def missing_ids() -> list[int]:
    """Return the ids of some heartbeats whose calls are missing."""
    missing = select(Heartbeat.id).where(Heartbeat.missing_at < clock.now())
    missing = missing.join(Project, Project.id == Heartbeat.project_id).where(Project.deleting_since.is_(None))
    return list(db.session.scalars(missing.order_by(Heartbeat.missing_at, Heartbeat.id).limit(BATCH)))


def check(heartbeat_id: int) -> None:
    """Open the alert of a heartbeat, unless a call came or another scheduler was faster."""
    heartbeat = db.session.scalar(pings.with_id(heartbeat_id))
    if heartbeat is None or heartbeat.missing_at is None or heartbeat.stored_state != UP:
        return
    if heartbeat.missing_at < clock.now():
        pings.open_missing(heartbeat)


def _postpone(since: dt.datetime, now: dt.datetime) -> int:
    """Postpone what was due in a gap that ends now, or was late when it began; return how many there were."""
    was_in_gap = or_(Heartbeat.due_at <= now, Heartbeat.missing_at <= now)
    affected = select(Heartbeat).where(Heartbeat.missing_at > since, was_in_gap)
    heartbeats = db.session.scalars(affected.order_by(Heartbeat.id).with_for_update()).all()
    for heartbeat in heartbeats:
        due = heartbeat.due_at or now
        if due <= now:
            heartbeat.due_at = due = max(due + max(now - since, heartbeat.grace), pings.due_after(heartbeat, now))
        heartbeat.missing_at = due + heartbeat.grace
        heartbeat.started_at = None  # the end of a run may have been lost as well
    return len(heartbeats)
