"""Mapping of report entries to findings (security reports reference, sections 4 and 5)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from project_service.areas.vulnerabilities.levels import confidence_of, severity_of
from project_service.areas.vulnerabilities.locations import short_name, text
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.severity_order import FindingRank

Data = dict[str, Any]
TITLE_IDENTIFIERS = ("cve", "cwe")  # preferred, in this order


class Scanners:
    """The scanners of one report by id; the first name of an id is used, beginning with the report's own scanner."""

    def __init__(self, scan: Data | None) -> None:
        self._names: dict[str, str | None] = {}
        self.main = self._known((scan or {}).get("scanner"))

    def of(self, vulnerability: Data) -> Data:
        """Return the scanner of an entry: its own, or else that of the report, or else an empty one."""
        own = vulnerability.get("scanner")
        tool = vulnerability.get("tool")
        if own is None and isinstance(tool, str):
            own = {"id": tool, "name": tool.capitalize()}
        return self._known(own) or self.main or {"external_id": None, "name": None}

    def _known(self, scanner: Any) -> Data | None:
        if not isinstance(scanner, dict) or scanner.get("id") is None:
            return None
        external_id = text(scanner["id"])
        return {"external_id": external_id, "name": self._names.setdefault(external_id, _text(scanner.get("name")))}


class Remedies:
    """Lookup of remediations: the first of the report that names the id or compare key of an entry."""

    def __init__(self, remediations: Iterable[Data]) -> None:
        self._first: dict[tuple[str, str], int] = {}
        self._summaries: list[str | None] = []
        for position, remediation in enumerate(remediations):
            self._summaries.append(_text(remediation.get("summary")))
            for fix in remediation["fixes"]:
                for name in ("id", "cve"):
                    if isinstance(fix, dict) and (key := text(fix.get(name))):
                        self._first.setdefault((name, key), position)

    def position_of(self, vulnerability: Data) -> int | None:
        """Return the position of an entry's remediation among those of the report."""
        if not self._first:
            return None
        keys = ((name, text(vulnerability.get(name))) for name in ("id", "cve"))
        return min((self._first[key] for key in keys if key in self._first), default=None)

    def summary(self, position: int | None) -> str | None:
        """Return the summary of a remediation."""
        return None if position is None else self._summaries[position]


def scan_of(scan: Data | None) -> Data | None:
    """Return the scan metadata of a report, with unchanged texts."""
    return None if scan is None else {name: scan.get(name) for name in ("type", "status", "start_time", "end_time")}


def rank_of(report_type: str, vulnerability: Data) -> FindingRank:
    """Return the rank of an entry: report type, severity and confidence."""
    severity, confidence = severity_of(vulnerability.get("severity")), confidence_of(vulnerability.get("confidence"))
    return FindingRank(report_type, severity, confidence)


def finding_data(report_type: str, vulnerability: Data, scanner: Data, remedy: str | None) -> Data:
    """Return the data of a finding that is displayed and not searched: parts of the report, some of them derived.

    ``remedy`` is the summary of its remediation, the default of ``solution``.
    """
    identifiers = identifiers_of(vulnerability)
    location = _object(vulnerability.get("location"))
    evidence = vulnerability.get("evidence")
    proof = _object(evidence)
    return {
        "name": name_of(report_type, vulnerability, identifiers, location),
        "description": _text(vulnerability.get("description")),
        "solution": _filled(vulnerability.get("solution")) or remedy,
        "scanner": scanner,
        "identifiers": identifiers,
        "links": _objects(vulnerability.get("links")),
        "location": location,
        "details": _object(vulnerability.get("details")),
        "assets": _objects(vulnerability.get("assets")),
        "evidence": _text(evidence if isinstance(evidence, str) else proof.get("summary")),
        "evidence_source": proof.get("source"),
        "supporting_messages": proof.get("supporting_messages"),
        "request": _message(proof.get("request"), "headers", "method", "url", "body"),
        "response": _message(proof.get("response"), "headers", "status_code", "reason_phrase", "body"),
    }


def name_of(report_type: str, vulnerability: Data, identifiers: list[Data], location: Data) -> str:
    """Return the title: the message, else the name, else one built from an identifier and the location."""
    title = _filled(vulnerability.get("message")) or _filled(vulnerability.get("name"))
    if title:
        return title
    by_type = {text(identifier["external_type"]).lower(): identifier for identifier in reversed(identifiers)}
    identifier = next(
        (by_type[kind] for kind in TITLE_IDENTIFIERS if kind in by_type), identifiers[0] if identifiers else {}
    )
    title = text(identifier.get("name")) or text(identifier.get("external_id")) or REPORT_TYPES[report_type]
    location_name = short_name(report_type, location)
    return f"{title} in {location_name}" if location_name else title


def identifiers_of(vulnerability: Data) -> list[Data]:
    """Return the identifiers in the form of the API."""
    return [
        {
            "external_type": _text(identifier.get("type")),
            "external_id": _text(identifier.get("value")),
            "name": _text(identifier.get("name")),
            "url": _text(identifier.get("url")),
        }
        for identifier in _objects(vulnerability.get("identifiers"))
    ]


def _message(value: Any, *names: str) -> Data | None:
    """Return a request or response of the evidence."""
    return {name: value.get(name) for name in names} if isinstance(value, dict) else None


def _filled(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    converted = text(value)
    return converted if converted.strip() else None


def _text(value: Any) -> str | None:
    return None if value is None else text(value)


def _object(value: Any) -> Data:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Data]:
    return [element for element in value if isinstance(element, dict)] if isinstance(value, list) else []
