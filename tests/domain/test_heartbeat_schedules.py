"""When calls of heartbeats are due (heartbeats reference, section 2)."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import pytest

from project_service.domain.heartbeats.models import Heartbeat
from project_service.domain.heartbeats.schedules import is_expression, next_run, words_of

RUNS = [
    # in the gap: the first minute after it
    ("Europe/Berlin", "30 2 * * *", "2027-03-27T12:00", "2027-03-28T01:00"),
    ("Europe/Berlin", "30 2 * * *", "2027-03-28T01:00", "2027-03-29T00:30"),
    ("Europe/Berlin", "*/15 * * * *", "2027-03-28T00:45", "2027-03-28T01:00"),
    # twice: the first
    ("Europe/Berlin", "30 2 * * *", "2027-10-30T12:00", "2027-10-31T00:30"),
    ("Europe/Berlin", "30 2 * * *", "2027-10-31T00:30", "2027-11-01T01:30"),
    ("Europe/Berlin", "*/15 * * * *", "2027-10-31T01:50", "2027-10-31T02:00"),
    ("America/New_York", "0 0 1 * *", "2027-02-10T00:00", "2027-03-01T05:00"),
    ("Pacific/Apia", "0 12 * * *", "2011-12-29T23:00", "2011-12-30T10:00"),  # a day that does not exist
    ("UTC", "0 9 * * mon-fri", "2027-03-05T10:00", "2027-03-08T09:00"),
]


def test_runs_follow_the_clock_on_the_wall():
    for zone, expression, after, expected in RUNS:
        run = next_run(expression, ZoneInfo(zone), dt.datetime.fromisoformat(f"{after}+00:00"))

        assert run.astimezone(dt.UTC) == dt.datetime.fromisoformat(f"{expected}+00:00"), (zone, expression, after)


@pytest.mark.parametrize(
    ("text", "is_valid"),
    [
        ("*/5 * * * *", True),
        ("0 0 * * 7", True),
        ("0 0 l * *", True),
        ("* * * *", False),
        ("* * * * * *", False),
        ("@daily", False),
        ("R * * * *", False),
        ("H * * * *", False),
        ("0 0 30 2 *", False),
        ("60 * * * *", False),
        ("", False),
    ],
    ids=str,
)
def test_expressions_have_five_fields_and_a_next_run(text, is_valid):
    assert is_expression(text) == is_valid


def test_durations_are_shown_in_two_units():
    assert [words_of(seconds) for seconds in (60, 5400, 86_400, 90_061)] == [
        "1 minute",
        "1 hour 30 minutes",
        "1 day",
        "1 day 1 hour",
    ]


def test_the_fingerprint_is_that_of_the_reference():
    assert Heartbeat(id=1).fingerprint == "e1c3da563c198df4aaaa88b0d5f0377b5c0bc1cc"
