"""Parameters in query, form and JSON bodies (common reference, section 2)."""

from __future__ import annotations

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.datastructures import FileStorage
from werkzeug.test import encode_multipart

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
PAIR = {"key": "A", "value": "1"}


def variables(project):
    return f"/projects/{project.id}/variables"


@pytest.mark.parametrize(
    "options",
    [
        {"json": PAIR},
        {"data": '{"key": "A", "value": "1"}', "content_type": "application/json; charset=utf-8"},
        {"data": "key=A&value=1", "content_type": FORM},
        {"data": PAIR, "content_type": "multipart/form-data"},
        {"query_string": "key=A&value=1"},
        {"query_string": "key=A", "json": {"value": 1}},
        {"query_string": "key=B&value=2", "json": PAIR},
        {"query_string": "key=A&value=1", "content_type": "text/plain"},
        {"query_string": "key=A&value=1", "data": "[]", "content_type": JSON},
        {"json": PAIR | {"colour": {"of": ["nobody"]}}},
    ],
)
def test_parameters_are_read_from_query_form_and_json(options, project, as_maintainer):
    response = as_maintainer.post(variables(project), **options)

    assert (response.status_code, response.json["key"], response.json["value"]) == (201, "A", "1")


def test_the_path_overrides_the_body(project, as_maintainer):
    as_maintainer.post(variables(project), json=PAIR)

    response = as_maintainer.put(f"{variables(project)}/A", json={"key": "B", "value": "2", "id": 0})

    assert (response.status_code, response.json["key"], response.json["value"]) == (200, "A", "2")


def test_requests_do_not_share_parameters(project, as_maintainer):
    created = [as_maintainer.post(variables(project), json=PAIR | {"key": key}).json["key"] for key in "AB"]

    listed = [len(as_maintainer.get(variables(project), query_string={"per_page": size}).json) for size in (1, 2)]

    assert (created, listed) == (["A", "B"], [1, 2])


@pytest.mark.parametrize(
    "options", [{"query_string": "filter[environment_scope]=b"}, {"json": {"filter": {"environment_scope": "b"}}}]
)
def test_deleting_takes_parameters_from_query_and_body(options, project, as_maintainer):
    for scope in "ab":
        as_maintainer.post(variables(project), json=PAIR | {"environment_scope": scope})

    response = as_maintainer.delete(f"{variables(project)}/A", **options)

    left = as_maintainer.get(variables(project)).json
    assert (response.status_code, [variable["environment_scope"] for variable in left]) == (204, ["a"])


@pytest.mark.parametrize("scopes", [{"scopes": "api,read_user"}, {"scopes[]": ["api", "read_user"]}])
def test_an_array_is_sent_with_commas_or_brackets(scopes, people, as_admin):
    response = as_admin.post(f"/users/{people['sam'].id}/personal_access_tokens", data={"name": "t"} | scopes)

    assert (response.status_code, response.json["scopes"]) == (201, ["api", "read_user"])


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_an_unknown_content_type_is_415(method, project, as_):
    for content_type in ("text/plain", "application/xml", "application/vnd.api+json", ""):
        response = as_(None).open(method, f"/projects/{project.id}", data=b"x", content_type=content_type)

        refusal = f"The provided content-type '{content_type}' is not supported."
        assert (response.status_code, response.json) == (415, {"error": refusal})


@pytest.mark.parametrize(
    "options",
    [
        {"data": "{", "content_type": JSON},
        {"data": b'{"key": "\xff"}', "content_type": JSON},
        {"data": '{"key": "\\u0000"}', "content_type": JSON},
        {"data": "key=%00", "content_type": FORM},
        {"data": "key=%ff", "content_type": FORM},
        {"data": b"key=\xff", "content_type": FORM},
        {"data": {"key": "\0"}, "content_type": "multipart/form-data"},
        {"query_string": "key=%ff"},
        {"query_string": "filter[environment_scope]=%00"},
        {"environ_overrides": {"QUERY_STRING": "key=\xff"}},
        {"headers": {"PRIVATE-TOKEN": "\xff"}},
        {"environ_overrides": {"HTTP_PRIVATE_TOKEN": "a\0b"}},
        {"headers": {"Authorization": "Bearer \xff"}},
        {"data": "[" * 5000, "content_type": JSON},
        {"data": '{"a":' * 500 + "1" + "}" * 500, "content_type": JSON},
    ],
)
def test_invalid_utf8_is_refused_before_authentication(options, project, as_):
    response = as_(None).post(variables(project), **options)

    assert (response.status_code, response.mimetype, response.data) == (400, "text/plain", b"Bad Request")


