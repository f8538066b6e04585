"""``If-Unmodified-Since`` (common reference, section 13)."""

from __future__ import annotations

import datetime as dt
from types import SimpleNamespace

import pytest
from flask import Flask

from project_service.kit.http.errors import PreconditionFailed
from project_service.kit.http.preconditions import unmodified

ROW = SimpleNamespace(updated_at=dt.datetime(2021, 1, 20, 8, 15, 30, 500000, dt.UTC))


def asked(header):
    return Flask("conditions").test_request_context(headers={} if header is None else {"If-Unmodified-Since": header})


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Wed, 20 Jan 2021 08:15:31 GMT",
        "2021-01-20T08:15:30.500Z",
        "2021-01-20T10:15:31+02:00",
        "2021-01-20 08:15:31",
        "21 January 2021",
        "nonsense",
        "99999-99-99",
        "1" * 5000,
        "2021-01-20T08:15:31+99:99",
    ],
)
def test_unchanged_rows_and_invalid_dates_pass(header):
    with asked(header):
        assert unmodified(ROW) is ROW


@pytest.mark.parametrize(
    "header",
    [
        "Wed, 20 Jan 2021 08:15:30 GMT",
        "Mon, 01 Jan 1990 00:00:00 GMT",
        "2021-01-20T08:15:30.499Z",
        "2021-01-20T08:15:30",
        "2021-01-20T09:15:31+01:30",
        "1990-01-01",
        "0001-01-01T00:00:00+14:00",
    ],
)
def test_a_row_that_changed_later_is_412(header):
    with asked(header), pytest.raises(PreconditionFailed):
        unmodified(ROW)
