"""pip-audit's JSON (scanner formats reference, section 8). An entry is a vulnerability of a dependency."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.packages import Package, package_entry, upgrade
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

FORM = "pip-audit"
PIP_AUDIT = Scanner("pip-audit", "pip-audit")


def read(top: Any, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document: an object with dependencies or, from old releases, their list."""
    section = reading.section(PIP_AUDIT, DEPENDENCY_SCANNING)
    dependencies, above = (top["dependencies"], "/dependencies") if isinstance(top, dict) else (top, "")
    vulnerabilities = shapes.within_limit(
        _vulnerabilities(dependencies, above, reading), "vulnerabilities", FORM, above
    )
    for dependency, vulnerability, pointer in vulnerabilities:
        try:
            yield _finding(dependency, obj(vulnerability), section)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _vulnerabilities(dependencies: Any, above: str, reading: Reading) -> Iterator[tuple[Data, Any, str]]:
    for number, dependency in enumerate(dependencies):
        if "skip_reason" in dependency:
            reading.warn("skipped_package", f"{above}/{number}")
        for index, vulnerability in enumerate(shapes.elements(dependency.get("vulns"))):
            yield dependency, vulnerability, f"{above}/{number}/vulns/{index}"


def _finding(dependency: Data, vulnerability: Data, section: ScannerSection) -> ReportEntry:
    package = Package(text(dependency.get("name")), text(dependency.get("version")))
    ids = [vulnerability.get("id"), *texts(vulnerability.get("aliases"))]
    identifiers = identifying.advisories(((advisory_id, None) for advisory_id in ids), PIP_AUDIT.id)
    if not package.name or not text(vulnerability.get("id")).strip():
        raise BrokenEntry
    return package_entry(
        section,
        section.default_type,
        package,
        identifiers,
        FindingSeverity.UNKNOWN,  # it tells none
        texts=[text(vulnerability.get("description"))],
        solution=upgrade(package.name, texts(vulnerability.get("fix_versions"))),
    )
