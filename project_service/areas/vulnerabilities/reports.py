"""Reads a scanner's report: which files are taken, and what they say (security reports reference, 2, 3, 6 and 7).

A file of up to 16 MB is parsed at once, a larger one is streamed: it is judged, then read once for every part, and only
one entry of it is in memory at a time. What is refused is what the reference lists, and nothing else.
"""

from __future__ import annotations

import math
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, ClassVar, Protocol

import fastjsonschema
import ijson
import orjson

from project_service.areas.vulnerabilities import zap
from project_service.areas.vulnerabilities.report_types import DAST, DEPENDENCY_SCANNING, SAST, SECRET_DETECTION
from project_service.kit.http.errors import ServiceError

PARSED_AT_ONCE = 16 << 20
BUFFER = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
BLANKS = b" \t\r\n"
INTEGERS = range(-(2**63), 2**64)
NUL = b"\\u0000"
SURROGATES = b"\\ud", b"\\uD"
# half of a surrogate pair; escaped backslashes and whole pairs are taken first, so that nothing in them is seen as one
HALF = re.compile(
    rb"\\(?:\\|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
BACKSLASH, QUOTE = b"\\", b'"'
QUOTE_OR_ESCAPED = re.compile(rb'\\.|"', re.DOTALL)
LONGEST_PAIR = 12
DEEPEST = 254  # what can be written again
# What digits may be in the way of the streaming parser, every digit taken for a 0: integers of more than 64 bits need
# its exact numbers; on those with more digits than Python reads, or such an exponent, it would bring the process down.
SHAPES = bytes.maketrans(b"123456789E+", b"000000000e-")
LONG = b"0" * 19
MOST_DIGITS = sys.int_info.str_digits_check_threshold
DEADLY = (b"0" * MOST_DIGITS, b"e" + b"0" * 18, b"e-" + b"0" * 18)
PARTS = VULNERABILITIES, REMEDIATIONS, SITE, SCAN, VERSION = (
    "vulnerabilities",
    "remediations",
    "site",
    "scan",
    "version",
)
# analyzers of these kinds once wrote a bare list
LISTS = (SAST, SECRET_DETECTION, DEPENDENCY_SCANNING)
NAMELESS = "has no message, no name and no identifiers"
ARTICLES = {"object": "an object", "array": "an array", "string": "a string"}
_LEVEL = {"type": ["string", "null"]}
_TITLE = {"type": ["string", "number"], "pattern": r"\S"}

check_vulnerability = fastjsonschema.compile(
    {
        "type": "object",
        "properties": {"severity": _LEVEL, "confidence": _LEVEL},
        "anyOf": [
            {"required": ["message"], "properties": {"message": _TITLE}},
            {"required": ["name"], "properties": {"name": _TITLE}},
            {"required": ["identifiers"], "properties": {"identifiers": {"type": "array", "minItems": 1}}},
        ],
    }
)
check_remediation = fastjsonschema.compile(
    {"type": "object", "required": ["fixes"], "properties": {"fixes": {"type": "array"}}}
)


class BrokenReport(ServiceError):
    """A file that is no report: 422 with the place, as a JSON pointer, and the reason."""

    status = 422

    def __init__(self, message: str, reason: str, pointer: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.pointer = pointer

    def __str__(self) -> str:
        return f"{self.message}: {self.pointer} {self.reason}" if self.pointer else f"{self.message}: {self.reason}"

    def body(self) -> dict[str, Any]:
        """The text of the reference, with what it leaves out."""
        return {"message": self.message, "pointer": self.pointer, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Report:
    """A report that is well formed. Entries and remediations, in the order of the file, can be read more than once."""

    report_type: str
    version: str | None
    scan: dict[str, Any] | None
    vulnerabilities: Iterable[dict[str, Any]]
    remediations: Iterable[dict[str, Any]]


@contextmanager
def reading(file: IO[bytes], report_type: str) -> Iterator[Report]:
    """Read a report that was uploaded as one of a kind; ``BrokenReport`` with the first place that is wrong.

    What a large one has in it is kept on disk until the block ends.
    """
    document: Document = (Whole if file.seek(0, os.SEEK_END) <= PARSED_AT_ONCE else Streamed)(file)
    vulnerabilities = _checked(report_type, check_vulnerability, _vulnerabilities(document, report_type))
    remediations = _checked(report_type, check_remediation, _placed(f"/{REMEDIATIONS}", document.items(REMEDIATIONS)))
    version, scan = document.value(VERSION), document.value(SCAN)
    with document.kept(vulnerabilities) as entries, document.kept(remediations) as remedies:
        yield Report(
            report_type,
            version if isinstance(version, str) else None,
            scan if isinstance(scan, dict) else None,
            entries,
            remedies,
        )


def refused(report_type: str, reason: str, pointer: str = "") -> BrokenReport:
    """JSON, but no report of its kind."""
    return BrokenReport(f"{report_type} security report parsing failed", reason, pointer)


def _vulnerabilities(document: Document, report_type: str) -> Iterator[tuple[str, Any]]:
    """The entries of a document with their places, or the reason why it is no report."""
    if document.is_list and report_type in LISTS:
        return _placed("", document.items(None))
    if document.is_list is not False:
        raise refused(report_type, "must be an object")
    kind = document.kind_of(VULNERABILITIES)
    if kind not in (None, list, type(None)):
        raise refused(report_type, "must be an array", f"/{VULNERABILITIES}")
    if kind is None and report_type == DAST:
        return zap.vulnerabilities_of(document.value(SITE))
    return _placed(f"/{VULNERABILITIES}", document.items(VULNERABILITIES))


def _checked(report_type: str, check: Any, items: Iterator[tuple[str, Any]]) -> Iterator[Any]:
    for pointer, item in items:
        try:
            check(item)
        except fastjsonschema.JsonSchemaValueException as error:
            inside = "".join(f"/{part}" for part in error.path[1:])
            raise refused(report_type, _reason(error), pointer + inside) from error
        yield item


def _reason(error: fastjsonschema.JsonSchemaValueException) -> str:
    """Why an entry is refused, in the words of the other refusals."""
    if error.rule == "type":
        types = [error.rule_definition] if isinstance(error.rule_definition, str) else error.rule_definition
        return f"must be {' or '.join(ARTICLES.get(name, name) for name in types)}"
    if error.rule == "required":
        missing = [name for name in error.rule_definition if name not in error.value]
        return f"must contain the property {missing[0]}"
    return NAMELESS


def _placed(pointer: str, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    for position, item in enumerate(items):
        yield f"{pointer}/{position}", item


class Document(Protocol):
    """A JSON text. ``is_list`` says whether its top is an array or an object; ``None`` when it is neither."""

    is_list: bool | None

    def kind_of(self, name: str) -> type | None:
        """What the top object has under a name: ``list``, ``dict``, ``NoneType`` or another; ``None`` if not there."""

    def value(self, name: str) -> Any:
        """What the top object has under a name; ``None`` if not there."""

    def items(self, name: str | None) -> Iterator[Any]:
        """The elements of the array under a name, or of the top one; none if there is no array."""

    def kept(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        """Go through some elements once, and keep them to be read again."""


class Whole:
    """A document that is parsed at once."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        raw = file.read()
        try:
            top = orjson.loads(raw.removeprefix(BYTE_ORDER_MARK))
            orjson.dumps(top)  # nested too deeply to be written would be found too late
        except (ValueError, TypeError) as error:
            raise _not_json(_misfit(raw) or error) from error
        if NUL in raw:
            top = {name: storable(part) for name, part in top.items()} if isinstance(top, dict) else storable(top)
        self.is_list = isinstance(top, list) if isinstance(top, list | dict) else None
        self.top = top if isinstance(top, dict) else {}
        self.list = top

    def kind_of(self, name: str) -> type | None:
        return type(self.top[name]) if name in self.top else None

    def value(self, name: str) -> Any:
        return self.top.get(name)

    def items(self, name: str | None) -> Iterator[Any]:
        found = self.list if name is None else self.top.get(name)
        return iter(found if isinstance(found, list) else ())

    def kept(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        return nullcontext(list(items))


class Streamed:
    """A document that is too large to be in memory. It is gone through once to be judged, and once for each part."""

    KINDS: ClassVar[dict[str, type]] = {"start_array": list, "start_map": dict, "null": type(None)}

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        file.seek(0)
        self.start = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        self.last = self.start
        self.is_exact = self.has_nul = False
        self.is_list: bool | None = None
        self.kinds: dict[str, type] = {}
        self.times: Counter[str] = Counter()
        self.version: str | None = None
        self._look()
        self._judge()

    def kind_of(self, name: str) -> type | None:
        return self.kinds.get(name)

    def value(self, name: str) -> Any:
        if self.kinds.get(name) not in (list, dict):
            return self.version if name == VERSION else None
        found = None
        for found in self._read(ijson.items, name):  # noqa: B007  # the last one is wanted
            pass
        return orjson.loads(written(found))

    def items(self, name: str | None) -> Iterator[Any]:
        if name is not None and self.kinds.get(name) is not list:
            return iter(())
        if name is None:
            found = self._read(ijson.items, "item")
        elif self.times[name] > 1:
            found = self._items_of_last(name)
        else:
            found = self._read(ijson.items, f"{name}.item")
        return map(storable, found) if self.has_nul else found

    def kept(self, items: Iterator[Any]) -> AbstractContextManager[Iterable[Any]]:
        return closing(Spool(items))

    def read(self, size: int) -> bytes:
        """Read on for the parser. The last byte comes by itself: ``_judge`` sees whether the document needs it."""
        left = self.last - self.file.tell()
        return self.file.read(min(size, left) if left > 0 else size)

    def _look(self) -> None:
        """See which numbers there are, whether there are NULs, and where the last byte is that is no blank.

        The parser takes vertical tabs and form feeds for blanks, which JSON does not have.
        """
        self.file.seek(self.start)
        before, are_long, are_deadly, has_surrogates = b"", False, False, False
        while chunk := self.file.read(BUFFER):
            if b"\v" in chunk or b"\f" in chunk:
                raise _not_json(ValueError("a control character"))
            if filled := chunk.rstrip(BLANKS):
                self.last = self.file.tell() - len(chunk) + len(filled) - 1
            text = before + chunk
            before = text[-MOST_DIGITS:]
            self.has_nul = self.has_nul or NUL in text
            has_surrogates = has_surrogates or any(half in text for half in SURROGATES)
            shape = text.translate(SHAPES)
            are_long = are_long or LONG in shape
            are_deadly = are_deadly or any(digits in shape for digits in DEADLY)
        self.is_exact = are_long and not (are_deadly and self._has_deadly_numbers())
        if has_surrogates:
            self._refuse_halves()

    def _has_deadly_numbers(self) -> bool:
        """Whether what would bring the process down stands outside of texts, where it is a number."""
        self.file.seek(self.start)
        before, rest, is_text = b"", b"", False
        while chunk := self.file.read(BUFFER):
            text, start, end = rest + chunk, 0, 0
            outside: list[bytes] = []
            for found in QUOTE_OR_ESCAPED.finditer(text):
                end = found.end()
                if found[0] == QUOTE:
                    if not is_text:
                        outside.append(text[start : found.start()])
                    start, is_text = end, not is_text
            rest = text[-1:] if end < len(text) and text.endswith(BACKSLASH) else b""  # the next byte belongs to it
            if not is_text:
                outside.append(text[start:])
            numbers = QUOTE.join(outside)
            shape = (before + numbers).translate(SHAPES)
            if any(digits in shape for digits in DEADLY):
                return True
            before = (before + numbers)[-MOST_DIGITS:]
        return False

    def _refuse_halves(self) -> None:
        """Refuse half a surrogate pair, for which the parser puts a question mark."""
        self.file.seek(self.start)
        text, is_last = b"", False
        while not is_last:
            chunk = self.file.read(BUFFER)
            text, is_last = text + chunk, not chunk
            done = len(text) if is_last else max(0, len(text) - LONGEST_PAIR + 1)
            for found in HALF.finditer(text):
                if found.start() >= done:  # it may go on in the next block
                    break
                if found["half"]:
                    raise _not_json(ValueError("half of a surrogate pair"))
                done = max(done, found.end())
            text = text[done:]

    def _judge(self) -> None:
        """Go through all of it: what is no JSON is refused, and what the top object has is noted."""
        depth, here = 0, ""
        for event, value in self._read(ijson.basic_parse):
            if event == "map_key":
                here = value if depth == 1 else here
            elif event in ("end_map", "end_array"):
                depth -= 1
                if depth == 0 and self.file.tell() <= self.last:
                    raise _not_json(ValueError("something behind the end"))  # the parser misses half a string
            else:
                if depth <= 1:
                    self._note(here, event, value)
                if event in ("start_map", "start_array"):
                    depth += 1
                    if depth > DEEPEST:
                        raise _not_json(RecursionError("nested too deeply"))
                elif event == "number" and self.is_exact and not _is_finite(value):
                    raise _not_json(OverflowError("a number is too large"))

    def _note(self, name: str, event: str, value: Any) -> None:
        """Note the top itself, or what it has under a name that is asked for."""
        if self.is_list is None:
            self.is_list = {"start_array": True, "start_map": False}.get(event)
        elif name in PARTS:
            self.times[name] += 1
            self.kinds[name] = self.KINDS.get(event, object)
            if name == VERSION:
                self.version = value.replace("\0", "") if event == "string" else None

    def _items_of_last(self, name: str) -> Iterator[Any]:
        """The elements of the last of several arrays under one name: that is the one that counts."""
        events, left = self._read(ijson.parse), self.times[name]
        for event in events:
            left -= event == ("", "map_key", name)
            if not left:
                break
        yield from ijson.items(events, f"{name}.item")

    def _read(self, how: Any, *names: str) -> Iterator[Any]:
        self.file.seek(self.start)
        try:
            yield from how(self, *names, buf_size=BUFFER, use_float=not self.is_exact)
        except (ijson.JSONError, UnicodeDecodeError) as error:
            raise _not_json(error) from error


class Spool:
    """Values on disk, one in a line, to be read again."""

    def __init__(self, items: Iterator[Any]) -> None:
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  # open for as long as the spool is
        try:
            self.file.writelines(written(item) + b"\n" for item in items)
        except BaseException:
            self.file.close()
            raise

    def __iter__(self) -> Iterator[Any]:
        self.file.seek(0)
        return map(orjson.loads, self.file)

    def close(self) -> None:
        self.file.close()


def written(value: Any) -> bytes:
    """A part of a streamed document as JSON, like the other parser would have read it."""
    try:
        raw = orjson.dumps(value)
        if NUL not in raw:
            return raw
    except TypeError:
        pass  # a decimal, an integer of more than 64 bits, or nested too deeply, which is found below
    try:
        return orjson.dumps(storable(value))
    except (TypeError, RecursionError, OverflowError) as error:
        raise _not_json(error) from error


def storable(value: Any) -> Any:
    """The same without what cannot be kept: NULs are left out, integers of more than 64 bits become inexact."""
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


def _misfit(raw: bytes) -> ValueError | None:
    """Where a file is no UTF-8, if it is none; the parser says that in words of its own, and not where."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return ValueError(f"byte {error.start + 1} is not UTF-8")
    return None


def _not_json(error: Exception) -> BrokenReport:
    if isinstance(error, UnicodeDecodeError):  # it knows the place in its own text, not in the file
        return BrokenReport("JSON parsing failed", "a text is not UTF-8")
    told = error.args[0] if error.args else ""
    said = (told.decode(errors="replace") if isinstance(told, bytes) else str(told)).strip().splitlines()
    return BrokenReport("JSON parsing failed", said[0] if said else "no JSON")
