"""JSON documents of any size: long lists are located in the file and read entry by entry, the rest is parsed at once.

One regular expression finds the brackets outside of texts. Where a list of ``LONG_LISTS`` begins, only the positions of
its entries are kept, and orjson parses an entry when it is needed. Everything else together has to fit into
``MAX_PART_BYTES``, and so has each entry.
"""

from __future__ import annotations

import re
import secrets
from array import array
from collections.abc import Iterator
from typing import IO, Any

import orjson

from project_service.areas.vulnerabilities.formats.documents.report_json import BYTE_ORDER_MARK, MAX_DEPTH, BrokenReport

BLOCK_BYTES = 1 << 20
MAX_PART_BYTES = 16 << 20
NOT_JSON = "JSON parsing failed"
EACH = b"*"  # in a path: every entry of a list
LONG_LISTS = frozenset(
    {
        (),
        (b"runs", EACH, b"results"),
        (b"runs", EACH, b"artifacts"),
        (b"runs", EACH, b"tool", b"driver", b"rules"),
        (b"runs", EACH, b"tool", b"extensions", EACH, b"rules"),
        *((name,) for name in (b"vulnerabilities", b"components", b"dependencies", b"matches", b"ignoredMatches")),
        *((name,) for name in (b"Resources", b"Vulnerabilities", b"Misconfigurations", b"Findings")),
        *((name,) for name in (b"ignored_vulnerabilities", b"results", b"site", b"remediations")),
        *((b"Results", EACH, name) for name in (b"Vulnerabilities", b"Misconfigurations", b"Secrets", b"Licenses")),
    }
)
MAX_PATH_LENGTH = max(map(len, LONG_LISTS))
# A bracket with all before it; texts are skipped as wholes. Without a bracket in the block: its rest.
BRACKET = re.compile(
    rb'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+([{}\[\]])|.+',
    re.DOTALL,
)
LAST_NAME = re.compile(rb'"([^"\\]*+)"\s*+:\s*+\Z')
_OPENING = frozenset({b"{", b"["})


class Entries:
    """The entries of one long list, parsed while they are iterated; may be iterated several times."""

    def __init__(self, file: IO[bytes], pointer: str) -> None:
        self.pointer = pointer
        self._file = file
        self._ends = array("Q")  # start and end in the file, by turns
        self._gaps: dict[int, tuple[bool, bool]] = {}

    def __iter__(self) -> Iterator[Any]:
        count = 0
        for position in range(0, len(self._ends), 2):
            start, end = self._ends[position : position + 2]
            self._file.seek(start)
            raw = self._file.read(end - start)
            gap = self._gaps.get(position)
            if gap is None:
                yield loaded(raw, f"{self.pointer}/{count}")
                count += 1
            else:
                elements = _between(raw, gap, self.pointer)
                yield from elements
                count += len(elements)

    def first(self) -> Any:
        """Return the first entry; ``None`` without any."""
        return next(iter(self), None)

    def add(self, start: int, end: int) -> None:
        """Add an object or a list, by its place in the file."""
        self._ends.extend((start, end))

    def add_gap(self, raw: bytes, start: int, *, is_last: bool) -> None:
        """Add what is before, between or behind objects and lists, unless it is a comma: it may have other values."""
        has_before = bool(self._ends)
        if raw.strip() == (b"," if has_before and not is_last else b""):
            return
        self._gaps[len(self._ends)] = has_before, not is_last
        self._ends.extend((start, start + len(raw)))


