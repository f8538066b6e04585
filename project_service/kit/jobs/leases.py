"""Leases on tasks: claim, renewal, fencing.

A lease runs for ``LEASE`` and a thread renews it while the job runs. When a worker dies its lease expires and another
worker claims the task with a higher fencing token.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import structlog
from flask import current_app
from sqlalchemy import ColumnElement, Update, delete, or_, select, update

from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs.models import Task

LEASE = dt.timedelta(seconds=20)
RENEWAL_SECONDS = 5.0

log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """Another worker has claimed the task: what this one still writes must be rolled back."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The claim of this worker on a task."""

    task_id: int
    fence: int


_current_lease: ContextVar[Lease | None] = ContextVar("lease", default=None)


def claim(task_id: int) -> Lease | None:
    """Claim a due task; return ``None`` if it is not due, has ended, or is leased by another worker."""
    with unit_of_work():
        db.session.connection()  # waiting for the database must not shorten the lease
        now = clock.now()
        fence = db.session.scalar(
            update(Task)
            .where(Task.id == task_id, Task.failed_at.is_(None), Task.run_at <= now, is_unleased(now))
            .values(fence=Task.fence + 1, attempts=Task.attempts + 1, leased_until=now + LEASE)
            .returning(Task.fence)
        )
    return None if fence is None else Lease(task_id, fence)


def is_unleased(now: dt.datetime) -> ColumnElement[bool]:
    """Return the condition for tasks that no live worker runs."""
    return or_(Task.leased_until.is_(None), Task.leased_until < now)


def check_lease() -> None:
    """Lock the task of the running job and check the fencing token; outside of a worker there is nothing to check.

    Raises:
        LeaseLost: another worker has claimed the task.

    """
    lease = _current_lease.get()
    if lease is None:
        return
    fence = db.session.scalar(select(Task.fence).where(Task.id == lease.task_id).with_for_update())
    if fence != lease.fence:
        raise LeaseLost


@contextmanager
def step() -> Iterator[None]:
    """Commit what came before, then run one transaction of a long job, if its lease is still valid."""
    db.session.commit()
    with unit_of_work():
        check_lease()
        yield


@contextmanager
def renewed(lease: Lease) -> Iterator[None]:
    """Renew a lease in a thread while the block runs."""
    new_context = current_app.app_context  # of the application itself: a thread has no current one
    stop = threading.Event()

    def renew_until_stopped() -> None:
        while not stop.wait(RENEWAL_SECONDS):
            with new_context():
                try:
                    renew(lease)
                except Exception as error:  # noqa: BLE001  # the lease outlasts several failed renewals
                    log.warning("lease renewal failed", task=lease.task_id, error=str(error))

    thread = threading.Thread(target=renew_until_stopped, name=f"lease-{lease.task_id}", daemon=True)
    thread.start()
    token = _current_lease.set(lease)
    try:
        yield
    finally:
        _current_lease.reset(token)
        stop.set()
        thread.join()


def renew(lease: Lease) -> None:
    """Extend a lease, unless another worker has claimed the task."""
    with unit_of_work():
        db.session.connection()
        db.session.execute(update_leased(lease).values(leased_until=clock.now() + LEASE))


def update_leased(lease: Lease) -> Update:
    """Return an update of the task that changes nothing once the lease is lost."""
    return update(Task).where(Task.id == lease.task_id, Task.fence == lease.fence)


def delete_task(lease: Lease) -> None:
    """Delete the task of a job that succeeded, in the job's own transaction.

    Raises:
        LeaseLost: another worker has claimed the task.

    """
    ended = delete(Task).where(Task.id == lease.task_id, Task.fence == lease.fence).returning(Task.id)
    if db.session.scalar(ended) is None:
        raise LeaseLost
