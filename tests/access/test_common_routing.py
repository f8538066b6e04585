"""Routing and encoded paths (common reference, sections 1, 8 and 14)."""

from __future__ import annotations

from unittest.mock import ANY
from urllib.parse import quote

import pytest

from tests.support.sample_data import add_member, make_group, make_project

ROUTELESS = (404, {"error": "404 Not Found"})


@pytest.fixture
def deep(people):
    """A project five groups down, with a dot in its path."""
    parent = None
    for path in ("top", "with.dot", "c", "d", "e"):
        parent = make_group(path, parent)
    made = make_project("v1.0", parent)
    add_member(made, people["max"], 40)
    return made


def told(response):
    return response.status_code, response.json


@pytest.mark.parametrize(
    "path",
    [
        "top%2Fwith.dot%2Fc%2Fd%2Fe%2Fv1.0",
        "top%2fwith.dot%2fc%2fd%2fe%2fv1.0",
        "top%2Fwith%2Edot%2Fc%2Fd%2Fe%2Fv1%2E0",
        "TOP%2FWith.Dot%2FC%2Fd%2Fe%2FV1.0",
        "top%2Fwith.dot%2Fc%2Fd%2Fe%2Fv1.0/",
        "top%2Fwith.dot%2Fc%2Fd%2Fe%2Fv1.0.json",
        "/top%2Fwith.dot%2Fc%2Fd%2Fe%2Fv1.0",
    ],
)
def test_a_project_is_found_by_its_encoded_path(path, deep, as_maintainer):
    response = as_maintainer.get(f"/projects/{path}")

    assert (response.status_code, response.json["id"]) == (200, deep.id)


@pytest.mark.parametrize("suffix", ["", "/", ".json", "//"])
def test_a_project_is_found_by_its_id(suffix, project, as_maintainer):
    response = as_maintainer.get(f"/projects/{project.id}{suffix}")

    assert (response.status_code, response.json["id"]) == (200, project.id)


def test_an_unencoded_slash_matches_another_route(project, as_maintainer):
    assert told(as_maintainer.get("/projects/acme/shop")) == ROUTELESS


@pytest.mark.parametrize(
    "name", ["shop", "-5", "0", "99999999999999999999999999", "acme%2F", "%2Fshop", "acme%252Fshop"]
)
def test_an_invalid_project_path_is_not_found(name, project, as_admin):
    assert told(as_admin.get(f"/projects/{name}")) == (404, {"message": "404 Project Not Found"})


@pytest.mark.both_databases
@pytest.mark.parametrize(
    "path",
    [
        "/projects/{}",
        "/projects/{}/variables",
        "/groups/{}",
        "/namespaces/{}",
        "/users/{}",
        "/users/{}/events",
        "/projects/acme%2Fshop/issues/{}",
        "/projects/acme%2Fshop/members/{}",
        "/projects/acme%2Fshop/labels/{}",
        "/personal_access_tokens/{}",
    ],
)
def test_a_huge_id_is_not_found(path, project, as_admin):
    response = as_admin.get(path.format("1" * 5000))

    assert (response.status_code, response.json) == (404, ANY)


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["assignee_id", "weight"])
def test_huge_ids_are_not_found_on_any_route(name, project, as_admin):
    response = as_admin.get(f"/projects/{project.id}/issues?{name}={'1' * 5000}")

    assert (response.status_code, response.json) == (200, [])


def test_digits_are_always_an_id(as_admin):
    numbered = make_group("123456")
    project = make_project("123", numbered)

    assert told(as_admin.get("/groups/123456")) == (404, {"message": "404 Group Not Found"})
    assert as_admin.get(f"/groups/{numbered.id}").json["full_path"] == "123456"
    assert as_admin.get("/projects/123456%2F123").json["id"] == project.id


def test_a_subgroup_is_found_by_its_encoded_path(deep, as_admin):
    assert as_admin.get("/groups/top%2Fwith.dot").json["full_path"] == "top/with.dot"


@pytest.mark.parametrize("name", ["root", "1ASDF", "-1", "1.5", "%31a"])
def test_a_user_id_must_be_a_number(name, people, as_admin):
    assert told(as_admin.get(f"/users/{name}")) == ROUTELESS


def test_routes_with_usernames_accept_ids_too(people, as_admin):
    by_name, by_id = as_admin.get("/users/MAX/projects"), as_admin.get(f"/users/{people['max'].id}/projects")

    assert (by_name.status_code, by_id.status_code) == (200, 200)


@pytest.mark.parametrize(
    ("segment", "name"),
    [
        ("plain", "plain"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("with.dot", "with.dot"),
        ("with%2Edot", "with.dot"),
        ("v1%2Ejson", "v1.json"),
        ("v1.json", "v1.json"),
        ("%2A-stable", "*-stable"),
        ("%C3%A4", "ä"),
        ("a%20b+c", "a b+c"),
        ("100%25", "100%"),
    ],
)
def test_other_names_are_one_decoded_segment(segment, name, as_admin):
    response = as_admin.post(f"/features//{segment}", json={"value": "true"})

    assert (response.status_code, response.json["name"]) == (201, name)


@pytest.mark.parametrize(
    "path",
    ["/nowhere", "/projects/1/nowhere", "/", "", "/user/max", "/projects//1//nowhere", "/acme/shop/-/settings/a"],
)
def test_an_unknown_route_needs_no_token(path, as_):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        assert told(as_(None).open(method, path)) == ROUTELESS


def test_version_3_of_the_api_is_gone(browser):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        response = browser.open("/api/v3/projects/1", method=method)

        assert told(response) == (410, {"error": "API V3 is no longer supported. Use API V4 instead."})


@pytest.mark.parametrize("path", ["/projects/%ff", "/projects/a%00b", "/features/%C3%28"])
def test_a_path_with_invalid_utf8_is_malformed(path, as_):
    response = as_(None).get(path)

    assert (response.status_code, response.content_type, response.data) == (400, "text/plain", b"Bad Request")


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "nonsense", "*/*;q=0"])
def test_the_accept_header_is_ignored(accept, as_maintainer):
    response = as_maintainer.get("/user", headers={"Accept": accept})

    assert (response.status_code, response.content_type) == (200, "application/json")


def test_long_paths_are_accepted(as_admin):
    assert told(as_admin.get("/projects/" + quote("a" * 5000 + "/b", safe=""))) == (
        404,
        {"message": "404 Project Not Found"},
    )
