"""Severity and confidence levels of findings: names, ranks and parsing (findings reference, sections 6 and 15).

Levels are stored as ranks, so that the order of a list is the order of an index.
"""

from __future__ import annotations

import enum
import functools


class FindingSeverity(enum.IntEnum):
    """Severity of a finding, the highest being the worst. ``unknown`` ranks above ``info``: it may be anything."""

    INFO = 1
    UNKNOWN = 2
    LOW = 4
    MEDIUM = 5
    HIGH = 6
    CRITICAL = 7

    @functools.cached_property
    def text(self) -> str:
        """The name in the API."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """The name on pages."""
        return self.name.capitalize()


class Confidence(enum.IntEnum):
    """Confidence of the scanner in a finding, the highest being the surest."""

    IGNORE = 1
    UNKNOWN = 2
    EXPERIMENTAL = 3
    LOW = 4
    MEDIUM = 5
    HIGH = 6
    CONFIRMED = 7

    @functools.cached_property
    def text(self) -> str:
        """The name in the API."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """The name on pages."""
        return self.name.capitalize()


SEVERITIES = {level.text: level for level in FindingSeverity}
# the severities at which a gate may fail, the worst first; unknown ones count only if they are asked for
THRESHOLDS = ("critical", "high", "medium", "low", "info")
CONFIDENCES = {level.text: level for level in Confidence}


def severity_of(text: str | None) -> FindingSeverity:
    """Parse a severity of a report, ignoring case; other words are ``unknown``."""
    return SEVERITIES.get((text or "").lower(), FindingSeverity.UNKNOWN)


def confidence_of(text: str | None) -> Confidence:
    """Parse a confidence of a report in the same way."""
    return CONFIDENCES.get((text or "").lower(), Confidence.UNKNOWN)
