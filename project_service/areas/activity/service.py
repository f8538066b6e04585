"""Retention of events."""

from __future__ import annotations

import datetime as dt

from dateutil.relativedelta import relativedelta
from sqlalchemy import delete, func, select

from project_service.domain.events.models import Event
from project_service.kit import clock
from project_service.kit.db.session import db

RETENTION = relativedelta(years=2)


def oldest_kept() -> dt.datetime:
    """Return the time before which events are removed (events reference, section 9); it is itself kept."""
    return clock.now() - RETENTION


def count_old() -> int:
    """Count the events that are due for removal."""
    return db.session.scalar(select(func.count()).select_from(Event).where(Event.created_at < oldest_kept())) or 0


def prune_batch(size: int) -> int:
    """Remove up to ``size`` of the oldest events that are due; return the number removed."""
    old = select(Event.id).where(Event.created_at < oldest_kept()).order_by(Event.created_at, Event.id).limit(size)
    ids = list(db.session.scalars(old))
    if ids:
        db.session.execute(delete(Event).where(Event.id.in_(ids)))
    return len(ids)
