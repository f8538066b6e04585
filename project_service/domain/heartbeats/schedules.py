"""When a call is due: after a period, or by a cron expression in a time zone (heartbeats reference, section 2).

Local times are computed without a zone and converted afterwards: one that does not exist stands for the first moment
after the gap, one that occurs twice for the first of the two (docs/decisions/cron-expressions.md).
"""

from __future__ import annotations

import datetime as dt
import re

from croniter import croniter
from croniter.croniter import CroniterError

from project_service.kit import clock

FIELDS = 5
MAX_EXPRESSION_CHARACTERS = 100
_NAMES = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat"
_FIELD = re.compile(rf"(?:[\d*/,?#-]|l|{_NAMES})+", re.IGNORECASE)
_UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def is_expression(text: str) -> bool:
    """Whether a text is a cron expression of five fields that names at least one moment."""
    fields = text.split()
    if len(text) > MAX_EXPRESSION_CHARACTERS or len(fields) != FIELDS or not all(map(_FIELD.fullmatch, fields)):
        return False
    try:
        croniter(text, clock.now().replace(tzinfo=None)).get_next(dt.datetime)
    except (CroniterError, ValueError, KeyError):
        return False
    return True


def next_run(expression: str, zone: dt.tzinfo, after: dt.datetime) -> dt.datetime:
    """Return the first moment of a cron expression in a zone that is later than ``after``."""
    runs = croniter(expression, after.astimezone(zone).replace(tzinfo=None))
    while True:
        run = _moment(runs.get_next(dt.datetime), zone)
        if run > after:
            return run


def words_of(seconds: int) -> str:
    """Return a duration in its two largest units: ``1 day``, ``1 hour 30 minutes``."""
    parts = []
    for length, unit in _UNITS:
        number, seconds = divmod(seconds, length)
        if number:
            parts.append(f"{number} {unit}{'s' if number > 1 else ''}")
    return " ".join(parts[:2]) or "0 seconds"


def _moment(local: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    earlier, later = sorted(local.replace(tzinfo=zone, fold=fold).astimezone(dt.UTC) for fold in (0, 1))
    if _local(earlier, zone) == local:
        return earlier
    if _local(later, zone) == local:
        return later
    # in a gap: the clock jumps between the two, search for the second at which it does
    while later - earlier > dt.timedelta(seconds=1):
        middle = earlier + dt.timedelta(seconds=int((later - earlier).total_seconds()) // 2)
        if _local(middle, zone) < local:
            earlier = middle
        else:
            later = middle
    return later


def _local(moment: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    return moment.astimezone(zone).replace(tzinfo=None)
