"""Pagination of lists (common reference, section 11)."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, urlsplit

import pytest

from project_service.areas.variables.models import Variable
from project_service.kit.db.session import db
from project_service.kit.http import pagination
from tests.support.sample_data import make_project

pytestmark = pytest.mark.both_databases

NAMES = ("X-Total", "X-Total-Pages", "X-Per-Page", "X-Page", "X-Next-Page", "X-Prev-Page")


def links(response):
    return {name: url for url, name in re.findall(r'<([^>]*)>; rel="(\w+)"', response.headers.get("Link", ""))}


def asked(url):
    return parse_qsl(urlsplit(url).query, keep_blank_values=True)


def fill(project, count):
    db.session.add_all(Variable(project_id=project.id, key=f"K{number}", value="1") for number in range(count))
    db.session.commit()
    return f"/projects/{project.id}/variables"


@pytest.fixture
def seven(project):
    """The path of a list of seven rows."""
    return fill(project, 7)


@pytest.mark.parametrize(
    ("query", "rows", "headers"),
    [
        ("", 7, "7 1 20 1 - -"),
        ("?per_page=3", 3, "7 3 3 1 2 -"),
        ("?per_page=3&page=2", 3, "7 3 3 2 3 1"),
        ("?per_page=3&page=3", 1, "7 3 3 3 - 2"),
        ("?per_page=7", 7, "7 1 7 1 - -"),
        ("?per_page=3&page=4", 0, "7 3 3 4 - -"),
        ("?per_page=3&page=99", 0, "7 3 3 99 - -"),
        ("?page=0", 7, "7 1 20 1 - -"),
        ("?page=-2", 7, "7 1 20 1 - -"),
        ("?per_page=-1", 7, "7 1 20 1 - -"),
        ("?per_page=&page=", 7, "7 1 20 1 - -"),
        ("?per_page=100", 7, "7 1 100 1 - -"),
        ("?per_page=101", 7, "7 1 100 1 - -"),
        ("?per_page=9999999999", 7, "7 1 100 1 - -"),
    ],
)
def test_a_page_has_pagination_headers(query, rows, headers, seven, as_maintainer):
    response = as_maintainer.get(seven + query)

    shown = " ".join(response.headers[name] or "-" for name in NAMES)
    assert (response.status_code, len(response.json), shown) == (200, rows, headers)


def test_an_empty_list_is_one_page(project, as_maintainer):
    response = as_maintainer.get(f"/projects/{project.id}/variables")

    assert ([response.headers[name] for name in NAMES], response.json) == (["0", "1", "20", "1", "", ""], [])
    assert list(links(response)) == ["first", "last"]


def test_a_page_has_no_more_than_a_hundred_rows(project, as_maintainer):
    response = as_maintainer.get(fill(project, 101), query_string={"per_page": 101})

    assert (len(response.json), response.headers["X-Next-Page"]) == (100, "2")


@pytest.mark.parametrize("number", [2**31, 2**62, 2**63 - 1])
def test_a_page_past_the_end_is_empty(number, seven, as_maintainer):
    response = as_maintainer.get(f"{seven}?page={number}")

    assert (response.status_code, response.json, response.headers["X-Next-Page"]) == (200, [], "")


def test_page_links_are_ordered_and_repeat_all_parameters(seven, project, as_maintainer):
    response = as_maintainer.get(f"{seven}?per_page=2&page=2&b%5B%5D=2&b%5B%5D=1&a%5Bx%5D=%26%C3%A4&private_token=")

    base = f"http://localhost/api/v4{seven}?a%5Bx%5D=%26%C3%A4&b%5B%5D=2&b%5B%5D=1&id={project.id}"
    expected = [(1, "prev"), (3, "next"), (1, "first"), (4, "last")]
    assert response.headers["Link"] == ", ".join(
        f'<{base}&page={page}&per_page=2>; rel="{name}"' for page, name in expected
    )


def test_page_links_repeat_the_encoded_path_without_secrets(seven, as_maintainer):
    response = as_maintainer.get(f"/projects/acme%2Fshop/variables?private_token={as_maintainer.token}&per_page=200")

    assert links(response)["first"] == (
        "http://localhost/api/v4/projects/acme%2Fshop/variables?id=acme%2Fshop&page=1&per_page=200"
    )


def test_page_links_include_default_parameters(people, as_admin):
    response = as_admin.get("/users?active=TRUE&search=")

    query = dict(asked(links(response)["first"]))
    assert list(query) == sorted(query)
    assert (
        query.items() >= {"active": "TRUE", "order_by": "id", "sort": "desc", "page": "1", "blocked": "false"}.items()
    )


def test_following_the_links_returns_all_rows(seven, as_maintainer):
    found, path = [], f"/api/v4{seven}?per_page=3"
    while path:
        response = as_maintainer.browser.get(path, headers={"PRIVATE-TOKEN": as_maintainer.token})
        found += [variable["key"] for variable in response.json]
        path = links(response).get("next", "").removeprefix("http://localhost")

    assert found == [f"K{number}" for number in range(7)]


def test_links_use_the_external_url(seven, as_maintainer, app, monkeypatch):
    monkeypatch.setitem(app.config, "EXTERNAL_URL", "https://projects.example:8443")

    response = as_maintainer.get(seven)

    assert links(response)["first"].startswith(f"https://projects.example:8443/api/v4{seven}?")


def test_a_list_above_the_counting_limit_has_no_totals(seven, as_maintainer, monkeypatch):
    monkeypatch.setattr(pagination, "MAX_COUNTED_ROWS", 5)

    pages = [as_maintainer.get(f"{seven}?per_page=3&page={page}") for page in (1, 2, 3)]

    assert [page.headers["X-Next-Page"] for page in pages] == ["2", "3", ""]
    assert [page.headers["X-Prev-Page"] for page in pages] == ["", "1", "2"]
    assert not [page for page in pages if "X-Total" in page.headers or "X-Total-Pages" in page.headers]
    assert [list(links(page)) for page in pages] == [["next", "first"], ["prev", "next", "first"], ["prev", "first"]]


def test_head_returns_the_same_headers_without_a_body(seven, as_maintainer):
    shown, headed = as_maintainer.get(f"{seven}?per_page=2"), as_maintainer.head(f"{seven}?per_page=2")

    assert (headed.status_code, headed.data) == (200, b"")
    assert [headed.headers[name] for name in (*NAMES, "Link", "ETag")] == [
        shown.headers[name] for name in (*NAMES, "Link", "ETag")
    ]


@pytest.fixture
def three(group):
    """Three projects, oldest first."""
    return [make_project(namespace=group, visibility="public") for _ in range(3)]


@pytest.mark.parametrize(("sort", "name"), [("asc", "id_after"), ("desc", "id_before")])
def test_projects_support_keyset_pagination(sort, name, three, as_):
    ids = sorted((project.id for project in three), reverse=sort == "desc")
    found, path = [], f"/projects?pagination=keyset&order_by=id&sort={sort}&per_page=2"
    responses = []
    while path:
        responses.append(as_(None).get(path))
        found += [project["id"] for project in responses[-1].json]
        path = links(responses[-1]).get("next", "").removeprefix("http://localhost/api/v4")

    query = dict(asked(links(responses[0])["next"]))
    assert (found, query[name], query["per_page"], query["pagination"]) == (ids, str(ids[1]), "2", "keyset")
    assert (responses[-1].json, "Link" in responses[-1].headers) == ([], False)
    assert responses[0].headers["Links"] == responses[0].headers["Link"]
    assert not [name for name in NAMES if name in responses[0].headers]


@pytest.mark.parametrize("order_by", ["name", "created_at", None])
def test_keyset_pagination_requires_the_order_of_ids(order_by, three, as_):
    query = {"pagination": "keyset"} | ({"order_by": order_by} if order_by else {})

    response = as_(None).get("/projects", query_string=query)

    assert response.status_code == 405
    assert response.json == {"error": "Keyset pagination is not yet available for this type of request"}


def test_other_lists_refuse_keyset_pagination(seven, as_maintainer):
    response = as_maintainer.get(f"{seven}?pagination=keyset&per_page=2")

    assert (len(response.json), response.headers["X-Total"]) == (2, "7")
