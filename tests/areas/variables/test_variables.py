"""CI/CD variables through HTTP (variables reference, sections 2 to 12)."""

from __future__ import annotations

import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from project_service.domain.access_levels import Visibility
from project_service.kit.db.session import db
from project_service.kit.security import key_ring
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM

MISSING = {"message": "404 Variable Not Found"}
AMBIGUOUS = {"message": "There are multiple variables with provided parameters. Please use 'filter[environment_scope]'"}
KEY_CHARACTERS = "can contain only letters, digits and '_'."
SCOPE_CHARACTERS = "can contain only letters, digits, '-', '_', '/', '$', '{', '}', '.', '*' and spaces"
INVALID_VALUE = {"message": {"value": ["is invalid"]}}
OPERATIONS = [("GET", None), ("POST", None), ("GET", "FOO"), ("PUT", "FOO"), ("DELETE", "FOO")]


def variables(project, key=None):
    path = f"/projects/{project.id}/variables"
    return f"{path}/{key}" if key else path


def all_operations(client, project, **fields):
    """The responses of all five operations on a project that has FOO."""
    sent = {"key": "BAR", "value": "v"} | fields
    return [client.open(method, variables(project, key), json=sent) for method, key in OPERATIONS]


def send(client, method, path, fields):
    """Send a request from a thread that has no database session."""
    return client.browser.open(f"/api/v4{path}", method=method, json=fields, headers={"PRIVATE-TOKEN": client.token})


def scope_filter(scope):
    return {"filter[environment_scope]": scope}


def list_variables(client, project):
    return client.get(variables(project)).json


@pytest.fixture
def store(project, as_maintainer):
    """Creates a variable through the API; returns it."""

    def create(key="FOO", value="a value", **fields):
        response = as_maintainer.post(variables(project), json={"key": key, "value": value} | fields)
        assert response.status_code == 201, response.json
        return response.json

    return create


# Permissions


@pytest.mark.parametrize("person", [ADA, OLIVE, MAX])
def test_maintainers_and_higher_roles_may_do_everything(person, project, store, as_):
    store()

    responses = all_operations(as_(person), project)

    assert [response.status_code for response in responses] == [200, 201, 200, 200, 204]


@pytest.mark.parametrize(
    ("person", "status", "text_"),
    [
        (DEV, 403, "403 Forbidden"),
        (RITA, 403, "403 Forbidden"),
        (GUS, 403, "403 Forbidden"),
        (SAM, 404, "404 Project Not Found"),
        (NOBODY, 401, "401 Unauthorized"),
    ],
)
def test_other_roles_are_refused_before_parameters_are_validated(person, status, text_, project, as_):
    responses = all_operations(as_(person), project, masked="nonsense", filter="nonsense")

    assert [(response.status_code, response.json) for response in responses] == [(status, {"message": text_})] * 5


@pytest.mark.parametrize("visibility", [Visibility.INTERNAL, Visibility.PUBLIC])
def test_non_members_get_403_and_anonymous_callers_401(visibility, project, as_):
    project.visibility = visibility
    db.session.commit()

    assert [response.status_code for response in all_operations(as_(SAM), project)] == [403] * 5
    assert [response.status_code for response in all_operations(as_(NOBODY), project)] == [401] * 5


def test_a_missing_project_is_401_for_anonymous_callers_and_404_for_users(project, as_):
    project.id = 4711

    assert {response.status_code for response in all_operations(as_(NOBODY), project)} == {401}
    assert {response.status_code for response in all_operations(as_(ADA), project)} == {404}


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("builds_access_level", "disabled"), ("repository_access_level", "disabled"), ("archived", True)],
)
def test_owners_are_refused_without_builds_or_repository_or_when_archived(attribute, value, project, store, as_):
    store()
    setattr(sample_data.reload(project), attribute, value)
    db.session.commit()

    for person in (ADA, OLIVE, MAX):
        assert [response.status_code for response in all_operations(as_(person), project)] == [403] * 5


def test_a_read_only_token_cannot_write(project, people, store, client_of):
    store()

    responses = all_operations(client_of(people[MAX], "read_api"), project)

    assert [response.status_code for response in responses] == [200, 403, 200, 403, 403]
    assert responses[1].json["error"] == "insufficient_scope"


def test_a_token_with_another_scope_reads_nothing(project, people, client_of):
    response = client_of(people[MAX], "read_user").get(variables(project))

    assert (response.status_code, response.json["scope"]) == (403, "api read_api")


def test_a_project_is_found_by_its_encoded_path(project, store, as_maintainer):
    store()

    assert as_maintainer.get("/projects/acme%2Fshop/variables/FOO").json["key"] == "FOO"


# List


def test_a_new_project_has_no_variables(project, as_maintainer):
    response = as_maintainer.get(variables(project))

    assert (response.json, response.headers["X-Total"]) == ([], "0")


