"""Template filters of times: in the zone of the reader, and relative to now."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from functools import cache
from typing import Any

from flask import Flask
from markupsafe import Markup

from project_service.access.identity import caller
from project_service.kit import clock

# units of relative times in seconds, largest first
TIME_UNITS = ((365 * 86400, "year"), (30 * 86400, "month"), (86400, "day"), (3600, "hour"), (60, "minute"))
ELEMENT = Markup('<time datetime="{}" title="{}">{}</time>')
PREFIXES_WITHOUT_PLACES = ("Etc/", "SystemV/", "US/", "posix/", "right/")


def init_app(app: Flask) -> None:
    """Register the filters; those of points in time make elements with UTC in the title, ``day_text`` a text."""
    for text_of in (day, moment, ago, ahead, hour):
        app.add_template_filter(as_element(text_of), text_of.__name__)
    app.add_template_filter(day, "day_text")
    app.add_template_filter(utc, "utc")
    app.add_template_filter(duration, "duration")


def as_element(text_of: Callable[[Any], str]) -> Callable[[dt.date], str]:
    """Return a filter that makes a ``time`` element of a time, with UTC in its title; dates stay text."""

    def element(date_or_time: dt.date) -> str:
        text = text_of(date_or_time)
        if not isinstance(date_or_time, dt.datetime):
            return text
        return ELEMENT.format(date_or_time.isoformat(), utc(date_or_time), text)

    return element


@cache
def zone_names() -> tuple[str, ...]:
    """Return the time zones that a user can choose: those named by a place, in alphabetical order."""
    names = (name for name in zoneinfo.available_timezones() if "/" in name)
    return tuple(sorted(name for name in names if not name.startswith(PREFIXES_WITHOUT_PLACES)))


def local(time: dt.datetime) -> dt.datetime:
    """Return a time in the zone that the caller has chosen, by default UTC."""
    name = caller().time_zone
    return time.astimezone(zoneinfo.ZoneInfo(name) if name in zone_names() else dt.UTC)


def day(date_or_time: dt.date) -> str:
    """Format a date, or the date of a time in the zone of the reader."""
    date = local(date_or_time) if isinstance(date_or_time, dt.datetime) else date_or_time
    return date.strftime("%-d %b %Y")


def moment(time: dt.datetime) -> str:
    """Format a time in the zone of the reader, with the name of the zone."""
    return local(time).strftime("%-d %b %Y %H:%M:%S %Z")


def hour(time: dt.datetime) -> str:
    """Format an hour in the zone of the reader."""
    return local(time).strftime("%-d %b %H:%M")


def duration(length: dt.timedelta) -> str:
    """Format a duration in its two largest units, such as "2 hours 5 minutes"."""
    largest = _length(length)
    if not largest:
        return "less than a minute"
    count, unit = largest.split()
    seconds = next(seconds for seconds, name in TIME_UNITS if unit.startswith(name))
    smaller = _length(length - dt.timedelta(seconds=int(count) * seconds))
    return f"{largest} {smaller}" if smaller else largest


def utc(time: dt.datetime) -> str:
    """Format a time in UTC."""
    return time.astimezone(dt.UTC).strftime("%-d %b %Y %H:%M:%S UTC")


def ago(moment: dt.datetime) -> str:
    """Say how long ago a moment was; moments that tools report may be in the future."""
    passed = clock.now() - moment
    length = _length(abs(passed))
    if not length:
        return "just now"
    return f"{length} ago" if passed > dt.timedelta() else f"in {length}"


def ahead(moment: dt.datetime) -> str:
    """Say how far in the future a moment is."""
    return f"in {_length(moment - clock.now()) or 'less than a minute'}"


def _length(time: dt.timedelta) -> str:
    """Format a duration in its largest unit; empty below a minute."""
    for length, unit in TIME_UNITS:
        number = int(time.total_seconds() // length)
        if number >= 1:
            return f"{number} {unit}{'s' if number > 1 else ''}"
    return ""
