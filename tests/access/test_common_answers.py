"""Response headers, conditional requests, errors and CORS (common reference, sections 9 and 12 to 15)."""

from __future__ import annotations

import re

import pytest

from project_service.areas.members import service
from project_service.areas.variables import queries
from tests.support.sample_data import reload

HEADERS = {"X-Frame-Options": "SAMEORIGIN", "X-Content-Type-Options": "nosniff", "Vary": "Origin"}
EXPOSED = ("Link", "X-Total", "X-Total-Pages", "X-Per-Page", "X-Page", "X-Next-Page", "X-Prev-Page")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def told(response):
    return response.status_code, response.json


@pytest.fixture
def variable(project, as_maintainer):
    """The path of a stored variable."""
    as_maintainer.post(f"/projects/{project.id}/variables", json={"key": "A", "value": "1"})
    return f"/projects/{project.id}/variables/A"


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/user"), ("POST", "/projects"), ("GET", "/nowhere"), ("PATCH", "/projects"), ("OPTIONS", "/user")],
)
def test_every_response_has_these_headers(method, path, people, as_maintainer):
    response = as_maintainer.open(method, path)

    assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert float(response.headers["X-Runtime"]) >= 0
    assert len(response.headers["X-Request-Id"]) >= 16


@pytest.mark.parametrize(("given", "kept"), [("abc-123.x:y_z", True), ("a" * 129, False), ("a b", False), ("é", False)])
def test_the_request_id_is_returned(given, kept, as_):
    response = as_(None).get("/version", headers={"X-Request-Id": given})

    assert (response.headers["X-Request-Id"] == given) is kept