@pytest.mark.both_databases
def test_the_list_shows_complete_variables_oldest_first(project, store, as_maintainer):
    store("ZULU", "last letter, first stored")
    store("ALPHA", "multi\nline", variable_type="file", protected=True, environment_scope="production")

    assert list_variables(as_maintainer, project) == [
        {
            "variable_type": "env_var",
            "key": "ZULU",
            "value": "last letter, first stored",
            "hidden": False,
            "protected": False,
            "masked": False,
            "raw": False,
            "environment_scope": "*",
            "description": None,
        },
        {
            "variable_type": "file",
            "key": "ALPHA",
            "value": "multi\nline",
            "hidden": False,
            "protected": True,
            "masked": False,
            "raw": False,
            "environment_scope": "production",
            "description": None,
        },
    ]


def test_the_list_ignores_filters(project, store, as_maintainer):
    store("FOO")
    store("BAR", environment_scope="production")

    response = as_maintainer.get(variables(project), query_string=scope_filter("production"))

    assert [entry["key"] for entry in response.json] == ["FOO", "BAR"]


@pytest.mark.both_databases
def test_the_list_is_paginated(project, store, as_maintainer):
    for number in range(3):
        store(f"KEY_{number}")

    response = as_maintainer.get(variables(project), query_string={"per_page": 2, "page": 2})

    assert [entry["key"] for entry in response.json] == ["KEY_2"]
    assert (response.headers["X-Total"], response.headers["X-Prev-Page"], response.headers["X-Next-Page"]) == (
        "3",
        "1",
        "",
    )


def test_the_list_contains_only_variables_of_the_project(project, store, as_admin):
    store("MINE")
    other = sample_data.make_project("other")
    as_admin.post(variables(other), json={"key": "THEIRS", "value": "v"})

    assert [entry["key"] for entry in list_variables(as_admin, project)] == ["MINE"]


@pytest.mark.both_databases
def test_the_number_of_queries_does_not_grow_with_the_list(project, store, as_maintainer, count_queries):
    store("FIRST")
    with count_queries() as few:
        as_maintainer.get(variables(project))
    for number in range(10):
        store(f"KEY_{number}")

    with count_queries() as many:
        as_maintainer.get(variables(project))

    assert len(many) == len(few)


# Show


def test_a_variable_is_shown_with_all_keys(project, store, as_maintainer):
    stored = store("FOO", "helloworld", masked=True, protected=True)

    response = as_maintainer.get(variables(project, "FOO"))

    assert (response.status_code, response.json) == (200, stored)
    assert list(response.json) == [
        "variable_type",
        "key",
        "value",
        "hidden",
        "protected",
        "masked",
        "raw",
        "environment_scope",
        "description",
    ]


@pytest.mark.both_databases
def test_keys_are_case_sensitive(project, store, as_maintainer):
    store("FOO")

    for key in ("BAR", "foo", "FOO%20", "%20FOO", "FOO%2FBAR", "F%25", "%F0%9F%99%82"):
        response = as_maintainer.get(variables(project, key))
        assert (response.status_code, response.json) == (404, MISSING), key


@pytest.mark.parametrize("suffix", [".json", ".json/", "/"])
def test_format_suffixes_and_slashes_are_not_part_of_a_key(suffix, project, store, as_maintainer):
    store("FOO")
    address = variables(project, f"FOO{suffix}")

    responses = [as_maintainer.open(method, address, json={"value": "v"}) for method in ("GET", "PUT", "DELETE")]

    assert [response.status_code for response in responses] == [200, 200, 204]


@pytest.mark.both_databases
def test_a_key_with_a_nul_is_malformed(project, as_maintainer):
    response = as_maintainer.get(variables(project, "FOO%00"))

    assert (response.status_code, response.mimetype) == (400, "text/plain")


def test_unknown_keys_and_keys_of_other_projects_are_not_found(project, store, as_admin):
    store("FOO")
    other = sample_data.make_project("other")

    for method in ("GET", "PUT", "DELETE"):
        unknown = as_admin.open(method, variables(project, "NOTHING"))
        foreign = as_admin.open(method, variables(other, "FOO"))
        assert (unknown.status_code, unknown.json, foreign.status_code, foreign.json) == (404, MISSING, 404, MISSING)


