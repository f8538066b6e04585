"""Rank of a finding: report type, severity and confidence, stored as one number that lists are ordered by."""

from __future__ import annotations

import functools
from typing import NamedTuple

from project_service.areas.vulnerabilities.levels import Confidence, FindingSeverity
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES

# the index of a type is part of stored numbers: a new type must be added at the end
KINDS = tuple(REPORT_TYPES)
_PER_TYPE, _PER_SEVERITY = 100, 10
_INDEXES = {kind: index for index, kind in enumerate(KINDS)}


class FindingRank(NamedTuple):
    """Report type, severity and confidence of a finding."""

    report_type: str
    severity: FindingSeverity
    confidence: Confidence

    @property
    def number(self) -> int:
        """The stored number."""
        return _INDEXES[self.report_type] * _PER_TYPE + self.severity * _PER_SEVERITY + self.confidence

    def text(self, name: str) -> str:
        """Return one of the three as in the API."""
        value: str | FindingSeverity | Confidence = getattr(self, name)
        return value if isinstance(value, str) else value.text

    @classmethod
    @functools.cache  # few values, used several times for each finding that is shown
    def of(cls, number: int) -> FindingRank:
        """Return the rank of a stored number."""
        index, levels = divmod(number, _PER_TYPE)
        severity, confidence = divmod(levels, _PER_SEVERITY)
        return cls(KINDS[index], FindingSeverity(severity), Confidence(confidence))


def numbers_of(report_type: str) -> tuple[int, int]:
    """Return the first and the last number of the sorts of a report type."""
    first = _INDEXES[report_type] * _PER_TYPE
    return first, first + _PER_TYPE - 1
