"""Reading and validation of scanner reports (security reports reference, sections 2, 3, 6 and 7).

Only what those sections list is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import fastjsonschema

from project_service.areas.vulnerabilities.formats.documents.report_json import (
    REMEDIATIONS,
    SCAN,
    SITE,
    VERSION,
    VULNERABILITIES,
    BrokenReport,
    ReportDocument,
    open_document,
)
from project_service.areas.vulnerabilities.formats.gitlab import zap
from project_service.areas.vulnerabilities.report_types import DAST, DEPENDENCY_SCANNING, SAST, SECRET_DETECTION

# older analyzers of these types wrote a bare list of vulnerabilities
LIST_TYPES = (SAST, SECRET_DETECTION, DEPENDENCY_SCANNING)
NO_TITLE = "has no message, no name and no identifiers"
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


@dataclass(frozen=True, slots=True)
class Report:
    """A valid report. Vulnerabilities and remediations are in the order of the file and can be iterated again."""

    report_type: str
    version: str | None
    scan: dict[str, Any] | None
    vulnerabilities: Iterable[dict[str, Any]]
    remediations: Iterable[dict[str, Any]]


@contextmanager
def open_report(file: IO[bytes], report_type: str, spool_dir: Path | None = None) -> Iterator[Report]:
    """Read a report that was uploaded as one of a type.

    The entries of a large one are on disk, in ``spool_dir``, until the block ends.

    Raises:
        BrokenReport: it is invalid; the pointer is that of the first error.

    """
    document = open_document(file, spool_dir)
    vulnerabilities = _checked(report_type, check_vulnerability, _vulnerabilities(document, report_type))
    remediations = _checked(
        report_type, check_remediation, _with_pointers(f"/{REMEDIATIONS}", document.items(REMEDIATIONS))
    )
    version, scan = document.value(VERSION), document.value(SCAN)
    with document.stored(vulnerabilities) as entries, document.stored(remediations) as remedies:
        yield Report(
            report_type,
            version if isinstance(version, str) else None,
            scan if isinstance(scan, dict) else None,
            entries,
            remedies,
        )


def _invalid(report_type: str, reason: str, pointer: str = "") -> BrokenReport:
    """Return the error of a file that is JSON but not a report of its type."""
    return BrokenReport(f"{report_type} security report parsing failed", reason, pointer)


def _vulnerabilities(document: ReportDocument, report_type: str) -> Iterator[tuple[str, Any]]:
    """Return the entries of a document with their JSON pointers, or raise the reason why it is not a report."""
    if document.is_list and report_type in LIST_TYPES:
        return _with_pointers("", document.items(None))
    if document.is_list is not False:
        raise _invalid(report_type, "must be an object")
    type_ = document.type_of(VULNERABILITIES)
    if type_ not in (None, list, type(None)):
        raise _invalid(report_type, "must be an array", f"/{VULNERABILITIES}")
    if type_ is None and report_type == DAST:
        if document.type_of(SITE) not in (None, list, dict, type(None)):
            raise _invalid(report_type, "must be an object", f"/{SITE}")
        return zap.vulnerabilities_of(document.value(SITE))
    return _with_pointers(f"/{VULNERABILITIES}", document.items(VULNERABILITIES))


def _checked(report_type: str, check: Any, items: Iterator[tuple[str, Any]]) -> Iterator[Any]:
    for pointer, item in items:
        try:
            check(item)
        except fastjsonschema.JsonSchemaValueException as error:
            inside = "".join(f"/{part}" for part in error.path[1:])
            raise _invalid(report_type, _reason(error), pointer + inside) from error
        yield item


def _reason(error: fastjsonschema.JsonSchemaValueException) -> str:
    """Return why an entry is invalid, in the wording of the other errors."""
    if error.rule == "type":
        types = [error.rule_definition] if isinstance(error.rule_definition, str) else error.rule_definition
        return f"must be {' or '.join(ARTICLES.get(name, name) for name in types)}"
    if error.rule == "required":
        missing = [name for name in error.rule_definition if name not in error.value]
        return f"must contain the property {missing[0]}"
    return NO_TITLE


def _with_pointers(pointer: str, items: Iterator[Any]) -> Iterator[tuple[str, Any]]:
    for position, item in enumerate(items):
        yield f"{pointer}/{position}", item
