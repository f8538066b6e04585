"""Filters of the list of alerts, changes of many alerts, and the count of new ones."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from project_service.areas.alerts.alerts import bulk
from project_service.areas.alerts.models import TARGET, Alert, AlertIntegration, Severity, Status
from project_service.domain.todos import Todo
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, MAX, RITA, make_project, make_todo
from tests.support.visitors import store

LIST = "/acme/shop/-/alert_management"


@pytest.fixture
def developer(visit, project):
    return visit(DEV)


@pytest.fixture
def make_alert(project):
    """Store alerts of the shop, the newest first."""

    def make(iid, **fields):
        own = {"project_id": project.id, "iid": iid, "title": "Alert"}
        own |= {"started_at": clock.now() - dt.timedelta(minutes=iid)}
        return store(Alert(**own | fields))

    return make


def listed(page):
    return [int(iid) for iid in re.findall(r'/details">#(\d+) ', page.text)]


def states():
    db.session.remove()
    return {alert.iid: Status(alert.status).name for alert in db.session.query(Alert)}


def notes():
    found = db.session.query(Note, Alert).join(Alert, Alert.id == Note.noteable_id).filter(Note.noteable_type == TARGET)
    return sorted((alert.iid, note.body) for note, alert in found)


@pytest.mark.parametrize(
    ("query", "iids"),
    [
        ("severity=high", [1]),
        ("severity=nonsense", [1, 2, 3]),
        ("environment=production", [2]),
        ("host=web1", [3]),
        ("assignee_username=me", [2]),
        ("assignee_username=me&severity=high", []),
        ("integration_id=x", [1, 2, 3]),
    ],
)
def test_the_list_is_filtered(query, iids, developer, make_alert, project, people):
    place = store(Environment(project_id=project.id, name="production", slug="production"))
    make_alert(1, severity=Severity.HIGH)
    make_alert(2, environment_id=place.id, assignee_id=people[DEV].id)
    make_alert(3, hosts=["web1"])

    assert listed(developer.get(f"{LIST}?{query}")) == iids


def test_the_source_is_a_filter_and_a_column(developer, make_alert, project):
    source = store(AlertIntegration(project_id=project.id, name="Pingdom", endpoint_identifier="1f", token="t"))
    make_alert(1, integration_id=source.id)
    make_alert(2, monitoring_tool="Nagios")

    page, filtered = developer.get(LIST).text, developer.get(f"{LIST}?integration_id={source.id}")

    assert re.findall(r'<td data-label="Source">(\w*)</td>', page) == ["Pingdom", "Nagios"]
    assert listed(filtered) == [1]
    assert f'<option value="{source.id}" selected>Pingdom</option>' in filtered.text


@pytest.mark.both_databases
def test_the_status_of_selected_alerts_changes(developer, make_alert, people):
    for iid in (1, 2, 3):
        make_alert(iid)
    make_todo(make_alert(4), people[DEV])

    response = developer.send(LIST, alerts=["1", "3", "4"], status="resolved")

    assert (response.status_code, response.location) == (302, LIST)
    assert states() == {1: "RESOLVED", 2: "TRIGGERED", 3: "RESOLVED", 4: "RESOLVED"}
    assert notes() == [(iid, "changed the status to **Resolved**") for iid in (1, 3, 4)]
    assert [alert.ended_at is not None for alert in db.session.query(Alert).order_by(Alert.iid)] == [
        True,
        False,
        True,
        True,
    ]
    assert db.session.query(Todo).one().done_at is not None
    assert "3 alerts were changed." in developer.get(LIST).text


@pytest.mark.both_databases
def test_all_alerts_of_a_filter_are_assigned(developer, make_alert, people):
    make_alert(1, severity=Severity.HIGH, assignee_id=people[MAX].id)
    make_alert(2, severity=Severity.HIGH, assignee_id=people[DEV].id)
    make_alert(3, severity=Severity.LOW)
    make_alert(4, severity=Severity.HIGH, status=Status.RESOLVED, ended_at=clock.now())

    developer.send(f"{LIST}?severity=high&tab=open", all="1", assign_to="@me")

    db.session.remove()
    assert {alert.iid: alert.assignee_id for alert in db.session.query(Alert)} == {
        1: people[DEV].id,
        2: people[DEV].id,
        3: None,
        4: None,
    }
    assert notes() == [(1, "assigned to @dev and unassigned @max")]
    assert db.session.query(Todo).one().user_id == people[DEV].id


def test_nobody_unassigns(developer, make_alert, people):
    make_alert(1, assignee_id=people[MAX].id)

    developer.send(LIST, alerts="1", assign_to="nobody")

    assert notes() == [(1, "unassigned @max")]


@pytest.mark.both_databases
def test_of_one_identity_only_the_newest_is_opened_and_none_beside_an_open_one(developer, make_alert):
    resolved = {"status": Status.RESOLVED, "ended_at": clock.now()}
    for iid, fingerprint in enumerate("aabb", start=1):
        make_alert(iid, fingerprint=fingerprint * 40, **(resolved if iid < 4 else {}))
    make_alert(5, **resolved)

    response = developer.send(f"{LIST}?tab=all", all="1", status="triggered")

    assert states() == {1: "RESOLVED", 2: "TRIGGERED", 3: "RESOLVED", 4: "TRIGGERED", 5: "TRIGGERED"}
    assert "2 alerts were changed. 2 stay resolved" in developer.get(response.location).text


def test_a_large_change_is_cut_and_says_so(developer, make_alert, monkeypatch):
    monkeypatch.setattr(bulk, "MAX_ALERTS", 2)
    for iid in (1, 2, 3):
        make_alert(iid)

    developer.send(LIST, all="1", status="ignored")

    assert states() == {1: "TRIGGERED", 2: "IGNORED", 3: "IGNORED"}
    assert "At most 2 are changed at a time" in developer.get(LIST).text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"alerts": "1"}, "Choose a status or an assignee."),
        ({"alerts": "1", "status": "forgotten"}, "Invalid status"),
        ({"status": "resolved"}, "Select the alerts to change."),
        ({"alerts": "1", "status": "resolved", "assign_to": RITA}, "Assignee has no permissions"),
        ({"alerts": "1", "assign_to": "unknown"}, "Assignee has no permissions"),
    ],
)
def test_bad_changes_are_refused_and_change_nothing(fields, text, developer, make_alert):
    make_alert(1)

    response = developer.send(f"{LIST}?tab=all", **fields)

    assert (response.status_code, text in response.text, states()) == (422, True, {1: "TRIGGERED"})


def test_alerts_of_other_projects_are_not_changed(developer, make_alert, project):
    other = make_project("other", None)
    store(Alert(project_id=other.id, iid=7, title="Other", started_at=clock.now()))

    developer.send(LIST, alerts=["7", "x"], status="resolved")

    assert states() == {7: "TRIGGERED"}


def test_many_alerts_take_as_many_statements_as_two(developer, make_alert, count_queries):
    def change(iids, word):
        with count_queries() as queries:
            developer.send(LIST, alerts=[str(iid) for iid in iids], status=word, assign_to="me")
        return len(queries)

    for iid in range(1, 23):
        make_alert(iid)

    change([22], "resolved")  # the first request of a process also checks the key
    assert change(range(1, 3), "resolved") == change(range(3, 22), "resolved")


def test_new_alerts_of_the_same_list_are_counted(developer, make_alert):
    make_alert(1, severity=Severity.HIGH)
    page = developer.get(f"{LIST}?severity=high").text
    [address] = re.findall(r'data-counts="([^"]+)"', page)
    before = developer.get(address.replace("&amp;", "&")).json
    make_alert(2, severity=Severity.HIGH)
    make_alert(3, severity=Severity.LOW)
    make_alert(4, severity=Severity.HIGH, status=Status.RESOLVED, ended_at=clock.now())

    after = developer.get(address.replace("&amp;", "&")).json

    assert (before, after) == ({"count": 0, "is_more": False}, {"count": 1, "is_more": False})


def test_a_search_that_leaves_out_old_alerts_says_so(developer, make_alert, monkeypatch):
    monkeypatch.setattr("project_service.areas.alerts.alerts.listing.MAX_SCANNED_ALERTS", 2)
    for iid in (1, 2, 3):
        make_alert(iid, title="Disk")

    short, indexed = developer.get(f"{LIST}?search=sk"), developer.get(f"{LIST}?search=disk")

    assert (listed(short), "Only the newest 2 alerts were looked at" in short.text) == ([2, 3], True)
    assert (listed(indexed), "Only the newest" in indexed.text) == ([1, 2, 3], False)
