"""Runs of a SARIF document: the scanner, its rules, and the places of files (scanner formats reference, section 5)."""

from __future__ import annotations

from typing import Any

from project_service.areas.vulnerabilities.formats import shapes
from project_service.areas.vulnerabilities.formats.documents.report_json import BrokenReport
from project_service.areas.vulnerabilities.formats.documents.splitting import Entries
from project_service.areas.vulnerabilities.formats.paths import BrokenPath, Paths, roots_of_run
from project_service.areas.vulnerabilities.formats.sarif.own_results import SCANNER_PROPERTY
from project_service.areas.vulnerabilities.formats.sarif.rules import SEMGREP, Rules
from project_service.areas.vulnerabilities.formats.shapes import Data, Reading, Scanner, obj, objs, text
from project_service.areas.vulnerabilities.report_types import (
    CONTAINER_SCANNING,
    DAST,
    DEPENDENCY_SCANNING,
    SAST,
    SECRET_DETECTION,
)

FAILED = "SARIF report parsing failed"
TYPES_OF_SCANNERS = {
    **dict.fromkeys(("gitleaks", "trufflehog", "ggshield", "detect-secrets"), SECRET_DETECTION),
    **dict.fromkeys(("dependency-check", "osv-scanner", "pip-audit", "npm-audit", "grype"), DEPENDENCY_SCANNING),
    **dict.fromkeys(("zap", "owasp-zap", "nuclei"), DAST),
}


class Run:
    """One run of a scanner."""

    def __init__(self, run: Data, reading: Reading, pointer: str) -> None:
        self.run, self.reading, self.pointer = run, reading, pointer
        driver = obj(obj(run.get("tool")).get("driver"))
        name = text(driver.get("name")).strip()
        if not name:
            raise BrokenReport(FAILED, "must contain the property name", f"{pointer}/tool/driver")
        version = text(driver.get("semanticVersion")) or text(driver.get("version"))
        scanner_id = SEMGREP if name.lower().startswith(SEMGREP) else shapes.slug(name) or "unknown"
        own_id = obj(driver.get("properties")).get(SCANNER_PROPERTY)
        if isinstance(own_id, str):
            scanner_id = shapes.cut(text(own_id), shapes.MAX_NAME_LENGTH)
        self.scanner = Scanner(scanner_id, shapes.cut(name, shapes.MAX_NAME_LENGTH), version or None)
        self.rules = Rules(run, scanner_id, pointer)
        first = Paths(reading, (), run.get("originalUriBaseIds"))
        self.paths = Paths(reading, roots_of_run(run, first), run.get("originalUriBaseIds"))
        self.artifacts = self._read_artifacts()
        self.image = text(obj(run.get("properties")).get("imageName"))
        self.identifiers_of_rules: dict[tuple[str, int], list[Data]] = {}
        default_type = TYPES_OF_SCANNERS.get(scanner_id, SAST)
        if self.image and default_type == DEPENDENCY_SCANNING:
            default_type = CONTAINER_SCANNING
        category = text(obj(run.get("automationDetails")).get("id")).rpartition("/")[0]
        self.section = reading.section(self.scanner, default_type, category[: shapes.MAX_NAME_LENGTH])
        self._read_invocations()

    def results(self) -> Entries | list[Any]:
        """Return the results; none, with a warning, if there is no list of them."""
        results = self.run.get("results")
        if results is None:
            self.section.complete = False
            self.reading.warn("no_results", f"{self.pointer}/results")
            return []
        if not isinstance(results, list | Entries):
            raise BrokenReport(FAILED, "must be an array", f"{self.pointer}/results")
        return results

    def place(self, physical: Data, pointer: str) -> Data:
        """Return the file and the lines of a physical location; both may be missing."""
        artifact = obj(physical.get("artifactLocation"))
        uri, base = text(artifact.get("uri")), text(artifact.get("uriBaseId"))
        index = shapes.whole(artifact.get("index"))
        if not uri and index is not None and 0 <= index < len(self.artifacts):
            uri, base = self.artifacts[index]
        file_location: Data = {}
        if file := self.paths.relative(uri, base, pointer) if uri else "":
            file_location["file"] = file
        region = obj(physical.get("region"))
        start, end = (shapes.line_number(region.get(name)) for name in ("startLine", "endLine"))
        if start is not None:
            file_location["start_line"] = start
            file_location["end_line"] = max(start, end or start)
            for name, member in (("start_column", "startColumn"), ("end_column", "endColumn")):
                if column := shapes.line_number(region.get(member)):
                    file_location[name] = column
        return file_location

    def steps(self, locations: Any, pointer: str) -> list[Data]:
        """Return locations as a list of details; those without a file are left out."""
        steps: list[Data] = []
        if not locations:
            return steps
        for location in objs(locations if isinstance(locations, list) else ()):
            if len(steps) == shapes.MAX_STEPS:
                self.reading.warn("over_limit", pointer)
                break
            try:
                file_location = self.place(obj(location.get("physicalLocation")), pointer)
            except BrokenPath:
                continue
            if "file" in file_location:
                name = shapes.cut(text(obj(location.get("message")).get("text")), shapes.MAX_CODE_LENGTH)
                steps.append(
                    {
                        "type": "file-location",
                        "name": name,
                        "file_name": file_location["file"],
                        "line_start": file_location.get("start_line"),
                        "line_end": file_location.get("end_line"),
                    }
                )
        return steps

    def _read_artifacts(self) -> list[tuple[str, str]]:
        artifacts = self.run.get("artifacts")
        addresses: list[tuple[str, str]] = []
        for artifact in artifacts if isinstance(artifacts, list | Entries) else ():
            if len(addresses) == shapes.MAX_ENTRIES:
                raise BrokenReport(FAILED, f"has more than {shapes.MAX_ENTRIES} artifacts", f"{self.pointer}/artifacts")
            location = obj(obj(artifact).get("location"))
            addresses.append((text(location.get("uri")), text(location.get("uriBaseId"))))
        return addresses

    def _read_invocations(self) -> None:
        invocations = self.run.get("invocations")
        for invocation in objs(invocations if isinstance(invocations, list) else ()):
            if invocation.get("executionSuccessful") is False:
                self.section.complete = False
                self.reading.warn("incomplete_run", f"{self.pointer}/invocations")
            self.section.started = self.section.started or text(invocation.get("startTimeUtc")) or None
            self.section.ended = text(invocation.get("endTimeUtc")) or self.section.ended
