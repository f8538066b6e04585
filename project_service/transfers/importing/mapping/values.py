"""Conversion of JSON values of an archive to values of columns."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

from project_service.kit import exact_json
from project_service.kit.times import read_time
from project_service.transfers.importing.refusals import invalid

MAX_TITLE_LENGTH = 255
MAX_NAME_LENGTH = 1024  # of names of branches and files, and of other texts of one line
MAX_INTEGER = 2**63 - 1
MAX_IID = 2**31 - 1  # leaves room for iids of rows that are created after the import
YEAR = re.compile(r"[12]\d{3}", re.ASCII)
MAX_CACHED_LENGTH = 64  # characters of a timestamp
MIN_UNIX_SECONDS, MIN_UNIX_MILLISECONDS = 10**8, 10**11  # in 1973, and in the year 5138 if they were seconds
FALSE = ("", "false", "f", "0", "off")
NESTED = (dict, list)


def objects_in(rows: Any) -> Iterable[dict[str, Any]]:
    """Return the objects of an array; none if it is missing or not an array."""
    return [row for row in rows if isinstance(row, dict)] if rows and isinstance(rows, list) else ()


def text_of(value: Any) -> str | None:
    """Return a value as text; other JSON values as their JSON."""
    if value is None or isinstance(value, str):
        return value
    return exact_json.dumps(value).decode()


def title_of(row: dict[str, Any]) -> str:
    """Return the title of a row, which must have one of at most 255 characters."""
    title = text_of(row.get("title"))
    if title is None or not title.strip():
        raise invalid("Title can't be blank")
    if len(title) > MAX_TITLE_LENGTH:
        raise invalid(f"Title is too long (maximum is {MAX_TITLE_LENGTH} characters)")
    return title


def name_of(value: Any, label: str) -> str | None:
    """Return a value as a text of one line, such as the name of a file; raises ``RowRefused`` if it is too long."""
    text = text_of(value)
    if text is not None and len(text) > MAX_NAME_LENGTH:
        raise invalid(f"{label} is too long (maximum is {MAX_NAME_LENGTH} characters)")
    return text


def is_set(value: Any) -> bool:
    """Whether a flag is set. Flags restrict visibility, so every value but a plain false counts as set."""
    return value not in (None, False, 0) if not isinstance(value, str) else value.lower() not in FALSE


def is_number(value: Any) -> TypeGuard[int]:
    """Whether a value is an integer that a column holds."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MAX_INTEGER


def is_iid(value: Any) -> TypeGuard[int]:
    """Whether a value is a number within a project."""
    return is_number(value) and 0 < value <= MAX_IID


def moment_of(value: Any) -> dt.datetime | None:
    """Parse a timestamp; nothing if it is not one."""
    if isinstance(value, str):
        return _cached_moment(value) if len(value) <= MAX_CACHED_LENGTH else _moment(value)
    return _cached_moment(value) if is_number(value) else None


@functools.lru_cache(maxsize=1024)
def _cached_moment(value: str | int) -> dt.datetime | None:
    # rows that were created together have the same timestamp
    return _moment(value)


def _moment(value: str | int) -> dt.datetime | None:
    if isinstance(value, int):
        return _since_epoch(value)
    try:
        moment = dt.datetime.fromisoformat(value.removesuffix(" UTC"))
        return moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        # other notations; without a year, the current one would be assumed
        return read_time(value) if YEAR.search(value) else None


def _since_epoch(value: int) -> dt.datetime | None:
    """Convert seconds or milliseconds since 1970; small numbers are not timestamps."""
    seconds = value / 1000 if value >= MIN_UNIX_MILLISECONDS else value
    return dt.datetime.fromtimestamp(seconds, dt.UTC) if MIN_UNIX_SECONDS <= seconds < MIN_UNIX_MILLISECONDS else None


def day_of(value: Any) -> dt.date | None:
    """Parse a date; nothing if it is not one."""
    try:
        return dt.date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None
