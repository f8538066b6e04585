"""Reads a scanner's report: which files are taken, and what they say (security reports reference, 2, 3, 6 and 7).

A file of up to 16 MB is parsed at once, a larger one is streamed: it is read anew for every part that is asked for, and
only one vulnerability of it is in memory at a time. What is refused is what the reference lists, and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, ClassVar, Protocol

import fastjsonschema
import ijson
import orjson

from project_service.kit.errors import ServiceError
from project_service.vulnerabilities import zap
from project_service.vulnerabilities.report_types import DAST, DEPENDENCY_SCANNING, SAST, SECRET_DETECTION

PARSED_AT_ONCE = 16 << 20
BUFFER = 1 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
INTEGERS = range(-(2**63), 2**64)
DEEPEST = 254
NUL = b"\\u0000"
VULNERABILITIES, REMEDIATIONS, SITE = "vulnerabilities", "remediations", "site"
# analyzers of these kinds once wrote a bare list
LISTS = (SAST, SECRET_DETECTION, DEPENDENCY_SCANNING)
NAMELESS = "has no message, no name and no identifiers"
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


class Document(Protocol):
    """A JSON text. ``is_list`` says whether its top is an array or an object; ``None`` when it is neither."""

    is_list: bool | None

    def kind_of(self, name: str) -> type | None:
        """What the top object has under a name: ``list``, ``dict``, ``NoneType`` or another; ``None`` if not there."""

    def value(self, name: str) -> Any:
        """What the top object has under a name."""

    def items(self, name: str | None) -> Iterator[Any]:
        """The elements of the array under a name, or of the top one."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that is well formed. Its parts can be read more than once."""

    report_type: str
    document: Document
    version: str | None
    scan: dict[str, Any] | None

    def vulnerabilities(self) -> Iterator[dict[str, Any]]:
        """Every entry, in the order of the file."""
        return (vulnerability for _, vulnerability in self._placed_vulnerabilities())

    def remediations(self) -> Iterator[dict[str, Any]]:
        """Every remediation, in the order of the file."""
        if not self.document.is_list and self.document.kind_of(REMEDIATIONS) is list:
            yield from self.document.items(REMEDIATIONS)

    def check(self) -> None:
        """Raise ``BrokenReport`` with the first place that is wrong."""
        for pointer, vulnerability in self._placed_vulnerabilities():
            self._check(check_vulnerability, vulnerability, pointer)
        for position, remediation in enumerate(self.remediations()):
            self._check(check_remediation, remediation, f"/{REMEDIATIONS}/{position}")

    def _placed_vulnerabilities(self) -> Iterator[tuple[str, dict[str, Any]]]:
        document = self.document
        if document.is_list:
            return _placed("", document.items(None))
        kind = document.kind_of(VULNERABILITIES)
        if kind is list:
            return _placed(f"/{VULNERABILITIES}", document.items(VULNERABILITIES))
        if kind is None and self.report_type == DAST:
            return zap.vulnerabilities_of(document.value(SITE))
        return iter(())

    def _check(self, check: Any, value: Any, pointer: str) -> None:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            inside = "".join(f"/{part}" for part in error.path[1:])
            reason = NAMELESS if error.rule == "anyOf" else error.message.removeprefix(str(error.name)).strip()
            raise refused(self.report_type, reason, pointer + inside) from error


def read(file: IO[bytes], report_type: str) -> Report:
    """Read a report that was uploaded as one of a kind; ``BrokenReport`` if it is none. The file has to stay open."""
    size = file.seek(0, os.SEEK_END)
    document = (Whole if size <= PARSED_AT_ONCE else Streamed)(file)
    if document.is_list is None:
        raise refused(report_type, "must be an object")
    if document.is_list:
        if report_type not in LISTS:
            raise refused(report_type, "must be an object")
        report = Report(report_type, document, None, None)
    else:
        kind = document.kind_of(VULNERABILITIES)
        if kind not in (None, list, type(None)):
            raise refused(report_type, "must be an array", f"/{VULNERABILITIES}")
        version, scan = document.value("version"), document.value("scan")
        report = Report(
            report_type,
            document,
            version if isinstance(version, str) else None,
            scan if isinstance(scan, dict) else None,
        )
    report.check()
    return report


def refused(report_type: str, reason: str, pointer: str = "") -> BrokenReport:
    """JSON, but no report of its kind."""
    return BrokenReport(f"{report_type} security report parsing failed", reason, pointer)


class Whole:
    """A document that is parsed at once."""

    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        raw = file.read().removeprefix(BYTE_ORDER_MARK)
        try:
            top = orjson.loads(raw)
            orjson.dumps(top)  # nested too deeply to be written would be found too late
        except (ValueError, TypeError) as error:
            raise _not_json(error) from error
        if NUL in raw:
            top = storable(top)
        self.is_list = isinstance(top, list) if isinstance(top, list | dict) else None
        self.top = top

    def kind_of(self, name: str) -> type | None:
        return type(self.top[name]) if name in self.top else None

    def value(self, name: str) -> Any:
        return self.top.get(name)

    def items(self, name: str | None) -> Iterator[Any]:
        return iter(self.top if name is None else self.top[name])


class Streamed:
    """A document that is too large to be in memory."""

    KINDS: ClassVar[dict[str, type]] = {"start_array": list, "start_map": dict, "null": type(None)}

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        file.seek(0)
        self.start = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
        self.kinds: dict[str, type] = {}
        top = next(self._read(ijson.basic_parse), (None, None))[0]
        self.is_list = {"start_array": True, "start_map": False}.get(str(top))
        self._look()

    def kind_of(self, name: str) -> type | None:
        return self.kinds.get(name)

    def value(self, name: str) -> Any:
        found = None
        for value in self._read(ijson.items, name):
            found = _checked(value)
        return found

    def items(self, name: str | None) -> Iterator[Any]:
        return map(_checked, self._read(ijson.items, "item" if name is None else f"{name}.item"))

    def _look(self) -> None:
        """Note what the names at the top have, and refuse what is nested deeper than the other parser goes."""
        depth, name = 0, ""
        for event, value in self._read(ijson.basic_parse):
            if event in ("end_map", "end_array"):
                depth -= 1
            elif depth == 1 and event == "map_key":
                name = value
            elif depth == 1:
                self.kinds[name] = self.KINDS.get(event, str)
            if event in ("start_map", "start_array"):
                depth += 1
                if depth > DEEPEST:
                    raise BrokenReport("JSON parsing failed", "nested too deeply")

    def _read(self, how: Any, *names: str) -> Iterator[Any]:
        self.file.seek(self.start)
        try:
            yield from how(self.file, *names, buf_size=BUFFER)
        except (ijson.JSONError, UnicodeDecodeError) as error:
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


def _checked(value: Any) -> Any:
    """A part of a streamed document as the other parser would have read it."""
    try:
        if NUL not in orjson.dumps(value):
            return value
    except TypeError:
        pass  # a decimal, an integer of more than 64 bits, or nested too deeply, which is found below
    try:
        value = storable(value)
        orjson.dumps(value)
    except (TypeError, RecursionError, OverflowError) as error:
        raise _not_json(error) from error
    return value


def _placed(pointer: str, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    for position, item in enumerate(items):
        yield f"{pointer}/{position}", item


def _not_json(error: Exception) -> BrokenReport:
    return BrokenReport("JSON parsing failed", str(error).strip().splitlines()[0] if str(error).strip() else "no JSON")
