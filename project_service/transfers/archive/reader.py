"""The relations of an unpacked archive, row by row, whichever of the two forms it has."""

from __future__ import annotations

import math
import mmap
import os
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, TypeVar

import ijson

from project_service.kit import bigint_json
from project_service.transfers.archive import layout
from project_service.transfers.archive.extraction import (
    BAD_JSON,
    LONGEST_NAME,
    MOST_LEFT_OUT,
    MOST_RELATIONS,
    TOO_MANY,
    BadArchive,
    TooLarge,
    Unpacked,
)
from project_service.transfers.importing.refusals import NESTED_TOO_DEEPLY

LONGEST_LINE = 50 << 20
PART = LONGEST_LINE + (1 << 20)  # of a file that is looked through: no text that is read is longer
LARGEST_OBJECT = 16 << 20  # a project without its relations, or a setting
# reading recurses no deeper than this anywhere
DEEPEST = 100
MOST_TYPES = 100  # of what an LFS object belongs to; there are four
OVERFLOW = "integer overflow"  # what the parser of C says of a number that it does not hold
# a text, to the end if it has none, and what is looked for outside of texts: nothing is looked at twice
TEXT_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[][{}]', re.DOTALL)
TEXT_OR_DIGITS = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[0-9]++', re.DOTALL)

Taken = TypeVar("Taken")


class LongNumber(BadArchive):
    """A number that C does not hold."""


TOO_LONG = TooLarge(f"The line is longer than {LONGEST_LINE >> 20} MB")
TOO_MANY_VALUES = TooLarge("The line has too many values")
TOO_DEEP = TooLarge(NESTED_TOO_DEEPLY)
MOST_PASSED, PASSED_FOR_A_ROW = 20_000_000, 10_000  # steps, in all rows of a file that are passed over
STARTS, ENDS = ("start_map", "start_array"), ("end_map", "end_array")


class RowTooLarge(Exception):
    """A row is more than is read at once; ``opened`` of what it holds have begun and not ended."""

    def __init__(self, reason: TooLarge, opened: int) -> None:
        super().__init__(reason.text)
        self.reason = reason
        self.opened = opened


def relations_of(unpacked: Unpacked) -> list[str]:
    """The relations there are, in the order they have to be read in: the known ones as the format has them."""
    there = {layout.RENAMED.get(name, name) for name in unpacked.relations} - layout.IGNORED
    known = [name for name in layout.RELATIONS if name in there]
    return [*known, *sorted(there - set(known))]


def project_of(unpacked: Unpacked) -> dict[str, Any]:
    """The attributes of the project, without its relations; raises ``BadArchive``."""
    if unpacked.project is None:
        return {}
    if unpacked.project.stat().st_size > LARGEST_OBJECT:
        raise BadArchive(BAD_JSON)
    raw = unpacked.project.read_bytes()
    if bigint_json.has_too_many_values(raw):
        raise BadArchive(BAD_JSON)
    found = loads(raw)
    if not isinstance(found, dict) or too_deep(found):
        raise BadArchive(BAD_JSON)
    return found


def rows_of(unpacked: Unpacked, relation: str, after: int = 0) -> Iterator[tuple[int, bytes | TooLarge]]:
    """The rows of a relation behind line ``after``, each with its line; blank ones and ``null`` are left out."""
    names = [name for name in unpacked.relations if layout.RENAMED.get(name, name) == relation]
    line = 0
    for name in sorted(names):
        too_large = unpacked.too_large.get(name, {})
        with unpacked.relations[name].open("rb", buffering=1 << 20) as file:
            for number, raw in enumerate(_lines(file), start=1):
                line += 1
                if line <= after:
                    continue
                if number in too_large:
                    yield line, too_large[number]
                elif isinstance(raw, TooLarge) or bigint_json.has_too_many_values(raw):
                    yield line, raw if isinstance(raw, TooLarge) else TOO_MANY_VALUES
                elif raw.startswith(b"{") or raw.strip() not in (b"", b"null"):
                    yield line, raw


def count_rows(unpacked: Unpacked) -> int:
    """About how many rows there are, nested ones not counted."""
    return sum(_count_lines(path) for name, path in unpacked.relations.items() if name not in layout.IGNORED)


def loads(raw: bytes) -> Any:
    """Read JSON; ``BadArchive`` when it is none."""
    try:
        return bigint_json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadArchive(BAD_JSON) from error


def members_of(path: Path, *, long_numbers: bool = False, or_none: bool = False) -> Iterator[tuple[str, Any]]:
    """The members of the object in a file, one at a time; an array as ``Elements``, to be used up before the next.

    With ``or_none`` what is no object has none, else it is a ``BadArchive``.
    """
    with path.open("rb") as file:
        steps = _Steps(_Bounded(file), long_numbers=long_numbers)
        if next(steps, (None, None))[0] == "start_map":
            yield from _values(steps)
        elif not or_none:
            raise BadArchive(BAD_JSON)


