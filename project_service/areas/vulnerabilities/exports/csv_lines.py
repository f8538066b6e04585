"""CSV of tracked findings, with the columns of the reference product (scanner formats reference, section 15)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

from project_service.areas.vulnerabilities.exports.rows import ExportedBranch, comment_of
from project_service.areas.vulnerabilities.formats.shapes import obj
from project_service.areas.vulnerabilities.locations import package_text, text, where_of
from project_service.areas.vulnerabilities.models import TrackedFindingState
from project_service.areas.vulnerabilities.tracking.queries import shown_state
from project_service.areas.vulnerabilities.tracking.schemas import dismissal_reason
from project_service.areas.vulnerabilities.tracking.states import RESOLVED
from project_service.kit import clock
from project_service.kit.http.csv_files import csv_line

COLUMNS = (
    *("Group Name", "Project Name", "Tool", "Scanner Name", "Status", "Vulnerability", "Details", "Additional Info"),
    *("Severity", "CVE", "CWE", "Other Identifiers", "Detected At", "Location", "Activity", "Comments", "Full Path"),
    *("CVSS Vectors", "Dismissal Reason", "Vulnerability ID"),
    *("Confidence", "Branch", "Category", "Last Seen", "Resolved At", "UUID"),
)
MAX_CELL_LENGTH = 32_000  # spreadsheets take 32,767 characters


def lines_of(exported: ExportedBranch) -> Iterator[bytes]:
    """Yield the lines of the file."""
    project = exported.project
    names = (project.namespace.name, project.name, project.full_path)
    yield csv_line(COLUMNS)
    yield from exported.texts(lambda row: csv_line(map(_cell, _values(row, *names))))


def _values(row: TrackedFindingState, group: str, project: str, path: str) -> tuple[Any, ...]:
    finding, tracked = row.finding, row.tracked
    data = finding.data
    others = [identifier for identifier in data["identifiers"] if _kind(identifier) not in ("cve", "cwe")]
    return (
        *(group, project, tracked.report_type, data["scanner"]["name"] or tracked.scanner, shown_state(row)),
        *(data["name"], data["description"], None, finding.severity.text),
        *(_identifiers(data, "cve"), _identifiers(data, "cwe"), "; ".join(map(_name, others))),
        *(_moment(tracked.first_seen_at), _place(data["location"]), row.state == RESOLVED, comment_of(row), path),
        *(None, dismissal_reason(row), tracked.id, finding.confidence.text, row.ref, tracked.category),
        *(_moment(row.last_seen_at), _moment(row.resolved_at), finding.uuid),
    )


def _place(location: dict[str, Any]) -> str:
    """Return the place as the dashboard shows it, with the package."""
    return " ".join(part for part in (where_of(location), package_text(location)) if part)


def _identifiers(data: dict[str, Any], kind: str) -> str:
    return "; ".join(_name(identifier) for identifier in data["identifiers"] if _kind(identifier) == kind)


def _kind(identifier: dict[str, Any]) -> str:
    return text(obj(identifier).get("external_type")).lower()


def _name(identifier: dict[str, Any]) -> str:
    return text(obj(identifier).get("name")) or text(obj(identifier).get("external_id"))


def _moment(value: dt.datetime | None) -> str | None:
    return None if value is None else clock.isoformat(value)


def _cell(value: Any) -> Any:
    """Return a value of a cell: texts in one line, and short enough for spreadsheets."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return value
    line = " ".join(value.splitlines())
    return line if len(line) <= MAX_CELL_LENGTH else f"{line[: MAX_CELL_LENGTH - 1]}…"
