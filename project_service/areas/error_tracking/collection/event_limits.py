"""The number of events that a project may send in a clock minute, counted in Redis.

Without Redis nothing is limited. Refused events are counted there too, by hour: a write to the database for each would
cost as much as what the limit is there to prevent.
"""

from __future__ import annotations

import datetime as dt
import time

import redis
import structlog
from flask import current_app

from project_service.areas.error_tracking.errors.models import HOUR_SECONDS

MINUTE_SECONDS = 60
KEPT_HOURS = 25
RETRY_AFTER_FAILURE_SECONDS = 5.0
PAUSED_UNTIL = "error_tracking_redis_paused_until"

log = structlog.get_logger(__name__)


def count_event(project_id: int, limit: int, moment: dt.datetime) -> int | None:
    """Count an event; the seconds to the end of the minute if there were more than ``limit``, else ``None``."""
    if limit <= 0 or time.monotonic() < current_app.extensions.get(PAUSED_UNTIL, 0.0):
        return None
    epoch = int(moment.timestamp())
    minute = epoch // MINUTE_SECONDS
    key = f"error_tracking:events:{project_id}:{minute}"
    client: redis.Redis = current_app.extensions["redis"]
    try:
        with client.pipeline(transaction=False) as pipeline:
            pipeline.incr(key)
            pipeline.expire(key, 2 * MINUTE_SECONDS)
            count = int(pipeline.execute()[0])
        if count <= limit:
            return None
        refused = _refused_key(project_id, epoch // HOUR_SECONDS)
        with client.pipeline(transaction=False) as pipeline:
            pipeline.incr(refused)
            pipeline.expire(refused, KEPT_HOURS * HOUR_SECONDS)
            pipeline.execute()
    except redis.RedisError as error:
        log.warning("events are not limited: Redis does not respond", error=str(error))
        current_app.extensions[PAUSED_UNTIL] = time.monotonic() + RETRY_AFTER_FAILURE_SECONDS
        return None
    return max(1, MINUTE_SECONDS - epoch % MINUTE_SECONDS)


def refused_events(project_id: int, moment: dt.datetime, hours: int) -> int:
    """Return how many events were refused in the last hours; 0 without Redis."""
    last = int(moment.timestamp()) // HOUR_SECONDS
    client: redis.Redis = current_app.extensions["redis"]
    try:
        found = client.mget([_refused_key(project_id, last - number) for number in range(hours)])
    except redis.RedisError:
        return 0
    return sum(int(one) for one in found if one is not None)


def _refused_key(project_id: int, hour: int) -> str:
    return f"error_tracking:refused:{project_id}:{hour}"
