"""How a list is cut (common reference, section 11)."""

from __future__ import annotations

import pytest
from sqlalchemy import literal, select, union_all

from project_service.kit.http import pagination
from project_service.kit.http.pagination import Paging

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("page", "per_page", "expected"),
    [
        (1, 20, Paging(1, 20, 20)),
        (3, 7, Paging(3, 7, 7)),
        (0, 20, Paging(1, 20, 20)),
        (-3, -1, Paging(1, 20, 20)),
        (1, 100, Paging(1, 100, 100)),
        (1, 101, Paging(1, 100, 101)),
        (1, LARGEST, Paging(1, 100, LARGEST)),
    ],
)
def test_page_parameters_are_clamped(page, per_page, expected):
    assert Paging.of({"page": page, "per_page": per_page}, {}) == expected


def test_huge_page_numbers_are_clamped():
    page = Paging.of({"page": LARGEST, "per_page": 100}, {})

    assert page.offset < LARGEST


def numbers(count):
    rows = union_all(*(select(literal(number).label("number")) for number in range(max(count, 1)))).subquery()
    return select(rows.c.number).where(rows.c.number < count).order_by(rows.c.number)


def cut(app, count, number, size):
    with app.test_request_context("/api/v4/rows"):
        return pagination.cut(numbers(count), Paging(number, size, size))


@pytest.mark.parametrize(
    ("count", "number", "rows", "expected"),
    [
        (0, 1, [], ("0", "1", "", "")),
        (1, 1, [0], ("1", "1", "", "")),
        (2, 1, [0, 1], ("2", "1", "", "")),
        (3, 1, [0, 1], ("3", "2", "2", "")),
        (3, 2, [2], ("3", "2", "", "1")),
        (5, 2, [2, 3], ("5", "3", "3", "1")),
        (4, 2, [2, 3], ("4", "2", "", "1")),
        (3, 3, [], ("3", "2", "", "")),
        (0, 2, [], ("0", "1", "", "")),
    ],
)
def test_a_list_is_paginated_and_counted(count, number, rows, expected, app):
    found, headers = cut(app, count, number, 2)

    told = tuple(headers[name] for name in ("X-Total", "X-Total-Pages", "X-Next-Page", "X-Prev-Page"))
    assert (found, told, headers["X-Page"]) == (rows, expected, str(number))


@pytest.mark.parametrize(("number", "following", "before"), [(1, "2", ""), (2, "3", "1"), (3, "", "2")])
def test_a_long_list_has_next_links_but_no_totals(number, following, before, app, monkeypatch):
    monkeypatch.setattr(pagination, "MAX_COUNTED_ROWS", 4)

    _, headers = cut(app, 5, number, 2)

    assert not headers.keys() & {"X-Total", "X-Total-Pages"}
    assert (headers["X-Next-Page"], headers["X-Prev-Page"]) == (following, before)
    assert 'rel="last"' not in headers["Link"]


def test_a_list_at_the_counting_limit_has_totals(app, monkeypatch):
    monkeypatch.setattr(pagination, "MAX_COUNTED_ROWS", 4)

    _, headers = cut(app, 4, 1, 2)

    assert (headers["X-Total"], headers["X-Total-Pages"]) == ("4", "2")


@pytest.mark.parametrize(("number", "counts"), [(1, True), (2, False), (3, True)])
def test_the_last_page_needs_no_count_query(number, counts, app, count_queries):
    with count_queries() as queries:
        cut(app, 3, number, 2)

    assert any("count(" in query for query in queries) is counts


@pytest.mark.parametrize(
    ("value", "pairs"),
    [
        ("x", [("a", "x")]),
        (5, [("a", "5")]),
        (True, [("a", "true")]),
        (None, []),
        ([], []),
        ({"b": {"c": "x"}}, [("a[b][c]", "x")]),
        (["x", False], [("a[]", "x"), ("a[]", "false")]),
        ([{"k": 1}], [("a[][k]", "1")]),
    ],
)
def test_a_parameter_is_written_in_brackets(value, pairs):
    assert pagination.flatten("a", value) == pairs
