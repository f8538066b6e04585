"""The number of events that a project may send in a clock minute.

Refused events and check-ins are counted by hour in Redis, for the settings page only: a write to the database for each
would cost as much as what the limit is there to prevent.
"""

from __future__ import annotations

import datetime as dt
import time

import redis
import structlog
from flask import current_app

from project_service.areas.error_tracking.errors.models import HOUR_SECONDS
from project_service.domain.rate_limits import CallCounter, RateLimit

REFUSED, CHECK_INS = "refused", "check_ins"
COUNTED_HOURS = 25
RETRY_AFTER_FAILURE_SECONDS = 5.0
PAUSED_UNTIL = "error_tracking_redis_paused_until"

log = structlog.get_logger(__name__)


def counter_of(project_id: int, limit: int = 0) -> CallCounter:
    """Return the counter of the events of a project; 0 is no limit."""
    return RateLimit("error_tracking:events", limit, on_the_clock=True).counter(project_id)


def count_refused(project_id: int, moment: dt.datetime) -> None:
    """Count a refused event; not while Redis does not respond."""
    _count(REFUSED, project_id, moment, 1)


def refused_events(project_id: int, moment: dt.datetime, hours: int) -> int:
    """Return how many events were refused in the last hours; 0 without Redis."""
    return _counted(REFUSED, project_id, moment, hours)


def count_check_ins(project_id: int, moment: dt.datetime, quantity: int) -> None:
    """Count check-ins, which are not stored; not while Redis does not respond."""
    _count(CHECK_INS, project_id, moment, quantity)


def check_ins(project_id: int, moment: dt.datetime, hours: int) -> int:
    """Return how many check-ins came in the last hours; 0 without Redis."""
    return _counted(CHECK_INS, project_id, moment, hours)


def _count(what: str, project_id: int, moment: dt.datetime, quantity: int) -> None:
    if time.monotonic() < current_app.extensions.get(PAUSED_UNTIL, 0.0):
        return
    key = _key(what, project_id, int(moment.timestamp()) // HOUR_SECONDS)
    client: redis.Redis = current_app.extensions["redis"]
    try:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.incrby(key, quantity)
            pipeline.expire(key, COUNTED_HOURS * HOUR_SECONDS)
            pipeline.execute()
    except redis.RedisError as error:
        log.warning("refused events and check-ins are not counted: Redis does not respond", error=str(error))
        current_app.extensions[PAUSED_UNTIL] = time.monotonic() + RETRY_AFTER_FAILURE_SECONDS


def _counted(what: str, project_id: int, moment: dt.datetime, hours: int) -> int:
    last = int(moment.timestamp()) // HOUR_SECONDS
    client: redis.Redis = current_app.extensions["redis"]
    try:
        counts = client.mget([_key(what, project_id, last - number) for number in range(hours)])
    except redis.RedisError:
        return 0
    return sum(int(count) for count in counts if count is not None)


def _key(what: str, project_id: int, hour: int) -> str:
    return f"error_tracking:{what}:{project_id}:{hour}"
