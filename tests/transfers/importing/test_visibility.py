"""A project is hidden until its import is complete."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from project_service.domain.events.models import Event
from project_service.kit.db.session import db
from project_service.transfers.importing import finalization
from tests.support.archives import send
from tests.support.sample_data import (
    MAX,
    OLIVE,
)
from tests.transfers.importing.support import Interrupted, again, full_archive

LISTS = (
    "/projects/{id}/issues",
    "/projects/{id}/milestones",
    "/projects/{id}/protected_tags",
    "/projects/{id}/events",
    "/events",
    "/users/{user}/events",
)


@pytest.mark.both_databases
def test_imported_rows_are_hidden_until_the_import_is_complete(as_, people, group, run_jobs, monkeypatch):
    client = as_(OLIVE)
    number = send(client, full_archive(), namespace="acme").json["id"]
    places = [place.format(id=number, user=people[OLIVE].id) for place in LISTS]
    before = [client.get(place) for place in places]
    original = finalization.finalize

    def stop(*_arguments):
        raise Interrupted

    monkeypatch.setattr(finalization, "finalize", stop)
    run_jobs()
    loaded = db.session.scalar(select(func.count()).select_from(Event).where(Event.target_type.is_not(None)))
    during = [client.get(place) for place in places]
    project = client.get(f"/projects/{number}").json
    singles = [
        client.get(f"/projects/{number}{place}").status_code
        for place in ("/issues/1", "/issues/1/notes", "/milestones/1")
    ]
    monkeypatch.setattr(finalization, "finalize", original)
    again()
    run_jobs()
    after = [client.get(place) for place in places]

    assert loaded > 10
    assert [(one.status_code, one.data) for one in during] == [(one.status_code, one.data) for one in before]
    assert [one.headers.get("X-Total") for one in during] == [one.headers.get("X-Total") for one in before]
    assert (singles, project.get("open_issues_count", 0), project["description"]) == ([404, 404, 404], 0, None)
    assert [one.headers.get("X-Total") for one in after[:2]] == ["5", "3"]
    assert [one.status_code for one in after] == [200] * len(after)


@pytest.mark.both_databases
def test_during_an_import_no_issues_or_milestones_can_be_created(as_, run_jobs):
    client = as_(MAX)
    number = send(client, full_archive()).json["id"]

    responses = [
        client.post(f"/projects/{number}/issues", json={"title": "Early"}),
        client.post(f"/projects/{number}/milestones", json={"title": "Early"}),
        client.post(f"/projects/{number}/protected_tags", json={"name": "v*"}),
    ]
    run_jobs()

    assert [response.status_code for response in responses] == [403, 403, 201]
    state = client.get(f"/projects/{number}/import").json
    assert state["import_status"] == "finished"
    assert {failed["relation_name"] for failed in state["failed_relations"]} == {"issues", "protected_tags"}
