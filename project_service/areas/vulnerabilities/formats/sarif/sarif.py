"""SARIF 2.1.0 (scanner formats reference, section 5). An entry is one location of one result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import shapes
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.sarif.results import Result
from project_service.areas.vulnerabilities.formats.sarif.runs import FAILED, Run
from project_service.areas.vulnerabilities.formats.shapes import (
    BrokenEntry,
    Data,
    Reading,
    ReportEntry,
    SkippedEntries,
    obj,
    text,
)

VERSION = "2.1.0"
MAX_RUNS = 100
MAX_LOCATIONS = 100
SKIPPED_KINDS = {"pass": "pass", "notApplicable": "not_applicable", "informational": "informational"}
LICENSE_RULE = "License"  # trivy's


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document.

    Raises:
        BrokenReport: the version is another one, or parts that decide about the rest are invalid.

    """
    check_version(top)
    runs = top.get("runs")
    if runs is None:
        return
    if not isinstance(runs, list):
        raise BrokenReport(FAILED, "must be an array", "/runs")
    if len(runs) > MAX_RUNS:
        raise BrokenReport(FAILED, f"has {len(runs)} runs, at most {MAX_RUNS} are taken", "/runs")
    results = 0
    for number, run in enumerate(runs):
        pointer = f"/runs/{number}"
        if not isinstance(run, dict):
            raise BrokenReport(FAILED, "must be an object", pointer)
        reader = Run(run, reading, pointer)
        for position, result in enumerate(reader.results()):
            results += 1
            if results > shapes.MAX_ENTRIES:
                reason = f"has {results} results, at most {shapes.MAX_ENTRIES} are taken"
                raise BrokenReport(FAILED, reason, f"{pointer}/results")
            yield from entries(reader, result, f"{pointer}/results/{position}")


def check_version(top: Data) -> None:
    """Refuse another version than 2.1.0."""
    version = top.get("version")
    if version is None:
        version = VERSION if VERSION in text(top.get("$schema")) else ""
    if not text(version).startswith(VERSION):
        version_text = text(version) or "without a version"
        raise BrokenReport(FAILED, f"SARIF {version_text} is not supported: {VERSION} is", "/version")


def entries(run: Run, result: Any, pointer: str) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of one result of a run."""
    if not isinstance(result, dict):
        yield run.reading.broken(run.section, pointer)
        return
    locations = result.get("locations")
    result_locations = list(locations) if isinstance(locations, list) else []
    count = len(result_locations) or 1
    reason = SKIPPED_KINDS.get(text(result.get("kind")))
    if reason is None and result.get("baselineState") == "absent":
        reason = "absent"
    name, rule = run.rules.of(result)
    if reason is None and rule.name == LICENSE_RULE and run.scanner.id == "trivy":
        reason = "license"
    if reason is not None:
        yield SkippedEntries(run.section, reason, pointer, count)
        return
    read = Result(run, result, name, rule, pointer)
    if not read.message:
        run.reading.warn("broken_entry", pointer)
        yield SkippedEntries(run.section, shapes.BROKEN, pointer, count)
        return
    for location in result_locations[:MAX_LOCATIONS] or [{}]:
        try:
            yield read.entry(obj(location))
        except BrokenEntry:
            yield run.reading.broken(run.section, pointer)
    if count > MAX_LOCATIONS:
        run.reading.warn("over_limit", pointer)
        yield SkippedEntries(run.section, shapes.LIMIT, pointer, count - MAX_LOCATIONS)
