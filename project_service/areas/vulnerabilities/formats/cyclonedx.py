"""CycloneDX JSON 1.4 to 1.6 (scanner formats reference, section 7). An entry is a vulnerability of one component."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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
    pairs = _pairs(found or (), section, reading)
    entries = shapes.within_limit(pairs, "vulnerabilities of components", FORM, "/vulnerabilities")
    is_empty = True
    for item in entries:
        is_empty = False
        if isinstance(item, SkippedEntries):
            yield item
            continue
        vulnerability, reference, pointer = item
        try:
            yield vulnerability.entry(reference, components, reading, pointer)
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


class _Vulnerability:
    """A vulnerability: what is the same for every component that it affects."""

    def __init__(self, data: Data, section: ScannerSection) -> None:
        self._section = section
        self._analysis = obj(data.get("analysis"))
        self._texts = [text(data.get("description")), text(data.get("detail"))]
        self._solution = text(data.get("recommendation")) or text(data.get("workaround")) or None
        self._suppression = _suppression(self._analysis)
        source = obj(data.get("source"))
        self._severity = _severity(data, text(source.get("name")))
        advisories = shapes.members(data.get("advisories"))
        urls = [(text(one.get("url")), text(one.get("title"))) for one in advisories]
        self._urls = [*urls, (text(source.get("url")), "")]
        try:
            self._identifiers = _identifiers(data, source, section, self._texts[0])
        except BrokenEntry:
            self._identifiers = []

    def entry(
        self, reference: str | None, components: Components, reading: Reading, pointer: str
    ) -> ReportEntry | SkippedEntries:
        """Return the finding for one component; without a reference it is the whole."""
        if self._analysis.get("state") in RESOLVED:
            return SkippedEntries(self._section, "resolved", pointer)
        package = components.whole if reference is None else _package(reference, components, reading, pointer)
        if not self._identifiers:
            raise BrokenEntry
        return package_entry(
            self._section,
            self._section.default_type,
            package,
            self._identifiers,
            self._severity,
            texts=self._texts,
            solution=self._solution,
            urls=self._urls,
            suppression=self._suppression,
        )


def _pairs(
    vulnerabilities: Any, section: ScannerSection, reading: Reading
) -> Iterator[tuple[_Vulnerability, str | None, str] | SkippedEntries]:
    """Return each vulnerability with the reference to each component that it affects; none means the whole.

    A component that is named twice is one; of more than ``MAX_AFFECTED`` the rest is left out.
    """
    for number, one in enumerate(vulnerabilities):
        pointer, data = f"/vulnerabilities/{number}", obj(one)
        vulnerability, affects = _Vulnerability(data, section), data.get("affects")
        if not isinstance(affects, list) or not affects:
            yield vulnerability, None, pointer
            continue
        places: dict[str, int] = {}
        for place, affected in enumerate(affects):
            places.setdefault(text(obj(affected).get("ref")), place)
        for reference, place in islice(places.items(), shapes.MAX_AFFECTED):
            yield vulnerability, reference, f"{pointer}/affects/{place}"
        if (left := len(places) - shapes.MAX_AFFECTED) > 0:
            reading.warn("over_limit", pointer)
            yield SkippedEntries(section, shapes.LIMIT, pointer, left)


def _identifiers(vulnerability: Data, source: Data, section: ScannerSection, description: str) -> list[Data]:
    own = text(vulnerability.get("id")).strip()
    if not own and not description.strip():
        raise BrokenEntry
    issuer = shapes.slug(text(source.get("name"))) or section.scanner.id
    references = [(one.get("id"), None) for one in shapes.members(vulnerability.get("references"))]
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
    ratings = shapes.members(vulnerability.get("ratings"))

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
