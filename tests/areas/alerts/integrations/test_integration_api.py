"""The API of alert integrations."""

from __future__ import annotations

import json

import pytest

from project_service.areas.alerts.models import OPSGENIE, Alert
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM

SAMPLE = {"event": {"name": "Disk is full", "grade": "P2", "hosts": ["db1"]}}
MAPPINGS = [{"field_name": "title", "path": ["event", "name"]}, {"field_name": "severity", "path": ["event", "grade"]}]


@pytest.fixture
def path(project):
    return f"/projects/{project.id}/alert_integrations"


@pytest.fixture
def create(as_, path):
    """Create an integration, by default an HTTP endpoint."""

    def made(**fields):
        return as_(MAX).post(path, json={"name": "Monitor"} | fields)

    return made


def receive(app, integration, payload, key):
    address = integration["url"].removeprefix("http://localhost")
    return app.test_client().post(address, json=payload, headers={"Authorization": f"Bearer {key}"})


def test_a_created_integration_receives_and_maps(create, app, as_, project):
    made = create(
        payload_example=SAMPLE, payload_attribute_mappings=MAPPINGS, severity_mapping={"P2": "high", "*": "low"}
    )

    assert made.status_code == 201
    assert receive(app, made.json, SAMPLE, made.json["token"]).status_code < 300
    [alert] = as_(DEV).get(f"/projects/{project.id}/alert_management_alerts").json
    assert (alert["title"], alert["severity"], alert["integration_id"]) == ("Disk is full", "high", made.json["id"])


def test_an_integration_has_the_fields_of_graphql_but_no_key(create, as_, path, project):
    made = create(payload_example=json.dumps(SAMPLE), payload_attribute_mappings=MAPPINGS[:1]).json

    shown = as_(MAX).get(f"{path}/{made['id']}").json

    assert made.pop("token")
    assert made == shown
    assert {name: shown[name] for name in shown if name not in ("id", "url", "created_at", "updated_at")} == {
        "type": "http",
        "name": "Monitor",
        "active": True,
        "target_url": None,
        "preset": None,
        "payload_example": json.dumps(SAMPLE),
        "payload_attribute_mappings": [
            {"field_name": "title", "path": ["event", "name"], "type": "string", "label": "event/name"}
        ],
        "severity_mapping": None,
        "resolved_values": None,
        "time_zone": None,
    }
    assert shown["url"].startswith(f"http://localhost/{project.full_path}/alerts/notify/monitor/")
    assert as_(MAX).get(path).json == [shown]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"preset": "grafana", "name": ""}, ("http", "Grafana", "grafana")),
        ({"type": "prometheus", "name": None}, ("prometheus", "Prometheus", "alertmanager")),
        ({"preset": "alertmanager"}, ("prometheus", "Monitor", "alertmanager")),
    ],
)
def test_tools_bring_type_name_and_preset(fields, expected, create):
    made = create(**fields).json

    assert (made["type"], made["name"], made["preset"]) == expected


def test_a_tool_that_sends_to_the_other_address_is_refused_with_what_to_do(create, as_, path):
    wrong = create(type="prometheus", preset="grafana")
    stored = create(preset="grafana").json["id"]
    changed = as_(MAX).put(f"{path}/{stored}", json={"preset": "alertmanager"})

    assert [(one.status_code, one.json["message"]["preset"]) for one in (wrong, changed)] == [
        (400, ["sends to the address of type http, not of prometheus: leave the type out, or choose http"]),
        (
            400,
            ["sends to the address of type prometheus, not of http: the type of an integration stays, add another one"],
        ),
    ]


@pytest.mark.parametrize(
    ("fields", "parameter"),
    [
        ({"name": " "}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"type": "smoke"}, "type"),
        ({"preset": "smoke"}, "preset"),
        ({"type": "prometheus", "preset": "grafana"}, "preset"),
        ({"payload_example": "{"}, "payload_example"),
        ({"payload_example": "[]"}, "payload_example"),
        ({"payload_attribute_mappings": MAPPINGS}, "payload_attribute_mappings"),
        ({"payload_example": SAMPLE, "payload_attribute_mappings": [MAPPINGS[0]] * 2}, "payload_attribute_mappings"),
        (
            {"payload_example": SAMPLE, "payload_attribute_mappings": [{"field_name": "title", "path": ["event"]}]},
            "payload_attribute_mappings",
        ),
        ({"payload_attribute_mappings": [{"field_name": "colour", "path": ["a"]}]}, "payload_attribute_mappings"),
        ({"payload_attribute_mappings": [{"field_name": "title", "path": "a"}]}, "payload_attribute_mappings"),
        ({"payload_attribute_mappings": "title"}, "payload_attribute_mappings"),
        ({"severity_mapping": {"P1": "urgent"}}, "severity_mapping"),
        ({"severity_mapping": {"P1": ["high"]}}, "severity_mapping"),
        ({"severity_mapping": {"x" * 101: "high"}}, "severity_mapping"),
        ({"severity_mapping": {str(number): "high" for number in range(201)}}, "severity_mapping"),
        ({"resolved_values": ["x" * 101]}, "resolved_values"),
        ({"time_zone": "Atlantis"}, "time_zone"),
        ({"type": OPSGENIE}, "target_url"),
        ({"type": OPSGENIE, "target_url": "https://app.opsgenie.com", "payload_example": SAMPLE}, "payload_example"),
    ],
)
def test_bad_fields_are_refused_by_name(fields, parameter, create, as_, path):
    refused = create(**fields)

    assert (refused.status_code, parameter in refused.text) == (400, True)
    assert as_(MAX).get(path).json == []