def test_a_filter_is_a_hash(project, store, as_maintainer):
    store()
    path = variables(project, "FOO")

    responses = [as_maintainer.get(path, query_string={"filter": wrong}) for wrong in ("production", "")]
    for wrong in ("production", 5, True, ["production"]):
        responses += [as_maintainer.open(method, path, json={"filter": wrong}) for method in ("PUT", "DELETE")]

    assert {(response.status_code, response.text) for response in responses} == {(400, '{"error":"filter is invalid"}')}


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("stored", "filtered_scope", "status"),
    [
        ([], "", 404),
        ([], "*", 404),
        (["*"], "", 200),
        (["production"], "", 200),
        (["production"], "production", 200),
        (["production"], "Production", 404),
        (["production"], " production", 404),
        (["prod*"], "production", 404),
        (["*"], "production", 404),
        (["production"], "*", 404),
        (["staging", "production"], "", 409),
        (["*", "production"], "*", 200),
        (["staging", "production"], "production", 200),
        (["staging", "production"], "invalid", 404),
        (["a b/{c}$.*", "*"], "a b/{c}$.*", 200),
    ],
)
def test_the_filter_selects_by_literal_scope(stored, filtered_scope, status, project, store, as_maintainer):
    created = [store("key1", f"value of {scope}", environment_scope=scope) for scope in stored]
    selected = next((one for one in created if not filtered_scope or one["environment_scope"] == filtered_scope), None)
    body = {200: selected, 404: MISSING, 409: AMBIGUOUS}[status]
    path, chosen = variables(project, "key1"), scope_filter(filtered_scope)

    shown = as_maintainer.get(path, query_string=chosen)
    changed = as_maintainer.put(path, query_string=chosen)
    deleted = as_maintainer.delete(path, query_string=chosen)

    assert (shown.status_code, shown.json) == (changed.status_code, changed.json) == (status, body)
    assert (deleted.status_code, deleted.json) == ((204, None) if status == 200 else (status, body))


def test_other_keys_of_the_filter_are_ignored(project, store, as_maintainer):
    store()

    response = as_maintainer.get(variables(project, "FOO"), query_string={"filter[colour]": "blue"})

    assert response.status_code == 200


def test_an_empty_filter_is_ignored(project, store, as_maintainer):
    store("FOO", environment_scope="production")

    for empty in (None, {}, {"environment_scope": None}, {"environment_scope": ""}):
        response = as_maintainer.put(variables(project, "FOO"), json={"value": f"new {empty}", "filter": empty})
        assert (response.status_code, response.json["value"]) == (200, f"new {empty}")


# Create


def test_a_created_variable_is_returned_with_defaults(project, as_maintainer):
    response = as_maintainer.post(variables(project), json={"key": "TEST_VARIABLE_2", "value": "VALUE_2"})

    assert response.status_code == 201
    assert response.json == {
        "variable_type": "env_var",
        "key": "TEST_VARIABLE_2",
        "value": "VALUE_2",
        "hidden": False,
        "protected": False,
        "masked": False,
        "raw": False,
        "environment_scope": "*",
        "description": None,
    }
    assert list_variables(as_maintainer, project) == [response.json]


def test_all_sent_fields_are_stored(project, as_maintainer):
    sent = {
        "key": "API_SECRET",
        "value": "c2VjcmV0LXZhbHVl",
        "variable_type": "file",
        "masked": True,
        "protected": True,
        "raw": True,
        "environment_scope": "review/*",
        "description": "for the review applications",
    }

    response = as_maintainer.post(variables(project), json=sent)

    assert (response.status_code, response.json) == (201, sent | {"hidden": False})
    assert as_maintainer.get(variables(project, "API_SECRET")).json == response.json


@pytest.mark.parametrize(
    "options",
    [
        {"data": {"key": "FOO", "value": "v 1", "protected": "true", "variable_type": "file"}},
        {
            "data": {"key": "FOO", "value": "v 1", "protected": "1", "variable_type": "file"},
            "content_type": "multipart/form-data",
        },
        {"query_string": {"key": "FOO", "value": "v 1", "protected": "yes", "variable_type": "file"}},
        {"json": {"key": "FOO", "value": "v 1", "protected": "True", "variable_type": "file"}},
        {
            "query_string": {"key": "BAR", "value": "v 1"},
            "json": {"key": "FOO", "protected": 1, "variable_type": "file"},
        },
    ],
)
def test_parameters_are_accepted_in_any_encoding(options, project, as_maintainer):
    response = as_maintainer.post(variables(project), **options)

    assert response.status_code == 201
    shown = [response.json[name] for name in ("key", "value", "protected", "variable_type")]
    assert shown == ["FOO", "v 1", True, "file"]


MALFORMED = [
    ({"value": "v"}, {"error": "key is missing"}),
    ({"key": "A"}, {"error": "value is missing"}),
    ({}, {"error": "key is missing, value is missing"}),
    ({"key": ["A"], "value": "v"}, {"error": "key is invalid"}),
    ({"key": "A", "value": ["v"]}, {"error": "value is invalid"}),
    ({"key": "A", "value": {"v": 1}}, {"error": "value is invalid"}),
    ({"key": "A", "value": "v", "variable_type": "secret"}, {"error": "variable_type does not have a valid value"}),
    ({"key": "A", "value": "v", "variable_type": ""}, {"error": "variable_type does not have a valid value"}),
    ({"key": "A", "value": "v", "protected": "maybe"}, {"error": "protected is invalid"}),
    ({"key": "A", "value": "v", "masked": "maybe"}, {"error": "masked is invalid"}),
    ({"key": "A", "value": "v", "masked": 2}, {"error": "masked is invalid"}),
    ({"key": "A", "value": "v", "raw": "maybe"}, {"error": "raw is invalid"}),
    ({"key": "A", "value": "v", "masked_and_hidden": "maybe"}, {"error": "masked_and_hidden is invalid"}),
    ({"key": "A", "value": "v", "environment_scope": ["*"]}, {"error": "environment_scope is invalid"}),
    ({"key": "A", "value": "v", "description": {}}, {"error": "description is invalid"}),
    ({"value": "v", "masked": "maybe"}, {"error": "key is missing, masked is invalid"}),
]


