"""Reading of large JSON objects as a stream, with limits for each row."""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeVar

import ijson

from project_service.kit import exact_json
from project_service.transfers.archive.contents import BAD_JSON, BadArchive, UnreadRow
from project_service.transfers.archive.parsing import MAX_DEPTH, MAX_LINE_BYTES, TOO_DEEP, TOO_MANY_VALUES

WINDOW_BYTES = MAX_LINE_BYTES + (1 << 20)  # of a search; longer than any string that is parsed
OVERFLOW = "integer overflow"  # the error of the C parser for such a number
TEXT_OR_DIGITS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[0-9]++', re.DOTALL)
Parsed = TypeVar("Parsed")
MAX_SKIPPED_EVENTS, SKIPPED_EVENTS_PER_ROW = 20_000_000, 10_000  # of all rows that are skipped
STARTS, JSON_ENDS = ("start_map", "start_array"), ("end_map", "end_array")


class LongNumber(BadArchive):
    """A number that does not fit into 64 bits."""


class RowTooLarge(Exception):
    """A row exceeds a limit; ``opened`` of its arrays and objects have begun and not ended."""

    def __init__(self, reason: UnreadRow, opened: int) -> None:
        super().__init__(reason.text)
        self.reason = reason
        self.opened = opened


def members_of(path: Path, *, long_numbers: bool = False, or_none: bool = False) -> Iterator[tuple[str, Any]]:
    """Generate the members of the JSON object in a file; an array as ``Elements``, to be read before the next member.

    With ``or_none`` another JSON value has no members, else it raises ``BadArchive``.
    """
    with path.open("rb") as file:
        events = _Events(_LimitedFile(file), long_numbers=long_numbers)
        if next(events, (None, None))[0] == "start_map":
            yield from _values(events)
        elif not or_none:
            raise BadArchive(BAD_JSON)


def with_long_numbers(parse: Callable[..., Parsed], path: Path, *arguments: Any) -> Parsed:
    """Call ``parse`` with the fast JSON parser, or with the slow one if the file has numbers above 64 bits."""
    try:
        return parse(path, *arguments, long_numbers=False)
    except LongNumber:
        if not _can_be_read(path):
            raise
        return parse(path, *arguments, long_numbers=True)


def _can_be_read(path: Path) -> bool:
    """Whether no number of a file has more digits than Python parses.

    The file is searched in windows: a search holds the interpreter's lock.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        begin = 0
        while begin < len(whole):
            end = min(begin + WINDOW_BYTES, len(whole))
            for token in TEXT_OR_DIGITS.finditer(whole, begin, end):
                first, last = token.span()
                if end < len(whole) and last >= end - 1:  # it may continue in the next window
                    if first == begin:
                        return False
                    end = first
                    break
                if last - first > exact_json.MAX_DIGITS and whole[first] != b'"'[0]:
                    return False
            begin = end
    return True


class _LimitedFile:
    """A file that raises ``BadArchive`` when one row, or the text between two, is longer than a line may be."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.bytes_since_row = 0

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes."""
        data = self.file.read(size)
        self.bytes_since_row += len(data)
        if self.bytes_since_row > MAX_LINE_BYTES:
            raise BadArchive(BAD_JSON)
        return data


class _Events(Iterator[tuple[str, Any]]):
    """The parse events of a file, and the number of those of the current row."""

    def __init__(self, file: _LimitedFile, *, long_numbers: bool) -> None:
        self.file = file
        # the C parser cannot continue after a number that Python refuses to parse
        self._events = iter(ijson.basic_parse(file, use_float=not long_numbers))
        self._peeked: tuple[str, Any] | None = None
        self._skipped = 0
        self.count = 0

    def __next__(self) -> tuple[str, Any]:
        self.count += 1
        if self._peeked is not None:
            peeked, self._peeked = self._peeked, None
            return peeked
        try:
            event: tuple[str, Any] = next(self._events)
        except (ijson.JSONError, UnicodeError) as error:
            raise (LongNumber if OVERFLOW in str(error) else BadArchive)(BAD_JSON) from error
        return event

    def peek(self) -> tuple[str, Any]:
        """Return the next event without consuming it."""
        self._peeked = next(self)
        return self._peeked

    def begin_row(self) -> None:
        """Begin counting the events of another row."""
        self.file.bytes_since_row = self.count = 0

    def skip(self, opened: int) -> None:
        """Skip to the end of what has begun; ``BadArchive`` if too many events are skipped in all."""
        self._skipped += SKIPPED_EVENTS_PER_ROW
        while opened:
            event, _ = next(self)
            opened += (event in STARTS) - (event in JSON_ENDS)
            self._skipped += 1
            if self._skipped > MAX_SKIPPED_EVENTS:
                raise BadArchive(BAD_JSON)

    @property
    def exceeds_limit(self) -> bool:
        """Whether the current row has more values than a row may have."""
        return self.count > exact_json.MAX_EVENTS and self.count > exact_json.max_events(self.file.bytes_since_row)


class Elements:
    """The elements of an array, parsed one by one; ``UnreadRow`` for those that exceed a limit."""

    def __init__(self, events: _Events) -> None:
        self.events = events

    def __iter__(self) -> Iterator[Any]:
        for event, value in self.events:
            self.events.begin_row()
            if event == "end_array":
                return
            yield _row(event, value, self.events)


def _values(events: _Events) -> Iterator[tuple[str, Any]]:
    """Generate the members of an object that has begun."""
    for event, name in events:
        if event == "end_map":
            continue
        inner, value = next(events)
        count = events.count  # values between arrays count together
        yield name, Elements(events) if inner == "start_array" else _row(inner, value, events)
        events.count = max(count, events.count)


def _row(event: str, value: Any, events: _Events) -> Any:
    """Parse the value that begins with an event; ``UnreadRow`` if it exceeds a limit and was skipped."""
    before = events.count
    try:
        return _build(event, value, events)
    except RowTooLarge as error:
        events.skip(error.opened)
        events.count = before
        return error.reason


def _build(event: str, value: Any, events: _Events, levels_left: int = MAX_DEPTH) -> Any:
    begins = event in STARTS
    if events.exceeds_limit or (begins and levels_left == 0):
        raise RowTooLarge(
            TOO_DEEP if begins and levels_left == 0 else TOO_MANY_VALUES, MAX_DEPTH - levels_left + begins
        )
    if not begins:
        return _float(value) if isinstance(value, Decimal) else value
    if event == "start_array":
        return list(_elements(events, levels_left))
    built = {}
    for inner, name in events:
        if inner == "end_map":
            break
        built[name] = _build(*next(events), events, levels_left - 1)
    return built


def _float(value: Decimal) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise BadArchive(BAD_JSON)
    return number


def _elements(events: _Events, levels_left: int) -> Iterator[Any]:
    for event, value in events:
        if event == "end_array":
            return
        yield _build(event, value, events, levels_left - 1)
