"""Periodic jobs: retention of errors, events and counters, automatic resolution."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Select, delete, func, select, tuple_, update

from project_service.areas.error_tracking.collection.receivers import RETENTION_DAYS
from project_service.areas.error_tracking.errors import comments
from project_service.areas.error_tracking.errors.models import (
    DAY_SECONDS,
    HOUR_SECONDS,
    DroppedEventCount,
    ErrorStatus,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorEvent,
)
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.domain.instance_settings import setting as instance_setting
from project_service.kit import clock, jobs
from project_service.kit.db.session import db

BATCH_SIZE = 500
KEPT_HOURS = 7 * 24


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("error_tracking.jobs.prune")
def prune() -> None:
    """Remove events older than the retention, errors not seen since that have no issue, and old counters."""
    with jobs.step():
        limit = clock.now() - dt.timedelta(days=instance_setting(RETENTION_DAYS))
        projects = list(db.session.scalars(select(TrackedError.project_id).distinct()))
    hours = int(clock.now().timestamp()) - KEPT_HOURS * HOUR_SECONDS
    jobs.for_each(
        [
            (_prune_events, limit),
            *((_prune_errors, project_id, limit) for project_id in projects),
            (_prune_counts, HOUR_SECONDS, hours),
            (_prune_counts, DAY_SECONDS, int(limit.timestamp())),
            (_prune_dropped, hours),
        ],
        _repeat,
    )


@jobs.periodic(every=dt.timedelta(hours=1))
@jobs.job("error_tracking.jobs.settle")
def settle() -> None:
    """Resolve errors that have not occurred for as long as their project says."""
    with jobs.step():
        resolving = select(ErrorTrackingSetting.project_id, ErrorTrackingSetting.resolve_after_days)
        resolving = resolving.where(ErrorTrackingSetting.integrated.is_(True))
        projects = db.session.execute(resolving.where(ErrorTrackingSetting.resolve_after_days > 0)).all()
    jobs.for_each(
        [(_resolve, project_id, clock.now() - dt.timedelta(days=days)) for project_id, days in projects], _repeat
    )


def _repeat(call: tuple[Any, ...]) -> None:
    """Call a function with its arguments as long as it says that there may be more."""
    act, *arguments = call
    while act(*arguments):
        pass


def _prune_events(limit: dt.datetime) -> bool:
    """Remove a batch of events that arrived before ``limit``; whether there may be more."""
    event = TrackedErrorEvent
    with jobs.step():
        # ids are in the order of arrival: the first rows are the oldest
        oldest = db.session.execute(select(event.id, event.received_at).order_by(event.id).limit(BATCH_SIZE)).all()
        ids = [event_id for event_id, received_at in oldest if received_at < limit]
        removed = db.session.scalars(delete(event).where(event.id.in_(ids)).returning(event.error_id)).all()
        left = select(func.count()).where(event.error_id == TrackedError.id).scalar_subquery()
        _execute(update(TrackedError).where(TrackedError.id.in_(sorted(set(removed)))).values(stored_events=left))
    return len(ids) == BATCH_SIZE


def _prune_errors(project_id: int, limit: dt.datetime) -> bool:
    """Remove a batch of errors not seen since ``limit``; whether there may be more."""
    with jobs.step():
        old = _unseen(project_id, limit).where(TrackedError.issue_id.is_(None))
        ids = list(db.session.scalars(old.order_by(TrackedError.last_seen).limit(BATCH_SIZE)))
        # an event that arrived in the meantime keeps its error
        gone = delete(TrackedError).where(TrackedError.id.in_(ids), TrackedError.last_seen < limit)
        comments.forget(db.session.scalars(gone.returning(TrackedError.id)).all())
    return len(ids) == BATCH_SIZE


def _prune_counts(seconds: int, oldest: int) -> bool:
    """Remove a batch of counters of hours or days that began before ``oldest`` (epoch); whether there may be more."""
    count = TrackedErrorCount
    key = (count.error_id, count.seconds, count.start)
    with jobs.step():
        old = select(*key).where(count.seconds == seconds, count.start < oldest).limit(BATCH_SIZE)
        rows = [tuple(row) for row in db.session.execute(old)]
        _execute(delete(count).where(tuple_(*key).in_(rows)))
    return len(rows) == BATCH_SIZE


def _prune_dropped(oldest: int) -> None:
    """Remove the counters of dropped events of hours that began before ``oldest`` (epoch)."""
    with jobs.step():
        db.session.execute(delete(DroppedEventCount).where(DroppedEventCount.start < oldest))


def _resolve(project_id: int, limit: dt.datetime) -> bool:
    """Resolve a batch of errors not seen since ``limit``; their issues stay open. Whether there may be more."""
    error = TrackedError
    with jobs.step():
        old = _unseen(project_id, limit).where(error.status == int(ErrorStatus.UNRESOLVED)).limit(BATCH_SIZE)
        ids = list(db.session.scalars(old))
        values = {"status": int(ErrorStatus.RESOLVED), "resolved_at": clock.now()}
        values |= dict.fromkeys(("regressed_at", "resolved_after"))
        _execute(update(error).where(error.id.in_(ids), error.last_seen < limit).values(**values))
    return len(ids) == BATCH_SIZE


def _unseen(project_id: int, limit: dt.datetime) -> Select[int]:
    return select(TrackedError.id).where(TrackedError.project_id == project_id, TrackedError.last_seen < limit)


def _execute(statement: Any) -> None:
    db.session.execute(statement.execution_options(synchronize_session=False))