def test_invalid_parameters_are_refused(project, as_maintainer):
    responses = [as_maintainer.post(variables(project), json=fields) for fields, _ in MALFORMED]

    assert [response.json for response in responses] == [body for _, body in MALFORMED]
    assert {response.status_code for response in responses} == {400}
    assert list_variables(as_maintainer, project) == []


INVALID_FIELDS = [
    ({"key": ""}, {"key": ["can't be blank", KEY_CHARACTERS]}),
    ({"key": "  \t"}, {"key": ["can't be blank", KEY_CHARACTERS]}),
    ({"key": None}, {"key": ["can't be blank", KEY_CHARACTERS]}),
    ({"key": "foo bar"}, {"key": [KEY_CHARACTERS]}),
    ({"key": "foo/bar"}, {"key": [KEY_CHARACTERS]}),
    ({"key": "foo-bar"}, {"key": [KEY_CHARACTERS]}),
    ({"key": "foo\nbar"}, {"key": [KEY_CHARACTERS]}),
    ({"key": "schlüssel"}, {"key": [KEY_CHARACTERS]}),
    ({"key": "٣"}, {"key": [KEY_CHARACTERS]}),
    ({"key": 1.5}, {"key": [KEY_CHARACTERS]}),
    ({"key": "a" * 256}, {"key": ["is too long (maximum is 255 characters)"]}),
    ({"key": "-" * 256}, {"key": ["is too long (maximum is 255 characters)", KEY_CHARACTERS]}),
    ({"environment_scope": ""}, {"environment_scope": ["can't be blank", SCOPE_CHARACTERS]}),
    ({"environment_scope": "   "}, {"environment_scope": ["can't be blank", SCOPE_CHARACTERS]}),
    ({"environment_scope": None}, {"environment_scope": ["can't be blank", SCOPE_CHARACTERS]}),
    ({"environment_scope": "!!()()"}, {"environment_scope": [SCOPE_CHARACTERS]}),
    ({"environment_scope": "a\nb"}, {"environment_scope": [SCOPE_CHARACTERS]}),
    ({"environment_scope": "ümlaut"}, {"environment_scope": [SCOPE_CHARACTERS]}),
    ({"masked": ""}, {"masked": ["is not included in the list"]}),
    ({"masked": None}, {"masked": ["is not included in the list"]}),
    ({"masked": True}, {"value": ["is invalid"]}),
    ({"masked_and_hidden": True}, {"value": ["is invalid"]}),
    ({"description": "d" * 256}, {"description": ["is too long (maximum is 255 characters)"]}),
    (
        {"key": "a b", "masked": True, "environment_scope": "!"},
        {"key": [KEY_CHARACTERS], "value": ["is invalid"], "environment_scope": [SCOPE_CHARACTERS]},
    ),
]


def test_a_variable_that_breaks_a_rule_is_refused(project, as_maintainer):
    good = {"key": "A", "value": "v"}
    responses = [as_maintainer.post(variables(project), json=good | fields) for fields, _ in INVALID_FIELDS]

    assert [response.json for response in responses] == [{"message": messages} for _, messages in INVALID_FIELDS]
    assert {response.status_code for response in responses} == {400}
    assert list_variables(as_maintainer, project) == []


def test_keys_are_stored_without_surrounding_blanks(project, as_maintainer):
    sent = ["foo", "FOO_bar_9", " FOO ", "\tTAB\n", "9", 5, "_", "k" * 255]

    responses = [as_maintainer.post(variables(project), json={"key": key, "value": "v"}) for key in sent]

    assert {response.status_code for response in responses} == {201}
    assert [response.json["key"] for response in responses] == [str(key).strip() for key in sent]


def test_scopes_are_stored_without_surrounding_blanks(store):
    sent = ["*", "review/*", " production ", "\tstaging\n", "a-b_c/${D}.e f*"]

    assert [store(environment_scope=scope)["environment_scope"] for scope in sent] == [scope.strip() for scope in sent]


@pytest.mark.both_databases
def test_scopes_are_limited_to_the_size_of_an_index(project, as_maintainer):
    # text that does not compress, because a database limits the size of an index entry
    scope = "".join(f"{number * 7919 % 100_003:x}/" for number in range(3000))

    response = as_maintainer.post(variables(project), json={"key": "A", "value": "v", "environment_scope": scope})

    assert response.status_code == 400
    assert response.json == {"message": {"environment_scope": ["is too long (maximum is 1024 characters)"]}}


