"""Validation errors and the order of checks (common reference, sections 3 to 5)."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, DEV, MAX, NOBODY, SAM


def told(response):
    return response.status_code, response.json


@pytest.mark.parametrize(
    ("method", "path", "body", "text"),
    [
        ("POST", "/projects/{}/variables", {}, "key is missing, value is missing"),
        ("POST", "/projects/{}/variables", {"key": None, "value": None, "masked": "no way"}, "masked is invalid"),
        ("POST", "/projects/{}/variables", {"key": [], "value": {}}, "key is invalid, value is invalid"),
        (
            "POST",
            "/projects/{}/variables",
            {"key": "A", "value": "1", "variable_type": "secret"},
            "variable_type does not have a valid value",
        ),
        ("PUT", "/projects/{}/variables/A", {"filter": "x"}, "filter is invalid"),
        (
            "PUT",
            "/projects/{}/variables/A",
            {"filter": {"environment_scope": []}},
            "filter[environment_scope] is invalid",
        ),
        ("POST", "/projects/{}/members", {}, "user_id is missing, access_level is missing"),
        (
            "POST",
            "/projects/{}/members",
            {"user_id": 1, "username": "max", "access_level": 10},
            "user_id, username are mutually exclusive",
        ),
        ("POST", "/projects", {}, "name, path are missing, at least one parameter must be provided"),
        ("POST", "/users/1/personal_access_tokens", {}, "name is missing, scopes is missing"),
        (
            "POST",
            "/projects/{}/share",
            {"group_id": 1, "group_access": "x"},
            "group_access is invalid, group_access does not have a valid value",
        ),
        ("POST", "/projects/{}/share", {"group_id": 1, "group_access": 11}, "group_access does not have a valid value"),
    ],
)
def test_invalid_parameters_are_named(method, path, body, text, project, as_admin):
    assert told(as_admin.open(method, path.format(project.id), json=body)) == (400, {"error": text})


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("page=a", "page is invalid"),
        ("per_page=a", "per_page is invalid"),
        ("per_page=0", "per_page has a value not allowed"),
        ("page=a&per_page=b", "page is invalid, per_page is invalid"),
        ("page=1.5&order_by=colour", "order_by does not have a valid value, page is invalid"),
        ("provider=ldap&active=maybe", "active is invalid, extern_uid, provider provide all or none of parameters"),
        ("created_after=9999-12-31T23:59:59-14:00", "created_after is invalid"),
        ("page[]=1", "page is invalid"),
        ("page[a]=1", "page is invalid"),
    ],
)
def test_invalid_filters_are_named(query, text, as_admin):
    assert told(as_admin.get(f"/users?{query}")) == (400, {"error": text})


@pytest.mark.parametrize(
    "query", ["page=", "per_page=", "active=", "active=YES", "created_after=", "colour=red", "page=%2B1"]
)
def test_blank_and_unknown_filters_are_ignored(query, people, as_admin):
    response = as_admin.get(f"/users?{query}")

    assert (response.status_code, len(response.json), response.headers["X-Per-Page"]) == (200, 7, "20")


UNAUTHORIZED = (401, {"message": "401 Unauthorized"})
FORBIDDEN = (403, {"message": "403 Forbidden"})
HIDDEN = (404, {"message": "404 Project Not Found"})


@pytest.mark.parametrize(
    ("person", "refusal"),
    [
        (NOBODY, UNAUTHORIZED),
        (SAM, HIDDEN),
        (DEV, FORBIDDEN),
        (MAX, (400, {"error": "key is missing, value is missing"})),
    ],
)
def test_variables_check_permissions_before_parameters(person, refusal, project, as_):
    assert told(as_(person).post(f"/projects/{project.id}/variables")) == refusal


@pytest.mark.parametrize("person", [SAM, DEV, MAX, ADA])
def test_members_check_parameters_before_permissions(person, project, as_):
    response = as_(person).post(f"/projects/{project.id}/members", json={"user_id": 1, "access_level": "x"})

    assert told(response) == (400, {"error": "access_level is invalid"})


@pytest.mark.parametrize(("person", "status"), [(NOBODY, UNAUTHORIZED), (SAM, HIDDEN), (DEV, FORBIDDEN)])
def test_valid_parameters_are_followed_by_the_permission_check(person, status, project, people, as_):
    body = {"user_id": people["sam"].id, "access_level": 10}

    assert told(as_(person).post(f"/projects/{project.id}/members", json=body)) == status


@pytest.mark.parametrize("path", ["/groups", "/projects", "/users", "/features/x", "/projects/1/members"])
def test_writing_checks_authentication_first(path, as_):
    assert told(as_(NOBODY).post(path)) == UNAUTHORIZED


@pytest.mark.parametrize("body", [{}, {"value": "true"}])
def test_features_check_for_administrators_before_parameters(body, as_maintainer):
    assert told(as_maintainer.post("/features/x", json=body)) == FORBIDDEN


@pytest.mark.parametrize("path", ["/groups/999", "/projects/999"])
def test_groups_and_projects_check_parameters_before_loading(path, as_maintainer):
    refusal = {"error": "visibility does not have a valid value"}

    assert told(as_maintainer.put(path, json={"visibility": "secret"})) == (400, refusal)