def test_only_given_fields_change(create, as_, path):
    made = create(
        payload_example=SAMPLE, payload_attribute_mappings=MAPPINGS, resolved_values=["UP ", "gone", "up"]
    ).json

    changed = as_(MAX).put(f"{path}/{made['id']}", json={"active": False, "time_zone": "Europe/Berlin"}).json
    cleared = (
        as_(MAX).put(f"{path}/{made['id']}", json={"resolved_values": None, "payload_attribute_mappings": []}).json
    )

    kept = {"name", "payload_example", "payload_attribute_mappings", "resolved_values", "url"}
    assert {name: changed[name] for name in kept} == {name: made[name] for name in kept}
    assert (made["resolved_values"], changed["active"], changed["time_zone"]) == (
        ["up", "gone"],
        False,
        "Europe/Berlin",
    )
    assert (cleared["resolved_values"], cleared["payload_attribute_mappings"]) == (None, [])
    assert cleared["payload_example"] == made["payload_example"]


def test_a_new_sample_has_to_have_the_mapped_fields(create, as_, path):
    made = create(payload_example=SAMPLE, payload_attribute_mappings=MAPPINGS).json

    refused = as_(MAX).put(f"{path}/{made['id']}", json={"payload_example": {"title": "x"}})

    assert (refused.status_code, list(refused.json["message"])) == (400, ["payload_attribute_mappings"])
    assert as_(MAX).get(f"{path}/{made['id']}").json["payload_example"] == made["payload_example"]


@pytest.mark.parametrize("fields", [{}, {"name": ""}, {"name": None}, {"type": "prometheus"}, {"active": "perhaps"}])
def test_bad_changes_are_refused(fields, create, as_, path):
    made = create().json

    assert as_(MAX).put(f"{path}/{made['id']}", json=fields).status_code == 400


def test_a_reset_key_replaces_the_old_one(create, as_, app, path):
    made = create().json

    reset = as_(MAX).post(f"{path}/{made['id']}/reset_key")

    assert reset.status_code == 200
    keys = (made["token"], reset.json["token"])
    assert [receive(app, made, {"title": "Down"}, key).status_code for key in keys] == [401, 200]


def test_developers_send_tests_and_see_what_became_of_them(create, as_, path):
    made = create(payload_example=SAMPLE, payload_attribute_mappings=MAPPINGS).json

    by_sample = as_(DEV).post(f"{path}/{made['id']}/test")
    own = as_(DEV).post(f"{path}/{made['id']}/test", json={"payload": {"title": "Own", "start_time": "2026-99-99"}})

    assert (by_sample.status_code, by_sample.json["alert_iids"], by_sample.json["unreadable_times"]) == (201, [1], {})
    assert own.json["alert_iids"] == [2]
    assert "start_time" in own.json["unreadable_times"]
    assert next(alert.title for alert in db.session.query(Alert).order_by(Alert.iid)) == "Disk is full"


@pytest.mark.parametrize(("active", "payload"), [(True, ""), (True, "[1]"), (False, '{"title": "x"}')])
def test_tests_that_cannot_be_sent_are_refused(active, payload, create, as_, path):
    made = create(active=active).json

    assert as_(DEV).post(f"{path}/{made['id']}/test", json={"payload": payload}).status_code == 400


def test_a_deleted_integration_is_gone(create, as_, path):
    made = create().json

    assert as_(MAX).delete(f"{path}/{made['id']}").status_code == 204
    assert as_(MAX).get(f"{path}/{made['id']}").status_code == 404


@pytest.mark.parametrize(("person", "status"), [(DEV, 403), (RITA, 403), (GUS, 403), (SAM, 404), (NOBODY, 401)])
def test_only_maintainers_configure(person, status, create, as_, path):
    one = f"{path}/{create().json['id']}"
    client = as_(person)

    responses = [client.get(path), client.get(one), client.post(path), client.put(one), client.delete(one)]

    assert [response.status_code for response in (*responses, client.post(f"{one}/reset_key"))] == [status] * 6


def test_integrations_of_another_project_are_not_found(create, as_, path):
    assert [as_(MAX).get(f"{path}/{number}").status_code for number in ("999", "x")] == [404] * 2