def too_deep(value: Any, left: int = DEEPEST) -> bool:
    """Whether data is nested more deeply than anything an archive needs."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return left == 0 or any(too_deep(inner, left - 1) for inner in value if isinstance(inner, dict | list))


def is_nested_too_deeply(raw: bytes) -> bool:
    """The same of a text that is not read, and perhaps cannot be."""
    depth = 0
    for found in TEXT_OR_BRACKET.finditer(raw):
        if found[0] in (b"[", b"{"):
            depth += 1
            if depth > DEEPEST:
                return True
        elif found[0] in (b"]", b"}"):
            depth -= 1
    return False


def split_legacy(unpacked: Unpacked) -> None:
    """Turn the one big object of the old form into the files of the new one, a row at a time."""
    if unpacked.legacy is None or unpacked.project is not None:
        return
    place = unpacked.folder / "tree-project.json"
    try:
        attributes = with_long_numbers(_split, unpacked.legacy, unpacked)
    except (UnicodeError, TypeError) as error:
        raise BadArchive(BAD_JSON) from error
    place.write_bytes(bigint_json.dumps(attributes))
    unpacked.project = place


def lfs_types_of(unpacked: Unpacked) -> dict[str, list[Any]]:
    """What each LFS object belongs to; where no file says so, all are of the project itself (section 1)."""
    if unpacked.lfs_types is None:
        objects = (path for path in unpacked.carried if layout.LFS_OBJECT.fullmatch(path))
        return {path.removeprefix("lfs-objects/"): [layout.LFS_OF_PROJECT] for path in objects}
    if not unpacked.lfs_types.stat().st_size:
        return {}
    return with_long_numbers(_told_types, unpacked.lfs_types, unpacked)


def _told_types(place: Path, unpacked: Unpacked, *, long_numbers: bool) -> dict[str, list[Any]]:
    kept: dict[str, list[Any]] = {}
    for oid, types in members_of(place, long_numbers=long_numbers, or_none=True):
        if isinstance(types, Elements):
            told: list[int | None] = []
            for one in types:
                if len(told) < MOST_TYPES and (one is None or isinstance(one, int)):
                    told.append(one)
            if f"lfs-objects/{oid}" in unpacked.carried:
                kept[oid] = told
    return kept


def with_long_numbers(take: Callable[..., Taken], place: Path, *others: Any) -> Taken:
    """What ``take`` makes of a file, read without numbers that C does not hold, and with them where it has some."""
    try:
        return take(place, *others, long_numbers=False)
    except LongNumber:
        if not _can_be_read(place):
            raise
        return take(place, *others, long_numbers=True)


def _split(legacy: Path, unpacked: Unpacked, *, long_numbers: bool) -> dict[str, Any]:
    """Write the relations of one big object; its other members, which are the attributes of the project."""
    attributes: dict[str, Any] = {}
    size = 0
    for name, value in members_of(legacy, long_numbers=long_numbers):
        read = _read(name, value)
        if isinstance(read, Iterator):
            _write_rows(unpacked, name, read)
        elif isinstance(read, TooLarge):
            raise BadArchive(BAD_JSON)
        else:
            attributes[name] = read
            size += len(name) + len(bigint_json.dumps(read))
        if size > LARGEST_OBJECT:
            raise BadArchive(BAD_JSON)
        if len(unpacked.relations) > MOST_RELATIONS:
            raise BadArchive(TOO_MANY)
    return attributes


def _can_be_read(path: Path) -> bool:
    """Whether Python reads all numbers of a file: none has more digits than it takes.

    It is looked through a part at a time, for nobody else computes meanwhile.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
        begin = 0
        while begin < len(whole):
            end = min(begin + PART, len(whole))
            for found in TEXT_OR_DIGITS.finditer(whole, begin, end):
                first, last = found.span()
                if end < len(whole) and last >= end - 1:  # it may go on, or an escape may
                    if first == begin:
                        return False
                    end = first
                    break
                if last - first > bigint_json.MOST_DIGITS and whole[first] != b'"'[0]:
                    return False
            begin = end
    return True


def _read(name: str, value: Any) -> Any:
    """The rows of a relation, as an iterator; anything else is an attribute of the project, and stays what it is."""
    if not isinstance(value, Elements):
        return iter([value]) if name in layout.KNOWN else value
    if name in layout.KNOWN or value.steps.peek()[0] == "start_map":
        return iter(value)
    return _row("start_array", None, value.steps)


