"""The API of alerts and their notes."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import update

from project_service.areas.alerts.alerts import listing
from project_service.areas.alerts.models import Alert, AlertIntegration, Severity, Status
from project_service.domain.access_levels import Role
from project_service.domain.projects import DISABLED
from project_service.domain.tracker.environments import Environment
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM, add_member, make_user
from tests.support.visitors import store

NOON = dt.datetime(2026, 3, 4, 12, tzinfo=dt.UTC)


@pytest.fixture
def alerts(project):
    """Three alerts, the newest first."""
    place = store(Environment(project_id=project.id, name="production", slug="production"))
    source = store(AlertIntegration(project_id=project.id, name="Nagios", endpoint_identifier="1f", token="t"))
    rows = (
        {
            "title": "Disk is full",
            "description": "No space left",
            "severity": Severity.HIGH,
            "service": "db",
            "monitoring_tool": "Nagios",
            "hosts": ["DB1.example.org", "db2"],
            "fingerprint": "a" * 40,
            "payload": {"title": "Disk is full", "labels": {"rack": 4, "rows": [1, 2]}, "runbook": "Call Ada"},
            "environment_id": place.id,
            "integration_id": source.id,
            "events": 3,
        },
        {"title": "Slow", "status": Status.ACKNOWLEDGED, "severity": Severity.LOW, "hosts": ["db"]},
        {"title": "Gone", "status": Status.RESOLVED, "ended_at": NOON},
    )
    times = (NOON - dt.timedelta(hours=hours) for hours in range(3))
    return [
        store(Alert(project_id=project.id, iid=iid, started_at=at, **row))
        for iid, (row, at) in enumerate(zip(rows, times, strict=True), start=1)
    ]


@pytest.fixture
def path(project, alerts):
    return f"/projects/{project.id}/alert_management_alerts"


@pytest.fixture
def developer(as_, people):
    return as_(DEV)


def iids(response):
    return [alert["iid"] for alert in response.json]


def notes(client, path):
    return [note["body"] for note in client.get(f"{path}/1/notes?sort=asc").json]


@pytest.mark.parametrize(
    ("query", "found", "newest_only"),
    [
        ("host=db1.example.org", [1], None),
        ("host=d", [3], "2"),
        ("search=lo", [2], "2"),
    ],
    ids=["indexed", "short host", "short word"],
)
def test_a_list_says_when_older_alerts_are_left_out(developer, path, query, found, newest_only, monkeypatch):
    monkeypatch.setattr(listing, "MAX_SCANNED_ALERTS", 2)
    with unit_of_work():
        db.session.execute(update(Alert).where(Alert.iid.in_([1, 3])).values(hosts=["d", "DB1.example.org"]))
        db.session.execute(update(Alert).where(Alert.iid == 3).values(hosts=["d"]))

    response = developer.get(f"{path}?{query}")

    assert (iids(response), response.headers.get("X-Newest-Only")) == (found, newest_only)


def test_an_alert_has_the_fields_of_graphql(developer, path, alerts, project):
    alert = developer.get(f"{path}/1").json

    page = f"http://localhost/{project.full_path}/-/alert_management/1/details"
    stored = db.session.get(Alert, alerts[0].id)
    assert {name: alert[name] for name in alert if name not in ("created_at", "updated_at")} == {
        "id": stored.id,
        "silence_id": None,
        "iid": 1,
        "project_id": project.id,
        "title": "Disk is full",
        "description": "No space left",
        "severity": "high",
        "status": "triggered",
        "service": "db",
        "monitoring_tool": "Nagios",
        "hosts": ["DB1.example.org", "db2"],
        "environment": {"id": stored.environment_id, "name": "production"},
        "integration_id": stored.integration_id,
        "started_at": "2026-03-04T12:00:00.000Z",
        "ended_at": None,
        "event_count": 3,
        "fingerprint": "a" * 40,
        "issue": None,
        "assignees": [],
        "details_url": page,
        "web_url": page,
        "runbook": "Call Ada",
        "details": {"title": "Disk is full", "labels.rack": 4, "labels.rows": [1, 2], "runbook": "Call Ada"},
    }


def test_a_list_leaves_out_payloads(developer, path):
    assert {"details", "runbook"}.isdisjoint(developer.get(path).json[0])


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", [1, 2, 3]),
        ("status=triggered", [1]),
        ("status[]=acknowledged&status[]=resolved", [2, 3]),
        ("status=triggered,resolved&sort=asc", [3, 1]),
        ("severity=low,high", [1, 2]),
        ("search=SPACE", [1]),
        ("host=db", [2]),
        ("host=db1.EXAMPLE.org", [1]),
        ("environment=production", [1]),
        ("environment=staging", []),
        ("assignee_username=max", []),
        ("started_after=2026-03-04T11:00:00Z", [1, 2]),
        ("started_before=2026-03-04T11:00:00Z", [2, 3]),
        ("updated_before=2020-01-01", []),
        ("updated_after=2020-01-01", [1, 2, 3]),
        ("order_by=event_count", [1, 3, 2]),
        ("order_by=severity", [3, 1, 2]),
        ("order_by=status&status=resolved,triggered", [1, 3]),
        ("order_by=created_at&sort=asc&per_page=2&page=2", [3]),
    ],
)
def test_the_list_is_filtered_and_ordered(query, expected, developer, path):
    assert iids(developer.get(f"{path}?{query}")) == expected


def test_the_list_is_filtered_by_integration_and_assignee(developer, path, alerts, people):
    integration = db.session.get(Alert, alerts[0].id).integration_id
    developer.put(f"{path}/2", json={"assignee_ids": [people[MAX].id]})

    found = [developer.get(f"{path}?{query}") for query in (f"integration_id={integration}", "assignee_username=MAX")]

    assert [iids(response) for response in found] == [[1], [2]]


@pytest.mark.parametrize(
    "query", ["status=open", "severity=P1", "order_by=iid", "started_after=soon", "integration_id=x"]
)
def test_unknown_words_are_refused(query, developer, path):
    assert developer.get(f"{path}?{query}").status_code == 400


@pytest.mark.parametrize(("person", "status"), [(RITA, 404), (GUS, 404), (SAM, 404), (NOBODY, 401)])
def test_only_developers_see_alerts(person, status, as_, path):
    assert [as_(person).get(address).status_code for address in (path, f"{path}/1", f"{path}/1/notes")] == [status] * 3


def test_a_resolved_alert_has_an_end_and_a_note(developer, path):
    alert = developer.put(f"{path}/1", json={"status": "resolved"}).json

    assert (alert["status"], alert["ended_at"] is not None) == ("resolved", True)
    assert notes(developer, path) == ["changed the status to **Resolved**"]


def test_only_the_first_assignee_counts(developer, path, people):
    both = developer.put(f"{path}/1", json={"assignee_ids": [people[MAX].id, people[DEV].id]})
    none = developer.put(f"{path}/1", json={"assignee_ids": []})

    assert [user["username"] for user in both.json["assignees"]] == [MAX]
    assert none.json["assignees"] == []
    assert notes(developer, path) == [f"assigned to @{MAX}", f"unassigned @{MAX}"]


@pytest.mark.parametrize("fields", [{}, {"status": "open"}, {"status": ""}, {"assignee_ids": ["x"]}])
def test_bad_changes_are_refused(fields, developer, path):
    assert developer.put(f"{path}/1", json=fields).status_code == 400


def test_an_assignee_has_to_see_alerts_and_nothing_else_is_changed_without(developer, path, people):
    refused = developer.put(f"{path}/1", json={"assignee_ids": [people[GUS].id], "status": "resolved"})

    assert (refused.status_code, refused.json) == (400, {"message": {"base": ["Assignee has no permissions"]}})
    assert developer.get(f"{path}/1").json["status"] == "triggered"


def test_an_alert_is_not_reopened_beside_its_open_twin(developer, path, project):
    store(
        Alert(project_id=project.id, iid=9, title="Old", status=2, ended_at=NOON, started_at=NOON, fingerprint="a" * 40)
    )

    refused = developer.put(f"{path}/9", json={"status": "triggered"})

    assert (refused.status_code, "alert #1" in refused.text) == (400, True)


def test_comments_have_their_author_and_alert(developer, path, alerts):
    note = developer.post(f"{path}/1/notes", json={"body": "Cleaning up"})

    assert note.status_code == 201
    assert (note.json["body"], note.json["author"]["username"], note.json["system"]) == ("Cleaning up", DEV, False)
    assert (note.json["noteable_type"], note.json["noteable_iid"]) == ("AlertManagement::Alert", 1)
    blank = developer.post(f"{path}/1/notes", json={"body": " "})
    assert (blank.status_code, blank.json) == (400, {"message": {"note": ["can't be blank"]}})


def test_comments_and_system_notes_are_filtered(developer, path):
    developer.put(f"{path}/1", json={"status": "acknowledged"})
    developer.post(f"{path}/1/notes", json={"body": "Cleaning up"})

    lists = (developer.get(f"{path}/1/notes?activity_filter={name}") for name in ("only_comments", "only_activity"))

    assert [[note["system"] for note in response.json] for response in lists] == [[False], [True]]


def test_an_incident_is_opened_once(developer, path):
    opened, again = (developer.post(f"{path}/1/issue") for _ in range(2))

    issue = opened.json["issue"]
    assert (opened.status_code, issue["title"], issue["state"]) == (201, "Disk is full", "opened")
    assert issue["web_url"].endswith(f"/-/issues/{issue['iid']}")
    assert (again.status_code, again.json) == (400, {"message": {"base": ["An issue already exists"]}})
    assert developer.get(path).json[0]["issue"] == issue


def test_an_incident_takes_the_right_to_create_issues(developer, path, project):
    with unit_of_work():
        project.issues_access_level = DISABLED

    assert developer.post(f"{path}/1/issue").status_code == 403


def test_unknown_alerts_are_not_found(developer, path):
    assert [developer.get(f"{path}/{iid}").status_code for iid in ("99", "x", "0")] == [404] * 3


def test_the_list_takes_as_many_statements_for_more_alerts(developer, path, alerts, project, people, count_queries):
    def read():
        with count_queries() as queries:
            assert developer.get(path).status_code == 200
        return len(queries)

    def fill(iid):
        assignee = make_user()
        add_member(project, assignee, Role.DEVELOPER)
        place = store(Environment(project_id=project.id, name=f"p{iid}", slug=f"p{iid}"))
        fields = {"environment_id": place.id, "assignee_id": assignee.id}
        store(Alert(project_id=project.id, iid=iid, title="More", started_at=NOON, **fields))
        developer.post(f"{path}/{iid}/issue")

    fill(10)
    few = read()
    for iid in range(11, 15):
        fill(iid)

    assert read() == few