@pytest.mark.both_databases
def test_the_longest_key_and_scope_are_accepted_together(store):
    # texts that do not compress, because a database limits the size of an index entry
    key = "".join(f"{number * 7919 % 100_003:x}" for number in range(300))[:255]
    scope = "".join(f"{number * 6101 % 100_003:x}" for number in range(1000))[:1024]

    assert store(key, environment_scope=scope)["environment_scope"] == scope


@pytest.mark.both_databases
def test_any_text_is_accepted_as_value(project, store, as_maintainer):
    texts = [
        "",
        " not trimmed ",
        "line\nline\r\n",
        "ünï¢ødé 🙂",
        "'\"\\<&>",
        "{}",
        "gAAAAABnot_a_token",
        "x" * 1_000_000,
    ]

    for number, value in enumerate(texts):
        store(f"KEY_{number}", value)

    assert [entry["value"] for entry in list_variables(as_maintainer, project)] == texts


def test_scalars_become_text_and_null_stays_null(store):
    sent = [5, True, False, 1.5, None]

    stored = [store(f"KEY_{number}", value)["value"] for number, value in enumerate(sent)]

    assert stored == ["5", "true", "false", "1.5", None]


def test_a_blank_flag_is_false(store):
    for name in ("protected", "raw", "masked_and_hidden"):
        for blank in ("", None):
            created = store(f"{name}_{blank}", **{name: blank})
            assert not any(created[flag] for flag in ("protected", "raw", "masked", "hidden"))


def test_a_null_type_is_the_default(store):
    assert store(variable_type=None)["variable_type"] == "env_var"


@pytest.mark.both_databases
def test_a_key_is_unique_per_scope(project, store, as_maintainer):
    store("FOO", environment_scope="production")

    again = as_maintainer.post(
        variables(project), json={"key": " FOO", "value": "v", "environment_scope": "production "}
    )

    assert (again.status_code, again.json) == (400, {"message": {"key": ["(FOO) has already been taken"]}})
    assert len(list_variables(as_maintainer, project)) == 1


def test_a_duplicate_key_is_reported_with_other_errors(project, store, as_maintainer):
    store("FOO")

    again = as_maintainer.post(variables(project), json={"key": "FOO", "value": "v", "masked": True})

    assert again.json == {"message": {"key": ["(FOO) has already been taken"], "value": ["is invalid"]}}


def test_a_key_may_be_reused_in_another_scope_case_or_project(project, store, as_admin):
    store("FOO")
    other = sample_data.make_project("other")

    for each_project, fields in ((project, {"environment_scope": "x"}), (project, {"key": "foo"}), (other, {})):
        response = as_admin.post(variables(each_project), json={"key": "FOO", "value": "v"} | fields)
        assert response.status_code == 201

    assert (len(list_variables(as_admin, project)), len(list_variables(as_admin, other))) == (3, 1)


@pytest.mark.both_databases
def test_two_hundred_concurrent_creations_create_one_variable(project, people, client_of):
    path = variables(project)
    clients = [client_of(people[MAX]) for _ in range(40)]
    barrier = threading.Barrier(len(clients))

    def create_five(client):
        barrier.wait()
        return [send(client, "POST", path, {"key": "FOO", "value": f"v{number}"}) for number in range(5)]

    with ThreadPoolExecutor(len(clients)) as threads:
        responses = [response for five in threads.map(create_five, clients) for response in five]

    refusals = [response.json for response in responses if response.status_code == 400]
    assert Counter(response.status_code for response in responses) == {201: 1, 400: 199}
    assert all(refusal == {"message": {"key": ["(FOO) has already been taken"]}} for refusal in refusals)
    assert len(list_variables(clients[0], project)) == 1


# Masking


MASKABLE_VALUES = ["helloworld", "Hello+World_123/@:-.", "12345678", "a~b~c~d~e", "eA==eA=="]
UNMASKABLE_VALUES = [
    "1234567",
    "hello",
    "hello world",
    "hello$VARIABLEworld",
    "hello\rworld",
    "helloworld\n",
    "helloworld\nhelloworld",
    "hello\\world",
    "hello'world",
    'hello"world',
    "HelloWorld%#^",
    "héllowörld",
    "",
    None,
]


@pytest.mark.parametrize("variable_type", ["env_var", "file"])
def test_only_maskable_values_can_be_masked(variable_type, project, as_maintainer):
    def mask(key, value):
        sent = {"key": key, "value": value, "masked": True, "variable_type": variable_type}
        return as_maintainer.post(variables(project), json=sent)

    accepted = [mask(f"KEY_{number}", value) for number, value in enumerate(MASKABLE_VALUES)]
    refused = [mask("KEY", value) for value in UNMASKABLE_VALUES]

    assert [(response.status_code, response.json["value"]) for response in accepted] == [
        (201, value) for value in MASKABLE_VALUES
    ]
    assert [(response.status_code, response.json) for response in refused] == [(400, INVALID_VALUE)] * len(
        UNMASKABLE_VALUES
    )


