"""The scheduler's part: start periodic jobs, and wake workers again for tasks that wait (sweep)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, delete, or_, select, update

from project_service.kit import clock
from project_service.kit.db.session import after_commit, db, insert, unit_of_work
from project_service.kit.jobs import queues
from project_service.kit.jobs.leases import is_unleased
from project_service.kit.jobs.models import PeriodicRun, Task
from project_service.kit.jobs.registry import Job

SWEEP_INTERVAL = dt.timedelta(seconds=5)
SWEEP_BATCH = 1000  # tasks
NOTIFY_AGAIN_AFTER = dt.timedelta(seconds=10)
FAILED_TASK_RETENTION = dt.timedelta(days=14)


@dataclass(frozen=True)
class PeriodicJob:
    """A job with its interval; ``first`` is the delay after the first start of the instance."""

    job: Job[[]]
    every: dt.timedelta
    first: dt.timedelta


PERIODIC_JOBS: dict[str, PeriodicJob] = {}


def periodic(every: dt.timedelta, first: dt.timedelta = dt.timedelta()) -> Callable[[Job[[]]], Job[[]]]:
    """Register a job to be started at an interval, ``first`` after the very first start of the instance."""

    def decorate(job: Job[[]]) -> Job[[]]:
        PERIODIC_JOBS[job.name] = PeriodicJob(job, every, first)
        return job

    return decorate


def start_periodic() -> list[str]:
    """Defer every periodic job that is due; return their names.

    Each is started once, however many schedulers run, and not while its last run is unfinished.
    """
    now = clock.now()
    started = []
    for name, entry in PERIODIC_JOBS.items():
        with unit_of_work():
            due = db.session.scalar(select(PeriodicRun.due_at).where(PeriodicRun.name == name))
            if due is None:
                _schedule_first_run(name, now + entry.first)
            elif due <= now and _advance(name, due, now + entry.every) and not _is_unfinished(name):
                entry.job.defer()
                started.append(name)
    return started


def _schedule_first_run(name: str, due_at: dt.datetime) -> None:
    db.session.execute(
        insert(PeriodicRun).values(name=name, due_at=due_at).on_conflict_do_nothing(index_elements=["name"])
    )


def _advance(name: str, due: dt.datetime, next_due: dt.datetime) -> bool:
    """Set the next due time of a periodic job; false if another scheduler was first."""
    advanced = (
        update(PeriodicRun)
        .where(PeriodicRun.name == name, PeriodicRun.due_at == due)
        .values(due_at=next_due)
        .returning(PeriodicRun.id)
    )
    return db.session.scalar(advanced) is not None


def _is_unfinished(name: str) -> bool:
    return db.session.scalar(select(Task.id).where(Task.name == name, Task.failed_at.is_(None)).limit(1)) is not None


def sweep() -> int:
    """Wake workers again for tasks that are due and not running, and delete old failed ones; return how many wait."""
    now = clock.now()
    with unit_of_work(write=False):
        waiting = list(
            db.session.execute(
                select(Task.queue, Task.id)
                .where(Task.failed_at.is_(None), _needs_notification(now), is_unleased(now))
                .order_by(Task.run_at)
                .limit(SWEEP_BATCH)
            )
        )
    if waiting and not queues.is_backlogged():
        for queue, task_id in waiting:
            if not queues.notify(queue, task_id):
                break
    with unit_of_work():
        db.session.execute(delete(Task).where(Task.failed_at < now - FAILED_TASK_RETENTION))
    return len(waiting)


def _needs_notification(now: dt.datetime) -> ColumnElement[bool]:
    # for a task with a later due time (a retry, a job for later) there has been no notification yet
    was_postponed = and_(Task.run_at > Task.created_at, Task.run_at <= now)
    return or_(Task.run_at <= now - NOTIFY_AGAIN_AFTER, was_postponed)


def retry(task_id: int) -> bool:
    """Make a failed task due now, with all its attempts, and wake a worker after the commit; false if none failed."""
    now = clock.now()
    revived = (
        update(Task)
        .where(Task.id == task_id, Task.failed_at.is_not(None))
        .values(failed_at=None, leased_until=None, attempts=0, run_at=now)
        .returning(Task.queue)
    )
    queue = db.session.scalar(revived)
    if queue is None:
        return False
    after_commit(lambda: queues.notify(queue, task_id))
    return True
