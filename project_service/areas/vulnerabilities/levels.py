"""How bad a finding is and how sure its scanner: names, ranks, and what reports write (findings reference, 6 and 15).

Levels are stored as ranks, so that the order of a list is the order of an index.
"""

from __future__ import annotations

import enum
import functools


class Severity(enum.IntEnum):
    """How bad it is; the higher the worse. ``unknown`` ranks above ``info``: it may be anything."""

    INFO = 1
    UNKNOWN = 2
    LOW = 4
    MEDIUM = 5
    HIGH = 6
    CRITICAL = 7

    @functools.cached_property
    def text(self) -> str:
        """As the API has it."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """As people read it."""
        return self.name.capitalize()


class Confidence(enum.IntEnum):
    """How sure the scanner is; the higher the surer."""

    IGNORE = 1
    UNKNOWN = 2
    EXPERIMENTAL = 3
    LOW = 4
    MEDIUM = 5
    HIGH = 6
    CONFIRMED = 7

    @functools.cached_property
    def text(self) -> str:
        """As the API has it."""
        return self.name.lower()

    @property
    def title(self) -> str:
        """As people read it."""
        return self.name.capitalize()


SEVERITIES = {level.text: level for level in Severity}
CONFIDENCES = {level.text: level for level in Confidence}


def severity_of(text: str | None) -> Severity:
    """The level a report means, in any case; every word that is none is ``unknown``."""
    return SEVERITIES.get((text or "").lower(), Severity.UNKNOWN)


def confidence_of(text: str | None) -> Confidence:
    """The same for confidences."""
    return CONFIDENCES.get((text or "").lower(), Confidence.UNKNOWN)