def test_a_raw_value_without_blanks_can_be_masked(project, as_maintainer):
    def masked(value):
        sent = {
            "key": f"KEY_{len(list_variables(as_maintainer, project))}",
            "value": value,
            "masked": True,
            "raw": True,
        }
        return as_maintainer.post(variables(project), json=sent).status_code

    assert [masked("HelloWorld%#^$'"), masked("ünïcödé!")] == [201, 201]
    assert [masked("1234567"), masked("hello world"), masked("helloworld\n"), masked("")] == [400, 400, 400, 400]


# Hidden variables


def test_a_hidden_value_is_in_no_response(project, as_maintainer):
    sent = {"key": "FOO", "value": "never-to-be-seen", "masked_and_hidden": True}

    responses = [
        as_maintainer.post(variables(project), json=sent),
        as_maintainer.get(variables(project, "FOO")),
        as_maintainer.get(variables(project)),
        as_maintainer.put(variables(project, "FOO"), json={"protected": True}),
        as_maintainer.put(variables(project, "FOO"), json={"value": "never-to-be-seen-2"}),
        as_maintainer.put(variables(project, "FOO"), json={"value": "never to be seen 3"}),
        as_maintainer.post(variables(project), json=sent),
    ]

    assert [response.status_code for response in responses] == [201, 200, 200, 200, 200, 400, 400]
    assert "never" not in "".join(response.text for response in responses)
    assert {"hidden": True, "masked": True, "value": None}.items() <= responses[1].json.items()


def test_a_hidden_value_is_stored(project, store, app):
    store("FOO", "never-to-be-seen", masked_and_hidden=True, masked=False)

    stored = db.session.execute(text("SELECT masked, hidden, value FROM variables")).one()

    assert (bool(stored.masked), bool(stored.hidden)) == (True, True)
    assert stored.value


def test_a_hidden_variable_stays_hidden(project, store, as_maintainer):
    store("FOO", "never-to-be-seen", masked_and_hidden=True)

    response = as_maintainer.put(variables(project, "FOO"), json={"masked": False, "protected": True})

    text_ = "The visibility setting cannot be changed for masked and hidden variables."
    assert (response.status_code, response.json) == (400, {"message": {"base": [text_]}})
    shown = as_maintainer.get(variables(project, "FOO")).json
    assert (shown["masked"], shown["hidden"], shown["protected"], shown["value"]) == (True, True, False, None)


def test_an_update_cannot_hide_a_variable(project, store, as_maintainer):
    store("FOO", "helloworld")

    for fields in ({"hidden": True}, {"masked_and_hidden": True}, {"masked": True}):
        response = as_maintainer.put(variables(project, "FOO"), json=fields)
        assert (response.status_code, response.json["hidden"], response.json["value"]) == (200, False, "helloworld")


def test_an_update_cannot_reveal_a_hidden_variable(project, store, as_maintainer):
    store("FOO", "never-to-be-seen", masked_and_hidden=True)

    response = as_maintainer.put(variables(project, "FOO"), json={"hidden": False, "masked_and_hidden": False})

    assert (response.status_code, response.json["hidden"], response.json["value"]) == (200, True, None)


# Update


def test_an_update_is_returned_and_stored(project, store, as_maintainer):
    store("FOO", "old")
    changes = {"variable_type": "file", "value": "new", "protected": True, "raw": True, "description": "text"}

    response = as_maintainer.put(variables(project, "FOO"), json=changes)

    assert response.status_code == 200
    assert changes.items() <= response.json.items()
    assert as_maintainer.get(variables(project, "FOO")).json == response.json


def test_an_update_changes_only_the_sent_fields(project, store, as_maintainer):
    stored = store(
        "FOO", "helloworld", variable_type="file", protected=True, environment_scope="prod", description="text"
    )

    for fields, changes in (
        ({}, {}),
        ({"colour": "blue"}, {}),
        ({"variable_type": None}, {}),
        ({"masked": True}, {"masked": True}),
        ({"value": "something-else"}, {"value": "something-else"}),
        ({"masked": "false"}, {"masked": False}),
        ({"value": None}, {"value": None}),
        ({"value": ""}, {"value": ""}),
        ({"protected": ""}, {"protected": False}),
        ({"variable_type": "env_var"}, {"variable_type": "env_var"}),
        ({"environment_scope": " staging "}, {"environment_scope": "staging"}),
        ({"description": None}, {"description": None}),
    ):
        stored |= changes
        response = as_maintainer.put(variables(project, "FOO"), json=fields)
        assert (response.status_code, response.json) == (200, stored), fields

    assert list_variables(as_maintainer, project) == [stored]


