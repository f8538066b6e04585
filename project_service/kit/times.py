"""Parsing of timestamps of monitoring tools and archives (alert ingestion reference, section 5)."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from contextlib import suppress
from decimal import Decimal
from typing import Any

from dateutil import parser as dates

from project_service.kit import clock
from project_service.kit.time_words import ZONE_NAMES, ZONES, normalized

MAX_LENGTH = 128  # characters
ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)
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
DIGITS = re.compile(r"\d+", re.ASCII)
NUMBER_WITH_FRACTION = re.compile(r"(\d{9,})[.,](\d+)", re.ASCII)  # shorter ones are dates without a year, or counts
DATE_DIGITS = {8: "%Y%m%d", 14: "%Y%m%d%H%M%S"}
COMPACT = re.compile(r"(\d{14})(?!\d)", re.ASCII)
SHORT_NUMBER = re.compile(r"[+-]?[\d.,/\s-]{1,7}", re.ASCII)  # too short for a day, a month and a year
LIKE_A_TIME = re.compile(r"\d[-/.:]\d|(?<!\d)(?:19|20)\d\d(?!\d)|\d{8,}", re.ASCII)
ISO_MONTH = re.compile(r"\d{4}-\d\d", re.ASCII)
ISO_WEEK_OR_DAY = re.compile(r"\d{4}-?(W\d\d|\d{3}(?![\d-]))", re.ASCII)  # 2026-W10-3 and 2026-063
SCIENTIFIC = re.compile(r"[+-]?[\d.,]+e[+-]?\d+", re.ASCII | re.IGNORECASE)
NUMERIC_DATE = re.compile(r"(?<![\d./-])(\d{1,4})([./-])\s?(\d{1,2})\2\s?(\d{2}|\d{4})(?![./-]|\d)", re.ASCII)
NAMED_DATE = re.compile(r"(?<!\d)(\d{1,2})/([A-Za-z]{3,9})/(\d{4})(?::(?=\d))?", re.ASCII)  # of access logs
FIRST_YEAR_OF_1900 = 69  # of two digits, as POSIX and Ruby read them
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# a number below the first is seconds, below the second milliseconds, below the third microseconds, else nanoseconds
EPOCH_UNITS = ((10**11, 1), (10**14, 10**3), (10**17, 10**6))
SMALLEST_TIME = 10**8  # in 1973; smaller numbers are codes, counts and durations
NANOSECONDS = 10**9
# what programs write for a time that is not set: Go the first, C, Java, JavaScript and protobuf the second
NOT_SET = (dt.datetime.min.replace(tzinfo=dt.UTC), EPOCH)


def read_time(value: Any, zone: dt.tzinfo = dt.UTC) -> dt.datetime | None:
    """Parse a timestamp: text in any common format, or a number since 1970; ``None`` if it cannot be read.

    The size of a number, also of a text of digits, gives its unit (``EPOCH_UNITS``); one below ``SMALLEST_TIME`` is no
    time. A text of 8 or 14 digits is a date, a date with dots or slashes begins with its day unless four digits lead.
    The first moments of year 1 and of 1970 are what programs write for a time that is not set. A text without a zone is
    in ``zone``, by default UTC.
    """
    moment = _parse(value, zone)
    return None if moment in NOT_SET else moment


def is_unset(value: Any) -> bool:
    """Whether a value says that there is no time: blank, or the first moment of year 1 or of 1970."""
    if isinstance(value, str):
        return not value.strip() or value.startswith("0001-01-01") or _parse(value) in NOT_SET
    return value is None or value is False or value in ([], {})


def looks_like_time(value: Any) -> bool:
    """Whether a value that cannot be read was probably meant as a time."""
    if isinstance(value, str):
        return LIKE_A_TIME.search(value) is not None
    return isinstance(value, int | float) and not isinstance(value, bool)


def _parse(value: Any, zone: dt.tzinfo = dt.UTC) -> dt.datetime | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _since_epoch(Decimal(str(value)))
    if not isinstance(value, str) or len(value) > MAX_LENGTH or not re.search(r"[0-9]", value):
        return None
    text = value.strip()
    return _parse_iso(text, zone) or (_parse_number(text, zone) if _is_number(text) else _parse_any(text, zone))


def _is_number(text: str) -> bool:
    return DIGITS.fullmatch(text) is not None or NUMBER_WITH_FRACTION.fullmatch(text) is not None


def _parse_number(text: str, zone: dt.tzinfo) -> dt.datetime | None:
    """Parse digits, with or without a fraction."""
    whole, _, fraction = text.replace(",", ".").partition(".")
    layout = DATE_DIGITS.get(len(whole))
    if layout is None:
        return _since_epoch(Decimal(f"{whole}.{fraction or 0}"))
    if fraction and len(whole) == min(DATE_DIGITS):
        return None
    try:
        moment = dt.datetime.strptime(whole, layout).replace(tzinfo=zone)
        return moment.replace(microsecond=int(f"{fraction:0<6}"[:6])).astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None


def _since_epoch(number: Decimal) -> dt.datetime | None:
    """Convert seconds, milliseconds, microseconds or nanoseconds since 1970."""
    if not number.is_finite() or number < SMALLEST_TIME:
        return None
    per_second = next((unit for limit, unit in EPOCH_UNITS if number < limit), NANOSECONDS)
    try:
        return EPOCH + dt.timedelta(microseconds=int(number * 10**6 / per_second))
    except OverflowError:
        return None


def _parse_iso(text: str, zone: dt.tzinfo) -> dt.datetime | None:
    """Parse the most common format, a hundred times faster than the general parser, and those it does not know."""
    with suppress(ValueError, OverflowError):
        if ISO.fullmatch(text):
            return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
        if not text.isdigit() and ISO_WEEK_OR_DAY.match(text):
            moment = dates.isoparse(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).astimezone(dt.UTC)
    return None


def _parse_any(text: str, zone: dt.tzinfo) -> dt.datetime | None:
    text, named_zone = normalized(text)
    zone = named_zone or zone
    text = NUMERIC_DATE.sub(_year_first, NAMED_DATE.sub(r"\1 \2 \3 ", text), count=1)
    if SCIENTIFIC.fullmatch(text) or (SHORT_NUMBER.fullmatch(text) and not ISO_MONTH.fullmatch(text)):
        return None
    text = COMPACT.sub(_spaced, text, count=1)
    text = SIGNED_UTC.sub("", AFTER_OFFSET.sub(r"\1", text))  # the parser reads "UTC+1" as one hour before UTC
    text, later = _rolled_over(LAST_WORD.sub(_zone_in_capitals, text))
    today = clock.today()
    day = today if TIME_ONLY.fullmatch(text) else today.replace(month=1, day=1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown names of time zones are read as UTC
            moment = dates.parse(text, default=dt.datetime.combine(day, dt.time(), zone), tzinfos=ZONES)
        return moment.astimezone(dt.UTC) + later
    except (ValueError, ArithmeticError, TypeError, AttributeError):
        return None


def _year_first(date: re.Match[str]) -> str:
    """Rewrite a numeric date as ISO; a year comes last unless it leads with four digits.

    Two digits before a dash are the year, as in ISO 8601.
    """
    first, separator, month, last = date.groups()
    leads = len(first) == 4 or (separator == "-" and len(last) == 2)
    year, day = (first, last) if leads else (last, first)
    if len(year) == 2:
        year = f"{19 if int(year) >= FIRST_YEAR_OF_1900 else 20}{year}"
    return f"{year:0>4}-{month:0>2}-{day:0>2}"


def _spaced(digits: re.Match[str]) -> str:
    text = digits[1]
    return f"{text[:4]}-{text[4:6]}-{text[6:8]} {text[8:10]}:{text[10:12]}:{text[12:]}"


def _zone_in_capitals(word: re.Match[str]) -> str:
    """Return the name of a time zone in capitals, as the parser expects it."""
    name = word[0].upper()
    return name if name in ZONE_NAMES else word[0]


def _rolled_over(text: str) -> tuple[str, dt.timedelta]:
    """Replace 24:00 and second 60, which the parser refuses; return the text and the time to add."""
    text, days = END_OF_DAY.subn("00", text, count=1)
    text, seconds = LEAP_SECOND.subn(r"\1:59", text, count=1)
    return text, dt.timedelta(days=days, seconds=seconds)
