"""The one place that asks what time it is, so that tests can set it."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """This moment, in UTC."""
    return dt.datetime.now(dt.UTC)


def today() -> dt.date:
    """This day, in UTC: the time zone of every date the service compares with."""
    return now().date()


def isoformat(moment: dt.datetime) -> str:
    """``2021-01-20T08:15:30.123Z``: UTC, milliseconds, as every timestamp of the API (common behaviour, section 12)."""
    if moment.tzinfo is not dt.UTC:
        moment = moment.astimezone(dt.UTC)
    return moment.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"