def test_an_update_cannot_change_the_key(project, store, as_maintainer):
    store("FOO")

    response = as_maintainer.put(variables(project, "FOO"), json={"key": "BAR", "value": "new"})

    assert (response.json["key"], response.json["value"]) == ("FOO", "new")


def test_a_key_in_the_query_is_ignored(project, store, as_maintainer):
    store("FOO")

    response = as_maintainer.get(variables(project, "FOO"), query_string={"key": "BAR"})

    assert response.json["key"] == "FOO"


@pytest.mark.parametrize(
    "options",
    [
        {"json": {"value": "new", "filter": {"environment_scope": "production"}}},
        {"data": {"value": "new", "filter[environment_scope]": "production"}},
        {"query_string": {"value": "new", "filter[environment_scope]": "production"}},
        {"json": {"value": "new"}, "query_string": {"filter[environment_scope]": "production"}},
    ],
)
def test_an_update_changes_only_the_filtered_variable(options, project, store, as_maintainer):
    store("FOO", "one", environment_scope="staging")
    store("FOO", "two", environment_scope="production")

    response = as_maintainer.put(variables(project, "FOO"), **options)

    assert (response.status_code, response.json["environment_scope"]) == (200, "production")
    assert [entry["value"] for entry in list_variables(as_maintainer, project)] == ["one", "new"]


def test_the_filter_selects_and_the_parameter_sets_the_scope(project, store, as_maintainer):
    store("FOO", environment_scope="staging")
    store("FOO", environment_scope="production")

    changes = {"environment_scope": "qa", "filter": {"environment_scope": "staging"}}
    response = as_maintainer.put(variables(project, "FOO"), json=changes)

    assert response.json["environment_scope"] == "qa"
    assert [entry["environment_scope"] for entry in list_variables(as_maintainer, project)] == ["qa", "production"]


REFUSED_CHANGES = [
    ({"environment_scope": "taken"}, {"message": {"key": ["(FOO) has already been taken"]}}),
    ({"environment_scope": "!"}, {"message": {"environment_scope": [SCOPE_CHARACTERS]}}),
    ({"environment_scope": None}, {"message": {"environment_scope": ["can't be blank", SCOPE_CHARACTERS]}}),
    ({"value": "unfit value"}, INVALID_VALUE),
    ({"value": None}, INVALID_VALUE),
    ({"raw": False}, INVALID_VALUE),
    ({"masked": ""}, {"message": {"masked": ["is not included in the list"]}}),
    ({"masked": "maybe"}, {"error": "masked is invalid"}),
    ({"value": ["new"]}, {"error": "value is invalid"}),
    ({"variable_type": "secret"}, {"error": "variable_type does not have a valid value"}),
    ({"description": "d" * 256}, {"message": {"description": ["is too long (maximum is 255 characters)"]}}),
]


def test_a_refused_update_changes_nothing(project, store, as_maintainer):
    store("FOO", environment_scope="taken")
    before = store("FOO", "hello$world", masked=True, raw=True, environment_scope="mine")
    also = {"protected": True, "filter": {"environment_scope": "mine"}}

    responses = [as_maintainer.put(variables(project, "FOO"), json=also | changes) for changes, _ in REFUSED_CHANGES]

    assert [response.json for response in responses] == [body for _, body in REFUSED_CHANGES]
    assert {response.status_code for response in responses} == {400}
    assert as_maintainer.get(variables(project, "FOO"), query_string=scope_filter("mine")).json == before


def test_an_existing_unsuitable_value_cannot_be_masked(project, store, as_maintainer):
    store("FOO", "short")

    without_value = as_maintainer.put(variables(project, "FOO"), json={"masked": True})
    with_value = as_maintainer.put(variables(project, "FOO"), json={"masked": True, "value": "long enough?"})
    with_maskable_value = as_maintainer.put(variables(project, "FOO"), json={"masked": True, "value": "long_enough"})

    assert (without_value.json, with_value.json, with_maskable_value.status_code) == (INVALID_VALUE, INVALID_VALUE, 200)


