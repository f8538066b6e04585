"""State of the queues: due tasks, running tasks, and counts of ended jobs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import redis
from sqlalchemy import ColumnElement, Select, and_, func, select

from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.jobs.leases import is_unleased
from project_service.kit.jobs.models import Task
from project_service.kit.jobs.queues import QUEUES, connect

OUTCOMES_KEY = "project-service:outcomes"


def counts() -> dict[str, tuple[int, float]]:
    """Return for each queue the number of due tasks and the age of the oldest in seconds."""
    now = clock.now()
    rows = db.session.execute(
        select(Task.queue, func.count(), func.min(Task.run_at))
        .where(Task.failed_at.is_(None), Task.run_at <= now)
        .group_by(Task.queue)
    )
    waiting = {queue: (number, max(0.0, (now - oldest).total_seconds())) for queue, number, oldest in rows}
    return {queue: waiting.get(queue, (0, 0.0)) for queue in QUEUES}


def in_progress(queue: str) -> list[tuple[str, list[Any]]]:
    """Return job name and arguments of the tasks of a queue that workers run, the caller's own included."""
    now = clock.now()
    leased = select(Task.name, Task.arguments).where(
        Task.queue == queue, Task.failed_at.is_(None), Task.run_at <= now, Task.leased_until >= now
    )
    return [(name, arguments) for name, arguments in db.session.execute(leased)]


def _conditions() -> dict[str, ColumnElement[bool]]:
    now = clock.now()
    unended = Task.failed_at.is_(None)
    return {
        "failed": Task.failed_at.is_not(None),
        "running": and_(unended, Task.leased_until >= now),
        "waiting": and_(unended, is_unleased(now)),
    }


def states() -> dict[str, int]:
    """Return the number of tasks in each state: ``failed``, ``running``, ``waiting``."""
    conditions = _conditions()
    counted = [func.count().filter(condition) for condition in conditions.values()]
    return dict(zip(conditions, db.session.execute(select(*counted).select_from(Task)).one(), strict=True))


def tasks_in(state: str) -> Select[Task]:
    """Select the tasks in a state: the newest failures first, otherwise what is due first."""
    order = (Task.failed_at.desc(), Task.id.desc()) if state == "failed" else (Task.run_at, Task.id)
    return select(Task).where(_conditions()[state]).order_by(*order)


def outcomes() -> dict[tuple[str, str], int]:
    """Return how many jobs of a name ended how: ``done``, ``failed`` (retried ones included) or ``lost``."""
    try:
        stored = connect().hgetall(OUTCOMES_KEY)
    except redis.RedisError:
        return {}
    totals = {tuple(key.decode().split(" ", 1)): int(number) for key, number in stored.items()}  # type: ignore[union-attr]  # typed for the asynchronous client too
    return {(name, outcome): number for (outcome, name), number in totals.items()}


def count_outcome(name: str, outcome: str) -> None:
    """Count the end of a job, in Redis: each job runs in a process of its own, whose memory is not scraped."""
    with suppress(redis.RedisError):
        connect().hincrby(OUTCOMES_KEY, f"{outcome} {name}", 1)
