"""Severity and confidence from the words and scores of scanners (scanner formats reference, section 4)."""

from __future__ import annotations

from typing import Any

from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity

_SEVERITIES = {
    "critical": FindingSeverity.CRITICAL,
    "high": FindingSeverity.HIGH,
    "medium": FindingSeverity.MEDIUM,
    "moderate": FindingSeverity.MEDIUM,
    "low": FindingSeverity.LOW,
    "info": FindingSeverity.INFO,
    "informational": FindingSeverity.INFO,
    "negligible": FindingSeverity.INFO,
    "none": FindingSeverity.INFO,
    "unknown": FindingSeverity.UNKNOWN,
    "undefined": FindingSeverity.UNKNOWN,
}
_CONFIDENCES = {
    "very-high": Confidence.HIGH,
    "high": Confidence.HIGH,
    "medium": Confidence.MEDIUM,
    "low": Confidence.LOW,
    "confirmed": Confidence.CONFIRMED,
    "certain": Confidence.CONFIRMED,
}
_BANDS = (
    (9.0, FindingSeverity.CRITICAL),
    (7.0, FindingSeverity.HIGH),
    (4.0, FindingSeverity.MEDIUM),
    (0.0, FindingSeverity.LOW),
)
MAX_SCORE = 10


def severity_word(value: Any) -> FindingSeverity | None:
    """Return the severity of a word; ``None`` if it is not one of the known words."""
    return _SEVERITIES.get(value.strip().lower()) if isinstance(value, str) else None


def severity_score(value: Any) -> FindingSeverity | None:
    """Return the severity of a CVSS score, a number or its text; ``None`` if it is unknown."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if type(value) not in (int, float) or not 0 < value <= MAX_SCORE:
        return None
    return next(severity for least, severity in _BANDS if value >= least)


def severity_of_either(value: Any) -> FindingSeverity | None:
    """Return the severity of a score or a word; ``None`` if it is unknown."""
    return severity_score(value) or severity_word(value)


def confidence_word(value: Any) -> Confidence | None:
    """Return the confidence of a word; ``None`` if it is not one of the known words."""
    return _CONFIDENCES.get(value.strip().lower()) if isinstance(value, str) else None
