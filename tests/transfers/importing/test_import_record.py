"""The record of an import: its fields, and who may see it."""

from __future__ import annotations

import pytest

from project_service.transfers.importing import finalization
from tests.support.archives import make_archive, make_issue, send
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    SAM,
    make_group,
    make_project,
)
from tests.transfers.importing.support import MOMENT, at_once

KEYS = [
    "id",
    "description",
    "name",
    "name_with_namespace",
    "path",
    "path_with_namespace",
    "created_at",
    "import_status",
    "correlation_id",
    "failed_relations",
    "import_error",
]


def test_an_accepted_import_is_scheduled(as_):
    response = send(as_(MAX))

    shown = response.json
    assert (response.status_code, [key for key in shown if key in KEYS]) == (201, KEYS)
    assert shown | {"id": 0, "created_at": "", "correlation_id": ""} == {
        "id": 0,
        "description": None,
        "name": "tools",
        "name_with_namespace": "Max / tools",
        "path": "tools",
        "path_with_namespace": "max/tools",
        "created_at": "",
        "import_type": "gitlab_project",
        "import_status": "scheduled",
        "correlation_id": "",
        "failed_relations": [],
        "import_error": None,
        "stats": None,
        "progress": {"rows_done": 0, "rows_total": None, "relations_done": 0, "relations_total": None},
    }
    assert "_links" not in shown
    assert MOMENT.fullmatch(shown["created_at"])
    assert shown["correlation_id"] == response.headers["X-Request-Id"]


@pytest.mark.both_databases
def test_an_import_is_scheduled_then_started_then_finished(as_, run_jobs, monkeypatch):
    client, seen = as_(MAX), []
    number = send(client).json["id"]
    original = finalization.finalize

    def finalize(*arguments):
        original(*arguments)
        seen.append(status_in_another_thread(client, number))

    monkeypatch.setattr(finalization, "finalize", finalize)
    run_jobs()

    assert (seen, client.get(f"/projects/{number}/import").json["import_status"]) == (["started"], "finished")


def status_in_another_thread(client, number):
    [response] = at_once(lambda: client.get(f"/projects/{number}/import"))
    return response.json["import_status"]


def test_an_import_keeps_its_correlation_id_and_the_archived_description(bring):
    state = bring(make_archive({}, {"description": "All of it"}))

    assert (state["import_status"], state["description"]) == ("finished", "All of it")
    assert state["correlation_id"]


def test_a_project_that_was_never_imported_has_status_none(project, as_maintainer):
    response = as_maintainer.get(f"/projects/{project.id}/import")

    shown = response.json
    assert (response.status_code, [shown[key] for key in KEYS[-4:]]) == (200, ["none", None, [], None])


@pytest.mark.parametrize(
    ("person", "status"),
    [(NOBODY, 401), (SAM, 404), (GUS, 200), (RITA, 200), (DEV, 200), (MAX, 200), (OLIVE, 200), (ADA, 200)],
)
def test_roles_that_see_the_status_of_an_import(person, status, as_, project):
    response = as_(person).get("/projects/acme%2Fshop/import")

    assert response.status_code == status
    if status == 404:
        assert response.json == {"message": "404 Project Not Found"}


def test_a_public_project_shows_its_import_to_signed_in_users(as_):
    make_project("open", make_group("place"), visibility="public")

    responses = [as_(person).get("/projects/place%2Fopen/import").status_code for person in (SAM, NOBODY)]

    assert responses == [200, 401]


@pytest.mark.both_databases
def test_the_progress_counts_rows_and_relations(bring):
    state = bring(make_archive({"issues": [make_issue(1), make_issue(2)], "labels": [{"title": "a"}]}))

    assert state["progress"] == {"rows_done": 3, "rows_total": 3, "relations_done": 2, "relations_total": 2}


@pytest.mark.both_databases
def test_an_import_records_one_created_event(bring, as_):
    number = bring(make_archive({}))["id"]

    [event] = as_(MAX).get(f"/projects/{number}/events").json
    assert (event["action_name"], event["target_type"], event["author"]["username"]) == ("created", None, MAX)
