"""Feature flags through HTTP (supporting resources reference, section 8)."""

from __future__ import annotations

import pytest

from project_service.domain.instance_settings import IMPORT_PROJECT_FROM_REMOTE_FILE, feature_enabled
from tests.support import sample_data
from tests.support.sample_data import ADA, DEV, MAX, NOBODY, OLIVE, SAM

OFF = {"key": "boolean", "value": False}
ON = {"key": "boolean", "value": True}


def flag(name, state, *gates):
    return {"name": name, "state": state, "gates": list(gates), "definition": None}


def set_feature(client, name, **fields):
    return client.post(f"/features/{name}", json=fields)


@pytest.mark.parametrize(
    ("method", "address"),
    [("GET", "/features"), ("GET", "/features/definitions"), ("POST", "/features/a"), ("DELETE", "/features/a")],
)
def test_only_administrators_see_and_set_features(method, address, as_):
    people = (OLIVE, MAX, SAM, NOBODY)

    statuses = [as_(person).open(method, address, json={}).status_code for person in people]

    assert statuses == [403, 403, 403, 401]


def test_a_read_only_token_cannot_set_features(people, client_of):
    client = client_of(people[ADA], "read_api")

    assert (client.get("/features").status_code, set_feature(client, "a", value="true").status_code) == (200, 403)


def test_initially_no_feature_is_set(as_admin):
    response = as_admin.get("/features")

    assert (response.status_code, response.json) == (200, [])


@pytest.mark.both_databases
def test_the_list_is_complete_and_ordered(as_admin):
    for number in range(25):
        set_feature(as_admin, f"flag_{number:02}", value="true")

    response = as_admin.get("/features")

    assert [entry["name"] for entry in response.json] == [f"flag_{number:02}" for number in range(25)]
    assert response.json[0] == flag("flag_00", "on", ON)
    assert "X-Total" not in response.headers


@pytest.mark.both_databases
def test_the_number_of_queries_does_not_grow_with_the_features(as_admin, count_queries):
    set_feature(as_admin, "first", value="true")
    with count_queries() as few:
        as_admin.get("/features")
    for number in range(10):
        set_feature(as_admin, f"flag_{number}", value="true")

    with count_queries() as many:
        as_admin.get("/features")

    assert len(many) == len(few)


def test_predefined_features_are_listed(as_admin):
    response = as_admin.get("/features/definitions")

    assert [entry["name"] for entry in response.json] == ["import_project_from_remote_file"]
    assert response.json[0]["default_enabled"] is False
    assert set(response.json[0]) == {
        "name",
        "introduced_by_url",
        "rollout_issue_url",
        "milestone",
        "type",
        "group",
        "default_enabled",
    }


VALID_VALUES = [
    ({"value": "true"}, "on", [ON]),
    ({"value": True}, "on", [ON]),
    ({"value": "false"}, "off", [OFF]),
    ({"value": False}, "off", [OFF]),
    ({"value": "0"}, "off", [OFF]),
    ({"value": 0}, "off", [OFF]),
    ({"value": "30"}, "conditional", [OFF, {"key": "percentage_of_time", "value": 30}]),
    ({"value": 30}, "conditional", [OFF, {"key": "percentage_of_time", "value": 30}]),
    (
        {"value": "30", "key": "percentage_of_time"},
        "conditional",
        [OFF, {"key": "percentage_of_time", "value": 30}],
    ),
    (
        {"value": "30", "key": "percentage_of_actors"},
        "conditional",
        [OFF, {"key": "percentage_of_actors", "value": 30}],
    ),
    ({"value": "true", "feature_group": "perf"}, "conditional", [OFF, {"key": "groups", "value": ["perf"]}]),
    ({"value": "true", "force": True, "colour": "blue"}, "on", [ON]),
]


def test_a_feature_is_set(as_admin):
    responses = [
        set_feature(as_admin, f"flag_{number:02}", **fields) for number, (fields, _, _) in enumerate(VALID_VALUES)
    ]

    expected = [flag(f"flag_{number:02}", state, *gates) for number, (_, state, gates) in enumerate(VALID_VALUES)]
    assert [response.json for response in responses] == expected
    assert {response.status_code for response in responses} == {201}
    assert as_admin.get("/features").json == expected


