"""The current time in UTC; tests replace these functions."""

from __future__ import annotations

import datetime as dt


def now() -> dt.datetime:
    """Return the current time in UTC."""
    return dt.datetime.now(dt.UTC)


def today() -> dt.date:
    """Return the current date in UTC, the time zone of all date comparisons."""
    return now().date()


def isoformat(moment: dt.datetime) -> str:
    """Format a timestamp of the API: ``2021-01-20T08:15:30.123Z`` (common reference, section 12)."""
    if moment.tzinfo is not dt.UTC:
        moment = moment.astimezone(dt.UTC)
    return moment.isoformat(timespec="milliseconds")[: -len("+00:00")] + "Z"
