"""Periodic jobs of web hooks."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete

from project_service.areas.webhooks.models import WebHookLog
from project_service.kit import clock, jobs
from project_service.kit.db.session import db

LOG_RETENTION = dt.timedelta(days=7)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("webhooks.jobs.prune_logs")
def prune_logs() -> None:
    """Delete log rows older than ``LOG_RETENTION``."""
    db.session.execute(delete(WebHookLog).where(WebHookLog.created_at < clock.now() - LOG_RETENTION))