def test_a_feature_is_set_for_users_groups_and_projects(as_admin, people, group, project):
    actors = [f"User:{people[DEV].id}", f"User:{people[SAM].id}", f"Group:{group.id}", f"Project:{project.id}"]

    response = set_feature(as_admin, "my_feature", value="true", user="dev, SAM", group="acme", project="acme/shop")

    assert response.status_code == 201
    assert response.json == flag("my_feature", "conditional", OFF, {"key": "actors", "value": actors})


def test_an_actor_is_added_once_and_removed(as_admin, people):
    for _ in range(2):
        set_feature(as_admin, "my_feature", value="true", user="dev")
    both = set_feature(as_admin, "my_feature", value="true", user="sam")
    one = set_feature(as_admin, "my_feature", value="false", user="dev")
    none = set_feature(as_admin, "my_feature", value="false", user="sam")

    dev, sam = (f"User:{people[name].id}" for name in (DEV, SAM))
    assert both.json["gates"] == [OFF, {"key": "actors", "value": [dev, sam]}]
    assert one.json["gates"] == [OFF, {"key": "actors", "value": [sam]}]
    assert none.json == flag("my_feature", "off", OFF)


def test_switching_off_clears_all_conditions(as_admin):
    set_feature(as_admin, "my_feature", value="true", user="dev", feature_group="perf")
    set_feature(as_admin, "my_feature", value="50")

    response = set_feature(as_admin, "my_feature", value="false")

    assert response.json == flag("my_feature", "off", OFF)


def test_a_later_percentage_replaces_an_earlier_one(as_admin):
    set_feature(as_admin, "my_feature", value="50")

    response = set_feature(as_admin, "my_feature", value="60")

    assert response.json == flag("my_feature", "conditional", OFF, {"key": "percentage_of_time", "value": 60})


INVALID_VALUES = [
    ({}, {"error": "value is missing"}),
    ({"value": ["true"]}, {"error": "value is invalid"}),
    ({"value": "maybe"}, {"error": "value is invalid"}),
    ({"value": ""}, {"error": "value is invalid"}),
    ({"value": None}, {"error": "value is invalid"}),
    ({"value": "101"}, {"error": "value is invalid"}),
    ({"value": "-1"}, {"error": "value is invalid"}),
    ({"value": "٣"}, {"error": "value is invalid"}),
    ({"value": "30", "key": "percentage_of_people"}, {"error": "key does not have a valid value"}),
    (
        {"value": "true", "key": "percentage_of_actors", "user": "dev"},
        {"error": "key, user are mutually exclusive"},
    ),
    (
        {"value": "true", "key": "percentage_of_actors", "feature_group": "perf"},
        {"error": "key, feature_group are mutually exclusive"},
    ),
    (
        {"value": "true", "key": "percentage_of_time", "group": "acme"},
        {"error": "key, group are mutually exclusive"},
    ),
    (
        {"value": "true", "key": "percentage_of_time", "project": "acme/shop"},
        {"error": "key, project are mutually exclusive"},
    ),
    ({"value": "true", "user": "nobody"}, {"message": "400 Bad request - nobody is not found!"}),
    ({"value": "true", "group": "dev"}, {"message": "400 Bad request - dev is not found!"}),
    ({"value": "true", "project": "acme"}, {"message": "400 Bad request - acme is not found!"}),
]


def test_invalid_values_set_no_feature(as_admin):
    responses = [set_feature(as_admin, "my_feature", **fields) for fields, _ in INVALID_VALUES]

    assert [response.json for response in responses] == [body for _, body in INVALID_VALUES]
    assert {response.status_code for response in responses} == {400}
    assert as_admin.get("/features").json == []


def test_encoded_feature_names_are_accepted(as_admin):
    for address, name in (
        ("/features//import_project_from_remote_file", IMPORT_PROJECT_FROM_REMOTE_FILE),
        ("/features/my.feature-2", "my.feature-2"),
        ("/features/a%2Fb", "a/b"),
        ("/features/definitions", "definitions"),
    ):
        created = as_admin.post(address, json={"value": "True"})
        assert (created.status_code, created.json["name"], created.json["state"]) == (201, name, "on")
        assert as_admin.delete(address).status_code == 204

    assert as_admin.get("/features").json == []


