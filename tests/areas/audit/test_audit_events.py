"""The API of audit events: permissions, filters, retention; events cannot be changed."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import update
from sqlalchemy.exc import DatabaseError

from project_service.areas.audit.jobs import prune_audit_events
from project_service.domain import instance_settings
from project_service.domain.audit import recording
from project_service.domain.audit.models import AuditEvent
from project_service.domain.audit.recording import INSTANCE_TYPE
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import ADA, DEV, MAX, NOBODY, OLIVE, SAM


def add_event(entity=None, days_ago=0, message="Something happened"):
    with unit_of_work():
        event = recording.record("test", entity, message)
        event.created_at = clock.now() - dt.timedelta(days=days_ago)
    return event


def test_an_event_has_the_documented_keys(as_, project, people):
    as_(MAX).post(f"/projects/{project.id}/protected_tags", json={"name": "v*"}, headers={"X-Forwarded-For": "1.2.3.4"})

    [event] = as_(OLIVE).get(f"/projects/{project.id}/audit_events").json

    assert list(event) == ["id", "author_id", "entity_id", "entity_type", "details", "created_at"]
    assert (event["author_id"], event["entity_type"], event["entity_id"]) == (people[MAX].id, "Project", project.id)
    details = event["details"]
    assert (details["custom_message"], details["author_name"]) == ("Added protected tag v*", "Max")
    assert (details["target_type"], details["target_details"]) == ("ProtectedTag", "v*")
    assert (details["entity_path"], details["ip_address"]) == ("acme/shop", "127.0.0.1")


def test_an_administrator_who_acts_as_another_user_is_named(as_, client_of, project, people):
    client = client_of(people[ADA], "api", "sudo")
    client.post(f"/projects/{project.id}/protected_tags", json={"name": "v*"}, headers={"Sudo": "max"})

    [event] = as_(ADA).get("/audit_events").json

    assert (event["author_id"], event["details"]["author_name"]) == (people[MAX].id, "Max (by ada)")


@pytest.mark.parametrize(("person", "status"), [(ADA, 200), (OLIVE, 403), (NOBODY, 401)])
def test_roles_that_read_the_events_of_the_instance(person, status, as_, project):
    event = add_event(project)

    assert as_(person).get("/audit_events").status_code == status
    assert as_(person).get(f"/audit_events/{event.id}").status_code == status


@pytest.mark.parametrize(
    ("person", "of_project", "of_group"), [(OLIVE, 200, 200), (MAX, 403, 403), (DEV, 403, 403), (SAM, 404, 404)]
)
def test_roles_that_read_the_events_of_a_project_or_group(person, of_project, of_group, as_, project, group):
    client = as_(person)

    assert client.get(f"/projects/{project.id}/audit_events").status_code == of_project
    assert client.get(f"/groups/{group.id}/audit_events").status_code == of_group


def test_an_event_is_found_only_in_its_project_or_group(as_, project, group):
    event = add_event(project)
    owner = as_(OLIVE)

    assert owner.get(f"/projects/{project.id}/audit_events/{event.id}").json["id"] == event.id
    response = owner.get(f"/groups/{group.id}/audit_events/{event.id}")
    assert (response.status_code, response.json) == (404, {"message": "404 Audit Event Not Found"})


def test_filters(as_admin, project, group):
    old, of_group, of_instance = add_event(project, days_ago=9), add_event(group, days_ago=5), add_event()

    def ids(query):
        return [event["id"] for event in as_admin.get(f"/audit_events?{query}").json]

    day = (clock.now() - dt.timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert ids("") == [of_instance.id, of_group.id, old.id]
    assert ids(f"created_after={day}") == [of_instance.id, of_group.id]
    assert ids(f"created_before={day}") == [old.id]
    assert ids(f"entity_type={INSTANCE_TYPE}") == [of_instance.id]
    assert ids(f"entity_type=Group&entity_id={group.id}") == [of_group.id]
    assert ids("entity_type=Project&entity_id=0") == []


@pytest.mark.parametrize(
    ("query", "text"),
    [("entity_id=1", "entity_type is missing"), ("entity_type=Milk", "entity_type does not have a valid value")],
)
def test_wrong_filters_are_refused(query, text, as_admin):
    response = as_admin.get(f"/audit_events?{query}")

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.both_databases
def test_the_database_refuses_to_change_an_event(app, project):
    event = add_event(project)

    with pytest.raises(DatabaseError, match="audit events cannot be changed"):
        db.session.execute(update(AuditEvent).where(AuditEvent.id == event.id).values(author_id=7))


@pytest.mark.both_databases
def test_events_are_removed_after_the_retention_time(app, project):
    recent, _ = add_event(project, days_ago=364), add_event(project, days_ago=366)

    prune_audit_events()

    assert list(db.session.scalars(db.select(AuditEvent.id))) == [recent.id]


def test_a_retention_of_zero_days_keeps_all_events(app, project):
    add_event(project, days_ago=5000)
    with unit_of_work():
        instance_settings.change_settings({"audit_event_retention_days": 0})

    prune_audit_events()

    assert db.session.scalar(db.select(db.func.count()).select_from(AuditEvent)) == 1


def test_a_failed_action_leaves_no_event(as_, project):
    for _ in range(2):
        as_(MAX).post(f"/projects/{project.id}/protected_tags", json={"name": "v*"})

    assert len(as_(OLIVE).get(f"/projects/{project.id}/audit_events").json) == 1
