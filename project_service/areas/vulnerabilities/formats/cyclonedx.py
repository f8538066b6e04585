"""CycloneDX JSON 1.4 to 1.6 (scanner formats reference, section 7). An entry is a vulnerability of one component."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from project_service.areas.vulnerabilities.formats import cyclonedx_components, identifying, shapes
from project_service.areas.vulnerabilities.formats.cyclonedx_components import FAILED, FORM, Components
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.grading import severity_score, severity_word
from project_service.areas.vulnerabilities.formats.packages import Package, dismissal, package_entry, package_of_purl
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
)
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.report_types import CONTAINER_SCANNING, DEPENDENCY_SCANNING

VERSIONS = ("1.4", "1.5", "1.6")
NEWER_VERSION = "1.7"
METHODS = ("CVSSv4", "CVSSv31", "CVSSv3", "", "CVSSv2", "OWASP", "SSVC")  # by priority; others are like none
NOT_CVSS = ("OWASP", "SSVC")
RESOLVED = ("resolved", "resolved_with_pedigree")
BOM_LINK = "urn:cdx:"


def read(top: Data, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document, and add its components to ``reading``.

    Raises:
        BrokenReport: the version is another one, or parts that decide about the rest are invalid.

    """
    _check_version(top, reading)
    metadata = obj(top.get("metadata"))
    is_container = text(obj(metadata.get("component")).get("type")) == "container"
    section = reading.section(_scanner(metadata), CONTAINER_SCANNING if is_container else DEPENDENCY_SCANNING)
    section.ended = text(metadata.get("timestamp")) or None
    components = Components(top, is_container=section.default_type == CONTAINER_SCANNING)
    reading.components = cyclonedx_components.listed(top, components)
    found = top.get("vulnerabilities")
    if found is not None and not isinstance(found, list | Entries):
        raise BrokenReport(FAILED, "must be an array", "/vulnerabilities")
    entries = shapes.within_limit(_pairs(found or ()), "vulnerabilities of components", FORM, "/vulnerabilities")
    is_empty = True
    for vulnerability, reference, pointer in entries:
        is_empty = False
        try:
            yield _entry(vulnerability, reference, section, components, reading, pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)
    if is_empty and (found is None or reading.options.report_type is None):
        section.complete = False
        reading.warn("inventory_only", "/vulnerabilities")


def _check_version(top: Data, reading: Reading) -> None:
    version = text(top.get("specVersion"))
    if version == NEWER_VERSION:
        reading.warn("newer_version", "/specVersion")
    elif version not in VERSIONS:
        reason = f"CycloneDX {version or 'without a version'} is not supported: {VERSIONS[0]} to {VERSIONS[-1]} are"
        raise BrokenReport(FAILED, reason, "/specVersion")


def _scanner(metadata: Data) -> Scanner:
    tools = metadata.get("tools")
    found = tools if isinstance(tools, list) else obj(tools).get("components")
    first = obj(next(iter(found), None)) if isinstance(found, list) else {}
    name = shapes.cut(text(first.get("name")).strip(), shapes.MAX_NAME_LENGTH)
    if not name:
        return Scanner("cyclonedx", "CycloneDX")
    return Scanner(shapes.slug(name) or "cyclonedx", name, text(first.get("version")) or None)


def _pairs(vulnerabilities: Any) -> Iterator[tuple[Data, str | None, str]]:
    """Return each vulnerability with the reference to each component that it affects; none means the whole."""
    for number, one in enumerate(vulnerabilities):
        pointer, vulnerability = f"/vulnerabilities/{number}", obj(one)
        affects = vulnerability.get("affects")
        found = affects if isinstance(affects, list) and affects else [None]
        for place, affected in enumerate(found):
            if affected is None and not affects:
                yield vulnerability, None, pointer
            else:
                yield vulnerability, text(obj(affected).get("ref")), f"{pointer}/affects/{place}"


def _entry(
    vulnerability: Data,
    reference: str | None,
    section: ScannerSection,
    components: Components,
    reading: Reading,
    pointer: str,
) -> ReportEntry | SkippedEntries:
    analysis = obj(vulnerability.get("analysis"))
    if analysis.get("state") in RESOLVED:
        return SkippedEntries(section, "resolved", pointer)
    description = text(vulnerability.get("description"))
    package = components.whole if reference is None else _package(reference, components, reading, pointer)
    source = obj(vulnerability.get("source"))
    identifiers = _identifiers(vulnerability, source, section, description)
    advisories = vulnerability.get("advisories")
    links = [(text(one.get("url")), text(one.get("title"))) for one in objs(_list(advisories))]
    return package_entry(
        section,
        section.default_type,
        package,
        identifiers,
        _severity(vulnerability, text(source.get("name"))),
        texts=[description, text(vulnerability.get("detail"))],
        solution=text(vulnerability.get("recommendation")) or text(vulnerability.get("workaround")) or None,
        urls=[*links, (text(source.get("url")), "")],
        suppression=_suppression(analysis),
    )


def _identifiers(vulnerability: Data, source: Data, section: ScannerSection, description: str) -> list[Data]:
    own = text(vulnerability.get("id")).strip()
    if not own and not description.strip():
        raise BrokenEntry
    issuer = shapes.slug(text(source.get("name"))) or section.scanner.id
    references = [(one.get("id"), None) for one in objs(_list(vulnerability.get("references")))]
    found = identifying.advisories([(own, source.get("url")), *references], issuer)
    if not found:
        found = [identifying.identifier(f"{section.scanner.id}_message", shapes.title(description))]
    return [*found, *identifying.weaknesses(_list(vulnerability.get("cwes")))]


def _package(reference: str, components: Components, reading: Reading, pointer: str) -> Package:
    name = reference
    if reference.startswith(BOM_LINK) and "#" in reference:
        name = unquote(reference.partition("#")[2])
    known = components.by_reference.get(name)
    if known is not None:
        return known
    reading.warn("unresolved_ref", pointer)
    if not name.strip():
        raise BrokenEntry
    return components.placed(package_of_purl(name) or Package(name))


def _severity(vulnerability: Data, source: str) -> FindingSeverity:
    """Return the severity of the first rating that has one, those of the vulnerability's own source first."""
    ratings = list(objs(_list(vulnerability.get("ratings"))))

    def priority(rating: Data) -> tuple[bool, int]:
        method = text(rating.get("method"))
        of_other = not source or text(obj(rating.get("source")).get("name")) != source
        return of_other, METHODS.index(method if method in METHODS else "")

    for rating in sorted(ratings, key=priority):
        found = severity_word(rating.get("severity"))
        score = rating.get("score")
        if not text(rating.get("severity")) and text(rating.get("method")) not in NOT_CVSS:
            found = FindingSeverity.INFO if type(score) in (int, float) and score == 0 else severity_score(score)
        if found not in (None, FindingSeverity.UNKNOWN):
            return found or FindingSeverity.UNKNOWN
    return FindingSeverity.UNKNOWN


def _suppression(analysis: Data) -> Data | None:
    state, detail = analysis.get("state"), text(analysis.get("detail"))
    if state == "false_positive":
        return dismissal("false_positive", detail)
    if state == "not_affected":
        is_protected = text(analysis.get("justification")).startswith("protected_")
        return dismissal("mitigating_control" if is_protected else "not_applicable", detail)
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
