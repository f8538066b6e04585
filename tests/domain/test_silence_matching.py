"""Matchers of silences (silences reference, section 2)."""

from __future__ import annotations

from project_service.domain.silences.matching import described, holds, problem_of

FACTS = {
    "title": "Disk full on db1",
    "severity": "high",
    "environment": "staging/eu",
    "service": None,
    "hosts": ["db1", "db2"],
    "payload": {"labels": {"cluster": "eu", "disks": [{"name": "sda"}, {"name": "sdb"}]}},
}
CASES = [
    ("title", "matches", "*disk*", True),
    ("title", "matches", "disk", False),
    ("title", "is", "disk full on db1", False),
    ("severity", "is", "HIGH", True),
    ("environment", "matches", "staging*", True),
    ("environment", "not_matches", "production", True),
    ("service", "is", "", True),
    ("service", "matches", "*", True),
    ("host", "is", "db2", True),
    ("host", "is_not", "db2", False),
    ("payload.labels.cluster", "is", "eu", True),
    ("payload.labels.disks.name", "is", "sdb", True),
    ("payload.labels.missing", "is", "", True),
    ("payload.labels.missing.deep", "is_not", "x", True),
]


def test_matchers_compare_whole_texts():
    for field, operator, value, expected in CASES:
        assert holds({"field": field, "operator": operator, "value": value}, FACTS) == expected, (
            field,
            operator,
            value,
        )


def test_fields_values_and_their_number_are_limited():
    good = {"field": "title", "operator": "is", "value": "x"}

    assert problem_of([good] * 10) is None
    assert problem_of([good] * 11) == "are too many (maximum is 10)"
    assert problem_of([good | {"field": "colour"}]) == "have an unknown field: colour"
    assert problem_of([good | {"field": "payload."}]) == "have an unknown field: payload."
    assert problem_of([good | {"value": "x" * 256}]) == "have a value that is too long (maximum is 255 characters)"


def test_matchers_are_described_in_words():
    first = {"field": "monitoring_tool", "operator": "is_not", "value": "Heartbeat"}

    assert described([first, first | {"field": "host", "operator": "matches", "value": "db*"}]) == (
        "monitoring tool is not “Heartbeat” and host matches “db*”"
    )
    assert described([]) == "all alerts"
