"""SARIF 2.1.0 of tracked findings (scanner formats reference, section 15).

Every scanner and category is a run. The rules of a run are written after its results, when they are known. What SARIF
has no place for is in ``properties``; ``formats.sarif.own_results`` reads it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from project_service.areas.vulnerabilities.exports.addresses import uri_of
from project_service.areas.vulnerabilities.exports.rows import ExportedBranch, ExportedSeries, comment_of
from project_service.areas.vulnerabilities.formats.sarif.own_results import (
    LINE_PARTS,
    OWN_FINGERPRINT,
    SCANNER_PROPERTY,
    SHOWN_PARTS,
)
from project_service.areas.vulnerabilities.formats.shapes import Data, cut, is_web, line_number, obj, text
from project_service.areas.vulnerabilities.levels import FindingSeverity
from project_service.areas.vulnerabilities.locations import text as text_of_part
from project_service.areas.vulnerabilities.models import TrackedFindingState
from project_service.areas.vulnerabilities.report_types import API_FUZZING, COVERAGE_FUZZING, DAST
from project_service.areas.vulnerabilities.tracking.queries import DISMISSED, shown_state
from project_service.areas.vulnerabilities.tracking.schemas import dismissal_reason
from project_service.areas.vulnerabilities.tracking.states import RESOLVED
from project_service.kit import exact_json
from project_service.kit.http import urls

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
SOURCE_ROOT = "%SRCROOT%"
UNKNOWN_SCANNER = "Unknown"
MAX_TEXT_LENGTH = 1_000
DRIVE = re.compile(r"[A-Za-z]:/")
ON_SITES = (DAST, API_FUZZING)
LEVELS = {
    FindingSeverity.CRITICAL: ("error", "9.5"),
    FindingSeverity.HIGH: ("error", "8.0"),
    FindingSeverity.MEDIUM: ("warning", "5.5"),
    FindingSeverity.LOW: ("note", "2.0"),
    FindingSeverity.UNKNOWN: ("none", None),
    FindingSeverity.INFO: ("none", None),
}


def document_of(exported: ExportedBranch) -> Iterator[bytes]:
    """Yield the parts of the document."""
    yield b'{"$schema":' + exact_json.dumps(SCHEMA) + b',"version":"2.1.0","runs":['
    for number, series in enumerate(exported.series()):
        yield (b"," if number else b"") + b'{"results":['
        run = _RunOfSeries(exported, series)
        separator = b""
        for result in exported.texts(run.result, series):
            if result:
                yield separator + result
                separator = b","
        yield b"]," + exact_json.dumps(run.description())[1:]
    yield b"]}"


class _RunOfSeries:
    """The run of a scanner and category; its rules become known with its results."""

    def __init__(self, exported: ExportedBranch, series: ExportedSeries) -> None:
        self._exported, self._series = exported, series
        self._rules: list[Data] = []
        self._indexes: dict[str, int] = {}
        self._scanner: Data = {}

    def result(self, row: TrackedFindingState) -> bytes:
        """Return the result of a finding; empty for a crash of a fuzzer, which is at no place that SARIF knows."""
        finding = row.finding
        if finding.report_type == COVERAGE_FUZZING:
            return b""
        self._scanner = self._scanner or finding.data["scanner"]
        data, severity = finding.data, finding.severity
        level, score = LEVELS[severity]
        result: Data = {"level": level, "message": _message(data), "fingerprints": {OWN_FINGERPRINT: row.tracked.key}}
        if level == "none":
            result["kind"] = "fail"
        if rule_id := text(obj(next(iter(data["identifiers"]), None)).get("external_id")):
            result |= {"ruleId": rule_id, "ruleIndex": self._index_of(rule_id, data)}
        if finding.uuid is not None:
            result["guid"] = finding.uuid
        if sarif_location := _place(data["location"]):
            result["locations"] = [sarif_location]
        if finding.report_type in ON_SITES and (request := _request(data["location"])):
            result["webRequest"] = request
        result["baselineState"] = _baseline_state(row)
        if shown_state(row) == DISMISSED:
            result["suppressions"] = [_suppression(row)]
        result["properties"] = {
            "severity": severity.text,
            "confidence": finding.confidence.text,
            "report_type": finding.report_type,
            **({"security-severity": score} if score else {}),
            **({"image": image} if (image := text_of_part(data["location"].get("image"))) else {}),
            **({"solution": solution} if (solution := text(data["solution"])) else {}),
            "tags": _tags(data),
            "identifiers": data["identifiers"],
            "location": {name: value for name, value in data["location"].items() if name not in SHOWN_PARTS},
            "marks": row.tracked.marks,
        }
        return exact_json.dumps(result)

    def description(self) -> Data:
        """Return the members of the run besides the results."""
        name = text(self._scanner.get("name")) or self._series.scanner or UNKNOWN_SCANNER
        driver: Data = {"name": name, "rules": self._rules, "properties": {SCANNER_PROPERTY: self._series.scanner}}
        if version := text(self._scanner.get("version")):
            driver["version"] = version
        run: Data = {"tool": {"driver": driver}}
        if self._series.category:
            run["automationDetails"] = {"id": f"{self._series.category}/"}
        source: Data = {
            "repositoryUri": urls.absolute(f"/{self._exported.project.full_path}"),
            "branch": self._exported.branch,
        }
        if commit := self._exported.commit_of(self._series):
            source["revisionId"] = commit
        return run | {"versionControlProvenance": [source]}

    def _index_of(self, rule_id: str, data: Data) -> int:
        if rule_id not in self._indexes:
            self._indexes[rule_id] = len(self._rules)
            first = obj(data["identifiers"][0])
            rule: Data = {
                "id": rule_id,
                "shortDescription": {"text": _escaped(cut(text(data["name"]) or rule_id, MAX_TEXT_LENGTH))},
                "properties": {"tags": _tags(data)},
            }
            url = text(first.get("url"))
            if is_web(url):
                rule["helpUri"] = uri_of(url)
            self._rules.append(rule)
        return self._indexes[rule_id]


def _message(data: Data) -> Data:
    """Return the message: the name, the package, and the description as Markdown."""
    lines = [_escaped(text(data["name"]))]
    dependency = obj(data["location"].get("dependency"))
    if package := text_of_part(obj(dependency.get("package")).get("name")):
        version = text_of_part(dependency.get("version"))
        lines += ["", f"Package: {package}", *([f"Installed Version: {version}"] if version else [])]
    message: Data = {"text": "\n".join(lines)}
    if description := text(data["description"]):
        message["markdown"] = _escaped(description)
    return message


def _escaped(value: str) -> str:
    """Return a text of a message, in which brackets would make a link."""
    return value.replace("[", "\\[").replace("]", "\\]")


def _place(location: Data) -> Data:
    """Return the file, its lines, and the function; empty without any."""
    sarif_location: Data = {}
    if file := text_of_part(location.get("file")):
        physical: Data = {"artifactLocation": _artifact(file)}
        lines = {member: line_number(location.get(name)) for name, member in LINE_PARTS.items()}
        if lines["startLine"] is not None:
            physical["region"] = {name: number for name, number in lines.items() if number is not None}
        sarif_location["physicalLocation"] = physical
    if method := text(location.get("method")):
        sarif_location["logicalLocations"] = [{"fullyQualifiedName": method}]
    return sarif_location


def _artifact(file: str) -> Data:
    if file.startswith("/"):
        return {"uri": f"file://{quote(file)}"}
    if DRIVE.match(file):
        return {"uri": f"file:///{file[:2]}{quote(file[2:])}"}
    return {"uri": quote(file), "uriBaseId": SOURCE_ROOT}


def _request(location: Data) -> Data:
    target = text_of_part(location.get("hostname")) + text_of_part(location.get("path"))
    method = text(location.get("method"))
    return ({"target": target} if target else {}) | ({"method": method} if method else {})


def _tags(data: Data) -> list[str]:
    """Return CWE and OWASP classes as tags, as code scanning services read them."""
    tags: list[str] = []
    for identifier in data["identifiers"]:
        kind, value = text(obj(identifier).get("external_type")).lower(), text(obj(identifier).get("external_id"))
        if kind == "cwe" and value.isdigit():
            tags.append(f"external/cwe/cwe-{value.zfill(3)}")
        elif kind == "owasp":
            tags.append(f"OWASP-{text(obj(identifier).get('name')) or value}")
    return list(dict.fromkeys(tags))


def _baseline_state(row: TrackedFindingState) -> str:
    if row.state == RESOLVED:
        return "absent"
    return "new" if row.tracked.first_seen_pipeline_id == row.last_seen_pipeline_id else "unchanged"


def _suppression(row: TrackedFindingState) -> Data:
    suppression: Data = {"kind": "external", "status": "accepted"}
    if comment := comment_of(row):
        suppression["justification"] = comment
    if reason := dismissal_reason(row):
        suppression["properties"] = {"dismissal_reason": reason}
    return suppression
