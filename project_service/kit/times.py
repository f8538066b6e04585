"""Moments as monitoring tools and archives of other programs write them (alert ingestion reference, section 5)."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from contextlib import suppress
from typing import Any

from dateutil import parser as dates

from project_service.kit import clock

LONGEST = 64
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
# The names of zones that mean one thing, or nearly always do: those that dates in mail may have (RFC 2822, section
# 4.3), and of the others what the parser of the reference product takes them for.
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
KNOWN = {*ZONES, "UTC", "GMT"}
LAST_WORD = re.compile(r"[A-Za-z]{3,5}\Z")
# Go writes the name of the zone behind its offset, and may write what its steady clock says behind that
BEHIND_OFFSET = re.compile(
    r"(:\d\d(?:[.,]\d+)?\s*[+-]\d\d:?\d\d)\s+(?:[A-Za-z]{1,5}|[+-]\d{2,4})(?:\s+m=[+-][\d.]+)?\Z"
)
SIGNED_UTC = re.compile(r"(?:UTC|GMT)\s?(?=[+-]\d)", re.IGNORECASE)
END_OF_DAY = re.compile(r"(?<![\d:+-])24(?=:00(?::00(?:[.,]0+)?)?(?![\d:.,]))")
LEAP_SECOND = re.compile(r"(?<![\d:])(\d\d:\d\d):60(?!\d)")
CLOCK_ALONE = re.compile(
    r"T?\d{1,2}(?::\d\d(?::\d\d(?:[.,]\d+)?)?\s*(?:[AP]M)?|\s*[AP]M)\s*(?:[A-Z]{1,5}|[+-]\d\d?(?::?\d\d)?)?",
    re.IGNORECASE,
)
SMALL_NUMBER = re.compile(r"\d{1,2}(?:[.,]\d*)?")
NOTHING = dt.datetime.min.replace(tzinfo=dt.UTC)  # what Go writes for a time that was never set


def read_time(value: Any, *, epoch: bool = False) -> dt.datetime | None:
    """A moment from lenient text; from a 13-digit number of milliseconds only with ``epoch``."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        if not epoch or not 10**12 <= value < 10**13:
            return None
        return dt.datetime.fromtimestamp(value / 1000, dt.UTC)
    if not isinstance(value, str) or len(value) > LONGEST or not re.search(r"\d", value):
        return None
    moment = _in_iso(value) or _in_any_form(value.strip())
    return None if moment == NOTHING else moment


def _in_iso(text: str) -> dt.datetime | None:
    """As nearly everybody writes it, read in a hundredth of the time."""
    if ISO.fullmatch(text):
        with suppress(ValueError, OverflowError):
            return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
    return None


def _in_any_form(text: str) -> dt.datetime | None:
    if SMALL_NUMBER.fullmatch(text):  # a count of something rather than a day of this month
        return None
    text = SIGNED_UTC.sub("", BEHIND_OFFSET.sub(r"\1", text))  # the parser takes "UTC+1" for an hour before UTC
    text, later = _rolled_over(LAST_WORD.sub(_in_capitals, text))
    today = clock.today()
    day = today if CLOCK_ALONE.fullmatch(text) else today.replace(month=1, day=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown names of time zones are read as UTC
            moment = dates.parse(text, default=dt.datetime.combine(day, dt.time(), dt.UTC), tzinfos=ZONES)
        return moment.astimezone(dt.UTC) + later
    except (ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def _in_capitals(word: re.Match[str]) -> str:
    """The name of a zone as the parser knows it."""
    name = word[0].upper()
    return name if name in KNOWN else word[0]


def _rolled_over(text: str) -> tuple[str, dt.timedelta]:
    """What the parser reads, and how much later it is: 24:00 is the end of a day, a second 60 that of a minute."""
    text, days = END_OF_DAY.subn("00", text, count=1)
    text, seconds = LEAP_SECOND.subn(r"\1:59", text, count=1)
    return text, dt.timedelta(days=days, seconds=seconds)
