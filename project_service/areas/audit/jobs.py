"""Periodic job: removal of audit events that are older than the retention time."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete, select

from project_service.domain.audit.models import AuditEvent
from project_service.domain.instance_settings import setting
from project_service.kit import clock, jobs
from project_service.kit.db.session import db

BATCH_SIZE = 1000


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("audit.jobs.prune_audit_events")
def prune_audit_events() -> None:
    """Delete expired audit events in batches; a retention of 0 days keeps all."""
    with jobs.step():
        days = setting("audit_event_retention_days")
    if days == 0:
        return
    limit = clock.now() - dt.timedelta(days=days)
    while True:
        with jobs.step():
            expired = select(AuditEvent.id).where(AuditEvent.created_at < limit).order_by(AuditEvent.created_at)
            ids = list(db.session.scalars(expired.limit(BATCH_SIZE)))
            db.session.execute(delete(AuditEvent).where(AuditEvent.id.in_(ids)))
        if len(ids) < BATCH_SIZE:
            return
