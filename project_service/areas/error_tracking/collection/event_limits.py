"""The number of events that a project may send in a clock minute.

Refused events and items that are not stored are counted by hour in Redis, for the settings page only: a write to the
database for each would cost as much as what the limit is there to prevent.
"""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Mapping

import redis
import structlog
from flask import current_app

from project_service.areas.error_tracking.errors.models import HOUR_SECONDS
from project_service.domain.rate_limits import CallCounter, RateLimit

REFUSED_EVENTS = "events"
REFUSED, PASSED_OVER = "refused", "passed_over"
COUNTED_HOURS = 25
RETRY_AFTER_FAILURE_SECONDS = 5.0
PAUSED_UNTIL = "error_tracking_redis_paused_until"

log = structlog.get_logger(__name__)


def counter_of(project_id: int, limit: int = 0) -> CallCounter:
    """Return the counter of the events of a project; 0 is no limit."""
    return RateLimit("error_tracking:events", limit, on_the_clock=True).counter(project_id)


def count_refused(project_id: int, moment: dt.datetime) -> None:
    """Count a refused event; not while Redis does not respond."""
    _count(REFUSED, project_id, moment, {REFUSED_EVENTS: 1})


def refused_events(project_id: int, moment: dt.datetime, hours: int) -> int:
    """Return how many events were refused in the last hours; 0 without Redis."""
    return _counted(REFUSED, project_id, moment, hours)[REFUSED_EVENTS]


def count_passed_over(project_id: int, moment: dt.datetime, items: Mapping[str, int]) -> None:
    """Count items of envelopes that are not stored, by kind; not while Redis does not respond."""
    _count(PASSED_OVER, project_id, moment, items)


def passed_over_items(project_id: int, moment: dt.datetime, hours: int) -> Counter[str]:
    """Return how many items of which kind came in the last hours; nothing without Redis."""
    return _counted(PASSED_OVER, project_id, moment, hours)


def _count(what: str, project_id: int, moment: dt.datetime, quantities: Mapping[str, int]) -> None:
    if time.monotonic() < current_app.extensions.get(PAUSED_UNTIL, 0.0):
        return
    key = _key(what, project_id, int(moment.timestamp()) // HOUR_SECONDS)
    client: redis.Redis = current_app.extensions["redis"]
    try:
        with client.pipeline(transaction=False) as pipeline:
            for name, quantity in quantities.items():
                pipeline.hincrby(key, name, quantity)
            pipeline.expire(key, COUNTED_HOURS * HOUR_SECONDS)
            pipeline.execute()
    except redis.RedisError as error:
        log.warning("what is not stored is not counted: Redis does not respond", error=str(error))
        current_app.extensions[PAUSED_UNTIL] = time.monotonic() + RETRY_AFTER_FAILURE_SECONDS


def _counted(what: str, project_id: int, moment: dt.datetime, hours: int) -> Counter[str]:
    last = int(moment.timestamp()) // HOUR_SECONDS
    client: redis.Redis = current_app.extensions["redis"]
    totals: Counter[str] = Counter()
    try:
        with client.pipeline(transaction=False) as pipeline:
            for number in range(hours):
                pipeline.hgetall(_key(what, project_id, last - number))
            hashes = pipeline.execute()
    except redis.RedisError:
        return totals
    for counts in hashes:
        for name, count in counts.items():
            totals[name.decode()] += int(count)
    return totals


def _key(what: str, project_id: int, hour: int) -> str:
    return f"error_tracking:{what}_by_kind:{project_id}:{hour}"
