"""Registry of jobs, and deferring of a job: write its task in the caller's transaction."""

from __future__ import annotations

import dataclasses
import datetime as dt
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec

from project_service.kit import clock, logs
from project_service.kit.db.session import after_commit, db
from project_service.kit.jobs import queues
from project_service.kit.jobs.models import Task

MAX_ATTEMPTS = 5

Arguments = ParamSpec("Arguments")
OnFailure = Callable[[tuple[Any, ...], str], None]


@dataclass(frozen=True)
class Job(Generic[Arguments]):
    """A function that a worker runs later."""

    name: str
    function: Callable[Arguments, None]
    queue: str
    max_attempts: int
    on_failure: OnFailure | None = None

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        """Run it synchronously."""
        self.function(*args, **kwargs)

    def on(self, queue: str) -> Job[Arguments]:
        """Return the same job for workers of another queue."""
        return dataclasses.replace(self, queue=queue)

    def defer(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Task:
        """Write a task in the current unit of work and wake a worker after its commit."""
        return self.defer_until(None, *args, **kwargs)

    def defer_until(self, moment: dt.datetime | None, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Task:
        """Write a task that is due at ``moment``; the sweep wakes a worker then."""
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
            after_commit(lambda: queues.notify(task.queue, task.id))
        return task


JOBS: dict[str, Job[Any]] = {}


def job(
    name: str,
    queue: str = queues.DEFAULT,
    *,
    max_attempts: int = MAX_ATTEMPTS,
    on_failure: OnFailure | None = None,
) -> Callable[[Callable[Arguments, None]], Job[Arguments]]:
    """Register a function as a job under a name, which is stored with each task and must never change.

    ``on_failure`` is called with the arguments and the error, in a unit of work, after ``max_attempts`` attempts.
    """

    def decorate(function: Callable[Arguments, None]) -> Job[Arguments]:
        registered = Job(name, function, queue, max_attempts, on_failure)
        JOBS[name] = registered
        return registered

    return decorate
