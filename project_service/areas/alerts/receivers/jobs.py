"""Periodic job: retention of the log of requests."""

from __future__ import annotations

import datetime as dt

from project_service.areas.alerts.receivers import delivery_log
from project_service.domain.instance_settings import setting
from project_service.kit import jobs


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("alerts.receivers.jobs.prune_requests")
def prune_requests() -> None:
    """Remove requests that are older than the application setting says."""
    with jobs.step():
        delivery_log.prune_older_than(setting(delivery_log.LOG_DAYS))