@pytest.mark.both_databases
def test_of_concurrent_moves_into_one_scope_one_succeeds(project, people, store, client_of):
    for number in range(8):
        store("FOO", f"v{number}", environment_scope=f"scope-{number}")
    path = variables(project, "FOO")
    barrier = threading.Barrier(8)

    def move(number):
        client = clients[number]
        barrier.wait()
        changes = {"environment_scope": "goal", "filter": {"environment_scope": f"scope-{number}"}}
        return send(client, "PUT", path, changes).status_code

    clients = [client_of(people[MAX]) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        statuses = list(threads.map(move, range(8)))

    assert Counter(statuses) == {200: 1, 400: 7}


@pytest.mark.both_databases
def test_updating_a_concurrently_deleted_variable_is_not_found(project, store, as_maintainer, monkeypatch):
    def delete_first(variable):
        db.session.execute(text("DELETE FROM variables"))

    store("FOO")
    monkeypatch.setattr("project_service.areas.variables.service.check", delete_first)

    response = as_maintainer.put(variables(project, "FOO"), json={"value": "new"})

    assert (response.status_code, response.json) == (404, {"message": "404 Not found"})
    assert len(list_variables(as_maintainer, project)) == 1  # the failed request changed nothing


@pytest.mark.both_databases
def test_concurrent_updates_and_deletions_do_not_fail(project, people, store, client_of):
    path = variables(project, "FOO")

    def act(number):
        client = clients[number]
        barrier.wait()
        fields = {"key": "FOO", "value": f"v{number}", "protected": bool(number % 2)}
        turns = [("PUT", path), ("DELETE", path), ("POST", variables(project))] * 6
        return {send(client, method, address, fields).status_code for method, address in turns[number:]}

    store("FOO")
    clients = [client_of(people[MAX]) for _ in range(6)]
    barrier = threading.Barrier(6)
    with ThreadPoolExecutor(6) as threads:
        statuses = set().union(*threads.map(act, range(6)))

    assert statuses <= {200, 201, 204, 400, 404}


# Delete


def test_a_deleted_variable_is_gone(project, store, as_maintainer):
    store("FOO")
    store("BAR")

    response = as_maintainer.delete(variables(project, "FOO"), headers={"If-Unmodified-Since": "1 Jan 1990 00:00 GMT"})
    again = as_maintainer.delete(variables(project, "FOO"))

    assert (response.status_code, response.data, response.content_type) == (204, b"", None)
    assert (again.status_code, again.json) == (404, MISSING)
    assert [entry["key"] for entry in list_variables(as_maintainer, project)] == ["BAR"]


@pytest.mark.parametrize(
    "options",
    [
        {"query_string": scope_filter("production")},
        {"json": {"filter": {"environment_scope": "production"}}},
        {"data": scope_filter("production")},
    ],
)
def test_a_filtered_deletion_keeps_other_scopes(options, project, store, as_maintainer):
    store("FOO", environment_scope="staging")
    store("FOO", environment_scope="production")

    assert as_maintainer.delete(variables(project, "FOO"), **options).status_code == 204

    assert [entry["environment_scope"] for entry in list_variables(as_maintainer, project)] == ["staging"]


@pytest.mark.both_databases
def test_variables_are_removed_with_their_project(project, store, as_admin, run_jobs):
    store("FOO")

    response = as_admin.delete(f"/projects/{project.id}")
    run_jobs()

    assert response.status_code == 202
    assert db.session.scalar(text("SELECT count(*) FROM variables")) == 0


def test_changing_variables_does_not_update_the_project(project, store, as_maintainer):
    before = as_maintainer.get(f"/projects/{project.id}").json

    store("FOO")
    as_maintainer.put(variables(project, "FOO"), json={"value": "new"})
    as_maintainer.delete(variables(project, "FOO"))

    assert as_maintainer.get(f"/projects/{project.id}").json == before


# At rest and in the log


@pytest.mark.both_databases
def test_values_are_encrypted_at_rest(project, store, app):
    store("FOO", "plain-text-to-look-for")

    rows = db.session.execute(text("SELECT * FROM variables")).mappings().all()

    assert len(rows) == 1
    assert "plain-text-to-look-for" not in str(rows)
    assert key_ring.keyring().decrypt(rows[0]["value"]) == "plain-text-to-look-for"


def test_the_same_value_looks_different_each_time(project, store, app):
    store("ONE", "same value")
    store("TWO", "same value")

    stored = db.session.execute(text("SELECT value FROM variables")).scalars().all()

    assert len(set(stored)) == 2


@pytest.fixture
def log(capfd):
    """Returns a function that reads the lines logged so far."""
    lines = []

    def read():
        lines.extend(capfd.readouterr().err.splitlines())
        return lines

    return read


def test_values_never_reach_the_log(project, store, as_maintainer, log):
    store("FOO", "plain-text-to-look-for")
    as_maintainer.put(variables(project, "FOO"), query_string={"value": "plain-text-to-look-for-2"})
    as_maintainer.post(variables(project), json={"key": "!", "value": "plain-text-to-look-for-3"})

    assert [json.loads(line)["status"] for line in log()] == [201, 200, 400]
    assert "plain-text" not in str(log())


def test_a_failed_write_does_not_log_the_value(project, store, as_maintainer, log, monkeypatch):
    def fail(*_):
        raise LookupError("the key has gone")

    store("FOO", "old")
    monkeypatch.setattr("project_service.kit.security.key_ring.KeyRing.encrypt", fail)

    response = as_maintainer.put(variables(project, "FOO"), json={"value": "plain-text-to-look-for"})

    assert response.status_code == 500
    assert "the key has gone" in str(log())
    assert "plain-text" not in str(log()) + response.text
