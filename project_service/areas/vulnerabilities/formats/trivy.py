"""trivy's JSON (scanner formats reference, section 8).

An entry is a vulnerability, a misconfiguration, a secret or a licence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from project_service.areas.vulnerabilities.formats import identifying, shapes
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.grading import severity_word
from project_service.areas.vulnerabilities.formats.packages import Package, dismissal, package_entry, upgrade
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
    objs,
    text,
    texts,
    web,
)
from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.report_types import (
    CONTAINER_SCANNING,
    DEPENDENCY_SCANNING,
    SAST,
    SECRET_DETECTION,
)

FORM = "trivy"
IMAGE = "container_image"
OS_PACKAGES = "os-pkgs"
RESOURCE_PARTS = ("Namespace", "Kind", "Name")
MAX_RESOURCE_LENGTH = 255
BRACKET = re.compile(r"\A(.*?) \(([^()]*)\)\Z", re.DOTALL)
JAVA = ("jar", "pom", "gradle", "sbt")  # names of packages are group:name there, and group/name here
KINDS = ("Vulnerabilities", "Misconfigurations", "Secrets", "Licenses")
# findings that an ignore file or a VEX document took out (--show-suppressed), by their types
MODIFIED = "ExperimentalModifiedFindings"
KINDS_OF_MODIFIED = {
    "vulnerability": "Vulnerabilities",
    "misconfiguration": "Misconfigurations",
    "secret": "Secrets",
    "license": "Licenses",
}
LEFT_OF_MODIFIED = {"not_affected": "not_affected", "fixed": "resolved"}
# lists of the resources of a cluster: of full reports, those of older releases, and summaries
RESOURCES = ("Resources", "Vulnerabilities", "Misconfigurations", "Findings")


@dataclass(frozen=True, slots=True)
class _Target:
    """What was scanned: an image or a resource of a cluster, or else files."""

    name: str
    system: str
    is_system: bool  # whether its packages are those of the operating system
    image: str
    is_within_image: bool
    kind: str  # of its packages
    resource: Data  # of a cluster: namespace, kind and name; empty elsewhere


def read(top: Any, reading: Reading) -> Iterator[ReportEntry | SkippedEntries]:
    """Return the entries of a document: of an artifact, of a cluster or, from old releases, a list of results."""
    document = obj(top)
    version = text(obj(document.get("Trivy")).get("Version")) or None
    is_image = document.get("ArtifactType") == IMAGE
    is_cluster = "ClusterName" in document
    default_type = CONTAINER_SCANNING if is_image or is_cluster else DEPENDENCY_SCANNING
    section = reading.section(Scanner("trivy", "Trivy", version), default_type)
    section.ended = text(document.get("CreatedAt")) or None
    image = text(document.get("ArtifactName")) if is_image else ""
    reader = _TrivyReader(reading, section)
    if is_cluster:
        _note_failures(document, reading, section)
    entries = _entries(_results(top, is_cluster=is_cluster), image, is_cluster=is_cluster)
    for kind, target, entry, pointer in shapes.within_limit(entries, "entries", FORM):
        try:
            yield reader.read(kind, target, obj(entry), pointer)
        except BrokenEntry:
            yield reading.broken(section, pointer)


def _entries(
    results: Iterable[tuple[Data, Data, str]], image: str, *, is_cluster: bool
) -> Iterator[tuple[str, _Target, Any, str]]:
    for result, resource, above in results:
        target = _target(result, image, resource, is_cluster=is_cluster)
        if not result:
            yield KINDS[0], target, None, above
        for kind in (*KINDS, MODIFIED):
            for number, entry in enumerate(shapes.elements(result.get(kind))):
                yield kind, target, entry, f"{above}/{kind}/{number}"


def _results(top: Any, *, is_cluster: bool) -> Iterator[tuple[Data, Data, str]]:
    """Return each result with the resource of a cluster that it is about, and its pointer."""
    if not isinstance(top, dict):
        for number, result in enumerate(top):
            yield obj(result), {}, f"/{number}"
        return
    for number, result in enumerate(_top_list(top, "Results")):
        yield obj(result), {}, f"/Results/{number}"
    for name in RESOURCES if is_cluster else ():
        for index, entry in enumerate(_top_list(top, name)):
            pointer, resource = f"/{name}/{index}", _resource(obj(entry))
            if not isinstance(entry, dict):
                yield {}, resource, pointer
            elif any(kind in entry for kind in KINDS):  # a result without a list around it
                yield entry, resource, pointer
            for number, result in enumerate(shapes.elements(obj(entry).get("Results"))):
                yield obj(result), resource, f"{pointer}/Results/{number}"


def _top_list(top: Data, name: str) -> Iterable[Any]:
    entries = top.get(name)
    if entries is not None and not isinstance(entries, list | Entries):
        raise BrokenReport(f"{FORM} report parsing failed", "must be an array", f"/{name}")
    return entries or ()


def _note_failures(top: Data, reading: Reading, section: ScannerSection) -> None:
    """Note the resources of a cluster that trivy could not scan."""
    for name in RESOURCES:
        for index, resource in enumerate(objs(_top_list(top, name))):
            if text(resource.get("Error")):
                section.complete = False
                reading.warn("incomplete_run", f"/{name}/{index}/Error")


def _resource(data: Data) -> Data:
    """Return the namespace, kind and name of a resource; parts that are too long are cut."""
    parts = {name.lower(): shapes.cut(text(data.get(name)), MAX_RESOURCE_LENGTH) for name in RESOURCE_PARTS}
    return {name: value for name, value in parts.items() if value}


def _target(result: Data, image: str, resource: Data, *, is_cluster: bool) -> _Target:
    name, system = text(result.get("Target")), ""
    if match := BRACKET.match(name):
        name, system = match[1], match[2]
    class_ = text(result.get("Class"))
    is_system = class_ == OS_PACKAGES or (not class_ and bool(system))
    is_within_image = bool(image) or is_cluster
    image = image or (name if is_system or is_cluster else "")
    return _Target(name, system, is_system, image, is_within_image, text(result.get("Type")), resource)


class _TrivyReader:
    """Entries of one document, as findings."""

    def __init__(self, reading: Reading, section: ScannerSection) -> None:
        self._section = section
        self._given_type = reading.options.report_type
        self._paths = Paths(reading)

    def read(self, kind: str, target: _Target, entry: Data, pointer: str) -> ReportEntry | SkippedEntries:
        """Return the finding of an entry, or why it is none."""
        if not entry:
            raise BrokenEntry
        if kind == MODIFIED:
            return self._modified(target, entry, pointer)
        if kind == "Licenses":
            return SkippedEntries(self._section, "license", pointer)
        if kind == "Vulnerabilities":
            if entry.get("Status") == "not_affected":
                return SkippedEntries(self._section, "not_affected", pointer)
            return self._vulnerability(target, entry, pointer)
        if kind == "Secrets":
            return self._secret(target, entry, pointer)
        if entry.get("Status", "FAIL") != "FAIL":
            return SkippedEntries(self._section, "pass", pointer)
        return self._misconfiguration(target, entry, pointer)

    def _modified(self, target: _Target, entry: Data, pointer: str) -> ReportEntry | SkippedEntries:
        """Return the finding of an entry that an ignore file or a VEX document took out of the result."""
        status, kind = text(entry.get("Status")), KINDS_OF_MODIFIED.get(text(entry.get("Type")))
        if kind is None:
            raise BrokenEntry
        if status in LEFT_OF_MODIFIED:
            return SkippedEntries(self._section, LEFT_OF_MODIFIED[status], pointer)
        finding = self.read(kind, target, obj(entry.get("Finding")), pointer)
        if isinstance(finding, ReportEntry):
            finding.suppression = dismissal("acceptable_risk", text(entry.get("Statement")))
        return finding

    def _vulnerability(self, target: _Target, entry: Data, pointer: str) -> ReportEntry:
        name, package = text(entry.get("VulnerabilityID")).strip(), text(entry.get("PkgName"))
        if not name or not package:
            raise BrokenEntry
        in_image = target.is_system or target.is_within_image
        report_type = self._given_type or (CONTAINER_SCANNING if in_image else DEPENDENCY_SCANNING)
        file = "" if target.is_system else self._file(text(entry.get("PkgPath")) or target.name, target, pointer)
        url, fixed = web(entry.get("PrimaryURL")), text(entry.get("FixedVersion"))
        if target.kind in JAVA:
            package = package.replace(":", "/", 1)
        return package_entry(
            self._section,
            report_type,
            Package(
                package,
                text(entry.get("InstalledVersion")),
                file,
                target.image,
                target.system,
                resource=target.resource or None,
            ),
            [identifying.advisory(name, FORM, url), *identifying.weaknesses(texts(entry.get("CweIDs")))],
            severity_word(entry.get("Severity")) or FindingSeverity.UNKNOWN,
            texts=[text(entry.get("Title")), text(entry.get("Description"))],
            solution=upgrade(package, [fixed] if fixed else []),
            urls=_urls(entry),
        )

    def _misconfiguration(self, target: _Target, entry: Data, pointer: str) -> ReportEntry:
        texts_ = [text(entry.get("Message")), text(entry.get("Description"))]
        cause = obj(entry.get("CauseMetadata"))
        return self._of_rule(
            SAST, text(entry.get("ID")), target, entry, cause, pointer, texts_, text(entry.get("Resolution"))
        )

    def _secret(self, target: _Target, entry: Data, pointer: str) -> ReportEntry:
        return self._of_rule(SECRET_DETECTION, text(entry.get("RuleID")), target, entry, entry, pointer, [], "")

    def _of_rule(
        self,
        report_type: str,
        rule: str,
        target: _Target,
        entry: Data,
        lines: Data,
        pointer: str,
        more: list[str],
        solution: str,
    ) -> ReportEntry:
        rule = rule.strip()[: identifying.MAX_ID_LENGTH]
        message = text(entry.get("Title")) or next((candidate for candidate in more if candidate), rule)
        if not rule:
            raise BrokenEntry
        location: Data = {}
        if file := self._file(target.name, target, pointer):
            location["file"] = file
        start, end = (shapes.line_number(lines.get(name)) for name in ("StartLine", "EndLine"))
        if start is not None:
            location |= {"start_line": start, "end_line": max(start, end or start)}
        if target.resource:
            location["kubernetes_resource"] = target.resource
        primary = identifying.identifier("trivy_rule_id", rule, url=web(entry.get("PrimaryURL")))
        title = shapes.title(message)
        data = shapes.finding_data(
            scanner=self._section.scanner,
            name=title,
            identifiers=[primary],
            location=location,
            described=shapes.description(title, message, *more),
            solution=solution or None,
            urls=shapes.links(_urls(entry)),
        )
        severity = severity_word(entry.get("Severity")) or FindingSeverity.UNKNOWN
        key = identifying.key_of(report_type, location, primary, message=message)
        return ReportEntry(self._section, report_type, severity, Confidence.UNKNOWN, key, data)

    def _file(self, path: str, target: _Target, pointer: str) -> str:
        if target.is_within_image:
            if len(path) > shapes.MAX_PATH_LENGTH:
                raise BrokenEntry
            return path
        return self._paths.relative(path, pointer=pointer) if path else ""


def _urls(entry: Data) -> list[tuple[str, str]]:
    return [(address, "") for address in (text(entry.get("PrimaryURL")), *texts(entry.get("References")))]
