"""Results of the service's own SARIF exports, and what restores them (scanner formats reference, section 15).

A result is one if it has the fingerprint ``projectService/v1``, which is the key of its tracked finding.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from project_service.areas.vulnerabilities.fingerprints import fingerprint
from project_service.areas.vulnerabilities.formats.identifying import MAX_ID_LENGTH, MAX_IDENTIFIERS, identifier
from project_service.areas.vulnerabilities.formats.shapes import MAX_NAME_LENGTH, Data, members, obj, text, texts, web
from project_service.areas.vulnerabilities.levels import CONFIDENCES, SEVERITIES, Confidence, FindingSeverity

OWN_FINGERPRINT = "projectService/v1"
SCANNER_PROPERTY = "projectService/scanner"
LINE_PARTS = {
    "start_line": "startLine",
    "end_line": "endLine",
    "start_column": "startColumn",
    "end_column": "endColumn",
}
# parts of a location that SARIF has a place for; a request is kept as a whole
SHOWN_PARTS = frozenset({"file", *LINE_PARTS, "dependency", "image"})
KEY = re.compile(r"[0-9a-f]{40}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MARK = re.compile(r"[0-9a-f]{20}")
FINGERPRINT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class OwnResult:
    """What an exported result says, with the key text that names its tracked finding; what it does not say is empty."""

    key: str
    report_type: str
    image: str
    severity: FindingSeverity | None
    confidence: Confidence | None
    identifiers: list[Data]
    location: Data
    solution: str
    marks: tuple[str, ...]


def own_result(result: Data) -> OwnResult | None:
    """Return what an exported result says; ``None`` for one of a scanner."""
    fingerprints = obj(result.get("fingerprints"))
    if OWN_FINGERPRINT not in fingerprints:
        return None
    key = text(fingerprints[OWN_FINGERPRINT])
    properties = obj(result.get("properties"))
    location = obj(properties.get("location"))
    return OwnResult(
        key=f"{OWN_FINGERPRINT}:{key}" if KEY.fullmatch(key) else "",
        report_type=text(properties.get("report_type")),
        image=text(properties.get("image")),
        severity=SEVERITIES.get(text(properties.get("severity"))),
        confidence=CONFIDENCES.get(text(properties.get("confidence"))),
        identifiers=[
            _identifier(identifier) for identifier in members(properties.get("identifiers"))[:MAX_IDENTIFIERS]
        ],
        location={name: value for name, value in location.items() if name not in SHOWN_PARTS},
        solution=text(properties.get("solution")),
        marks=tuple(mark for mark in texts(properties.get("marks")) if MARK.fullmatch(mark)),
    )


def is_of_export(key_text: str) -> bool:
    """Whether a key text is that of a result of an export."""
    return key_text.startswith(f"{OWN_FINGERPRINT}:")


def tracked_key_of(key_text: str) -> str:
    """Return the key of the tracked finding that a key text is of: that of an export, else its digest."""
    name, _, key = key_text.partition(":")
    return key if name == OWN_FINGERPRINT and KEY.fullmatch(key) else fingerprint(key_text)


def project_fingerprint_of(key_text: str) -> str:
    """Return the project fingerprint of a key text; findings keep theirs through an export."""
    key = tracked_key_of(key_text)
    return key if len(key) == FINGERPRINT_LENGTH else fingerprint(key_text)


def _identifier(found: Data) -> Data:
    kind, value = (text(found.get(name))[:MAX_NAME_LENGTH] for name in ("external_type", "external_id"))
    name = text(found.get("name"))[:MAX_ID_LENGTH]
    return identifier(kind, value, name, web(found.get("url")))
