"""Bandit's own JSON (scanner formats reference, section 8). An entry is a result, with the identity it has in SARIF."""

from __future__ import annotations

import re
from collections.abc import Iterator

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.grading import confidence_word, severity_word
from project_service.areas.vulnerabilities.formats.paths import Paths
from project_service.areas.vulnerabilities.formats.shapes import (
    BrokenEntry,
    Data,
    Reading,
    ReportEntry,
    Scanner,
    ScannerSection,
    SkippedEntries,
    obj,
    text,
    web,
)
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.report_types import SAST

FORM = "bandit"
BANDIT = Scanner("bandit", "Bandit")
LINE = re.compile(r"^([0-9]+)[ \t]?(.*)$", re.MULTILINE)


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document."""
    section = reading.section(BANDIT, SAST)
    section.ended = text(top.get("generated_at")) or None
    if top.get("errors"):
        section.complete = False
        reading.warn("incomplete_run", "/errors")
    paths = Paths(reading)
    for number, result in enumerate(shapes.within_limit(top["results"], "results", FORM, "/results")):
        pointer = f"/results/{number}"
        try:
            yield _finding(obj(result), section, paths, pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _finding(result: Data, section: ScannerSection, paths: Paths, pointer: str) -> ReportEntry:
    rule, message = text(result.get("test_id")).strip(), text(result.get("issue_text"))
    if not message.strip():
        message = text(result.get("test_name")) or rule
    if not message:
        raise BrokenEntry
    file = text(result.get("filename"))
    location: Data = {"file": paths.relative(file, pointer=pointer)} if file else {}
    line = shapes.line_number(result.get("line_number"))
    if line is not None:
        lines = result.get("line_range")
        numbers = (shapes.line_number(line_text) for line_text in (lines if isinstance(lines, list) else ()))
        location |= {"start_line": line, "end_line": max([line, *(number for number in numbers if number is not None)])}
        for name, key in (("start_column", "col_offset"), ("end_column", "end_col_offset")):
            column = shapes.whole(result.get(key))
            if column is not None and 0 <= column < shapes.MAX_LINE:
                location[name] = column + 1
    url = web(result.get("more_info"))
    title = shapes.title(message)
    first = (
        identifying.identifier("bandit_rule_id", rule[: identifying.MAX_ID_LENGTH], url=url)
        if rule
        else identifying.identifier("bandit_message", title)
    )
    identifiers = [first, *identifying.weaknesses([obj(result.get("issue_cwe")).get("id")])]
    code = _line_of_code(text(result.get("code")), line)
    data = shapes.finding_data(
        scanner=BANDIT,
        name=title,
        identifiers=identifiers,
        location=location,
        described=shapes.description(title, message, code=code),
        urls=shapes.links([(url or "", "")]),
    )
    key = identifying.key_of(SAST, location, first, message=message, snippet=code)
    severity = severity_word(result.get("issue_severity")) or FindingSeverity.UNKNOWN
    confidence = confidence_word(result.get("issue_confidence")) or Confidence.UNKNOWN
    marks = identifying.marks_of(code, None, None)
    return ReportEntry(section, SAST, severity, confidence, key, data, marks=marks)


def _line_of_code(code: str, line: int | None) -> str:
    """Return the line of the finding; each line of the code begins with its number."""
    return next((content for number, content in LINE.findall(code[:100_000]) if number == str(line)), "")
