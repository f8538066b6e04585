"""The number of events that a project may send in a clock minute.

Refused events are counted by hour in Redis, for the settings page only: a write to the database for each would cost as
much as what the limit is there to prevent.
"""

from __future__ import annotations

import datetime as dt
import time

import redis
import structlog
from flask import current_app

from project_service.areas.error_tracking.errors.models import HOUR_SECONDS
from project_service.domain import rate_limits
from project_service.domain.rate_limits import CallCounter, RateLimit
from project_service.kit.db.session import reading

REFUSED_HOURS = 25
RETRY_AFTER_FAILURE_SECONDS = 5.0
PAUSED_UNTIL = "error_tracking_redis_paused_until"

log = structlog.get_logger(__name__)


def counter_of(project_id: int, limit: int) -> CallCounter:
    """Return the counter of the events of a project; 0 is no limit."""
    return RateLimit("error_tracking:events", limit, on_the_clock=True).counter(project_id)


def wait_of(counter: CallCounter) -> dt.timedelta | None:
    """Return the time to the end of the minute if no more events are taken in it, else ``None``."""
    if counter.limit.calls <= 0:
        return None
    with reading():
        return rate_limits.wait_of(counter)


def count_refused(project_id: int, moment: dt.datetime) -> None:
    """Count a refused event; not while Redis does not respond."""
    if time.monotonic() < current_app.extensions.get(PAUSED_UNTIL, 0.0):
        return
    key = _refused_key(project_id, int(moment.timestamp()) // HOUR_SECONDS)
    client: redis.Redis = current_app.extensions["redis"]
    try:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, REFUSED_HOURS * HOUR_SECONDS)
            pipeline.execute()
    except redis.RedisError as error:
        log.warning("refused events are not counted: Redis does not respond", error=str(error))
        current_app.extensions[PAUSED_UNTIL] = time.monotonic() + RETRY_AFTER_FAILURE_SECONDS


def refused_events(project_id: int, moment: dt.datetime, hours: int) -> int:
    """Return how many events were refused in the last hours; 0 without Redis."""
    last = int(moment.timestamp()) // HOUR_SECONDS
    client: redis.Redis = current_app.extensions["redis"]
    try:
        counts = client.mget([_refused_key(project_id, last - number) for number in range(hours)])
    except redis.RedisError:
        return 0
    return sum(int(count) for count in counts if count is not None)


def _refused_key(project_id: int, hour: int) -> str:
    return f"error_tracking:refused:{project_id}:{hour}"
