"""CycloneDX JSON 1.4 to 1.6 (scanner formats reference, section 7). An entry is a vulnerability of one component."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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
UNAFFECTED = "unaffected"


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
    vulnerabilities = top.get("vulnerabilities")
    if vulnerabilities is not None and not isinstance(vulnerabilities, list | Entries):
        raise BrokenReport(FAILED, "must be an array", "/vulnerabilities")
    pairs = _pairs(vulnerabilities or (), components, section, reading)
    entries = shapes.within_limit(pairs, "vulnerabilities of components", FORM, "/vulnerabilities")
    is_empty = True
    for item in entries:
        is_empty = False
        if isinstance(item, SkippedEntries):
            yield item
            continue
        vulnerability, affected, pointer = item
        try:
            yield vulnerability.entry(affected, components, reading, pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)
    if is_empty and (vulnerabilities is None or reading.options.report_type is None):
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
    scanner_tools = tools if isinstance(tools, list) else obj(tools).get("components")
    first = obj(next(iter(scanner_tools), None)) if isinstance(scanner_tools, list) else {}
    name = shapes.cut(text(first.get("name")).strip(), shapes.MAX_NAME_LENGTH)
    if not name:
        return Scanner("cyclonedx", "CycloneDX")
    return Scanner(shapes.slug(name) or "cyclonedx", name, text(first.get("version")) or None)


@dataclass(frozen=True, slots=True)
class _Affected:
    """A component that a vulnerability affects, perhaps with one version or range; without a reference the whole."""

    reference: str | None
    version: str = ""
    is_unaffected: bool = False


class _Vulnerability:
    """A vulnerability: what is the same for every component that it affects."""

    def __init__(self, data: Data, section: ScannerSection) -> None:
        self._section = section
        self._analysis = obj(data.get("analysis"))
        self._texts = [text(data.get("description")), text(data.get("detail"))]
        self._solution = text(data.get("recommendation")) or text(data.get("workaround")) or None
        self._suppression = _suppression(self._analysis)
        self._is_rejected = bool(data.get("rejected"))
        source = obj(data.get("source"))
        self._severity = _severity(data, text(source.get("name")))
        advisories = shapes.members(data.get("advisories"))
        urls = [(text(advisory.get("url")), text(advisory.get("title"))) for advisory in advisories]
        self._urls = [*urls, (text(source.get("url")), "")]
        try:
            self._identifiers = _identifiers(data, source, section, self._texts[0])
        except BrokenEntry:
            self._identifiers = []

    def entry(
        self, affected: _Affected, components: Components, reading: Reading, pointer: str
    ) -> ReportEntry | SkippedEntries:
        """Return the finding for one component, or for one version or range of it."""
        if self._analysis.get("state") in RESOLVED:
            return SkippedEntries(self._section, "resolved", pointer)
        if self._is_rejected or affected.is_unaffected:
            return SkippedEntries(self._section, "not_affected", pointer)
        package = components.whole
        if affected.reference is not None:
            package = _package(affected.reference, components, reading, pointer)
        if affected.version:
            package = replace(package, version=affected.version)
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
    vulnerabilities: Any, components: Components, section: ScannerSection, reading: Reading
) -> Iterator[tuple[_Vulnerability, _Affected, str] | SkippedEntries]:
    """Return each vulnerability with each component and version that it affects.

    One that is named twice is one; of more than ``MAX_AFFECTED`` the rest is left out.
    """
    for number, raw in enumerate(vulnerabilities):
        pointer, data = f"/vulnerabilities/{number}", obj(raw)
        vulnerability, affects = _Vulnerability(data, section), data.get("affects")
        if not isinstance(affects, list) or not affects:
            yield vulnerability, _Affected(None), pointer
            continue
        places: dict[_Affected, int] = {}
        for index, item in enumerate(affects):
            for affected in _affected(obj(item), components):
                places.setdefault(affected, index)
        for affected, index in islice(places.items(), shapes.MAX_AFFECTED):
            yield vulnerability, affected, f"{pointer}/affects/{index}"
        if (left := len(places) - shapes.MAX_AFFECTED) > 0:
            reading.warn("over_limit", pointer)
            yield SkippedEntries(section, shapes.LIMIT, pointer, left)


def _affected(affects: Data, components: Components) -> Iterator[_Affected]:
    """Return the versions and ranges of a component that a vulnerability affects.

    A component with a version is that version. What is only listed as unaffected is no open finding.
    """
    reference = text(affects.get("ref"))
    listed = affects.get("versions")
    versions = [entry for entry in objs(listed) if _version(entry)] if isinstance(listed, list) else []
    component = components.by_reference.get(_name_of(reference))
    own = component.version if component is not None else ""
    if not versions:
        yield _Affected(reference)
        return
    unaffected = {_version(entry) for entry in versions if entry.get("status") == UNAFFECTED}
    open_ = [version for entry in versions if (version := _version(entry)) and entry.get("status") != UNAFFECTED]
    if not open_ or own in unaffected:
        yield _Affected(reference, is_unaffected=True)
    elif own:
        yield _Affected(reference)
    else:
        for version in open_:
            yield _Affected(reference, version)


def _version(affected: Data) -> str:
    return text(affected.get("version")) or text(affected.get("range"))


def _name_of(reference: str) -> str:
    is_link = reference.startswith(BOM_LINK) and "#" in reference
    return unquote(reference.partition("#")[2]) if is_link else reference


def _identifiers(vulnerability: Data, source: Data, section: ScannerSection, description: str) -> list[Data]:
    own = text(vulnerability.get("id")).strip()
    if not own and not description.strip():
        raise BrokenEntry
    issuer = shapes.slug(text(source.get("name"))) or section.scanner.id
    references = [(reference.get("id"), None) for reference in shapes.members(vulnerability.get("references"))]
    identifiers = identifying.advisories([(own, source.get("url")), *references], issuer)
    if not identifiers:
        identifiers = [identifying.identifier(f"{section.scanner.id}_message", shapes.title(description))]
    return [*identifiers, *identifying.weaknesses(_list(vulnerability.get("cwes")))]


def _package(reference: str, components: Components, reading: Reading, pointer: str) -> Package:
    name = _name_of(reference)
    package = components.by_reference.get(name)
    if package is not None:
        return package
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
        severity = severity_word(rating.get("severity"))
        score = rating.get("score")
        if not text(rating.get("severity")) and text(rating.get("method")) not in NOT_CVSS:
            severity = FindingSeverity.INFO if type(score) in (int, float) and score == 0 else severity_score(score)
        if severity not in (None, FindingSeverity.UNKNOWN):
            return severity or FindingSeverity.UNKNOWN
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