def test_times_have_milliseconds_and_dates_have_none(project, people, as_maintainer):
    shown, me = as_maintainer.get(f"/projects/{project.id}").json, as_maintainer.get("/user").json

    assert MOMENT.fullmatch(shown["created_at"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", me["last_activity_on"])


def test_an_unchanged_response_is_304(variable, as_maintainer):
    first = as_maintainer.get(variable)
    tag = first.headers["ETag"]

    again = [
        as_maintainer.open(method, variable, headers={"If-None-Match": wanted})
        for method in ("GET", "HEAD")
        for wanted in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*")
    ]

    assert (tag[:3], first.headers["Cache-Control"]) == ('W/"', "max-age=0, private, must-revalidate")
    assert {(response.status_code, response.data, response.headers["ETag"]) for response in again} == {(304, b"", tag)}
    assert not [response for response in again if "Content-Type" in response.headers]


def test_a_changed_response_has_another_etag(variable, as_maintainer):
    tag = as_maintainer.get(variable).headers["ETag"]
    as_maintainer.put(variable, json={"value": "2"})

    response = as_maintainer.get(variable, headers={"If-None-Match": tag})

    assert (response.status_code, response.json["value"]) == (200, "2")


def test_if_match_has_no_effect_on_reads(variable, as_maintainer):
    tag = as_maintainer.get(variable).headers["ETag"]

    responses = [as_maintainer.get(variable, headers={"If-Match": value}) for value in (tag, '"other"', "*")]

    assert {response.status_code for response in responses} == {200}


def test_errors_are_not_cached(as_maintainer):
    for path in ("/projects/999", "/nowhere", "/users?page=a"):
        response = as_maintainer.get(path, headers={"If-None-Match": "*"})
        assert response.status_code >= 400
        assert (response.headers["Cache-Control"], "ETag" in response.headers) == ("no-cache", False)


def test_deleting_returns_no_content_once(variable, as_maintainer):
    first, second = as_maintainer.delete(variable), as_maintainer.delete(variable)

    assert (first.status_code, first.data, "Content-Type" in first.headers) == (204, b"", False)
    assert told(second) == (404, {"message": "404 Variable Not Found"})


LONG_AGO, LATER, NONSENSE = "Mon, 01 Jan 1990 00:00:00 GMT", "Fri, 01 Jan 2100 00:00:00 GMT", "not today"
CHANGED = (412, {"message": "412 Precondition Failed"})


@pytest.mark.parametrize(("since", "status"), [(LATER, 204), (NONSENSE, 204), (LONG_AGO, 412)])
def test_a_changed_member_is_not_deleted(since, status, project, people, as_maintainer):
    path = f"/projects/{project.id}/members/{people['dev'].id}"

    response = as_maintainer.delete(path, headers={"If-Unmodified-Since": since})

    assert response.status_code == status
    assert as_maintainer.get(path).status_code == (200 if status == 412 else 404)


@pytest.mark.parametrize("path", ["/projects/{project.id}", "/groups/{group.id}", "/users/{user.id}"])
def test_changed_rows_are_not_deleted(path, project, group, people, as_admin):
    path = path.format(project=project, group=group, user=people["sam"])

    assert told(as_admin.delete(path, headers={"If-Unmodified-Since": LONG_AGO})) == CHANGED
    assert as_admin.get(path).status_code == 200


def test_variables_ignore_if_unmodified_since(variable, as_maintainer):
    assert as_maintainer.delete(variable, headers={"If-Unmodified-Since": LONG_AGO}).status_code == 204


@pytest.mark.parametrize(
    ("method", "path", "methods"),
    [
        ("PATCH", "/projects/1/variables", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("PATCH", "/projects/1/variables/A", {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}),
        ("DELETE", "/groups", {"GET", "HEAD", "POST", "OPTIONS"}),
        ("PUT", "/user", {"GET", "HEAD", "OPTIONS"}),
        ("GET", "/projects/1/archive", {"POST", "OPTIONS"}),
    ],
)
def test_a_wrong_method_is_405_for_signed_in_callers(method, path, methods, people, as_):
    response = as_("sam").open(method, path)

    assert told(response) == (405, {"error": "405 Not Allowed"})
    assert set(response.headers["Allow"].split(", ")) == methods
    assert told(as_(None).open(method, path)) == (401, {"message": "401 Unauthorized"})


def test_a_wrong_method_with_an_invalid_token_is_401(people, client_of):
    response = client_of(people["sam"], revoked=True).delete("/groups")

    assert (response.status_code, response.json["error"]) == (401, "invalid_token")


def test_options_lists_the_methods(as_):
    response = as_(None).open("OPTIONS", "/groups")

    assert (response.status_code, response.data, "Content-Type" in response.headers) == (204, b"", False)
    assert set(response.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST", "OPTIONS"}


@pytest.mark.parametrize("path", ["/namespaces", "/user", "/projects/1/variables", "/projects/1/members"])
def test_options_of_protected_routes_need_authentication(path, as_, as_stranger):
    stranger = as_(None).open("OPTIONS", path)
    member = as_stranger.open("OPTIONS", path)

    assert (stranger.status_code, stranger.json) == (401, {"message": "401 Unauthorized"})
    assert (member.status_code, member.data, "GET" in member.headers["Allow"]) == (204, b"", True)


def test_responses_allow_any_origin(people, as_maintainer):
    response = as_maintainer.get("/user", headers={"Origin": "https://elsewhere.example"})

    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "Access-Control-Allow-Credentials" not in response.headers
    assert set(response.headers["Access-Control-Expose-Headers"].split(", ")) >= {*EXPOSED, "X-Request-Id", "ETag"}


def test_errors_allow_any_origin(as_):
    response = as_(None).get("/user", headers={"Origin": "https://elsewhere.example"})

    assert (response.status_code, response.headers["Access-Control-Allow-Origin"]) == (401, "*")


def test_preflight_requests_are_answered(as_):
    asked = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "private-token, content-type",
    }

    response = as_(None).open("OPTIONS", "/projects/1/variables/A", headers=asked)

    assert (response.status_code, response.data) == (200, b"")
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert "DELETE" in response.headers["Access-Control-Allow-Methods"]
    assert response.headers["Access-Control-Allow-Headers"] == "private-token, content-type"


def test_an_internal_error_shows_no_details(variable, as_maintainer, monkeypatch):
    def fail(*_):
        raise RuntimeError("secret: /var/lib/service.db")

    monkeypatch.setattr(queries, "find_variable", fail)
    response = as_maintainer.put(variable, json={"value": "2"})

    assert told(response) == (500, {"message": "500 Internal Server Error"})
    assert not re.search(rb"secret|/var|Traceback|\.py|RuntimeError", response.data + str(response.headers).encode())
    assert response.headers["Cache-Control"] == "no-cache"


def test_an_internal_error_rolls_back(project, as_maintainer, monkeypatch):
    def fail():
        raise RuntimeError("after the change")

    monkeypatch.setattr(service, "forget_roles", fail)
    member = as_maintainer.get(f"/projects/{project.id}/members").json[-1]
    response = as_maintainer.delete(f"/projects/{project.id}/members/{member['id']}")

    assert response.status_code == 500
    assert member in as_maintainer.get(f"/projects/{project.id}/members").json


def test_special_characters_are_returned_unchanged(project, as_maintainer):
    text = '<b>&"\u2028\u00e4\U0001f600</b>\\'

    response = as_maintainer.put(f"/projects/{project.id}", json={"description": text})

    assert response.json["description"] == text
    assert reload(project).description == text