class _Bounded:
    """A file that ends the reading when one row, or what stands between two, is longer than a line may be."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.since = 0

    def read(self, size: int) -> bytes:
        """Read on."""
        data = self.file.read(size)
        self.since += len(data)
        if self.since > LONGEST_LINE:
            raise BadArchive(BAD_JSON)
        return data


class _Steps(Iterator[tuple[str, Any]]):
    """The steps of reading a file, and how many of them the row at hand has taken."""

    def __init__(self, file: _Bounded, *, long_numbers: bool) -> None:
        self.file = file
        # numbers as C has them: of longer ones its parser makes Python's, and fails beyond repair when Python refuses
        self._steps = iter(ijson.basic_parse(file, use_float=not long_numbers))
        self._peeked: tuple[str, Any] | None = None
        self._passed = 0
        self.taken = 0

    def __next__(self) -> tuple[str, Any]:
        self.taken += 1
        if self._peeked is not None:
            peeked, self._peeked = self._peeked, None
            return peeked
        try:
            found: tuple[str, Any] = next(self._steps)
        except (ijson.JSONError, UnicodeError) as error:
            raise (LongNumber if OVERFLOW in str(error) else BadArchive)(BAD_JSON) from error
        return found

    def peek(self) -> tuple[str, Any]:
        """The next step, which stays the next one."""
        self._peeked = next(self)
        return self._peeked

    def begin_row(self) -> None:
        """What comes now belongs to another row."""
        self.file.since = self.taken = 0

    def pass_over(self, opened: int) -> None:
        """Go behind the end of what has begun; ``BadArchive`` when all in all that takes longer than it is worth."""
        self._passed += PASSED_FOR_A_ROW
        while opened:
            event, _ = next(self)
            opened += (event in STARTS) - (event in ENDS)
            self._passed += 1
            if self._passed > MOST_PASSED:
                raise BadArchive(BAD_JSON)

    @property
    def are_too_many(self) -> bool:
        """Whether the row at hand has more than are read at once."""
        return self.taken > bigint_json.MOST_STEPS and self.taken > bigint_json.most_steps(self.file.since)


class Elements:
    """The elements of one array, made as they are asked for; ``TooLarge`` for those that are not read."""

    def __init__(self, steps: _Steps) -> None:
        self.steps = steps

    def __iter__(self) -> Iterator[Any]:
        for event, value in self.steps:
            self.steps.begin_row()
            if event == "end_array":
                return
            yield _row(event, value, self.steps)


def _values(steps: _Steps) -> Iterator[tuple[str, Any]]:
    """The members of an object that has begun."""
    for event, name in steps:
        if event == "end_map":
            continue
        inner, value = next(steps)
        taken = steps.taken  # what is no row of a relation counts together, whatever stands between
        yield name, Elements(steps) if inner == "start_array" else _row(inner, value, steps)
        steps.taken = max(taken, steps.taken)


def _row(event: str, value: Any, steps: _Steps) -> Any:
    """What begins with a step; ``TooLarge`` when that is more than is read at once, and has been passed over."""
    before = steps.taken
    try:
        return _build(event, value, steps)
    except RowTooLarge as error:
        steps.pass_over(error.opened)
        steps.taken = before
        return error.reason


def _build(event: str, value: Any, steps: _Steps, left: int = DEEPEST) -> Any:
    begins = event in STARTS
    if steps.are_too_many or (begins and left == 0):
        raise RowTooLarge(TOO_DEEP if begins and left == 0 else TOO_MANY_VALUES, DEEPEST - left + begins)
    if not begins:
        return _float(value) if isinstance(value, Decimal) else value
    if event == "start_array":
        return list(_elements(steps, left))
    built = {}
    for inner, name in steps:
        if inner == "end_map":
            break
        built[name] = _build(*next(steps), steps, left - 1)
    return built


def _float(value: Decimal) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise BadArchive(BAD_JSON)
    return number


def _elements(steps: _Steps, left: int) -> Iterator[Any]:
    for event, value in steps:
        if event == "end_array":
            return
        yield _build(event, value, steps, left - 1)


def _write_rows(unpacked: Unpacked, name: str, rows: Any) -> None:
    is_name = bool(layout.RELATION_NAME.fullmatch(name))
    if not is_name and len(unpacked.left_out) < MOST_LEFT_OUT:
        unpacked.left_out[f"project.json/{name}"[:LONGEST_NAME]] = None
    keep = is_name and name not in layout.IGNORED
    path = unpacked.folder / f"relation-{name}.ndjson" if keep else Path(os.devnull)
    too_large: dict[int, TooLarge] = {}
    with path.open("wb") as target:
        for number, row in enumerate(rows, start=1):
            if isinstance(row, TooLarge):
                too_large[number] = row
            target.write(b"\n" if isinstance(row, TooLarge) else bigint_json.dumps(row) + b"\n")
    if keep:
        unpacked.relations[name], unpacked.too_large[name] = path, too_large


def _lines(file: IO[bytes]) -> Iterator[bytes | TooLarge]:
    while raw := file.readline(LONGEST_LINE + 1):
        if len(raw) <= LONGEST_LINE:
            yield raw
            continue
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(1 << 20)
        yield TOO_LONG


def _count_lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):  # a file may have millions of lines without anything
            lines += chunk.count(b"\n")
            last = chunk
    return lines + (not last.endswith(b"\n"))
