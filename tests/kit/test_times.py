"""Timestamps of monitoring tools: numbers, texts of digits, and dates in common notations."""

from __future__ import annotations

import datetime as dt
import zoneinfo

import pytest

from project_service.kit.times import is_unset, looks_like_time, read_time

MOMENT = dt.datetime(2026, 3, 4, 5, 6, 7, tzinfo=dt.UTC)
MINUTE = MOMENT.replace(second=0)
DAY = MOMENT.replace(hour=0, minute=0, second=0)


def seconds(number, microseconds=0):
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=number, microseconds=microseconds)


@pytest.mark.parametrize(
    ("value", "moment"),
    [
        (1772600767, MOMENT),
        (1772600767000, MOMENT),
        (1772600767000000, MOMENT),
        (1772600767000000000, MOMENT),
        (1772600767.25, MOMENT.replace(microsecond=250_000)),
        (1772600767000.5, MOMENT.replace(microsecond=500)),
        (1772600767000000123, MOMENT),
        (1.772600767e9, MOMENT),
        (10**8, seconds(10**8)),
        (10**11 - 1, seconds(10**11 - 1)),
        (10**11, seconds(10**8)),
        (10**14 - 1, seconds(10**11 - 1, 999_000)),
        (10**14, seconds(10**8)),
        (10**17, seconds(10**8)),
        ("1772600767", MOMENT),
        (" 1772600767\n", MOMENT),
        ("1772600767000", MOMENT),
        ("1772600767000000", MOMENT),
        ("1772600767000000000", MOMENT),
        ("1772600767.25", MOMENT.replace(microsecond=250_000)),
        ("202603040506", seconds(202603040.506)),
        ("99999999999999999999", seconds(10**11 - 1, 999_999)),
    ],
)
def test_the_size_of_a_timestamp_gives_its_unit(value, moment):
    assert read_time(value) == moment


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("20260304", DAY),
        ("20260304050607", MOMENT),
        (" 20260304050607 ", MOMENT),
        ("20260304050607.5", MOMENT.replace(microsecond=500_000)),
        ("20260304050607Z", MOMENT),
        ("20260304060607+0100", MOMENT),
        ("20260304T050607Z", MOMENT),
        ("20260304 050607", MOMENT),
        ("04.03.2026", DAY),
        ("4.3.2026", DAY),
        ("4. 3. 2026", DAY),
        ("4.3.26", DAY),
        ("04/03/2026", DAY),
        ("4/3/26", DAY),
        ("04-03-2026", DAY),
        ("04.03.1999", DAY.replace(year=1999)),
        ("04.03.99", DAY.replace(year=1999)),
        ("31/12/2026", DAY.replace(month=12, day=31)),
        ("04.03.2026 05:06", MINUTE),
        ("04.03.2026, 05:06:07", MOMENT),
        ("04.03.2026T05:06:07Z", MOMENT),
        ("04.03.2026 06:06:07 +0100", MOMENT),
        ("04.03.2026 06:06:07 CET", MOMENT),
        ("04/03/2026 5:06:07 AM", MOMENT),
        ("05:06:07 04/03/2026", MOMENT),
        ("Wed, 04.03.2026 05:06:07", MOMENT),
        ("04/Mar/2026:06:06:07 +0100", MOMENT),
        ("2026/03/04", DAY),
        ("2026.03.04 05:06:07", MOMENT),
        ("2026/3/4 05:06:07 UTC", MOMENT),
        ("2026-03-04", DAY),
        ("2026-3-4 5:6:7", MOMENT),
        ("26-03-04", DAY),
        ("2026-03", DAY.replace(day=1)),
        ("2026-063", DAY),
        ("2026-W10-3", DAY),
        ("2026-03-04t05:06:07z", MOMENT),
        ("2026-03-04T05:06Z", MINUTE),
        ("2026-03-04T05:06:07,5Z", MOMENT.replace(microsecond=500_000)),
        ("2026-03-04T01:36:07-03:30", MOMENT),
        ("2026-03-04T02:06:07-03", MOMENT),
        ("Wed, 04 Mar 2026 06:06:07 +0100", MOMENT),
        ("4 March 2026", DAY),
        ("Wed Mar 04 2026 06:06:07 GMT+0100 (Central European Standard Time)", MOMENT),
        ("2026-03-04T06:06:07+01:00[Europe/Berlin]", MOMENT),
        ("2026-03-04T06:06:07[Europe/Berlin]", MOMENT),
        ("2026-03-04 06:06:07 (CET)", MOMENT),
        ("2026-03-04 07:06:07 CEST (+0200)", MOMENT),
        ("2026-03-04 06:06:07 (UTC+01:00)", MOMENT),
        ("2026-03-04 06:06:07 Europe/Berlin", MOMENT),
        ("Mar 4, 2026 @ 05:06:07.000", MOMENT),
        ("2026-03-04_05:06:07", MOMENT),
        ("2026-03-04 06:06:07 +01:00:00", MOMENT),
        ("Mi 4. Mär 06:06:07 CET 2026", MOMENT),
        ("Mittwoch, 4. März 2026 um 05:06 Uhr", MINUTE),
        ("mer. 4 mars 2026 06:06:07 CET", MOMENT),
        ("mar. 3 mars 2026 05:06:07", MOMENT.replace(day=3)),
        ("4 mars 2026 05h06", MINUTE),
        ("woensdag 4 maart 2026 om 05:06", MINUTE),
        ("miércoles, 4 de marzo de 2026 a las 05:06", MINUTE),
        ("mercoledì 4 marzo 2026 alle ore 05:06", MINUTE),
        ("Mar 4 05:06:07 2026", MOMENT),
    ],
)
def test_numeric_dates_start_with_the_day_or_a_four_digit_year(text, moment):
    assert read_time(text) == moment


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        [],
        {},
        [1772600767],
        1,
        60.5,
        10**8 - 1,
        "7",
        "2026",
        "1970-01-01T00:00:00Z",
        "1 January 1970 01:00:00 +0100",
        0,
        0.0,
        -1,
        -1772600767,
        1e300,
        10**30,
        float("nan"),
        float("inf"),
        "0",
        "-1",
        "-1772600767",
        "1e9",
        "1.7726e9",
        "9" * 64,
        "1,772,600,767",
        "1772600767s",
        "0x69A7BC3F",
        "٢٠٢٦",
        "10.5",
        "4.3",
        "04/03",
        "10.0.0.12",
        "1.2.3.4",
        "04/13/2026",
        "2026/13/04",
        "31.04.2026",
        "00.03.2026",
        "20261345",
        "99999999",
        "20260304.5",
        "20260304250607",
        "2026-366",
        "0000-00-00 00:00:00",
        "soon",
        "",
    ],
)
def test_invalid_times_are_not_guessed(value):
    assert read_time(value) is None


def test_times_without_a_zone_are_read_in_the_given_one():
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")

    for text in ("2026-03-04 06:06:07", "20260304060607", "04.03.2026 06:06:07", "2026-03-04 05:06:07 UTC"):
        assert read_time(text, berlin) == MOMENT


@pytest.mark.parametrize(("value", "expected"), [("2026-13-44", True), (7, True), ("Triggered", False), ("P3", False)])
def test_only_values_that_resemble_a_time_look_like_one(value, expected):
    assert looks_like_time(value) is expected


@pytest.mark.parametrize("value", ["0001-01-01T00:00:00Z", "1970-01-01 00:00:00", "Thu Jan 1 1970", "", None, {}])
def test_the_first_moment_of_an_era_is_not_set(value):
    assert is_unset(value)
