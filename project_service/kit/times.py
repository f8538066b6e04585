"""Parsing of timestamps of monitoring tools and archives (alert ingestion reference, section 5)."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from contextlib import suppress
from typing import Any

from dateutil import parser as dates

from project_service.kit import clock

MAX_LENGTH = 64
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
# Unambiguous names of time zones: those of dates in mail (RFC 2822, section 4.3), and others with the offset that the
# parser of the reference product assumes.
ZONES = {
    name: round(hours * 3600)
    for hours, names in {
        -10: "HST",
        -9: "AKST",
        -8: "PST AKDT",
        -7: "MST PDT",
        -6: "CST MDT",
        -5: "EST CDT",
        -4: "EDT AST CLT",
        -3.5: "NST",
        -3: "ADT BRT ART CLST",
        -2.5: "NDT",
        0: "WET",
        1: "CET BST WEST MET MEZ WAT",
        2: "CEST EET MEST MESZ SAST",
        3: "EEST MSK EAT",
        4: "MSD",
        5: "PKT",
        5.5: "IST",
        7: "ICT WIB",
        8: "SGT HKT AWST",
        9: "JST KST",
        9.5: "ACST",
        10: "AEST",
        10.5: "ACDT",
        11: "AEDT",
        12: "NZST",
        13: "NZDT",
    }.items()
    for name in names.split()
}
ZONE_NAMES = {*ZONES, "UTC", "GMT"}
LAST_WORD = re.compile(r"[A-Za-z]{3,5}\Z")
# Go writes the name of the zone after the offset, and may add the reading of its monotonic clock
AFTER_OFFSET = re.compile(r"(:\d\d(?:[.,]\d+)?\s*[+-]\d\d:?\d\d)\s+(?:[A-Za-z]{1,5}|[+-]\d{2,4})(?:\s+m=[+-][\d.]+)?\Z")
SIGNED_UTC = re.compile(r"(?:UTC|GMT)\s?(?=[+-]\d)", re.IGNORECASE)
END_OF_DAY = re.compile(r"(?<![\d:+-])24(?=:00(?::00(?:[.,]0+)?)?(?![\d:.,]))")
LEAP_SECOND = re.compile(r"(?<![\d:])(\d\d:\d\d):60(?!\d)")
TIME_ONLY = re.compile(
    r"T?\d{1,2}(?::\d\d(?::\d\d(?:[.,]\d+)?)?\s*(?:[AP]M)?|\s*[AP]M)\s*(?:[A-Z]{1,5}|[+-]\d\d?(?::?\d\d)?)?",
    re.IGNORECASE,
)
SMALL_NUMBER = re.compile(r"\d{1,2}(?:[.,]\d*)?")
GO_ZERO_TIME = dt.datetime.min.replace(tzinfo=dt.UTC)  # what Go writes for a time that is not set


def read_time(value: Any, *, epoch: bool = False) -> dt.datetime | None:
    """Parse a timestamp in any common format; with ``epoch`` also a 13-digit number of milliseconds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if not epoch or not 10**12 <= value < 10**13:
            return None
        return dt.datetime.fromtimestamp(value / 1000, dt.UTC)
    if not isinstance(value, str) or len(value) > MAX_LENGTH or not re.search(r"\d", value):
        return None
    moment = _parse_iso(value) or _parse_any(value.strip())
    return None if moment == GO_ZERO_TIME else moment


def _parse_iso(text: str) -> dt.datetime | None:
    """Parse the most common format, a hundred times faster than the general parser."""
    if ISO.fullmatch(text):
        with suppress(ValueError, OverflowError):
            return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    return None


def _parse_any(text: str) -> dt.datetime | None:
    if SMALL_NUMBER.fullmatch(text):  # a count rather than a day of this month
        return None
    text = SIGNED_UTC.sub("", AFTER_OFFSET.sub(r"\1", text))  # the parser reads "UTC+1" as one hour before UTC
    text, later = _rolled_over(LAST_WORD.sub(_zone_in_capitals, text))
    today = clock.today()
    day = today if TIME_ONLY.fullmatch(text) else today.replace(month=1, day=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown names of time zones are read as UTC
            moment = dates.parse(text, default=dt.datetime.combine(day, dt.time(), dt.UTC), tzinfos=ZONES)
        return moment.astimezone(dt.UTC) + later
    except (ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def _zone_in_capitals(word: re.Match[str]) -> str:
    """Return the name of a time zone in capitals, as the parser expects it."""
    name = word[0].upper()
    return name if name in ZONE_NAMES else word[0]


def _rolled_over(text: str) -> tuple[str, dt.timedelta]:
    """Replace 24:00 and second 60, which the parser refuses; return the text and the time to add."""
    text, days = END_OF_DAY.subn("00", text, count=1)
    text, seconds = LEAP_SECOND.subn(r"\1:59", text, count=1)
    return text, dt.timedelta(days=days, seconds=seconds)