def test_deleting_a_missing_feature_succeeds(as_admin):
    set_feature(as_admin, "my_feature", value="true", user="dev")
    set_feature(as_admin, "other", value="true")

    responses = [as_admin.delete("/features/my_feature") for _ in range(2)]

    assert [(response.status_code, response.data) for response in responses] == [(204, b"")] * 2
    assert [entry["name"] for entry in as_admin.get("/features").json] == ["other"]


def test_a_feature_applies_at_once(as_admin, app):
    before = feature_enabled(IMPORT_PROJECT_FROM_REMOTE_FILE)
    set_feature(as_admin, IMPORT_PROJECT_FROM_REMOTE_FILE, value="true")
    on = feature_enabled(IMPORT_PROJECT_FROM_REMOTE_FILE)
    set_feature(as_admin, IMPORT_PROJECT_FROM_REMOTE_FILE, value="false")

    assert (before, on, feature_enabled(IMPORT_PROJECT_FROM_REMOTE_FILE)) == (False, True, False)


def test_a_feature_applies_to_its_actors_only(as_admin, app, people):
    set_feature(as_admin, "my_feature", value="true", user="dev")

    assert feature_enabled("my_feature", f"User:{people[DEV].id}")
    assert not feature_enabled("my_feature", f"User:{people[SAM].id}")
    assert not feature_enabled("my_feature")


def test_a_percentage_of_actors_selects_a_stable_share_of_them(as_admin, app):
    actors = [f"User:{number}" for number in range(200)]
    set_feature(as_admin, "my_feature", value="30", key="percentage_of_actors")
    some = {actor for actor in actors if feature_enabled("my_feature", actor)}
    set_feature(as_admin, "my_feature", value="60", key="percentage_of_actors")
    more = {actor for actor in actors if feature_enabled("my_feature", actor)}

    assert some < more
    assert 30 < len(some) < 90
    assert 90 < len(more) < 150


def test_a_percentage_of_time_enables_the_feature_for_part_of_the_checks(as_admin, app):
    set_feature(as_admin, "never", value="0")
    set_feature(as_admin, "sometimes", value="50")
    set_feature(as_admin, "always", value="100")

    assert not any(feature_enabled("never") for _ in range(20))
    assert 0 < sum(feature_enabled("sometimes") for _ in range(60)) < 60
    assert all(feature_enabled("always") for _ in range(20))


def test_a_feature_of_a_group_being_removed_cannot_be_set(as_admin, group, run_jobs):
    other = sample_data.make_group("leaving")
    as_admin.delete(f"/groups/{other.id}")

    response = set_feature(as_admin, "my_feature", value="true", group="leaving")

    assert response.status_code == 400


@pytest.mark.both_databases
@pytest.mark.parametrize(("value", "gate"), [("30", {"key": "percentage_of_time", "value": 30})])
def test_a_percentage_with_an_actor_stays_a_percentage(value, gate, people, as_admin):
    response = as_admin.post("/features/shared", json={"value": value, "user": "dev"})

    assert (response.status_code, response.json["state"]) == (201, "conditional")
    assert gate in response.json["gates"]


def test_an_invalid_value_with_an_actor_changes_nothing(people, as_admin):
    as_admin.post("/features/mine", json={"value": "true", "user": "dev"})

    response = as_admin.post("/features/mine", json={"value": "banana", "user": "dev"})

    assert (response.status_code, response.json) == (400, {"error": "value is invalid"})
    assert as_admin.get("/features").json[0]["state"] == "conditional"


@pytest.mark.both_databases
@pytest.mark.parametrize("field", ["name", "feature_group"])
def test_feature_names_are_limited_to_the_size_of_an_index(field, as_admin):
    name = "x" * 256 if field == "name" else "sails"
    body = {"value": "true"} | ({} if field == "name" else {field: "x" * 256})

    response = as_admin.post(f"/features/{name}", json=body)

    refusal = {"message": {field: ["is too long (maximum is 255 characters)"]}}
    assert (response.status_code, response.json) == (400, refusal)
    assert as_admin.get("/features").json == []
