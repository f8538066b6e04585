"""CycloneDX 1.6 with the analyses of tracked findings about packages: VEX (scanner formats reference, section 15).

Every finding is a vulnerability. The components are written after them, when they are known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from project_service.areas.vulnerabilities.exports.addresses import uri_of
from project_service.areas.vulnerabilities.exports.rows import ExportedBranch, comment_of
from project_service.areas.vulnerabilities.formats.cyclonedx_components import FILE_PROPERTIES
from project_service.areas.vulnerabilities.formats.shapes import Data, is_web, obj, text
from project_service.areas.vulnerabilities.locations import text as text_of_part
from project_service.areas.vulnerabilities.models import TrackedFindingState
from project_service.areas.vulnerabilities.tracking.queries import DISMISSED, shown_state
from project_service.areas.vulnerabilities.tracking.schemas import dismissal_reason
from project_service.areas.vulnerabilities.tracking.states import RESOLVED
from project_service.kit import clock, exact_json

SPEC_VERSION = "1.6"
ADVISORY_TYPES = ("cve", "ghsa", "osv", "pysec", "go", "rustsec", "mal", "snyk", "temp", "dsa", "usn", "rhsa", "alas")
ANALYSES: dict[str | None, Data] = {
    "false_positive": {"state": "false_positive"},
    "mitigating_control": {"state": "not_affected", "justification": "protected_by_mitigating_control"},
    "not_applicable": {"state": "not_affected"},
    "used_in_tests": {"state": "not_affected"},
    "acceptable_risk": {"state": "exploitable", "response": ["will_not_fix"]},
}
IN_TRIAGE: Data = {"state": "in_triage"}
IMAGE_PROPERTY = "projectService:image"


def document_of(exported: ExportedBranch) -> Iterator[bytes]:
    """Yield the parts of the document."""
    project = exported.project
    metadata = {
        "timestamp": clock.isoformat(clock.now()),
        "component": {"type": "application", "bom-ref": "project", "name": project.full_path},
    }
    head = {"bomFormat": "CycloneDX", "specVersion": SPEC_VERSION, "version": 1, "metadata": metadata}
    yield exact_json.dumps(head)[:-1] + b',"vulnerabilities":['
    bill = _Bill()
    separator = b""
    for vulnerability in exported.texts(bill.vulnerability):
        if vulnerability:
            yield separator + vulnerability
            separator = b","
    yield b'],"components":['
    for number, component in enumerate(bill.components.values()):
        yield (b"," if number else b"") + exact_json.dumps(component)
    yield b"]}"


class _Bill:
    """The components that the vulnerabilities affect, by their references."""

    def __init__(self) -> None:
        self.components: dict[str, Data] = {}

    def vulnerability(self, row: TrackedFindingState) -> bytes:
        """Return a finding; empty for one that is in no package."""
        data = row.finding.data
        reference = self._reference(data["location"])
        if not reference:
            return b""
        identifiers = [obj(identifier) for identifier in data["identifiers"]]
        first = identifiers[0] if identifiers else {}
        advisories = [{"url": uri_of(url)} for link in data["links"] if is_web(url := text(obj(link).get("url")))]
        comment = comment_of(row)
        entry: Data = {
            "bom-ref": f"finding-{row.tracked_id}",
            "id": text(first.get("external_id")) or text(data["name"]),
            "source": {"name": _source_of(first, row)},
            "references": [
                _reference_to(identifier) for identifier in identifiers[1:] if _kind(identifier) in ADVISORY_TYPES
            ],
            "ratings": [{"severity": row.finding.severity.text}],
            "cwes": [
                int(number)
                for identifier in identifiers
                if _kind(identifier) == "cwe" and (number := _number(identifier))
            ],
            "description": text(data["description"]) or text(data["name"]),
            "recommendation": text(data["solution"]),
            "advisories": advisories,
            "affects": [{"ref": reference}],
            "analysis": _analysis(row) | ({"detail": comment} if comment else {}),
        }
        return exact_json.dumps({name: value for name, value in entry.items() if value})

    def _reference(self, location: Data) -> str:
        """Return the reference of the component that a location is in; empty for one that is in none."""
        dependency = obj(location.get("dependency"))
        name = text_of_part(obj(dependency.get("package")).get("name"))
        if not name:
            return ""
        version = text_of_part(dependency.get("version"))
        file, image = (text_of_part(location.get(part)) for part in ("file", "image"))
        identity = "\0".join((name, version, file, image))
        reference = f"component-{hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()}"
        if reference not in self.components:
            places = ((FILE_PROPERTIES[0], file), (IMAGE_PROPERTY, image))
            properties = [{"name": key, "value": value} for key, value in places if value]
            component: Data = {"type": "library", "bom-ref": reference, "name": name}
            component |= {"version": version} if version else {}
            self.components[reference] = component | ({"properties": properties} if properties else {})
        return reference


def _source_of(identifier: Data, row: TrackedFindingState) -> str:
    """Return who issued an identifier: its database, else the scanner."""
    return _kind(identifier).upper() if _kind(identifier) in ADVISORY_TYPES else row.tracked.scanner or "unknown"


def _analysis(row: TrackedFindingState) -> Data:
    if row.state == RESOLVED:
        return {"state": "resolved"}
    return ANALYSES.get(dismissal_reason(row), IN_TRIAGE) if shown_state(row) == DISMISSED else IN_TRIAGE


def _reference_to(identifier: Data) -> Data:
    return {"id": text(identifier.get("external_id")), "source": {"name": _kind(identifier).upper()}}


def _kind(identifier: Data) -> str:
    return text(identifier.get("external_type")).lower()


def _number(identifier: Data) -> str:
    number = text(identifier.get("external_id")).removeprefix("CWE-")
    return number if number.isascii() and number.isdigit() and int(number) > 0 else ""
