"""Timestamps as the API writes them (common reference, section 12)."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from project_service.kit import clock


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (dt.datetime(2021, 1, 20, 8, 15, 30, 123999, dt.UTC), "2021-01-20T08:15:30.123Z"),
        (dt.datetime(2021, 1, 20, tzinfo=dt.UTC), "2021-01-20T00:00:00.000Z"),
        (dt.datetime(2021, 1, 20, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), "2021-01-19T23:00:00.000Z"),
    ],
)
def test_a_timestamp_is_in_utc_with_milliseconds(moment, text):
    assert clock.isoformat(moment) == text


@given(st.datetimes(timezones=st.just(dt.UTC)))
def test_a_timestamp_is_read_back_to_the_millisecond(moment):
    read = dt.datetime.fromisoformat(clock.isoformat(moment))

    assert read == moment.replace(microsecond=moment.microsecond // 1000 * 1000)


def test_today_is_the_date_in_utc(monkeypatch):
    late = dt.datetime(2021, 1, 20, 23, 30, tzinfo=dt.UTC)
    monkeypatch.setattr(clock, "now", lambda: late)

    assert clock.today() == dt.date(2021, 1, 20)
