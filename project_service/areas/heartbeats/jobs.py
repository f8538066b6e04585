"""Periodic job: open the alerts of missing heartbeats (heartbeats reference, section 3)."""

from __future__ import annotations

import datetime as dt

import structlog
from sqlalchemy.exc import SQLAlchemyError

from project_service.areas.heartbeats import checking
from project_service.kit import jobs

CHECK_SECONDS = 10

log = structlog.get_logger(__name__)


@jobs.periodic(every=dt.timedelta(seconds=CHECK_SECONDS))
@jobs.job("heartbeats.jobs.check_heartbeats")
def check_heartbeats() -> None:
    """Set heartbeats down whose calls did not come, each in a transaction of its own."""
    with jobs.step():
        checking.allow_for_downtime()
        missing = checking.missing_ids()
    for heartbeat_id in missing:
        try:
            with jobs.step():
                checking.check(heartbeat_id)
        except (SQLAlchemyError, ValueError):  # the others are not to wait for it; the next run tries again
            log.exception("heartbeat cannot be checked", heartbeat=heartbeat_id)
