"""Work that can wait, and is never lost.

Deferring a job writes a row in the transaction of whatever asked for it. The queue is only a doorbell: after the commit
the row's id is rung to a worker through Redis, and a sweep rings again for every row that has waited too long without a
live worker. A worker that takes a row up holds a lease and renews it; when it dies the lease runs out and the row is
taken over with a higher fencing number, which a long job checks with each batch it writes (``still_ours``).

A job is a function of ids. It finds its rows itself and may run twice without harm.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeVar

import redis
import rq
import structlog
from flask import current_app
from sqlalchemy import Index, and_, delete, func, or_, select, update
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock, logs
from project_service.kit.db.base import Model
from project_service.kit.db.session import after_commit, db, insert, unit_of_work

DEFAULT, MAIL, TRANSFERS, REMOTE_TRANSFERS = "default", "mail", "transfers", "remote_transfers"
# in the order in which a worker answers them; transfers may take hours, and longer with a slow server at the other end
QUEUES = (DEFAULT, MAIL, TRANSFERS, REMOTE_TRANSFERS)
QUICK_QUEUES = (DEFAULT, MAIL)
SWEEP_EVERY = dt.timedelta(seconds=5)
LEASE = dt.timedelta(seconds=20)
RENEW_EVERY_SECONDS = 5.0
RING_AGAIN_AFTER = dt.timedelta(seconds=10)
ATTEMPTS = 5
# workers are killed for many reasons, restarts among them; a task that outlives this many is what kills them
MOST_TAKEOVERS = 50
FAILED_KEPT = dt.timedelta(days=14)
FIRST_RETRY = dt.timedelta(seconds=2)
OUTCOMES_KEY = "project-service:outcomes"

log = structlog.get_logger(__name__)
Arguments = ParamSpec("Arguments")
Row = TypeVar("Row")


class Hopeless(Exception):
    """A task that no worker gets to the end of."""


class LeaseLost(Exception):
    """Another worker has taken this task over: whatever this one still writes must be rolled back."""


class Task(Model):
    """A job that was asked for and has not ended yet, or has failed for good."""

    __tablename__ = "tasks"
    __table_args__ = (Index("ix_tasks_due", "failed_at", "run_at"),)

    name: Mapped[str]
    arguments: Mapped[list[Any]]
    queue: Mapped[str]
    request_id: Mapped[str | None]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    run_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    leased_until: Mapped[dt.datetime | None]
    fence: Mapped[int] = mapped_column(default=0)
    attempts: Mapped[int] = mapped_column(default=0)
    failed_at: Mapped[dt.datetime | None]
    error: Mapped[str | None]


class PeriodicRun(Model):
    """When a periodic job was last started, so that it starts once however many schedulers run."""

    __tablename__ = "periodic_runs"

    name: Mapped[str] = mapped_column(unique=True)
    due_at: Mapped[dt.datetime]


@dataclass(frozen=True)
class Job(Generic[Arguments]):
    """A function that runs later, in a worker."""

    name: str
    function: Callable[Arguments, None]
    queue: str
    attempts: int
    failed: Callable[[tuple[Any, ...], str], None] | None = None

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Run it here and now."""
        self.function(*args, **kwargs)

    def on(self, queue: str) -> Job[Arguments]:
        """The same job for workers of another queue."""
        return dataclasses.replace(self, queue=queue)

    def defer(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Task:
        """Write the task with the current unit of work; a worker is rung when that has been committed."""
        return self.defer_until(None, *args, **kwargs)

    def defer_until(self, moment: dt.datetime | None, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Task:
        """The same, not before ``moment``; the sweep rings when that has come."""
        task = Task(
            name=self.name,
            arguments=list(inspect.signature(self.function).bind(*args, **kwargs).args),
            queue=self.queue,
            request_id=logs.request_id(),
            run_at=moment or clock.now(),
        )
        db.session.add(task)
        db.session.flush()
        if moment is None:
            after_commit(lambda: ring(task.queue, task.id))
        return task


@dataclass(frozen=True)
class Periodic:
    """A job that runs again and again; ``first`` is how long after the first start."""

    job: Job[[]]
    every: dt.timedelta
    first: dt.timedelta


JOBS: dict[str, Job[Any]] = {}
PERIODIC: dict[str, Periodic] = {}


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of this worker to a task."""

    task_id: int
    fence: int


_lease: ContextVar[Lease | None] = ContextVar("lease", default=None)


def job(
    name: str,
    queue: str = DEFAULT,
    *,
    attempts: int = ATTEMPTS,
    failed: Callable[[tuple[Any, ...], str], None] | None = None,
) -> Callable[[Callable[Arguments, None]], Job[Arguments]]:
    """Register a function as a job under a name, which is stored with each task and must never change.

    ``failed`` is called, in a unit of work, after ``attempts`` failed attempts.
    """

    def decorate(function: Callable[Arguments, None]) -> Job[Arguments]:
        made = Job(name, function, queue, attempts, failed)
        JOBS[name] = made
        return made

    return decorate


def periodic(every: dt.timedelta, first: dt.timedelta = dt.timedelta()) -> Callable[[Job[[]]], Job[[]]]:
    """Have the scheduler start a job every so often, ``first`` after the very first start of the instance."""

    def decorate(made: Job[[]]) -> Job[[]]:
        PERIODIC[made.name] = Periodic(made, every, first)
        return made

    return decorate


def connect() -> redis.Redis:
    """The Redis of this instance."""
    found: redis.Redis = current_app.extensions["redis"]
    return found


def ring(queue: str, task_id: int) -> bool:
    """Tell a worker of a task. Redis being away is no failure: the sweep rings again."""
    try:
        rq.Queue(queue, connection=connect()).enqueue(
            "project_service.kit.jobs.answer", task_id, result_ttl=0, failure_ttl=3600, job_timeout=-1
        )
    except redis.RedisError as error:
        log.warning("the queue cannot be reached; the task waits for the sweep", task=task_id, error=str(error))
        return False
    return True


def answer(task_id: int) -> None:
    """What a worker runs when it is rung: take the task up, run it, and write how it ended."""
    lease = take_up(task_id)
    if lease is None:
        return
    with unit_of_work(write=False):
        task = db.session.get_one(Task, task_id)
        name, arguments, request_id = task.name, tuple(task.arguments), task.request_id
        taken_over = task.attempts > MOST_TAKEOVERS
    db.session.remove()
    known = JOBS.get(name)
    with logs.bound(request_id=request_id, task=task_id, job=name), _renewed(lease):
        try:
            if known is None:
                raise LookupError(f"no job is called {name}")
            if taken_over:
                raise Hopeless(f"{MOST_TAKEOVERS} workers have died of it or left it")
            run(known, arguments, lease)
        except LeaseLost:
            log.warning("another worker has taken the task over")
            _note_outcome(name, "lost")
        except Exception as error:  # noqa: BLE001  # whatever a job raises, its task has to say so
            log.error("the job failed", error=str(error), traceback=traceback.format_exc())
            _end_failed(lease, known, arguments, f"{type(error).__name__}: {error}")
            _note_outcome(name, "failed")
        else:
            _note_outcome(name, "done")
            log.info("the job is done")


def run(known: Job[Any], arguments: tuple[Any, ...], lease: Lease) -> None:
    """Run a job as one unit of work that its task ends with; a long job opens units of its own inside (``step``)."""
    with unit_of_work():
        known.function(*arguments)
        _end(lease)


@contextmanager
def step() -> Iterator[None]:
    """One unit of a long job: what came before is committed, and so is this, if the task is still ours."""
    db.session.commit()
    with unit_of_work():
        still_ours()
        yield


def for_each(rows: Iterable[Row], act: Callable[[Row], object]) -> None:
    """Act on each of many rows. One that fails is logged and does not stop the others; the job fails at the end.

    Raises:
        ExceptionGroup: some rows failed. They are tried again with the job, and hold up no others.

    """
    errors = []
    for row in rows:
        try:
            act(row)
        except (LeaseLost, OperationalError):
            raise
        except Exception as error:  # noqa: BLE001  # whatever one row fails with, the others are done
            log.error("a row of a job failed", row=str(row), error=str(error), traceback=traceback.format_exc())
            errors.append(error)
    if errors:
        raise ExceptionGroup(f"{len(errors)} rows failed", errors)


def still_ours() -> None:
    """Raise ``LeaseLost`` unless this worker holds its task; outside of a worker there is nothing to hold."""
    lease = _lease.get()
    if lease is None:
        return
    fence = db.session.scalar(select(Task.fence).where(Task.id == lease.task_id).with_for_update())
    if fence != lease.fence:
        raise LeaseLost


def take_up(task_id: int) -> Lease | None:
    """Take a due task that nobody holds."""
    with unit_of_work():
        db.session.connection()  # the wait for it, if there is one, must not be taken off the lease
        now = clock.now()
        fence = db.session.scalar(
            update(Task)
            .where(Task.id == task_id, Task.failed_at.is_(None), Task.run_at <= now, _free(now))
            .values(fence=Task.fence + 1, attempts=Task.attempts + 1, leased_until=now + LEASE)
            .returning(Task.fence)
        )
    return None if fence is None else Lease(task_id, fence)


def under_way(queue: str) -> list[tuple[str, list[Any]]]:
    """The tasks of a queue that workers hold, our own among them: the names of their jobs and their arguments."""
    now = clock.now()
    held = select(Task.name, Task.arguments).where(
        Task.queue == queue, Task.failed_at.is_(None), Task.run_at <= now, Task.leased_until >= now
    )
    return [(name, arguments) for name, arguments in db.session.execute(held)]


def sweep() -> int:
    """Ring again for every task that waits without a live worker; the number of them."""
    now = clock.now()
    with unit_of_work(write=False):
        waiting = list(
            db.session.execute(
                select(Task.queue, Task.id)
                .where(Task.failed_at.is_(None), _unanswered(now), _free(now))
                .order_by(Task.run_at)
                .limit(1000)
            )
        )
    if waiting and not _bells_are_waiting():
        for queue, task_id in waiting:
            if not ring(queue, task_id):
                break
    with unit_of_work():
        db.session.execute(delete(Task).where(Task.failed_at < now - FAILED_KEPT))
    return len(waiting)


def start_periodic() -> list[str]:
    """Defer every periodic job that is due; each once, however many schedulers ask, and none that has not ended yet."""
    now = clock.now()
    started = []
    for name, entry in PERIODIC.items():
        with unit_of_work():
            due = db.session.scalar(select(PeriodicRun.due_at).where(PeriodicRun.name == name))
            if due is None:
                _plan(name, now + entry.first)
            elif due <= now:
                taken = db.session.execute(
                    update(PeriodicRun)
                    .where(PeriodicRun.name == name, PeriodicRun.due_at == due)
                    .values(due_at=now + entry.every)
                )
                if getattr(taken, "rowcount", 0) and not _is_unfinished(name):
                    entry.job.defer()
                    started.append(name)
    return started


def counts() -> dict[str, tuple[int, float]]:
    """Per queue: how many tasks are due and how many seconds the oldest has waited."""
    now = clock.now()
    rows = db.session.execute(
        select(Task.queue, func.count(), func.min(Task.run_at))
        .where(Task.failed_at.is_(None), Task.run_at <= now)
        .group_by(Task.queue)
    )
    found = {queue: (number, max(0.0, (now - oldest).total_seconds())) for queue, number, oldest in rows}
    return {queue: found.get(queue, (0, 0.0)) for queue in QUEUES}


def outcomes() -> dict[tuple[str, str], int]:
    """How many jobs of a name ended in what way: ``done``, ``failed`` (also those tried again) or ``lost``."""
    try:
        stored = connect().hgetall(OUTCOMES_KEY)
    except redis.RedisError:
        return {}
    found = {tuple(key.decode().split(" ", 1)): int(number) for key, number in stored.items()}  # type: ignore[union-attr]  # the client may be asynchronous elsewhere
    return {(name, outcome): number for (outcome, name), number in found.items()}


def _note_outcome(name: str, outcome: str) -> None:
    # in Redis, for a job runs in a process of its own, whose memory nobody asks for numbers
    with suppress(redis.RedisError):
        connect().hincrby(OUTCOMES_KEY, f"{outcome} {name}", 1)


def _plan(name: str, due_at: dt.datetime) -> None:
    db.session.execute(
        insert(PeriodicRun).values(name=name, due_at=due_at).on_conflict_do_nothing(index_elements=["name"])
    )


def _is_unfinished(name: str) -> bool:
    return db.session.scalar(select(Task.id).where(Task.name == name, Task.failed_at.is_(None)).limit(1)) is not None


def _bells_are_waiting() -> bool:
    # while the queues still hold bells nobody has answered, ringing again would only make them longer
    try:
        return sum(rq.Queue(queue, connection=connect()).count for queue in QUEUES) > 1000
    except redis.RedisError:
        return False


def _unanswered(now: dt.datetime) -> Any:
    # what was put off (a retry, a job for later) has not been rung at all when its time comes
    was_put_off = and_(Task.run_at > Task.created_at, Task.run_at <= now)
    return or_(Task.run_at <= now - RING_AGAIN_AFTER, was_put_off)


def _free(now: dt.datetime) -> Any:
    return or_(Task.leased_until.is_(None), Task.leased_until < now)


@contextmanager
def _renewed(lease: Lease) -> Iterator[None]:
    app = current_app._get_current_object()  # type: ignore[attr-defined]  # the proxy is untyped; a thread needs the app
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(RENEW_EVERY_SECONDS):
            with app.app_context():
                try:
                    _renew(lease)
                except Exception as error:  # noqa: BLE001  # the next attempt may work; the lease is long enough for some
                    log.warning("the lease could not be renewed", task=lease.task_id, error=str(error))

    thread = threading.Thread(target=renew, name=f"lease-{lease.task_id}", daemon=True)
    thread.start()
    token = _lease.set(lease)
    try:
        yield
    finally:
        _lease.reset(token)
        stop.set()
        thread.join()


def _renew(lease: Lease) -> None:
    with unit_of_work():
        db.session.connection()
        db.session.execute(_held(lease).values(leased_until=clock.now() + LEASE))


def _held(lease: Lease) -> Any:
    return update(Task).where(Task.id == lease.task_id, Task.fence == lease.fence)


def _end(lease: Lease) -> None:
    ended = delete(Task).where(Task.id == lease.task_id, Task.fence == lease.fence).returning(Task.id)
    if db.session.scalar(ended) is None:
        raise LeaseLost


def _end_failed(lease: Lease, known: Job[Any] | None, arguments: tuple[Any, ...], text: str) -> None:
    with unit_of_work():
        attempts = db.session.scalar(select(Task.attempts).where(Task.id == lease.task_id, Task.fence == lease.fence))
        if attempts is None:
            return
        if attempts < (ATTEMPTS if known is None else known.attempts):
            again = clock.now() + FIRST_RETRY * 2 ** (attempts - 1)
            db.session.execute(_held(lease).values(leased_until=None, run_at=again, error=text))
            return
    try:
        with unit_of_work():
            _fail_for_good(lease, text)
            if known is not None and known.failed is not None:
                known.failed(arguments, text)
    except LeaseLost:
        return
    except Exception as error:  # noqa: BLE001  # the task ends whatever that raises
        log.error("what follows the failure failed too", error=str(error), traceback=traceback.format_exc())
        with suppress(LeaseLost), unit_of_work():
            _fail_for_good(lease, text)


def _fail_for_good(lease: Lease, text: str) -> None:
    still_held = _held(lease).values(leased_until=None, failed_at=clock.now(), error=text).returning(Task.id)
    if db.session.scalar(still_held) is None:
        raise LeaseLost
