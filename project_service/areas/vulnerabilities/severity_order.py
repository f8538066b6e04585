"""Sorts of findings: those of one kind of report, one severity and one confidence. Each has a number that is stored."""

from __future__ import annotations

import functools
from typing import NamedTuple

from project_service.areas.vulnerabilities.levels import Confidence, Severity
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES

# the place of a kind is part of stored numbers: a new one goes to the end
KINDS = tuple(REPORT_TYPES)
_OF_A_KIND, _OF_A_SEVERITY = 100, 10
_PLACES = {kind: place for place, kind in enumerate(KINDS)}


class Sort(NamedTuple):
    """What findings are filtered and ordered by."""

    report_type: str
    severity: Severity
    confidence: Confidence

    @property
    def number(self) -> int:
        """The sort as it is stored."""
        return _PLACES[self.report_type] * _OF_A_KIND + self.severity * _OF_A_SEVERITY + self.confidence

    def text(self, name: str) -> str:
        """One of the three as the API has it."""
        said: str | Severity | Confidence = getattr(self, name)
        return said if isinstance(said, str) else said.text

    @classmethod
    @functools.cache  # there are few, and each finding that is shown asks for its own several times
    def of(cls, number: int) -> Sort:
        """The sort of a number."""
        place, levels = divmod(number, _OF_A_KIND)
        severity, confidence = divmod(levels, _OF_A_SEVERITY)
        return cls(KINDS[place], Severity(severity), Confidence(confidence))


def numbers_of(report_type: str) -> tuple[int, int]:
    """The first and the last number that sorts of a kind may have."""
    first = _PLACES[report_type] * _OF_A_KIND
    return first, first + _OF_A_KIND - 1
