"""Words of payloads that mean a severity, or that a problem is over (alert ingestion reference, section 15)."""

from __future__ import annotations

import re
from typing import Any

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.payloads.payload_values import exact_text

OTHER_WORDS = "*"  # in a severity table: missing and all other words
_RESOLVED = """resolved, recovered, recovery, ok, okay, up, closed, close, cleared, clear, normal, success, online,
inactive, fixed, completed, healthy, passing, false alarm"""
RESOLVED_WORDS = frozenset(word.strip() for word in _RESOLVED.split(","))
PLAIN_SEVERITIES = {severity.name.lower(): severity for severity in Severity}
# labels of Prometheus and Grafana; a missing or other word is critical
LABEL_SEVERITIES = {
    word: severity
    for severity, words in {
        Severity.CRITICAL: "critical s1 p1 emergency fatal",
        Severity.HIGH: "high s2 p2 major page",
        Severity.MEDIUM: "medium s3 p3 error alert",
        Severity.LOW: "low s4 p4 warn warning minor",
        Severity.INFO: "info s5 p5 debug information notice none",
        Severity.UNKNOWN: "unknown",
    }.items()
    for word in words.split()
}
# what the form suggests for words of a sample
SUGGESTED_SEVERITIES = PLAIN_SEVERITIES | {
    word: severity
    for severity, words in {
        Severity.CRITICAL: ("p1", "s1", "sev0", "sev-1", "fatal", "disaster", "emergency", "alarm", "down", "5"),
        Severity.HIGH: ("p2", "s2", "sev1", "sev-2", "major", "error", "err", "unreachable", "page", "4"),
        Severity.MEDIUM: ("p3", "s3", "sev2", "sev-3", "average", "warning", "warn", "moderate", "3"),
        Severity.LOW: ("p4", "s4", "sev3", "sev-4", "minor", "2"),
        Severity.INFO: ("p5", "s5", "sev4", "sev-5", "information", "debug", "notice", "none", "ok", "1"),
        Severity.UNKNOWN: ("not classified", "no severity", "0"),
    }.items()
    for word in words
}
# macros and variables that a tool has not filled in
_PLACEHOLDER = (
    r"\{[A-Z][A-Z0-9_.]*\}|\$[A-Z][A-Z0-9_]*\$?|\$TAGS\[[^\]]*\]|\{\{[^{}]*\}\}|\[[A-Z][A-Z0-9_]*\]|"
    r"\*UNKNOWN\*|N/A|null|undefined|None"
)
PLACEHOLDERS = re.compile(rf"(?:{_PLACEHOLDER})(?: (?:{_PLACEHOLDER}))?")

SeverityTable = dict[str, Severity]


def word_of(value: Any) -> str:
    """Return a value as a word to compare: trimmed, in lower case; numbers as they are written."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return exact_text(value).strip().lower()


def severity_table(stored: dict[str, Any] | None) -> SeverityTable | None:
    """Return a stored table of words and names of severities; ``None`` if there is none."""
    if stored is None:
        return None
    return {word: PLAIN_SEVERITIES[name] for word, name in stored.items() if name in PLAIN_SEVERITIES}


def suggested_severity(word: str) -> Severity:
    """Return the severity that a form suggests for a word of a sample."""
    return SUGGESTED_SEVERITIES.get(word_of(word), Severity.CRITICAL)
