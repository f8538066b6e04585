"""JSON of scanner reports: parsed at once up to ``MAX_PARSED_BYTES``, streamed above.

A streamed document is validated first, then read once for each part; one entry of it is in memory at a time. Both
parsers accept the same documents and return the same values.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, ClassVar, Protocol

import ijson
import orjson

from project_service.kit.http.errors import ServiceError

MAX_PARSED_BYTES = 16 << 20
BLOCK_BYTES = 1 << 20
MAX_SPOOL_BYTES = 1 << 30
MAX_DEPTH = 254  # of what orjson can serialize
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r\n"
INTEGERS = range(-(2**63), 2**64)
NUL = b"\\u0000"
SURROGATES = b"\\ud", b"\\uD"
# A lone surrogate; escaped backslashes and whole pairs match first, so that no part of them matches.
LONE_SURROGATE = re.compile(
    rb"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
MAX_SURROGATE_PAIR_BYTES = 12
BACKSLASH, QUOTE = b"\\", b'"'
QUOTE_OR_ESCAPED = re.compile(rb'\\.|"', re.DOTALL)
# Numbers that the streaming parser cannot read as floats, found with every digit replaced by 0: integers of more than
# 64 bits need its exact numbers; integers with more digits than Python reads, or such an exponent, crash the process.
DIGITS_AS_ZERO = bytes.maketrans(b"123456789E+", b"000000000e-")
LONG_INTEGER = b"0" * 19
MAX_DIGITS = sys.int_info.str_digits_check_threshold
CRASHING_NUMBERS = (b"0" * MAX_DIGITS, b"e" + b"0" * 18, b"e-" + b"0" * 18)
MEMBERS = VULNERABILITIES, REMEDIATIONS, SITE, SCAN, VERSION = (
    "vulnerabilities",
    "remediations",
    "site",
    "scan",
    "version",
)


class BrokenReport(ServiceError):
    """A file that is not a valid report: 422 with a JSON pointer and the reason."""

    status = 422

    def __init__(self, message: str, reason: str, pointer: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.message}: {self.pointer} {self.reason}" if self.pointer else f"{self.message}: {self.reason}"

    def body(self) -> dict[str, Any]:
        """Return the body of the answer: the message, with pointer and reason."""
        return {"message": self.message, "pointer": self.pointer, "reason": self.reason}


def open_document(file: IO[bytes], spool_dir: Path | None = None) -> ReportDocument:
    """Parse a file, or prepare to stream it when it is large; parts are then stored in ``spool_dir``.

    Raises:
        BrokenReport: it is not JSON.

    """
    is_large = file.seek(0, os.SEEK_END) > MAX_PARSED_BYTES
    return StreamedDocument(file, spool_dir) if is_large else ParsedDocument(file)


class ReportDocument(Protocol):
    """A JSON document. ``is_list``: the top level is an array or an object; ``None`` when it is neither."""

    is_list: bool | None

    def type_of(self, name: str) -> type | None:
        """Return the type of a member of the top object, such as ``list`` or ``NoneType``; ``None`` if absent."""

    def value(self, name: str) -> Any:
        """Return the value of a member of the top object; ``None`` if absent."""

    def items(self, name: str | None) -> Iterator[Any]:
        """Return the elements of an array: of a member or, without a name, the top level; none if it is no array."""

    def stored(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        """Read elements once and store them, so that they can be iterated again."""


class ParsedDocument:
    """A document that is parsed at once."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        raw = file.read()
        try:
            top = orjson.loads(raw.removeprefix(BYTE_ORDER_MARK))
            orjson.dumps(top)  # refuses what is nested too deeply to be stored
        except (ValueError, TypeError) as error:
            raise _not_json(_encoding_error(raw) or error) from error
        if NUL in raw:
            top = {name: storable(part) for name, part in top.items()} if isinstance(top, dict) else storable(top)
        self.is_list = isinstance(top, list) if isinstance(top, list | dict) else None
        self.top = top if isinstance(top, dict) else {}
        self.list = top

    def type_of(self, name: str) -> type | None:
        return type(self.top[name]) if name in self.top else None

    def value(self, name: str) -> Any:
        return self.top.get(name)

    def items(self, name: str | None) -> Iterator[Any]:
        elements = self.list if name is None else self.top.get(name)
        return iter(elements if isinstance(elements, list) else ())

    def stored(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        return nullcontext(list(items))


class StreamedDocument:
    """A document that is too large for memory: read once to validate it and once for each part."""

    TYPES: ClassVar[dict[str, type]] = {"start_array": list, "start_map": dict, "null": type(None)}

    def __init__(self, file: IO[bytes], spool_dir: Path | None = None) -> None:
        self.file = file
        self.spool_dir = spool_dir
        file.seek(0)
        self.start_offset = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        self.last_offset = self.start_offset
        self.is_exact = self.has_nul = False
        self.is_list: bool | None = None
        self.types: dict[str, type] = {}
        self.occurrences: Counter[str] = Counter()
        self.version: str | None = None
        self._scan()
        self._validate()

    def type_of(self, name: str) -> type | None:
        return self.types.get(name)

    def value(self, name: str) -> Any:
        if self.types.get(name) not in (list, dict):
            return self.version if name == VERSION else None
        last = deque(self._read(ijson.items, name), maxlen=1)  # of several with this name the last one counts
        return orjson.loads(serialized(last[0] if last else None))

    def items(self, name: str | None) -> Iterator[Any]:
        if name is not None and self.types.get(name) is not list:
            return iter(())
        if name is None:
            elements = self._read(ijson.items, "item")
        elif self.occurrences[name] > 1:
            elements = self._items_of_last(name)
        else:
            elements = self._read(ijson.items, f"{name}.item")
        return map(storable, elements) if self.has_nul else elements

    def stored(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        return closing(Spool(items, self.spool_dir))

    def read(self, size: int) -> bytes:
        """Read a block for the parser. The last byte comes alone: ``_validate`` sees whether the document needs it."""
        left = self.last_offset - self.file.tell()
        return self.file.read(min(size, left) if left > 0 else size)

    def _scan(self) -> None:
        """Scan the bytes for long numbers, NULs and lone surrogates, and for the offset of the last non-blank byte.

        The parser accepts vertical tabs and form feeds as white space, which JSON does not.
        """
        self.file.seek(self.start_offset)
        before, has_long, has_crashing, has_surrogates = b"", False, False, False
        while chunk := self.file.read(BLOCK_BYTES):
            if b"\v" in chunk or b"\f" in chunk:
                raise _not_json(ValueError("a control character"))
            if filled := chunk.rstrip(BLANKS):
                self.last_offset = self.file.tell() - len(chunk) + len(filled) - 1
            text = before + chunk
            before = text[-MAX_DIGITS:]
            self.has_nul = self.has_nul or NUL in text
            has_surrogates = has_surrogates or any(surrogate in text for surrogate in SURROGATES)
            digits = text.translate(DIGITS_AS_ZERO)
            has_long = has_long or LONG_INTEGER in digits
            has_crashing = has_crashing or any(number in digits for number in CRASHING_NUMBERS)
        self.is_exact = has_long and not (has_crashing and self._has_crashing_numbers())
        if has_surrogates:
            self._refuse_lone_surrogates()

    def _has_crashing_numbers(self) -> bool:
        """Whether a number that would crash the parser is outside of strings, where it is a number indeed."""
        self.file.seek(self.start_offset)
        before, rest, is_text = b"", b"", False
        while chunk := self.file.read(BLOCK_BYTES):
            text, start, end = rest + chunk, 0, 0
            outside: list[bytes] = []
            for match in QUOTE_OR_ESCAPED.finditer(text):
                end = match.end()
                if match[0] == QUOTE:
                    if not is_text:
                        outside.append(text[start : match.start()])
                    start, is_text = end, not is_text
            rest = text[-1:] if end < len(text) and text.endswith(BACKSLASH) else b""  # the next byte belongs to it
            if not is_text:
                outside.append(text[start:])
            numbers = QUOTE.join(outside)
            digits = (before + numbers).translate(DIGITS_AS_ZERO)
            if any(number in digits for number in CRASHING_NUMBERS):
                return True
            before = (before + numbers)[-MAX_DIGITS:]
        return False

    def _refuse_lone_surrogates(self) -> None:
        """Refuse lone surrogates, which the parser replaces by question marks."""
        self.file.seek(self.start_offset)
        text, is_last = b"", False
        while not is_last:
            chunk = self.file.read(BLOCK_BYTES)
            text, is_last = text + chunk, not chunk
            done = len(text) if is_last else max(0, len(text) - MAX_SURROGATE_PAIR_BYTES + 1)
            for match in LONE_SURROGATE.finditer(text):
                if match.start() >= done:  # it may continue in the next block
                    break
                if match["lone"]:
                    raise _not_json(ValueError("half of a surrogate pair"))
                done = max(done, match.end())
            text = text[done:]

    def _validate(self) -> None:
        """Parse everything once: refuse what is not JSON and record the members of the top object."""
        depth, here = 0, ""
        for event, value in self._read(ijson.basic_parse):
            if event == "map_key":
                here = value if depth == 1 else here
            elif event in ("end_map", "end_array"):
                depth -= 1
                if depth == 0 and self.file.tell() <= self.last_offset:
                    raise _not_json(
                        ValueError("something behind the end")
                    )  # the parser accepts an unterminated string here
            else:
                if depth <= 1:
                    self._record(here, event, value)
                if event in ("start_map", "start_array"):
                    depth += 1
                    if depth > MAX_DEPTH:
                        raise _not_json(RecursionError("nested too deeply"))
                elif event == "number" and self.is_exact and not _is_finite(value):
                    raise _not_json(OverflowError("a number is too large"))

    def _record(self, name: str, event: str, value: Any) -> None:
        """Record the type of the top level, or of a member that is used."""
        if self.is_list is None:
            self.is_list = {"start_array": True, "start_map": False}.get(event)
        elif name in MEMBERS:
            self.occurrences[name] += 1
            self.types[name] = self.TYPES.get(event, object)
            if name == VERSION:
                self.version = value.replace("\0", "") if event == "string" else None

    def _items_of_last(self, name: str) -> Iterator[Any]:
        """Return the elements of the last of several arrays with the same name, as other parsers do."""
        events, left = self._read(ijson.parse), self.occurrences[name]
        for event in events:
            left -= event == ("", "map_key", name)
            if not left:
                break
        yield from ijson.items(events, f"{name}.item")

    def _read(self, parse: Any, *names: str) -> Iterator[Any]:
        self.file.seek(self.start_offset)
        try:
            yield from parse(self, *names, buf_size=BLOCK_BYTES, use_float=not self.is_exact)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise _not_json(error) from error


class Spool:
    """Values in a temporary file, one JSON document per line, that can be iterated again."""

    def __init__(self, items: Iterator[Any], directory: Path | None) -> None:
        self.file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115  # open for as long as the spool is
        try:
            self.file.writelines(self._lines(items))
        except BaseException:
            self.file.close()
            raise

    def __iter__(self) -> Iterator[Any]:
        self.file.seek(0)
        return map(orjson.loads, self.file)

    def _lines(self, items: Iterator[Any]) -> Iterator[bytes]:
        left = MAX_SPOOL_BYTES
        for item in items:
            line = serialized(item) + b"\n"
            left -= len(line)
            if left < 0:  # texts of rules and advisories are in each of their findings
                reason = f"its findings are larger than {MAX_SPOOL_BYTES >> 20} MB together"
                raise BrokenReport("the report is too large", reason)
            yield line

    def close(self) -> None:
        self.file.close()


def serialized(value: Any) -> bytes:
    """Serialize a part of a streamed document, with the values that the other parser would give."""
    try:
        raw = orjson.dumps(value)
        if NUL not in raw:
            return raw
    except TypeError:
        pass  # a decimal, an integer of more than 64 bits, or too deep, which is refused below
    try:
        return orjson.dumps(storable(value))
    except (TypeError, RecursionError, OverflowError) as error:
        raise _not_json(error) from error


def storable(value: Any) -> Any:
    """Return a value that the database can store: without NULs, and integers of more than 64 bits as floats."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, list):
        return [storable(inner) for inner in value]
    if isinstance(value, dict):
        return {storable(name): storable(inner) for name, inner in value.items()}
    if isinstance(value, Decimal) or (isinstance(value, int) and value not in INTEGERS):
        return float(value)
    return value


def _is_finite(number: int | Decimal) -> bool:
    try:
        return math.isfinite(float(number))
    except OverflowError:
        return False


def _encoding_error(raw: bytes) -> ValueError | None:
    """Return where a file is not UTF-8, if it is not; the parser's message has no position."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return ValueError(f"byte {error.start + 1} is not UTF-8")
    return None


def _not_json(error: Exception) -> BrokenReport:
    if isinstance(error, UnicodeDecodeError):  # its position is in a string, not in the file
        return BrokenReport("JSON parsing failed", "a text is not UTF-8")
    message = error.args[0] if error.args else ""
    lines = (message.decode(errors="replace") if isinstance(message, bytes) else str(message)).strip().splitlines()
    return BrokenReport("JSON parsing failed", lines[0] if lines else "no JSON")
