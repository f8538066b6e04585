"""Recording and removal of events."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import select

from project_service.domain.events.models import Action, Event
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.areas.activity.support import change, make_issue, of_project, own
from tests.support.sample_data import (
    DEV,
    GUS,
    MAX,
    OLIVE,
    RITA,
    SAM,
    reload,
)


@pytest.mark.both_databases
def test_the_events_of_an_issue_are_removed_with_it(people, project, as_):
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid, remaining_iid = (dev.post(issues, json={"title": title}).json["iid"] for title in ("gone", "kept"))
    dev.post(f"{issues}/{iid}/notes", json={"body": "a word"})
    dev.put(f"{issues}/{iid}", json={"state_event": "close"})

    as_(OLIVE).delete(f"{issues}/{iid}")

    assert [(event["action_name"], event["target_iid"]) for event in dev.get(own()).json] == [("opened", remaining_iid)]


@pytest.mark.both_databases
def test_the_event_of_a_note_is_removed_with_it(people, project, as_):
    dev, issues = as_(DEV), f"/projects/{project.id}/issues"
    iid = dev.post(issues, json={"title": "kept"}).json["iid"]
    note = dev.post(f"{issues}/{iid}/notes", json={"body": "a word"}).json

    dev.delete(f"{issues}/{iid}/notes/{note['id']}")

    assert [event["action_name"] for event in dev.get(own()).json] == ["opened"]


def test_the_events_of_a_deleted_milestone_stay_without_a_target(people, project, as_):
    dev, milestones = as_(DEV), f"/projects/{project.id}/milestones"
    number = dev.post(milestones, json={"title": "1.0"}).json["id"]
    dev.put(f"{milestones}/{number}", json={"state_event": "close"})

    dev.delete(f"{milestones}/{number}")

    events = as_(GUS).get(of_project(project)).json
    assert [event["action_name"] for event in events] == ["destroyed", "closed", "opened"]
    assert {event["target_type"] for event in events} == {"Milestone"}
    assert {(event["target_id"], event["target_iid"], event["target_title"]) for event in events} == {(None,) * 3}


def new_events(act):
    """Return the recorded action, target and author."""
    db.session.remove()
    known_ids = set(db.session.scalars(select(Event.id)))
    db.session.remove()
    act()
    added = db.session.scalars(select(Event).where(Event.id.not_in(known_ids)).order_by(Event.id))
    return [(Action(event.action).name.lower(), event.target_type, event.author.username) for event in added]


@pytest.fixture
def send_as(people, project, as_):
    """Send a successful request of a user to a path of the project."""
    path_values = {
        "issue": as_(GUS).post(f"/projects/{project.id}/issues", json={"title": "Wrong"}).json["iid"],
        "milestone": as_(DEV).post(f"/projects/{project.id}/milestones", json={"title": "1.0"}).json["id"],
        "dev": people[DEV].id,
        "sam": people[SAM].id,
        "group": project.namespace_id,
    }
    path = f"/projects/{project.id}/issues/{path_values['issue']}/notes"
    path_values["note"] = as_(GUS).post(path, json={"body": "a word"}).json["id"]

    def send_request(person, method, path, **fields):
        root = "" if path.startswith("/") else f"/projects/{project.id}/"
        response = as_(person).open(method, root + path.format(**path_values), json=fields)
        assert response.status_code < 300, response.json

    return send_request


@pytest.mark.parametrize(
    ("requests", "recorded"),
    [
        ([(GUS, "POST", "issues", {"title": "x"})], [("created", "Issue", GUS)]),
        ([(DEV, "PUT", "issues/{issue}", {"state_event": "close"})], [("closed", "Issue", DEV)]),
        (
            [
                (DEV, "PUT", "issues/{issue}", {"state_event": state})
                for state in ("close", "close", "reopen", "reopen")
            ],
            [("closed", "Issue", DEV), ("reopened", "Issue", DEV)],
        ),
        ([(RITA, "PUT", "issues/{issue}", {"title": "y", "labels": "a", "description": "z", "weight": 3})], []),
        ([(RITA, "PUT", "issues/{issue}", {"confidential": True})], []),
        ([(RITA, "PUT", "issues/{issue}", {"assignee_ids": [1], "due_date": "2030-01-01"})], []),
        ([(OLIVE, "DELETE", "issues/{issue}", {})], []),
        ([(RITA, "POST", "issues/{issue}/notes", {"body": "x"})], [("commented", "Note", RITA)]),
        ([(RITA, "POST", "issues/{issue}/notes", {"body": "x", "internal": True})], [("commented", "Note", RITA)]),
        ([(GUS, "PUT", "issues/{issue}/notes/{note}", {"body": "y"})], []),
        ([(GUS, "DELETE", "issues/{issue}/notes/{note}", {})], []),
        ([(DEV, "POST", "milestones", {"title": "2.0"})], [("created", "Milestone", DEV)]),
        (
            [
                (MAX, "PUT", "milestones/{milestone}", {"state_event": state})
                for state in ("close", "close", "activate")
            ],
            [("closed", "Milestone", MAX), ("reopened", "Milestone", MAX)],
        ),
        ([(DEV, "PUT", "milestones/{milestone}", {"title": "1.1", "due_date": "2030-01-01"})], []),
        ([(DEV, "DELETE", "milestones/{milestone}", {})], [("destroyed", "Milestone", DEV)]),
        ([(MAX, "POST", "members", {"user_id": "{sam}", "access_level": 30})], [("joined", None, SAM)]),
        ([(MAX, "PUT", "members/{dev}", {"access_level": 20})], []),
        ([(MAX, "DELETE", "members/{dev}", {})], [("left", None, DEV)]),
        ([(DEV, "DELETE", "members/{dev}", {})], [("left", None, DEV)]),
        ([(OLIVE, "POST", "/groups/{group}/members", {"user_id": "{sam}", "access_level": 30})], []),
        ([(OLIVE, "POST", "/projects", {"name": "fresh", "namespace_id": "{group}"})], [("created", None, OLIVE)]),
        ([(SAM, "POST", "/projects", {"name": "mine"})], [("created", None, SAM)]),
        ([(OLIVE, "POST", "archive", {}), (OLIVE, "POST", "unarchive", {})], []),
        ([(OLIVE, "PUT", "", {"description": "x", "visibility": "private"})], []),
        ([(MAX, "POST", "variables", {"key": "A", "value": "b"}), (MAX, "DELETE", "variables/A", {})], []),
        ([(MAX, "POST", "protected_tags", {"name": "v*"}), (MAX, "DELETE", "protected_tags/v*", {})], []),
    ],
)
def test_each_action_records_exactly_these_events(requests, recorded, people, project, send_as):
    numbers = {"{sam}": people[SAM].id, "{group}": project.namespace_id}

    def act():
        for person, method, path, fields in requests:
            send_as(person, method, path.rstrip("/"), **{name: numbers.get(str(v), v) for name, v in fields.items()})

    assert new_events(act) == recorded


def test_error_tracking_records_nothing(project, as_maintainer):
    responses = []

    def act():
        path = f"/projects/{project.id}/error_tracking/settings"
        responses.append(as_maintainer.patch(path, json={"active": True, "integrated": True}).status_code)

    assert new_events(act) == []
    assert responses != [401]


def test_a_system_note_records_no_event(people, project):
    issue = make_issue(project, people[DEV])

    def act():
        with unit_of_work():
            issue_rules.add_system_note(people[DEV], issue, "changed the title")

    assert new_events(act) == []
    assert db.session.scalars(select(Note.system)).all() == [True]


def test_refused_requests_record_no_event(project, as_):
    def act():
        as_(DEV).post(f"/projects/{project.id}/issues", json={"title": ""})
        as_(GUS).post(f"/projects/{project.id}/milestones", json={"title": "x"})
        as_(MAX).post(f"/projects/{project.id}/members", json={"user_id": 99999, "access_level": 30})

    assert new_events(act) == []


@pytest.mark.both_databases
@pytest.mark.parametrize(("age", "moves"), [(dt.timedelta(minutes=59), False), (dt.timedelta(minutes=61), True)])
def test_the_last_activity_of_a_project_is_updated_once_an_hour(age, moves, project, as_):
    before = clock.now() - age
    change(project, last_activity_at=before)

    as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "x"})

    assert (reload(project).last_activity_at != before) is moves
