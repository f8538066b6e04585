"""safety's JSON (scanner formats reference, section 8). An entry is a vulnerability of a package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.grading import severity_score
from project_service.areas.vulnerabilities.formats.packages import Package, dismissal, package_entry, upgrade
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
    texts,
)
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.report_types import DEPENDENCY_SCANNING

FORM = "safety"
IGNORED = "ignored_vulnerabilities"


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document."""
    about = obj(top.get("report_meta"))
    scanner = Scanner("safety", "Safety", text(about.get("safety_version")) or None)
    section = reading.section(scanner, DEPENDENCY_SCANNING)
    section.ended = text(about.get("timestamp")) or None
    for name, entry, pointer in shapes.within_limit(_vulnerabilities(top), "vulnerabilities", FORM):
        try:
            yield _finding(obj(entry), section, is_ignored=name == IGNORED)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _vulnerabilities(top: Data) -> Iterator[tuple[str, Any, str]]:
    for name in ("vulnerabilities", IGNORED):
        for number, entry in enumerate(shapes.elements(top.get(name))):
            yield name, entry, f"/{name}/{number}"


def _finding(one: Data, section: ScannerSection, *, is_ignored: bool) -> ReportEntry:
    package, url = text(one.get("package_name")), text(one.get("more_info_url"))
    ids = [(one.get("vulnerability_id"), url), *((cve, None) for cve in texts(one.get("CVE")))]
    identifiers = identifying.advisories(ids, "safety")
    if not package or not text(one.get("vulnerability_id")).strip():
        raise BrokenEntry
    score = obj(obj(one.get("severity")).get("cvssv3")).get("base_score")
    return package_entry(
        section,
        section.default_type,
        Package(package, text(one.get("analyzed_version"))),
        identifiers,
        severity_score(score) or FindingSeverity.UNKNOWN,
        texts=[text(one.get("advisory"))],
        solution=upgrade(package, texts(one.get("fixed_versions"))),
        urls=[(url, "")],
        suppression=dismissal("acceptable_risk", text(one.get("ignored_reason"))) if is_ignored else None,
    )