class Document:
    """A JSON document. ``top`` is its value, in which long lists are ``Entries``.

    Raises:
        BrokenReport: it is not JSON, is nested too deeply, or a part of it is too large.

    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._mark = secrets.token_hex(8)  # stands for a long list in the rest; a document cannot know it
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._lists: list[Entries] = []
        self._split()
        raw = b"".join(self._rest)
        self._rest.clear()
        try:
            value = orjson.loads(raw)
        except ValueError as error:
            raise _not_json(error, has_position=not self._lists) from error
        self.top = self._filled(value) if self._lists else value

    def _split(self) -> None:
        """Find the long lists, and gather the rest."""
        self._file.seek(0)
        start = len(BYTE_ORDER_MARK) if self._file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        self._file.seek(start)
        places = _Position()
        text = b""
        while block := self._file.read(BLOCK_BYTES):
            text += block
            used = self._split_block(text, start, places)
            start, text = start + used, text[used:]
            if len(text) > MAX_PART_BYTES:
                raise _too_large()
        self._keep(text)

    def _split_block(self, text: bytes, offset: int, places: _Position) -> int:
        """Split up to the last bracket of a block; return where that ends."""
        used = 0
        entries, inside = places.entries, places.list_depth
        depth, entry_start = places.depth, places.entry_start
        for match in BRACKET.finditer(text):
            bracket = match[1]
            if bracket is None:
                break
            end = match.end()
            if bracket in _OPENING:
                depth += 1
                if depth > MAX_DEPTH:
                    raise BrokenReport(NOT_JSON, "nested too deeply")
                if entries is None:
                    before = text[used:end]
                    self._keep(before)
                    if places.opened(before, bracket, depth):
                        entries, inside = self._begin_list(places), depth
                elif depth == inside + 1:
                    entries.add_gap(text[used : end - 1], offset + used, is_last=False)
                    entry_start = offset + end - 1
            else:
                if entries is None:
                    self._keep(text[used:end])
                    places.closed(depth)
                elif depth == inside + 1:
                    if offset + end - entry_start > MAX_PART_BYTES:
                        raise _too_large()
                    entries.add(entry_start, offset + end)
                elif depth == inside:
                    entries.add_gap(text[used : end - 1], offset + used, is_last=True)
                    self._keep(text[end - 1 : end])
                    places.closed(depth)
                    entries = None
                depth -= 1
            used = end
        places.entries, places.list_depth = entries, inside
        places.depth, places.entry_start = depth, entry_start
        return used

    def _begin_list(self, places: _Position) -> Entries:
        self._keep(b'"%s:%d"' % (self._mark.encode(), len(self._lists)))
        entries = Entries(self._file, places.pointer())
        self._lists.append(entries)
        return entries

    def _keep(self, raw: bytes) -> None:
        self._rest_bytes += len(raw)
        if self._rest_bytes > MAX_PART_BYTES:
            raise _too_large()
        self._rest.append(raw)

    def _filled(self, value: Any) -> Any:
        """Put the long lists where their marks are."""
        if isinstance(value, dict):
            for name, inner in value.items():
                value[name] = self._filled(inner)
        elif isinstance(value, list):
            if len(value) == 1 and isinstance(value[0], str) and value[0].startswith(self._mark):
                return self._lists[int(value[0].partition(":")[2])]
            value[:] = map(self._filled, value)
        return value


class _Position:
    """Where in a document the splitting is: the names and numbers of the containers around, as deep as paths are."""

    def __init__(self) -> None:
        self.entries: Entries | None = None
        self.list_depth = self.depth = self.entry_start = 0
        self._path: list[bytes] = []
        self._numbers: list[int | None] = []  # the next number in a list, None for an object

    def opened(self, before: bytes, bracket: bytes, depth: int) -> bool:
        """Record a container that begins; return whether it is a long list."""
        if depth > MAX_PATH_LENGTH + 1:
            return False
        if depth > 1:
            if self._numbers[-1] is None:
                name = LAST_NAME.search(before, 0, len(before) - 1)
                self._path.append(name[1] if name else b"")
            else:
                self._numbers[-1] += 1
                self._path.append(EACH)
        self._numbers.append(-1 if bracket == b"[" else None)
        return bracket == b"[" and tuple(self._path) in LONG_LISTS

    def closed(self, depth: int) -> None:
        """Record the end of a container."""
        if depth <= MAX_PATH_LENGTH + 1 and self._numbers:
            self._numbers.pop()
            if self._path:
                self._path.pop()

    def pointer(self) -> str:
        """Return the JSON pointer of the container that began last."""
        names = (
            str(number) if name == EACH else name.decode(errors="replace")
            for name, number in zip(self._path, self._numbers, strict=False)
        )
        return "".join(f"/{name}" for name in names)


def refuse_xml(file: IO[bytes]) -> None:
    """Refuse XML, which some scanners write by default.

    Raises:
        BrokenReport: the file begins with a tag.

    """
    file.seek(0)
    if file.read(BLOCK_BYTES).removeprefix(BYTE_ORDER_MARK).lstrip().startswith(b"<"):
        raise BrokenReport(NOT_JSON, "XML is not taken: write JSON")


def loaded(raw: bytes, pointer: str = "") -> Any:
    """Parse a part of a document."""
    try:
        return orjson.loads(raw)
    except ValueError as error:
        raise _not_json(error, pointer) from error


def _between(raw: bytes, gap: tuple[bool, bool], pointer: str) -> list[Any]:
    """Return the values in a gap before, between or after other entries."""
    has_before, has_behind = gap
    padded = loaded(b"[%b%b%b]" % (b"0" * has_before, raw, b"0" * has_behind), pointer)
    values: list[Any] = padded[has_before : len(padded) - has_behind]
    return values


def _too_large() -> BrokenReport:
    limit = MAX_PART_BYTES >> 20
    return BrokenReport(NOT_JSON, f"an entry, or all that is not in the lists of entries, is larger than {limit} MB")


def _not_json(error: ValueError, pointer: str = "", *, has_position: bool = False) -> BrokenReport:
    message = str(error)
    return BrokenReport(NOT_JSON, message if has_position else message.partition(": line ")[0], pointer)
