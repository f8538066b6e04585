"""Execution of a task by a worker: claim it, run its job, record the result, retry with backoff."""

from __future__ import annotations

import datetime as dt
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar

import structlog
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from project_service.kit import clock, logs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import leases
from project_service.kit.jobs.leases import Lease, LeaseLost
from project_service.kit.jobs.models import Task
from project_service.kit.jobs.monitoring import count_outcome
from project_service.kit.jobs.registry import JOBS, MAX_ATTEMPTS, Job

# Workers are killed for many reasons, restarts among them; a task that outlives this many is probably the reason.
MAX_TAKEOVERS = 50
MAX_DATABASE_ERRORS_IN_A_ROW = 3
FIRST_RETRY_DELAY = dt.timedelta(seconds=2)

log = structlog.get_logger(__name__)
Row = TypeVar("Row")


class TooManyTakeovers(Exception):
    """A task was claimed again and again because its workers died."""


def run(task_id: int) -> None:
    """Run a task, if it can be claimed. This is the function that RQ calls."""
    lease = leases.claim(task_id)
    if lease is None:
        return
    with unit_of_work(write=False):
        task = db.session.get_one(Task, task_id)
        name, arguments, request_id = task.name, tuple(task.arguments), task.request_id
        takeovers = task.attempts
    db.session.remove()
    job = JOBS.get(name)
    with logs.bound(request_id=request_id, task=task_id, job=name), leases.renewed(lease):
        try:
            if job is None:
                raise LookupError(f"no job is called {name}")
            if takeovers > MAX_TAKEOVERS:
                raise TooManyTakeovers(f"{MAX_TAKEOVERS} workers stopped before the job ended")
            _run_job(job, arguments, lease)
        except LeaseLost:
            log.warning("lease lost: another worker has claimed the task")
            count_outcome(name, "lost")
        except Exception as error:  # noqa: BLE001  # any exception of a job is recorded with its task
            log.error("job failed", error=str(error), traceback=traceback.format_exc())
            _record_failure(lease, job, arguments, f"{type(error).__name__}: {error}")
            count_outcome(name, "failed")
        else:
            count_outcome(name, "done")
            log.info("job done")


def _run_job(job: Job[Any], arguments: tuple[Any, ...], lease: Lease) -> None:
    """Run a job and delete its task in one unit of work; a long job commits in between (``leases.step``)."""
    with unit_of_work():
        job.function(*arguments)
        leases.delete_task(lease)


def for_each(rows: Iterable[Row], act: Callable[[Row], object]) -> None:
    """Act on each of many rows. One that fails is logged and does not stop the others; the job fails at the end.

    Raises:
        ExceptionGroup: some rows failed. They are tried again with the job, and hold up no others.

    """
    errors: list[Exception] = []
    in_a_row = 0
    for row in rows:
        try:
            act(row)
            in_a_row = 0
        except LeaseLost:
            raise
        except Exception as error:  # any failure of a row must not stop the others
            log.error("a row of a job failed", row=str(row), error=str(error), traceback=traceback.format_exc())
            errors.append(error)
            in_a_row = in_a_row + 1 if isinstance(error, OperationalError) else 0
            if in_a_row == MAX_DATABASE_ERRORS_IN_A_ROW:  # the database is away, and no row is to blame
                raise
    if errors:
        raise ExceptionGroup(f"{len(errors)} rows failed", errors)


def _record_failure(lease: Lease, job: Job[Any] | None, arguments: tuple[Any, ...], text: str) -> None:
    """Schedule the next attempt, or mark the task as failed after the last one."""
    with unit_of_work():
        attempts = db.session.scalar(select(Task.attempts).where(Task.id == lease.task_id, Task.fence == lease.fence))
        if attempts is None:
            return
        if attempts < (MAX_ATTEMPTS if job is None else job.max_attempts):
            retry_at = clock.now() + FIRST_RETRY_DELAY * 2 ** (attempts - 1)
            db.session.execute(leases.update_leased(lease).values(leased_until=None, run_at=retry_at, error=text))
            return
    try:
        with unit_of_work():
            _mark_failed(lease, text)
            if job is not None and job.on_failure is not None:
                job.on_failure(arguments, text)
    except LeaseLost:
        return
    except Exception as error:  # noqa: BLE001  # the task ends even if the callback raises
        log.error("the failure callback of a job failed", error=str(error), traceback=traceback.format_exc())
        with suppress(LeaseLost), unit_of_work():
            _mark_failed(lease, text)


def _mark_failed(lease: Lease, text: str) -> None:
    failed = leases.update_leased(lease).values(leased_until=None, failed_at=clock.now(), error=text)
    if db.session.scalar(failed.returning(Task.id)) is None:
        raise LeaseLost
