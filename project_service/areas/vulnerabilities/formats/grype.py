"""grype's JSON (scanner formats reference, section 8). An entry is a match."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.grading import severity_word
from project_service.areas.vulnerabilities.formats.packages import (
    Package,
    dismissal,
    package_entry,
    package_of_purl,
    upgrade,
)
from project_service.areas.vulnerabilities.formats.shapes import (
    BrokenEntry,
    Data,
    Reading,
    ReportEntry,
    Scanner,
    ScannerSection,
    SkippedEntries,
    obj,
    objs,
    text,
    texts,
)
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.report_types import CONTAINER_SCANNING, DEPENDENCY_SCANNING

FORM = "grype"


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document."""
    descriptor, source = obj(top.get("descriptor")), obj(top.get("source"))
    is_image = text(source.get("type")) == "image"
    scanner = Scanner("grype", "Grype", text(descriptor.get("version")) or None)
    section = reading.section(scanner, CONTAINER_SCANNING if is_image else DEPENDENCY_SCANNING)
    section.ended = text(descriptor.get("timestamp")) or None
    image = text(obj(source.get("target")).get("userInput")) if is_image else ""
    distribution = obj(top.get("distro"))
    system = (
        " ".join(part for name in ("name", "version") if (part := text(distribution.get(name)))) if is_image else ""
    )
    for match, pointer in shapes.within_limit(_matches(top), "matches", FORM):
        try:
            yield _finding(obj(match), section, image, system)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _matches(top: Data) -> Iterator[tuple[Any, str]]:
    for name in ("matches", "ignoredMatches"):
        for number, match in enumerate(shapes.elements(top.get(name))):
            yield match, f"/{name}/{number}"


def _finding(match: Data, section: ScannerSection, image: str, system: str) -> ReportEntry:
    vulnerability, artifact = obj(match.get("vulnerability")), obj(match.get("artifact"))
    name, url = _name(artifact), text(vulnerability.get("dataSource"))
    related = _objects(match.get("relatedVulnerabilities"))
    identifiers = identifying.advisories(
        [(vulnerability.get("id"), url), *((other.get("id"), other.get("dataSource")) for other in related)], "grype"
    )
    if not name or not text(vulnerability.get("id")).strip():
        raise BrokenEntry
    locations = _objects(artifact.get("locations"))
    path = text(locations[0].get("path")).lstrip("/") if locations and not image else ""
    words = (severity_word(source.get("severity")) for source in (vulnerability, *related))
    severity = next((word for word in words if word not in (None, FindingSeverity.UNKNOWN)), None)
    rules = match.get("appliedIgnoreRules")
    suppression = None
    if isinstance(rules, list):
        suppression = dismissal("acceptable_risk", text(obj(next(iter(rules), None)).get("reason")))
    return package_entry(
        section,
        section.default_type,
        Package(name, text(artifact.get("version")), path, image, system),
        identifiers,
        severity or FindingSeverity.UNKNOWN,
        texts=[text(vulnerability.get("description"))],
        solution=upgrade(name, texts(obj(vulnerability.get("fix")).get("versions"))),
        urls=[(url, ""), *((address, "") for address in texts(vulnerability.get("urls")))],
        suppression=suppression,
    )


def _name(artifact: Data) -> str:
    """Return the name of a package; of Maven's with its group, which only the package URL has."""
    purl = text(artifact.get("purl"))
    package = package_of_purl(purl) if purl.startswith("pkg:maven/") else None
    return package.name if package is not None else text(artifact.get("name"))


def _objects(value: Any) -> list[Data]:
    return list(objs(value)) if isinstance(value, list) else []
