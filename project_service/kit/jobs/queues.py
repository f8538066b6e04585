"""Queue names and the RQ adapter: wake a worker through Redis.

Redis carries only the id of a task. A lost notification is repeated by the sweep (``scheduling.sweep``).
"""

from __future__ import annotations

import redis
import rq
import structlog
from flask import current_app

DEFAULT, MAIL, TRANSFERS, REMOTE_TRANSFERS = "default", "mail", "transfers", "remote_transfers"
DELIVERIES = "deliveries"  # its only job runs all the time: a worker of this queue serves no other
# In the order in which a worker serves them. Transfers may take hours, and longer when the remote server is slow.
FINITE_QUEUES = (DEFAULT, MAIL, TRANSFERS, REMOTE_TRANSFERS)
QUEUES = (*FINITE_QUEUES, DELIVERIES)
QUICK_QUEUES = (DEFAULT, MAIL)
RUN_FUNCTION = "project_service.kit.jobs.run"  # imported by the worker by this name
NOTIFICATION_TTL_SECONDS = 3600  # of a notification that failed, in RQ's registry of failed jobs
MAX_PENDING_NOTIFICATIONS = 1000

log = structlog.get_logger(__name__)


def connect() -> redis.Redis:
    """Return the Redis client of the application."""
    client: redis.Redis = current_app.extensions["redis"]
    return client


def notify(queue: str, task_id: int) -> bool:
    """Wake a worker for a task; return whether Redis accepted the notification. If not, the sweep tries again."""
    try:
        rq.Queue(queue, connection=connect()).enqueue(
            RUN_FUNCTION, task_id, result_ttl=0, failure_ttl=NOTIFICATION_TTL_SECONDS, job_timeout=-1
        )
    except redis.RedisError as error:
        log.warning("Redis is unavailable; the task waits for the sweep", task=task_id, error=str(error))
        return False
    return True


def is_backlogged() -> bool:
    """Whether workers are behind with notifications, so that repeating them would only lengthen the queues."""
    try:
        return sum(rq.Queue(queue, connection=connect()).count for queue in QUEUES) > MAX_PENDING_NOTIFICATIONS
    except redis.RedisError:
        return False