def test_the_sudo_parameter_must_be_text(people, client_of):
    response = client_of(people["ada"], "api", "sudo").get("/user", headers={"Sudo": "\xff"})

    assert (response.status_code, response.data) == (400, b"Bad Request")


def test_thousands_of_parameters_are_refused(project, as_maintainer):
    many = "&".join(f"a{number}=1" for number in range(5000))

    for options in ({"query_string": many}, {"data": many, "content_type": FORM}):
        response = as_maintainer.post(variables(project), **options)
        assert (response.status_code, response.json) == (400, {"message": "400 Bad request - too many parameters"})


def test_a_body_of_a_million_values_is_refused_unparsed(project, as_maintainer):
    body = b'{"key":"A","value":[' + b"[]," * 1_000_000 + b"[]]}"

    response = as_maintainer.post(variables(project), data=body, content_type="application/json")

    assert (response.status_code, response.json) == (400, {"message": "400 Bad request - too many parameters"})


@pytest.mark.both_databases
@pytest.mark.parametrize("number", ["1" * 25, "9" * 400, "1e400", "-" + "1" * 5000])
def test_very_long_numbers_are_refused(number, project, people, as_maintainer):
    body = f'{{"user_id": {number}, "access_level": {number}}}'

    response = as_maintainer.post(f"/projects/{project.id}/members", data=body, content_type=JSON)

    assert response.status_code == 400


texts = st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=4,
)
FIELDS = ["key", "value", "variable_type", "masked", "protected", "raw", "environment_scope", "user_id", "username"]
FIELDS += ["access_level", "expires_at", "name", "path", "namespace_id", "visibility", "tag_list", "avatar", "topics"]
objects = st.dictionaries(st.sampled_from(FIELDS) | texts, values, max_size=6).map(lambda body: {"json": body})
forms = st.dictionaries(st.sampled_from(FIELDS) | st.text(alphabet="ab[]", max_size=6), texts, max_size=6).map(
    lambda body: {"data": body, "content_type": FORM}
)
raw = st.builds(
    lambda body, kind: {"data": body, "content_type": kind},
    st.binary(max_size=40),
    st.sampled_from([JSON, FORM, "multipart/form-data; boundary=x", "multipart/form-data", "text/plain", ""]),
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    options=objects | forms | raw,
    place=st.sampled_from(["/projects/{}/variables", "/projects/{}/members", "/projects"]),
)
def test_no_body_causes_an_internal_error(options, place, project, as_admin):
    response = as_admin.post(place.format(project.id), **options)

    assert response.status_code < 500


def test_an_archive_may_be_larger_than_other_bodies(as_maintainer):
    file = FileStorage(io.BytesIO(b"\0" * (11 << 20)), "large.tar.gz")
    boundary, body = encode_multipart({"path": "large", "file": file})  # the test client would leave a file open

    response = as_maintainer.post(
        "/projects/import", data=body, content_type=f"multipart/form-data; boundary={boundary}"
    )

    assert (response.status_code, response.json["import_status"]) == (201, "scheduled")


@pytest.mark.parametrize("body", [b"[" * 70_000, b"a&" * 40_000], ids=["json", "form"])
def test_a_large_body_is_not_parsed_for_an_invented_token(body, app, project, as_maintainer):
    kind = {"content_type": JSON if body.startswith(b"[") else FORM}
    path = f"/api/v4{variables(project)}"

    invented = app.test_client().post(path, data=body, headers={"PRIVATE-TOKEN": "invented"}, **kind)
    known = as_maintainer.post(variables(project), data=body, **kind)

    assert (invented.status_code, known.status_code) == (401, 400)


def test_a_large_form_without_a_session_is_not_parsed(app):
    body = {"data": b"a=" + b"x" * (1 << 20), "content_type": FORM}

    answers = [
        app.test_client().post("/users/sign_in", **body),
        app.test_client().post("/oauth/token", **body),
    ]

    assert [one.status_code for one in answers] == [401, 413]
