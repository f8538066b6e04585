"""Project imports: permissions, namespaces, refusals, and the mapping of archived rows."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import functools
import io
import itertools
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from flask import current_app
from sqlalchemy import delete, func, select, update

from project_service.areas.projects.schemas import STORED_SETTINGS
from project_service.domain import removal
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Event
from project_service.domain.memberships import Membership
from project_service.domain.projects import Project
from project_service.domain.repositories import git as git_commands
from project_service.domain.repositories import models
from project_service.domain.repositories.protected_refs import ProtectedBranch
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock, jobs
from project_service.kit.db.base import Base
from project_service.kit.db.bulk import Writer
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from project_service.transfers import jobs as transfer_jobs
from project_service.transfers import notifications, workdir
from project_service.transfers.archive import extraction
from project_service.transfers.archive.diff import compare
from project_service.transfers.exporting import context as export_context
from project_service.transfers.exporting.serializers import nested as nested_serializer
from project_service.transfers.importing import files as file_import
from project_service.transfers.importing import finalization, mapping, row_loading
from project_service.transfers.importing import importer as importing
from project_service.transfers.importing import user_mapping as transfer_people
from project_service.transfers.importing.mapping import context as mapping_context
from project_service.transfers.importing.mapping.values import moment_of
from project_service.transfers.importing.row_loading import LINES_PARSED_AT_ONCE
from project_service.transfers.models import ImportFailure, ProjectExport, ProjectImport
from project_service.transfers.project_settings import AUTO_DEVOPS
from project_service.transfers.remote import downloads
from tests.support.archives import MOMENT as MADE
from tests.support.archives import make_archive, make_event, make_issue, make_note, rows, send, unpack
from tests.support.git_repositories import make_bundle, repository_folder
from tests.support.remote_servers import reply
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

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
FORBIDDEN = {"message": "403 Forbidden"}
NO_NAMESPACE = {"message": "404 Namespace Not Found"}
TOO_OFTEN = {"message": {"error": "This endpoint has been requested too many times. Try again later."}}
NOT_GZIP = {"message": {"error": "You need to upload a GitLab project export archive (ending in .gz)."}}
BAD_PATH = (
    "Path can contain only letters, digits, '_', '-' and '.'. Cannot start with '-', end in '.git' or end in '.atom'"
)
BAD_NAME = (
    "Name can contain only letters, digits, emojis, '_', '.', dash, space. "
    "It must start with letter, digit, emoji or '_'."
)
NO_ROOM = "507 Insufficient Storage: there is no room left on the disk of this server"
NOT_ALLOWED = "not allowed. (Allowed content types: application/gzip)"
DIFFERENT = ("id", "project_id", "source_project_id", "target_project_id")
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@pytest.fixture(autouse=True)
def _empty_storage(app):
    for name in stored():
        storage().delete(name)


@pytest.fixture
def bring(as_, run_jobs):
    """Imports an archive; returns the state of the import."""

    def run(archive, person=MAX, **fields):
        response = send(as_(person), archive, **fields)
        assert response.status_code == 201, response.text
        run_jobs()
        return as_(person).get(f"/projects/{response.json['id']}/import").json

    return run


@pytest.fixture
def settings(as_admin):
    """Changes application settings."""

    def change(**values):
        assert as_admin.put("/application/settings", json=values).status_code == 200

    return change


def known_projects():
    db.session.rollback()
    return db.session.scalar(select(func.count()).select_from(Project))


def stored():
    return storage().names("imports") + storage().names("projects")


def again():
    """Try tasks that failed again, at once."""
    db.session.rollback()
    db.session.execute(update(Task).values(run_at=clock.now() - dt.timedelta(seconds=1)))
    db.session.commit()
    waiting = list(db.session.scalars(select(Task.id).where(Task.failed_at.is_(None), Task.attempts > 0)))
    db.session.remove()
    for task_id in waiting:
        jobs.run(task_id)


def error_of(state):
    """Return the error of an import without its fixed beginning."""
    assert state["import_status"] == "failed"
    start = f"Error importing repository  into {state['path_with_namespace']} - "
    assert state["import_error"].startswith(start)
    return state["import_error"].removeprefix(start)


# the record


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


def at_once(*actions):
    """Call functions in concurrent threads; return their results."""
    app, start = current_app._get_current_object(), threading.Barrier(len(actions))

    def run(action):
        with app.app_context():
            start.wait()
            return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(run, actions))


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


# parameters and the order of checks


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "path is missing, file is missing"),
        ({"path": "tools"}, "file is missing"),
        ({"path": "tools", "file": "text"}, "file is invalid"),
        ({"path": "tools", "file": None, "overwrite": "maybe"}, "overwrite is invalid"),
        ({"path": "tools", "file": None, "override_params": "text"}, "override_params is invalid"),
        (
            {"path": "tools", "file": None, "override_params[visibility]": "secret"},
            "override_params[visibility] does not have a valid value",
        ),
        (
            {"path": "tools", "file": None, "namespace": "acme", "namespace_id": "1", "namespace_path": "a"},
            "namespace, namespace_id, namespace_path are mutually exclusive",
        ),
        ({"file": None, "overwrite": "maybe"}, "path is missing, overwrite is invalid"),
    ],
)
def test_invalid_parameters_are_refused(fields, text, as_, people):
    if "file" in fields and fields["file"] is None:
        fields = fields | {"file": (io.BytesIO(make_archive({})), "it.tar.gz")}

    response = as_(MAX).post("/projects/import", data=fields, content_type="multipart/form-data")

    assert (response.status_code, response.json, known_projects()) == (400, {"error": text}, 0)


def test_the_file_cannot_be_sent_as_json(as_):
    response = as_(MAX).post("/projects/import", json={"path": "tools", "file": "x"})

    assert (response.status_code, response.json) == (400, {"error": "file is invalid"})


def test_authentication_is_checked_first(as_, settings):
    settings(import_sources=["git"], project_import_limit=1)

    response = as_(NOBODY).post("/projects/import", data={}, content_type="multipart/form-data")

    assert (response.status_code, response.json) == (401, {"message": "401 Unauthorized"})


@pytest.mark.parametrize("way", ["import", "remote-import"])
def test_a_disabled_source_is_checked_before_parameters(way, as_, settings, project):
    settings(import_sources=["git"])

    response = as_(MAX).post(f"/projects/{way}", data={}, content_type="multipart/form-data")

    assert (response.status_code, response.json) == (403, FORBIDDEN)
    assert as_(MAX).get(f"/projects/{project.id}/import").status_code == 200


def test_parameters_are_checked_before_the_rate_limit_and_that_before_the_file_name(as_, settings):
    settings(project_import_limit=1)
    client = as_(MAX)

    responses = [
        client.post("/projects/import", data={}, content_type="multipart/form-data"),
        send(client, file="it.zip", namespace="nowhere"),
        send(client, file="it.zip", namespace="nowhere"),
    ]

    assert [response.status_code for response in responses] == [400, 422, 429]
    assert (responses[2].json, responses[2].headers["Retry-After"].isdigit()) == (TOO_OFTEN, True)


def test_the_file_name_is_checked_before_the_namespace_and_that_before_the_path(as_, group):
    client = as_(GUS)

    assert send(client, file="it.zip", namespace="nowhere").status_code == 422
    assert send(client, namespace="nowhere", path="-bad").status_code == 404
    assert send(client, path="-bad", name="Good").json == {"message": BAD_PATH}


@pytest.mark.both_databases
def test_local_and_remote_imports_share_a_limit_per_user(as_, settings):
    settings(project_import_limit=2)
    client = as_(MAX)

    statuses = [
        send(client).status_code,
        client.post("/projects/remote-import", json={"url": "http://a", "path": "b"}).status_code,
        client.post("/projects/remote-import", json={"url": "http://a", "path": "b"}).status_code,
        send(client).status_code,
        send(as_(OLIVE)).status_code,
    ]

    assert statuses == [201, 404, 429, 429, 201]


@pytest.mark.both_databases
def test_the_limit_resets_after_a_minute(as_, settings, monkeypatch):
    settings(project_import_limit=1)
    client = as_(MAX)
    first, second = send(client, path="a").status_code, send(client, path="b").status_code
    later = clock.now() + dt.timedelta(seconds=61)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert (first, second, send(client, path="c").status_code) == (201, 429, 201)


def test_there_is_no_limit_by_default(as_):
    client = as_(MAX)

    assert {send(client, path=f"tools{number}").status_code for number in range(8)} == {201}


@pytest.mark.parametrize("name", ["x.tgz", "x.zip", "x.tar", "x.tar.GZ", "gz", ""])
def test_the_name_of_the_file_has_to_end_in_gz(name, as_):
    response = send(as_(MAX), file=name)

    if name:
        assert (response.status_code, response.json) == (422, NOT_GZIP)
    else:  # browsers send an empty name for no file at all
        assert response.status_code in (400, 422)
    assert (known_projects(), stored()) == (0, [])


def test_the_request_does_not_read_the_archive(as_, bring):
    state = bring(b"no archive at all", file="anything.gz")

    assert error_of(state)


def test_a_file_above_the_setting_is_refused(as_, settings):
    settings(max_import_size=1)
    client = as_(MAX)

    response = send(client, bytes(1 + (1 << 20)))

    assert (response.status_code, response.json) == (413, {"message": "413 Request Entity Too Large"})
    assert (known_projects(), stored()) == (0, [])
    assert send(client, bytes(1 << 20)).status_code == 201


def test_a_body_far_above_the_setting_is_not_read(as_, settings):
    settings(max_import_size=1)

    response = send(as_(MAX), bytes(5 << 20))

    assert (response.status_code, stored()) == (413, [])


def test_a_setting_of_zero_means_no_limit(as_, settings):
    settings(max_import_size=0)

    assert send(as_(MAX), bytes(12 << 20)).status_code == 201


# namespace of the project


def test_the_default_namespace_is_that_of_the_user(as_):
    client = as_(MAX)

    assert send(client).json["path_with_namespace"] == "max/tools"
    for path, key, blank in (("more", "namespace", ""), ("blank", "namespace", "  "), ("b", "namespace_path", " ")):
        assert send(client, path=path, **{key: blank}).json["path_with_namespace"] == f"max/{path}"


@pytest.mark.parametrize(
    ("person", "status", "body"),
    [
        (ADA, 201, None),
        (OLIVE, 201, None),
        (MAX, 201, None),
        (DEV, 201, None),
        (RITA, 400, {"message": "Namespace is not valid"}),
        (GUS, 400, {"message": "Namespace is not valid"}),
        (SAM, 404, NO_NAMESPACE),
    ],
)
def test_roles_that_import_into_a_group(person, status, body, as_, people, group):
    for name, role in ((MAX, Role.MAINTAINER), (DEV, Role.DEVELOPER), (RITA, Role.REPORTER), (GUS, Role.GUEST)):
        add_member(group, people[name], role)

    response = send(as_(person), namespace="ACME")

    assert response.status_code == status
    assert response.json == body if body else response.json["path_with_namespace"] == "acme/tools"


@pytest.mark.parametrize("key", ["namespace", "namespace_id"])
def test_a_namespace_is_found_by_id(key, as_, group):
    assert send(as_(OLIVE), **{key: str(group.id)}).json["path_with_namespace"] == "acme/tools"


def test_a_subgroup_is_found_by_its_full_path(as_, group):
    make_group("tools", group)

    responses = [send(as_(OLIVE), path=key, **{key: "acme/Tools"}) for key in ("namespace", "namespace_path")]

    assert [response.json["path_with_namespace"] for response in responses] == [
        "acme/tools/namespace",
        "acme/tools/namespace_path",
    ]


@pytest.mark.parametrize("namespace", ["nowhere", "99999999", "acme", "open", "sam", "acme/nowhere"])
def test_hidden_and_unknown_namespaces_are_not_found(namespace, as_, group):
    make_group("open", visibility="public")

    response = send(as_(MAX), namespace=namespace)

    assert (response.status_code, response.json, known_projects(), stored()) == (404, NO_NAMESPACE, 0, [])


def test_an_administrator_imports_into_any_namespace(as_admin, group):
    assert send(as_admin, namespace="sam").json["path_with_namespace"] == "sam/tools"
    assert send(as_admin, namespace="acme").status_code == 201


def test_until_the_archive_is_read_the_project_is_private_with_the_importer_as_member(as_, people):
    client = as_(MAX)

    response = send(client, make_archive({}, {"visibility_level": 20}))

    number = response.json["id"]
    assert client.get(f"/projects/{number}").json["visibility"] == "private"
    [member] = client.get(f"/projects/{number}/members").json
    assert (member["username"], member["access_level"]) == (MAX, 40)


@pytest.mark.parametrize("person", [DEV, OLIVE, ADA])
def test_the_importer_into_a_group_is_a_maintainer(person, bring, as_, people, group, run_jobs):
    add_member(group, people[DEV], Role.DEVELOPER)

    number = bring(make_archive({"project_members": MEMBERS}), person=person, namespace="acme")["id"]

    client = as_(person)
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert levels[person] == 40
    assert client.post(f"/projects/{number}/export").status_code == 202
    assert [event["action_name"] for event in client.get(f"/projects/{number}/events").json] == ["created"]


# invalid projects


@pytest.mark.parametrize(
    ("path", "name", "text"),
    [
        ("", None, "Path can't be blank"),
        ("", "-bad", BAD_NAME),
        ("-bad", "Good", BAD_PATH),
        ("bad.git", "Good", BAD_PATH),
        ("bad.atom", "Good", BAD_PATH),
        ("b d", "Good", BAD_PATH),
        ("wikis", "Good", "Path wikis is a reserved name"),
        ("x" * 256, "Good", "Path is too long (maximum is 255 characters)"),
        ("good", "x" * 256, "Name is too long (maximum is 255 characters)"),
        (
            "good",
            "(bad)",
            BAD_NAME,
        ),
        ("taken", None, "Name has already been taken"),
        ("TAKEN", "Other", "Path has already been taken"),
        ("other", "taken", "Name has already been taken"),
    ],
)
def test_invalid_projects_are_refused(path, name, text, as_):
    client = as_(MAX)
    assert send(client, path="taken").status_code == 201
    files = stored()

    response = send(client, path=path, **({"name": name} if name else {}))

    assert (response.status_code, response.json) == (400, {"message": text})
    assert (known_projects(), stored()) == (1, files)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            0,
            "Limit reached Personal project creation is not allowed. Please contact your administrator with questions",
        ),
        (
            1,
            "Limit reached Your project limit is 1 projects! Please contact your administrator to increase it",
        ),
    ],
)
def test_the_limit_of_personal_projects_applies(limit, text, as_, client_of):
    user = make_user("limited", projects_limit=limit)
    client = client_of(user)
    for number in range(limit):
        assert send(client, path=f"a{number}").status_code == 201

    response = send(client, path="b")

    assert (response.status_code, response.json) == (400, {"message": text})


@pytest.mark.parametrize(("name", "shown"), [("My tools", "My tools"), ("", "tools"), ("   ", "tools")])
def test_the_name_is_the_path_unless_one_is_given(name, shown, as_):
    assert send(as_(MAX), name=name).json["name"] == shown


@pytest.mark.both_databases
def test_only_one_of_two_concurrent_imports_gets_the_path(as_, app):
    client = as_(MAX)
    responses = at_once(lambda: send(client), lambda: send(client))

    refused, accepted = sorted(responses, key=lambda response: response.status_code, reverse=True)
    assert (accepted.status_code, refused.status_code) == (201, 400)
    assert refused.json["message"] in ("Name has already been taken", "Path has already been taken")
    assert (known_projects(), len(stored())) == (1, 1)


# overwriting


def test_overwriting_a_missing_project_is_an_ordinary_import(bring):
    assert bring(make_archive({}), overwrite="true")["path_with_namespace"] == "max/tools"


@pytest.mark.both_databases
def test_an_overwrite_keeps_name_and_members(as_, people, run_jobs):
    client = as_(MAX)
    old = make_project("tools", people[MAX], name="Old tools")
    for name, role in ((MAX, Role.MAINTAINER), (DEV, Role.DEVELOPER)):
        add_member(old, people[name], role)
    friends = make_group("friends")
    share(old, friends, Role.REPORTER)
    old_id = old.id

    response = send(client, make_archive({"issues": [make_issue(1)]}), overwrite="true", name="Lost")
    waiting = client.get("/projects/max%2Ftools").json["id"]
    run_jobs()

    number = response.json["id"]
    shown = client.get("/projects/max%2Ftools").json
    assert (response.status_code, number != old_id, waiting) == (201, True, old_id)
    assert re.fullmatch(r"tools-[0-9a-f]{32}", response.json["path"])
    assert response.json["name"] == "Lost"
    assert (shown["id"], shown["name"], shown["path"]) == (number, "Old tools", "tools")
    assert client.get(f"/projects/{old_id}").status_code == 404
    assert client.get(f"/projects/{number}/import").json["import_status"] == "finished"
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert levels == {MAX: 40, DEV: 30}
    assert [one["group_name"] for one in shown["shared_with_groups"]] == ["Friends"]
    assert client.get(f"/projects/{number}/issues/1").status_code == 200


@pytest.mark.both_databases
def test_a_project_can_be_overwritten_under_the_name_it_has(as_, people, run_jobs):
    client = as_(MAX)
    make_project("tools", people[MAX], name="Old tools")
    db.session.commit()

    response = send(client, make_archive({}), overwrite="true", name="Old tools")
    run_jobs()

    shown = client.get("/projects/max%2Ftools").json
    assert response.status_code == 201
    assert (shown["id"], shown["name"], shown["path"]) == (response.json["id"], "Old tools", "tools")


@pytest.mark.both_databases
def test_a_failed_overwrite_keeps_the_old_project(as_, run_jobs):
    client = as_(MAX)
    old = send(client, make_archive({"issues": [make_issue(1)]}, {"description": "Old"})).json["id"]
    run_jobs()

    new = send(client, make_archive({"issues": [make_issue(2)]}, version="9"), overwrite="true").json["id"]
    run_jobs()

    shown = client.get("/projects/max%2Ftools").json
    assert (shown["id"], shown["description"], shown["name"]) == (old, "Old", "tools")
    assert [issue["iid"] for issue in client.get(f"/projects/{old}/issues").json] == [1]
    state = client.get(f"/projects/{new}/import").json
    assert (state["import_status"], state["path"][:6]) == ("failed", "tools-")


def test_only_owners_may_overwrite(as_, people, group, run_jobs):
    add_member(group, people[MAX], Role.MAINTAINER)
    old = make_project("tools", group)

    response = send(as_(MAX), namespace="acme", overwrite="true")
    run_jobs()

    state = as_(MAX).get(f"/projects/{response.json['id']}/import").json
    assert (response.status_code, state["import_status"]) == (201, "failed")
    assert f"User max ({people[MAX].id}) cannot overwrite a project in acme" in state["import_error"]
    assert as_(OLIVE).get("/projects/acme%2Ftools").json["id"] == old.id


def test_a_refused_overwrite_does_not_reveal_the_namespace(as_, people, group, run_jobs):
    sub = make_group("sub", group)
    add_member(sub, people[MAX], Role.MAINTAINER)
    make_project("tools", sub)

    response = send(as_(MAX), namespace="acme/sub", overwrite="true")
    run_jobs()

    state = as_(MAX).get(f"/projects/{response.json['id']}/import").json
    assert error_of(state) == f"User max ({people[MAX].id}) cannot overwrite a project in [FILTERED]"


def test_an_overwrite_succeeds_when_the_old_project_was_removed(as_, people, run_jobs):
    client = as_(MAX)
    old = make_project("tools", people[MAX])
    add_member(old, people[MAX], Role.OWNER)
    number = send(client, overwrite="true").json["id"]
    client.delete(f"/projects/{old.id}")
    run_jobs()

    shown = client.get(f"/projects/{number}").json
    assert (shown["path"], shown["name"]) == ("tools", "tools")


# overrides


def test_overrides_replace_values_of_the_archive(bring, as_):
    state = bring(
        make_archive({}, {"description": "Theirs", "build_timeout": 60, "visibility_level": 0}),
        **{
            "override_params[description]": "Ours",
            "override_params[visibility]": "public",
            "override_params[build_timeout]": "120",
            "override_params[issues_access_level]": "disabled",
            "override_params[tag_list]": "a,b",
            "override_params[unheard_of]": "x",
        },
    )

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert (state["import_status"], shown["description"], shown["visibility"]) == ("finished", "Ours", "public")
    assert (shown["build_timeout"], shown["issues_access_level"], shown["tag_list"]) == (120, "disabled", ["a", "b"])


def test_overrides_replace_fields_that_only_archives_set(bring, as_, run_jobs):
    theirs = {
        "archived": True,
        "public_builds": True,
        "service_desk_enabled": False,
        "approvals_before_merge": 2,
        "issues_template": "Theirs",
        "merge_requests_template": "Theirs",
    }
    ours = {
        "service_desk_enabled": True,
        "approvals_before_merge": 3,
        "issues_template": "Ours",
        "merge_requests_template": "Ours",
        "external_authorization_classification_label": "secret",
    }
    overrides = {"archived": False, "public_jobs": False, **ours}

    number = bring(
        make_archive({}, theirs), **{f"override_params[{name}]": str(value) for name, value in overrides.items()}
    )["id"]

    shown = as_(MAX).get(f"/projects/{number}").json
    assert (shown["archived"], shown["public_jobs"]) == (False, False)
    attributes = json.loads(export(as_(MAX), number, run_jobs)["tree/project.json"])
    assert {name: attributes[name] for name in ours} == ours
    assert (attributes["archived"], attributes["public_builds"]) == (False, False)


def test_overrides_apply_when_the_import_has_finished(as_, run_jobs):
    client = as_(MAX)
    number = send(client, **{"override_params[description]": "Ours"}).json["id"]

    before = client.get(f"/projects/{number}").json["description"]
    run_jobs()

    assert (before, client.get(f"/projects/{number}").json["description"]) == (None, "Ours")


def test_blank_overrides_and_those_of_name_and_path_are_ignored(bring, as_):
    state = bring(
        make_archive({}, {"description": "Theirs"}),
        **{
            "override_params[description]": "",
            "override_params[name]": "Other",
            "override_params[path]": "other",
            "override_params[visibility]": "",
            "override_params[lfs_enabled]": "false",
            "override_params[packages_enabled]": "false",
            "override_params[emails_disabled]": "true",
        },
    )

    assert (state["description"], state["name"], state["path"]) == ("Theirs", "tools", "tools")
    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert [shown[name] for name in ("lfs_enabled", "packages_enabled", "emails_disabled")] == [True, True, None]


@pytest.mark.parametrize(("of_group", "archive", "shown"), [("private", 20, "private"), ("internal", 20, "internal")])
def test_an_imported_project_is_not_more_visible_than_its_group(of_group, archive, shown, bring, people, as_):
    add_member(make_group("place", visibility=of_group), people[MAX], Role.OWNER)

    state = bring(make_archive({}, {"visibility_level": archive}), namespace="place")

    assert as_(MAX).get(f"/projects/{state['id']}").json["visibility"] == shown


def test_a_restricted_visibility_becomes_private(bring, as_, settings):
    settings(restricted_visibility_levels=["public"])

    of_archive = bring(make_archive({}, {"visibility_level": 20}), path="a")
    of_override = bring(make_archive({}), path="b", **{"override_params[visibility]": "public"})

    assert [as_(MAX).get(f"/projects/{one['id']}").json["visibility"] for one in (of_archive, of_override)] == [
        "private",
        "private",
    ]


def test_settings_of_the_archive_are_imported(bring, as_):
    attributes = {
        "archived": True,
        "merge_requests_ff_only_enabled": True,
        "build_allow_git_fetch": False,
        "request_access_enabled": False,
        "only_allow_merge_if_pipeline_succeeds": True,
        "ci_config_path": ".ci.yml",
        "auto_cancel_pending_pipelines": "disabled",
    }
    state = bring(make_archive({"project_feature": [{"wiki_access_level": 0, "issues_access_level": 10}]}, attributes))

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert {name: shown[name] for name in ("archived", "merge_method", "build_git_strategy")} == {
        "archived": True,
        "merge_method": "ff",
        "build_git_strategy": "clone",
    }
    assert (shown["wiki_access_level"], shown["issues_access_level"]) == ("disabled", "private")
    assert (shown["request_access_enabled"], shown["only_allow_merge_if_pipeline_succeeds"]) == (False, True)
    assert (shown["ci_config_path"], shown["auto_cancel_pending_pipelines"]) == (".ci.yml", "disabled")


def test_an_archive_cannot_set_name_namespace_or_owner(bring, as_, people):
    attributes = {
        "id": 1,
        "name": "Theirs",
        "path": "theirs",
        "namespace_id": 1,
        "creator_id": people[ADA].id,
        "created_at": "2001-01-01T00:00:00.000Z",
        "runners_token": "secret",
    }
    state = bring(make_archive({}, attributes))

    shown = as_(MAX).get(f"/projects/{state['id']}").json
    assert (shown["name"], shown["path_with_namespace"], shown["creator_id"]) == ("tools", "max/tools", people[MAX].id)
    assert not shown["created_at"].startswith("2001")
    assert shown.get("runners_token") != "secret"


# remote archives


@pytest.fixture
def import_remotely(remote, as_, as_admin, settings):
    """Requests an import of a path of the remote server; returns the response."""
    settings(outbound_local_requests_whitelist=[f"127.0.0.1:{remote.port}", "127.0.0.1:1"])
    assert as_admin.post("/features/import_project_from_remote_file", json={"value": "true"}).status_code == 201

    def ask(url="/it.tar.gz", **fields):
        url = remote.url(url) if url.startswith("/") else url
        return as_(MAX).post("/projects/remote-import", json={"url": url, "path": "tools"} | fields)

    return ask


def offers(remote, archive=None, path="/it.tar.gz", status=200, **headers):
    """Let the remote server answer with an archive."""
    headers = {"content_type": "application/gzip"} | headers
    content = make_archive({"issues": [make_issue(1)]}) if archive is None else archive
    remote.responses[path] = lambda handler: reply(handler, status, content, **headers)


def test_an_archive_of_a_remote_server_is_imported(remote, import_remotely, as_, run_jobs):
    offers(remote)

    response = import_remotely("/it.tar.gz?signature=a%2Fb+c==&x=%0a")
    run_jobs()

    number = response.json["id"]
    assert (response.status_code, response.json["import_status"], response.json["import_error"]) == (
        201,
        "scheduled",
        None,
    )
    assert as_(MAX).get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert len(as_(MAX).get(f"/projects/{number}/issues").json) == 1
    assert [one.line for one in remote.received] == [
        "HEAD /it.tar.gz?signature=a%2Fb+c==&x=%0a HTTP/1.1",
        "GET /it.tar.gz?signature=a%2Fb+c==&x=%0a HTTP/1.1",
    ]


def test_remote_and_local_archives_have_separate_workers(remote, import_remotely, as_):
    offers(remote)
    import_remotely()
    elsewhere = db.session.scalars(select(Task.queue)).all()
    db.session.rollback()

    assert send(as_(MAX), make_archive({}), path="other").status_code == 201

    assert elsewhere == [jobs.REMOTE_TRANSFERS]
    assert sorted(db.session.scalars(select(Task.queue))) == [jobs.REMOTE_TRANSFERS, jobs.TRANSFERS]


@pytest.mark.parametrize("way", ["json", "data"])
def test_a_remote_import_takes_json_and_forms(way, remote, import_remotely, as_):
    offers(remote)
    url = remote.url("/it.tar.gz")

    response = as_(MAX).post("/projects/remote-import", **{way: {"url": url, "path": "tools", "name": "My tools"}})

    assert (response.status_code, response.json["name"]) == (201, "My tools")


def test_remote_imports_are_off_by_default_and_can_be_enabled(remote, as_, as_admin, settings):
    settings(outbound_local_requests_whitelist=["127.0.0.1"])
    offers(remote)
    fields = {"url": remote.url("/it.tar.gz"), "path": "tools", "namespace": "nowhere"}

    off = as_(MAX).post("/projects/remote-import", json=fields)
    as_admin.post("/features/import_project_from_remote_file", json={"value": "true", "user": MAX})
    for_max = as_(MAX).post("/projects/remote-import", json=fields)
    for_others = as_(OLIVE).post("/projects/remote-import", json=fields)

    assert (off.status_code, off.json) == (404, {"message": "404 Not Found"})
    assert (for_max.status_code, for_max.json) == (404, NO_NAMESPACE)
    assert (for_others.status_code, for_others.json) == (404, {"message": "404 Not Found"})
    assert remote.received == []


def test_checks_of_a_remote_import_have_this_order(as_, settings):
    settings(project_import_limit=1)
    post = as_(MAX).post

    assert as_(NOBODY).post("/projects/remote-import", json={}).status_code == 401
    assert post("/projects/remote-import", json={}).json == {"error": "url is missing, path is missing"}
    assert post("/projects/remote-import", json={"url": "x", "path": "y"}).status_code == 404
    assert post("/projects/remote-import", json={"url": "x", "path": "y"}).status_code == 429


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({"content_length": None}, "Missing 'ContentLength' header"),
        ({"content_length": "0"}, "Missing 'ContentLength' header"),
        ({"content_length": "many"}, "Missing 'ContentLength' header"),
        ({"content_length": "-5"}, "Missing 'ContentLength' header"),
        ({"content_length": str((10 << 30) + 1)}, "Remote file larger than limit. (limit 10 GB)"),
        ({"content_length": "1" * 5000}, "Remote file larger than limit. (limit 10 GB)"),
        ({"content_length": str((10 << 30) + 1), "content_type": None}, "Remote file larger than limit. (limit 10 GB)"),
        ({"content_type": None}, "Missing 'ContentType' header"),
        (
            {"content_type": "application/js"},
            f"Remote file content type 'application/js' {NOT_ALLOWED}",
        ),
        (
            {"content_type": "application/gzip; charset=binary"},
            f"Remote file content type 'application/gzip; charset=binary' {NOT_ALLOWED}",
        ),
    ],
)
def test_headers_of_the_remote_file_are_checked(headers, text, remote, import_remotely):
    headers = {"content_type": "application/gzip", "content_length": "100"} | headers

    def respond(handler):
        handler.send_response(200)
        for name, value in headers.items():
            if value is not None:
                handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()

    remote.responses["/it.tar.gz"] = respond

    said = import_remotely()

    assert (said.status_code, said.json) == (400, {"message": text})
    assert ([one.line[:4] for one in remote.received], known_projects()) == (["HEAD"], 0)


def test_ten_gigabytes_are_allowed_and_the_head_status_is_ignored(remote, import_remotely):
    def respond(handler):
        handler.send_response(403)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(10 << 30))
        handler.end_headers()

    remote.responses["/it.tar.gz"] = respond

    assert import_remotely().status_code == 201


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"path": ""}, "Parameter 'path' is required"),
        ({"path": "", "url": ""}, "Parameter 'path' is required"),
        ({"url": ""}, "Parameter 'remote_import_url' is required"),
        ({"url": "ftp://a.example.org/b"}, "Only allowed schemes are http, https"),
        ({"url": "http://a.example.org/b\r\nc"}, "URI is invalid"),
        ({"url": "http://a.example.org/b%0d%0ac"}, "URI is invalid"),
        ({"url": "http://-a/b"}, "Hostname or IP address invalid"),
        ({"url": f"http://{'a' * 1025}/"}, "Host is too long (maximum is 1024 characters)"),
        ({"url": "http://nowhere.invalid/"}, "Host cannot be resolved or invalid"),
        ({"url": "http://localhost/"}, "Requests to localhost are not allowed"),
        ({"url": "http://0.0.0.0/"}, "Requests to localhost are not allowed"),
        ({"url": "http://127.0.0.2/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://[::1]/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://[::ffff:127.0.0.2]/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://0x7f000002/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://2130706434/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://127.2/"}, "Requests to loopback addresses are not allowed"),
        ({"url": "http://10.1.2.3/"}, "Requests to the local network are not allowed"),
        ({"url": "http://172.16.0.1/"}, "Requests to the local network are not allowed"),
        ({"url": "http://192.168.0.1/"}, "Requests to the local network are not allowed"),
        ({"url": "http://[fd00::1]/"}, "Requests to the local network are not allowed"),
        ({"url": "http://169.254.169.254/"}, "Requests to the link local network are not allowed"),
        ({"url": "http://[fe80::1]/"}, "Requests to the link local network are not allowed"),
        ({"url": "http://255.255.255.255/"}, "Requests to the limited broadcast address are not allowed"),
        ({"url": "http://100.64.0.1/"}, "Requests to the shared address space are not allowed"),
    ],
)
def test_blocked_urls_are_not_requested(fields, text, import_remotely):
    response = import_remotely(**fields)

    assert (response.status_code, response.json, known_projects()) == (400, {"message": text}, 0)


def test_an_unreachable_remote_server_is_reported(import_remotely):
    response = import_remotely("http://127.0.0.1:1/it.tar.gz")

    assert (response.status_code, response.json) == (
        400,
        {"message": "Request to 127.0.0.1:1 failed: Connection refused"},
    )


def test_a_redirect_to_where_nobody_may_go_is_refused(remote, import_remotely):
    remote.redirects("/it.tar.gz", "http://169.254.169.254/latest/meta-data")

    response = import_remotely()

    assert response.json == {"message": "Requests to the link local network are not allowed"}


def test_a_redirect_of_the_download_is_checked_again(remote, import_remotely, as_, run_jobs):
    offers(remote)
    number = import_remotely().json["id"]
    remote.redirects("/it.tar.gz", "http://10.0.0.1/secret")
    run_jobs()

    state = as_(MAX).get(f"/projects/{number}/import").json
    assert error_of(state) == "Requests to the local network are not allowed"


def test_the_path_is_checked_after_the_remote_request(remote, import_remotely, as_):
    offers(remote)
    send(as_(MAX), path="tools", name="Other")

    response = import_remotely()

    assert (response.status_code, response.json) == (400, {"message": "Path has already been taken"})
    assert len(remote.received) == 1


def test_a_refused_download_fails_the_import(remote, import_remotely, as_, run_jobs):
    offers(remote)
    number = import_remotely().json["id"]
    offers(remote, b"gone", status=404)
    run_jobs()

    assert "404" in error_of(as_(MAX).get(f"/projects/{number}/import").json)
    assert stored() == []


def test_an_interrupted_download_is_resumed(remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    archive = make_archive({"issues": [make_issue(1, description="x" * 1000 + str(time.time_ns()))]})
    half = len(archive) // 2
    asked = []

    def respond(handler):
        wanted = handler.headers.get("Range")
        asked.append((handler.command, wanted, handler.headers.get("If-Range")))
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        handler.send_response(206 if wanted else 200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(len(archive) - start))
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("ETag", '"one"')
        if wanted:
            handler.send_header("Content-Range", f"bytes {start}-{len(archive) - 1}/{len(archive)}")
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(archive[start:] if wanted else archive[:half])
            handler.wfile.flush()
            handler.close_connection = True

    remote.responses["/it.tar.gz"] = respond
    number = import_remotely().json["id"]
    run_jobs()

    assert as_(MAX).get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert asked == [("HEAD", None, None), ("GET", None, None), ("GET", f"bytes={half}-", '"one"')]


def test_a_changed_file_is_downloaded_again(remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    old, new = (make_archive({"issues": [make_issue(iid, description=str(iid) * 999)]}) for iid in (1, 2))
    whole = []

    def respond(handler):
        content = new if handler.headers.get("Range") else old
        handler.send_response(200)  # the tag is another: the whole of the new file, not a part
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("ETag", '"new"' if content is new else '"old"')
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(content if content is new else content[:20])
            handler.close_connection = True
            whole.append(content is new)

    remote.responses["/it.tar.gz"] = respond
    number = import_remotely().json["id"]
    run_jobs()

    assert (whole, [one["iid"] for one in as_(MAX).get(f"/projects/{number}/issues").json]) == ([False, True], [2])


@pytest.mark.parametrize(
    "odd",
    [
        {"status": 416},
        {"content_range": "bytes {late}-{last}/{size}"},
        {"content_range": "bytes {start}-{last}/{more}"},
        {"content_range": ""},
        {"etag": '"two"'},
    ],
    ids=["no such part", "begins elsewhere", "of a longer file", "does not say where it begins", "of another file"],
)
def test_a_wrong_range_restarts_the_download(odd, remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    archive = make_archive({"issues": [make_issue(1, description="x" * 1000)]})
    half, asked = len(archive) // 2, []

    def respond(handler):
        wanted = handler.headers.get("Range")
        asked.append((handler.command, wanted))
        if wanted:
            where = {"start": half, "late": half + 1, "last": len(archive) - 1}
            where |= {"size": len(archive), "more": len(archive) + 1}
            part = odd.get("content_range", "bytes {start}-{last}/{size}").format(**where)
            tag = odd.get("etag", '"one"')
            reply(handler, odd.get("status", 206), b"?" * half, content_range=part, etag=tag)
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(len(archive)))
        handler.send_header("Accept-Ranges", "bytes")
        handler.send_header("ETag", '"one"')
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(archive[:half] if len(asked) < 3 else archive)
            handler.close_connection = True

    remote.responses["/it.tar.gz"] = respond
    number = import_remotely().json["id"]
    run_jobs()

    assert as_(MAX).get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert asked == [("HEAD", None), ("GET", None), ("GET", f"bytes={half}-"), ("GET", None)]


def test_a_server_without_ranges_restarts_the_download(remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    archive = make_archive({"issues": [make_issue(1)]})
    asked = []

    def respond(handler):
        asked.append((handler.command, handler.headers.get("Range")))
        handler.send_response(200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(len(archive)))
        handler.end_headers()
        if handler.command == "GET":
            handler.wfile.write(archive[:30] if len(asked) < 3 else archive)
            handler.close_connection = True

    remote.responses["/it.tar.gz"] = respond
    number = import_remotely().json["id"]
    run_jobs()

    assert as_(MAX).get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert asked == [("HEAD", None), ("GET", None), ("GET", None)]


def begin(*task_ids):
    """Let workers claim these tasks."""
    db.session.execute(update(Task).where(Task.id.in_(task_ids)).values(leased_until=clock.now() + jobs.LEASE))
    db.session.commit()


def let_go():
    """Release all claims and make all tasks due."""
    past = clock.now() - dt.timedelta(seconds=1)
    db.session.execute(update(Task).values(leased_until=None, run_at=past))
    db.session.commit()


def waiting_tasks():
    db.session.rollback()
    return list(db.session.scalars(select(Task.id).order_by(Task.id)))


def test_a_user_with_two_remote_transfers_leaves_workers_to_others(
    remote, import_remotely, as_, client_of, people, run_jobs
):
    offers(remote)
    numbers = [import_remotely(path=f"tools{number}").json["id"] for number in range(3)]
    theirs = client_of(people[OLIVE]).post(
        "/projects/remote-import", json={"url": remote.url("/it.tar.gz"), "path": "tools"}
    )
    first, second, third, other = waiting_tasks()
    begin(first, second)

    jobs.run(third)
    jobs.run(other)

    def state(client, number):
        return client.get(f"/projects/{number}/import").json["import_status"]

    assert (state(as_(MAX), numbers[2]), state(as_(OLIVE), theirs.json["id"])) == ("scheduled", "finished")
    [put_off] = set(waiting_tasks()) - {first, second}
    task = db.session.get(Task, put_off)
    assert (task.queue, task.attempts, task.error) == (jobs.REMOTE_TRANSFERS, 0, None)
    assert dt.timedelta(seconds=4) < task.run_at - task.created_at < dt.timedelta(seconds=6)
    let_go()
    run_jobs()
    assert [state(as_(MAX), number) for number in numbers] == ["finished"] * 3
    assert waiting_tasks() == []


def test_remote_exports_yield_to_others_and_local_ones_do_not(remote, import_remotely, as_, run_jobs):
    offers(remote)
    remote.responses["/store"] = reply
    number = send(as_(MAX), path="mine").json["id"]
    run_jobs()
    import_remotely(path="one")
    import_remotely(path="two")
    held = waiting_tasks()
    begin(*held)

    as_(MAX).post(f"/projects/{number}/export", json={"upload": {"url": remote.url("/store")}})
    here = send(as_(MAX), path="here").json["id"]
    for task_id in waiting_tasks()[len(held) :]:
        jobs.run(task_id)

    assert as_(MAX).get(f"/projects/{number}/export").json["export_status"] == "queued"
    assert as_(MAX).get(f"/projects/{here}/import").json["import_status"] == "finished"
    let_go()
    run_jobs()
    assert as_(MAX).get(f"/projects/{number}/export").json["export_status"] == "finished"


@pytest.mark.both_databases
def test_concurrent_transfers_are_limited_exactly(app, remote, import_remotely, run_jobs, monkeypatch):
    offers(remote)
    for number in range(4):
        import_remotely(path=f"tools{number}")
    ids = waiting_tasks()
    together, begun = threading.Barrier(4), []

    def run(import_id, project_id):
        with jobs.step():
            begun.append(import_id)
        time.sleep(1)

    real = transfer_jobs._import_deferred_until

    def all_are_held(found):
        together.wait(10)
        return real(found)

    monkeypatch.setattr(importing, "run", run)
    if db.engine.dialect.name == "postgresql":  # SQLite has one writer at a time, and each is one
        monkeypatch.setattr(transfer_jobs, "_import_deferred_until", all_are_held)

    def worker(task_id):
        with app.app_context():
            jobs.run(task_id)

    db.session.remove()
    with ThreadPoolExecutor(4) as threads:
        for one in [threads.submit(worker, task_id) for task_id in ids]:
            one.result()

    assert len(begun) == 2
    assert len(waiting_tasks()) == 2


def trickles(remote, times=1000, pause=0.05, path="/it.tar.gz"):
    """Let the remote server send a trickle for each request; return the number of requests."""
    asked = []

    def respond(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(1 << 30))
        handler.end_headers()
        if handler.command == "GET":
            asked.append(handler.path)
            for _ in range(times):
                time.sleep(pause)
                handler.wfile.write(b"x")

    remote.responses[path] = respond
    return asked


@pytest.mark.parametrize("pause", [0.05, 60])
def test_a_trickling_download_fails(pause, remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "SLOW_SECONDS", 0.3)
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    asked, started = trickles(remote, pause=pause), time.monotonic()
    number = import_remotely().json["id"]
    run_jobs()

    state = as_(MAX).get(f"/projects/{number}/import").json
    assert (error_of(state), len(asked)) == ("The remote server is too slow", 1)
    assert time.monotonic() - started < 30  # of 50


def test_attempts_of_a_download_share_one_time_limit(remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(downloads, "TOTAL_SECONDS", 0.5)
    monkeypatch.setattr(downloads, "FIRST_RETRY_SECONDS", 0.0)
    asked = trickles(remote)
    number = import_remotely().json["id"]
    run_jobs()

    state = as_(MAX).get(f"/projects/{number}/import").json
    assert (error_of(state), len(asked)) == ("The request took too long", 1)


@pytest.mark.both_databases
def test_removing_a_project_stops_its_download(remote, import_remotely, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(workdir, "CHECK_INTERVAL_SECONDS", 0)
    sent = []

    def respond(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(500 << 16))
        handler.end_headers()
        while handler.command == "GET" and len(sent) < 500:
            handler.wfile.write(bytes(1 << 16))
            sent.append(1)
            if len(sent) == 1:
                with app.app_context():
                    assert client.delete(f"/projects/{number}").status_code == 202

    app, client = current_app._get_current_object(), as_(MAX)
    remote.responses["/it.tar.gz"] = respond
    number = import_remotely().json["id"]
    run_jobs()

    assert (len(sent) < 500, known_projects(), stored()) == (True, 0, [])


def test_a_download_above_the_limit_is_aborted(remote, import_remotely, as_, run_jobs, monkeypatch):
    offers(remote)
    number = import_remotely().json["id"]
    monkeypatch.setattr(downloads, "MAX_FILE_BYTES", 100)
    run_jobs()

    assert error_of(as_(MAX).get(f"/projects/{number}/import").json) == "Remote file larger than limit. (limit 10 GB)"


def test_credentials_and_signatures_of_urls_are_not_shown(remote, import_remotely, as_, run_jobs, capfd):
    offers(remote)
    url = remote.url("/it.tar.gz?signature=SIGNED").replace("//", "//robot:PASSWORD@")
    number = import_remotely(url).json["id"]
    waiting = address_of_import()
    offers(remote, b"gone", status=404)
    run_jobs()

    state = json.dumps(as_(MAX).get(f"/projects/{number}/import").json)
    for secret in ("SIGNED", "PASSWORD"):
        assert secret not in state + capfd.readouterr().err + waiting
    assert address_of_import() is None
    assert remote.received[1].headers["Authorization"].startswith("Basic ")


def address_of_import():
    db.session.rollback()
    return db.session.connection().exec_driver_sql("SELECT url FROM project_imports").scalar()


@pytest.mark.both_databases
def test_the_url_of_a_finished_import_is_removed(remote, import_remotely, as_, run_jobs):
    offers(remote)
    number = import_remotely().json["id"]
    run_jobs()

    assert as_(MAX).get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert address_of_import() is None


# failures


@pytest.mark.parametrize(
    ("archive", "text"),
    [
        (b"no gzip", "The file is not in gzip format"),
        (make_archive({}, version=None), "No such file or directory @ rb_sysopen - [FILTERED] (VERSION missing)"),
        (make_archive({}, version=""), "end of file reached"),
        (make_archive({}, version=" \n"), "end of file reached"),
        (make_archive({}, version="0.2.5"), "Import version mismatch: Required 0.2.4 but was 0.2.5"),
        (make_archive({}, version="0.2.3"), "Import version mismatch: Required 0.2.4 but was 0.2.3"),
        (make_archive({}, version="new"), "Incorrect VERSION format"),
        (make_archive({}, version="0..4"), "Incorrect VERSION format"),
        (make_archive({}, version="0.2.4-rc1"), "Import version mismatch: Required 0.2.4 but was 0.2.4-rc1"),
        (make_archive({}, version="0.2.4-0"), "Import version mismatch: Required 0.2.4 but was 0.2.4-0"),
        (make_archive({}, version="0.2.4.a"), "Import version mismatch: Required 0.2.4 but was 0.2.4.a"),
        (make_archive({}, version="0.24"), "Import version mismatch: Required 0.2.4 but was 0.24"),
        (make_archive(), "invalid import format"),
        (make_archive({}, files={"tree/project.json": b"{"}), "Incorrect JSON format"),
        (make_archive({}, files={"tree/project.json": b"[]"}), "Incorrect JSON format"),
        (make_archive({}, files={"tree/project/issues.ndjson": b'{"title":"a"}\n{broken'}), "Incorrect JSON format"),
        (make_archive({}, files={"tree/project/boards.ndjson": b"nonsense\n"}), "Incorrect JSON format"),
        (make_archive(files={"project.json": b'{"issues": [{]}'}), "Incorrect JSON format"),
        (make_archive({}, files={"project.bundle": b"no bundle"}), "Invalid bundle file"),
        (make_archive({}, files={"project.wiki.bundle": b"no bundle"}), "Invalid bundle file"),
        (make_archive({}, files={"project.design.bundle": b"no bundle"}), "Invalid bundle file"),
    ],
)
def test_invalid_archives_fail_with_reasons(archive, text, bring, as_):
    state = bring(archive)

    assert error_of(state) == text
    assert (stored(), as_(MAX).get(f"/projects/{state['id']}/issues").json) == ([], [])
    assert len(as_(MAX).get(f"/projects/{state['id']}/events").json) == 1


def test_a_failed_import_leaves_no_repository(bring, tmp_path):
    files = {"project.bundle": make_bundle(tmp_path / "git"), "tree/project/issues.ndjson": b"{"}

    state = bring(make_archive({}, files=files))

    assert error_of(state) == "Incorrect JSON format"
    assert list(models.root().glob(f"*{state['id']}-project-*.git*")) == []


def test_a_version_may_end_in_a_newline(bring):
    assert bring(make_archive({}, version="0.2.4\n"))["import_status"] == "finished"


def test_a_failed_project_keeps_its_path_and_can_be_removed(bring, as_, run_jobs):
    client = as_(ADA)
    number = bring(b"bad", person=ADA)["id"]

    assert client.get("/projects/ada%2Ftools").json["id"] == number
    assert send(client).json == {"message": "Name has already been taken"}
    assert client.delete(f"/projects/{number}").status_code == 202
    run_jobs()
    assert send(client).status_code == 201


@pytest.mark.both_databases
def test_a_failed_import_removes_all_imported_rows(bring, as_):
    before = counts()
    state = bring(
        full_archive(files={"tree/project/triggers.ndjson": b"broken\n"}),
    )

    brought = {name: number for name, number in difference(before).items() if name not in NOT_BROUGHT}
    assert (error_of(state), brought, stored()) == ("Incorrect JSON format", {}, [])


def test_several_errors_are_joined_in_one_sentence():
    sentences = [notifications.sentence(texts) for texts in (["a"], ["a", "b"], ["a", "b", "c"])]

    assert sentences == ["a", "a and b", "a, b, and c"]


def test_words_with_slashes_are_filtered_from_errors(people):
    project = make_project("tools", people[MAX])

    text = notifications.error_text(project, ["No such file /var/lib/x in a/b", "gone"])

    assert text == "Error importing repository  into max/tools - No such file [FILTERED] in [FILTERED] and gone"


@pytest.mark.both_databases
def test_an_import_that_takes_a_day_is_stopped(as_, run_jobs, monkeypatch):
    client = as_(MAX)
    number = send(client).json["id"]
    db.session.execute(update(ProjectImport).values(created_at=clock.now() - dt.timedelta(days=1, seconds=1)))
    db.session.execute(update(Task).values(run_at=clock.now() + dt.timedelta(days=1)))
    db.session.commit()

    jobs.JOBS["transfers.jobs.clear_up"].defer()
    db.session.commit()
    run_jobs()

    state = client.get(f"/projects/{number}/import").json
    assert (state["import_status"], state["import_error"]) == (
        "failed",
        "Import timed out. Import took longer than 86400 seconds",
    )
    assert stored() == []


def test_a_full_disk_fails_the_import_with_a_reason(bring, as_, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device", "/somewhere/secret")

    monkeypatch.setattr(extraction, "_register", full)

    assert error_of(bring(make_archive({}))) == "No space left on device"


def test_an_upload_to_a_full_storage_is_refused(as_, monkeypatch):
    def copy_half(_source, target, *_more):
        target.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device", "/somewhere/secret")

    client = as_(MAX)
    monkeypatch.setattr(shutil, "copyfileobj", copy_half)
    response = send(client)

    assert (response.status_code, response.json) == (507, {"message": NO_ROOM})
    assert (stored(), known_projects()) == ([], 0)


@pytest.mark.usefixtures("no_room_for_temporary_files")
def test_an_upload_is_refused_when_the_temporary_disk_is_full(as_):
    response = send(as_(MAX))

    assert (response.status_code, response.json) == (507, {"message": NO_ROOM})


@pytest.mark.both_databases
def test_an_import_that_keeps_failing_is_failed(as_, run_jobs, monkeypatch):
    def broken(*_arguments):
        raise OSError(5, "Input/output error", "/somewhere/secret")

    monkeypatch.setattr(extraction, "_register", broken)
    client = as_(MAX)
    number = send(client).json["id"]
    for _ in range(jobs.MAX_ATTEMPTS):
        run_jobs()
        again()
    run_jobs()

    state = client.get(f"/projects/{number}/import").json
    assert (error_of(state), stored()) == ("the server failed (OSError)", [])


def test_an_import_of_a_removed_user_fails(as_, as_admin, group, people, run_jobs):
    add_member(group, people[MAX], Role.MAINTAINER)
    number = send(as_(MAX), namespace="acme").json["id"]
    db.session.execute(update(Task).values(run_at=clock.now() + dt.timedelta(days=1)))
    db.session.commit()
    as_admin.delete(f"/users/{people[MAX].id}")
    run_jobs()
    again()
    run_jobs()

    state = as_admin.get(f"/projects/{number}/import").json
    assert (state["import_status"], stored()) == ("failed", [])


# skipped rows


def test_overlong_texts_are_truncated_and_reported(bring, as_, monkeypatch):
    for module in (mapping, mapping_context):
        monkeypatch.setattr(module, "LONGEST_TEXT", 2000)
    long = "d" * 2001
    archive = make_archive(
        {
            "labels": [{"title": "bug", "description": long}],
            "milestones": [{"title": "v1", "iid": 1, "description": long}],
            "issues": [
                make_issue(1, description=long, notes=[make_note(long)]),
                make_issue(
                    2, description=long[1:], notes=[make_note(attachment="a" * 2000, position={"x": "p" * 70_000})]
                ),
            ],
            "merge_requests": [
                make_issue(1, description=long, source_branch="a", target_branch="b"),
                make_issue(2, source_branch=long, target_branch="b"),
            ],
            "snippets": [{"title": "s", "content": long, "author_id": 7}],
        },
        {"description": long, "tags": ["t" * 9_000, "t" * 1_000, "t"]},
    )

    state = bring(archive)
    found = {(one["relation_name"], one["line_number"], one["exception_message"]) for one in state["failed_relations"]}
    issues = as_(MAX).get(f"/projects/{state['id']}/issues?sort=asc").json
    shown = as_(MAX).get(f"/projects/{state['id']}").json

    def cut(label):
        return f"Validation failed: {label} is too long (maximum is 2000 characters) and was cut"

    assert found == {
        ("labels", 1, cut("Description")),
        ("milestones", 1, cut("Description")),
        ("issues", 1, cut("Description")),
        ("issues", 1, cut("Note")),
        ("merge_requests", 1, cut("Description")),
        ("merge_requests", 2, "Validation failed: Source branch is too long (maximum is 1024 characters)"),
        ("snippets", 1, cut("Content")),
        ("project", 0, cut("Description")),
    }
    assert [len(issue["description"]) for issue in issues] == [2000, 2000]
    assert len(shown["description"]) == 2000


@pytest.mark.both_databases
def test_refused_rows_are_reported_and_the_rest_is_imported(bring, as_):
    archive = make_archive(
        {
            "labels": [{"title": ""}, {"title": "good"}],
            "issues": [make_issue(1, title=None, notes=[make_note()], events=[make_event()]), make_issue(2)],
        }
    )

    state = bring(archive)

    assert state["import_status"] == "finished"
    assert [list(one) for one in state["failed_relations"]] == [
        [
            "id",
            "created_at",
            "exception_class",
            "exception_message",
            "source",
            "relation_name",
            "line_number",
        ]
    ] * 2
    first, second = state["failed_relations"]
    assert first["id"] > second["id"]
    assert (first["relation_name"], first["line_number"], first["exception_class"]) == (
        "issues",
        1,
        "ActiveRecord::RecordInvalid",
    )
    assert first["exception_message"] == "Validation failed: Title can't be blank"
    assert first["source"] == "RelationTreeRestorer#save_relation_object"
    assert second["relation_name"] == "labels"
    assert MOMENT.fullmatch(first["created_at"])
    assert [issue["iid"] for issue in as_(MAX).get(f"/projects/{state['id']}/issues").json] == [2]
    assert db.session.scalar(select(func.count()).select_from(Event).where(Event.target_type.is_not(None))) == 0


DIFF_NOTE = make_note(type="DiffNote")


@pytest.mark.parametrize(
    ("relation", "row", "text"),
    [
        ("issues", make_issue(1, title=""), "Validation failed: Title can't be blank"),
        ("issues", make_issue(1, title="x" * 256), "Validation failed: Title is too long (maximum is 255 characters)"),
        ("issues", make_issue(0), "Validation failed: Iid is not a number"),
        ("issues", make_issue(1) | {"iid": "one"}, "Validation failed: Iid is not a number"),
        ("issues", make_issue(1) | {"iid": 2**31}, "Validation failed: Iid is not a number"),
        ("issues", make_issue(1) | {"iid": 2**63}, "Validation failed: Iid is not a number"),
        ("issues", make_issue(1) | {"iid": 2**64 - 1}, "Validation failed: Iid is not a number"),
        ("issues", make_issue(1, notes=[DIFF_NOTE]), "Validation failed: Position can't be blank"),
        ("issues", make_issue(1, milestone={"title": None}), "Validation failed: Title can't be blank"),
        ("issues", make_issue(1, label_links=[{"label": {}}]), "Validation failed: Title can't be blank"),
        ("issues", make_issue(1, events=[make_event("dancing")]), "'dancing' is not a valid action"),
        ("issues", make_issue(1, description="a\0b"), "string contains null byte"),
        ("issues", [1], "no implicit conversion into Hash"),
        ("issues", "text", "no implicit conversion into Hash"),
        ("milestones", {"title": ""}, "Validation failed: Title can't be blank"),
        ("labels", {"title": "x" * 256}, "Validation failed: Title is too long (maximum is 255 characters)"),
        (
            "merge_requests",
            make_issue(1, target_branch="b"),
            "Validation failed: Source branch can't be blank",
        ),
        (
            "merge_requests",
            make_issue(1, source_branch="b"),
            "Validation failed: Target branch can't be blank",
        ),
        ("protected_tags", {"name": ""}, "Validation failed: Name can't be blank"),
        ("protected_tags", {"name": "x" * 256}, "Validation failed: Name is too long (maximum is 255 characters)"),
    ],
)
def test_invalid_rows_are_refused_with_reasons(relation, row, text, bring, as_):
    state = bring(make_archive({relation: [row]}))

    assert (state["import_status"], state["import_error"]) == ("finished", None)
    [failed] = state["failed_relations"]
    assert (failed["relation_name"], failed["exception_message"]) == (relation, text)
    assert as_(MAX).get(f"/projects/{state['id']}/issues").json == []


@pytest.mark.both_databases
def test_iids_are_unique_in_the_project(bring, as_):
    state = bring(make_archive({"issues": [make_issue(3), make_issue(3, title="Second")]}))

    [failed] = state["failed_relations"]
    [issue] = as_(MAX).get(f"/projects/{state['id']}/issues").json
    assert (failed["exception_message"], issue["title"]) == ("Validation failed: Iid has already been taken", "Issue 3")


@pytest.mark.both_databases
def test_the_newest_hundred_failures_are_shown_with_short_messages(bring):
    state = bring(make_archive({"issues": [make_issue(number, title="") for number in range(1, 131)]}))

    lines = [failed["line_number"] for failed in state["failed_relations"]]
    assert (lines, db.session.scalar(select(func.count()).select_from(ImportFailure))) == (
        list(range(130, 30, -1)),
        130,
    )
    assert all(len(failed["exception_message"]) <= 255 for failed in state["failed_relations"])


def test_an_empty_row_is_ignored(bring):
    state = bring(make_archive({name: [{}] for name in ("labels", "issues", "notes", "merge_requests", "releases")}))

    assert state["import_status"] == "finished"
    assert sorted(failed["relation_name"] for failed in state["failed_relations"]) == [
        "issues",
        "labels",
        "merge_requests",
    ]


@pytest.mark.parametrize("lines_at_once", [1, 1000])
def test_only_one_row_of_a_single_object_is_imported(lines_at_once, bring, as_, run_jobs, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", lines_at_once)
    state = bring(make_archive({"auto_devops": [{"enabled": True}, {"enabled": False}, {}]}))

    left_out = [(one["relation_name"], one["line_number"]) for one in state["failed_relations"]]
    assert (state["import_status"], left_out) == ("finished", [("auto_devops", 3), ("auto_devops", 2)])
    assert export(as_(MAX), state["id"], run_jobs)["tree/project/auto_devops.ndjson"] == b'{"enabled":true}'


@pytest.mark.both_databases
def test_the_next_iid_follows_the_imported_ones(bring, as_):
    state = bring(make_archive({"issues": [make_issue(41)], "milestones": [{"title": "m", "iid": 7}]}))
    client = as_(MAX)

    issue = client.post(f"/projects/{state['id']}/issues", json={"title": "New"})
    milestone = client.post(f"/projects/{state['id']}/milestones", json={"title": "New"})

    assert (issue.json["iid"], milestone.json["iid"]) == (42, 8)


# people


MEMBERS = [
    {"access_level": 50, "user": {"id": 7, "email": "DEV@example.org", "username": "somebody"}},
    {"access_level": 20, "user": {"id": 8, "email": "x@example.org", "public_email": "rita@example.org"}},
    {"access_level": 30, "user": {"id": 9, "email": "unknown@example.org", "username": "gus"}},
]


@pytest.mark.both_databases
def test_an_administrators_import_maps_members_by_email(bring, as_, people):
    archive = make_archive(
        {
            "issues": [
                make_issue(number, author_id=number, notes=[make_note(author_id=number)]) for number in (7, 8, 9)
            ],
            "project_members": MEMBERS,
        }
    )

    state = bring(archive, person=ADA)

    client = as_(ADA)
    issues = client.get(f"/projects/{state['id']}/issues?sort=asc").json
    notes = [client.get(f"/projects/{state['id']}/issues/{issue['iid']}/notes").json[0] for issue in issues]
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{state['id']}/members").json}
    assert {issue["iid"]: issue["author"]["username"] for issue in issues} == {7: DEV, 8: RITA, 9: ADA}
    assert [("imported from" in note["body"]) for note in sorted(notes, key=lambda note: note["noteable_iid"])] == [
        False,
        False,
        True,
    ]
    assert levels == {ADA: 40, DEV: 40, RITA: 20}
    events = client.get(f"/projects/{state['id']}/events").json
    assert [event["action_name"] for event in events] == ["created"]


@pytest.mark.both_databases
def test_imported_memberships_keep_their_expiry(bring, as_, people):
    members = [
        {"access_level": 20, "expires_at": "2101-01-01", "user": {"id": 7, "email": "dev@example.org"}},
        {"access_level": 30, "expires_at": "2101/02/03", "user": {"id": 7, "email": "dev@example.org"}},
        {"access_level": 20, "expires_at": "tomorrow", "user": {"id": 8, "email": "rita@example.org"}},
    ]

    state = bring(make_archive({"project_members": members}), person=ADA)

    shown = as_(ADA).get(f"/projects/{state['id']}/members").json
    assert {one["username"]: (one["access_level"], one["expires_at"]) for one in shown} == {
        ADA: (40, None),
        DEV: (30, "2101-02-03"),  # and Rita none, for hers would have no end
    }


@pytest.mark.parametrize("address", ["{}" + "x" * 100_000, "dev@example.org", "{}@example.org"])
def test_member_data_is_read_in_bounded_batches(address, people, monkeypatch):
    monkeypatch.setattr(transfer_people, "MEMBERS_AT_ONCE", 10)
    held = []

    def members():
        for number in range(100):
            user = {"id": number, "email": address.format(number)}
            yield {"access_level": 30, "expires_at": f"2101-01-01{number}{'x' * 200_000}", "user": user}
            held.append(tracemalloc.get_traced_memory()[0])

    tracemalloc.start()
    try:
        transfer_people.map_users(people[ADA], members())
    finally:
        tracemalloc.stop()

    assert max(held) < 1 << 20


def test_access_requests_do_not_become_members(bring, as_, people, run_jobs):
    request = {"access_level": 30, "requested_at": MADE, "user": {"id": 7, "email": "dev@example.org"}}

    number = bring(make_archive({"issues": [make_issue(1)], "project_members": [request]}), person=ADA)["id"]

    client = as_(ADA)
    assert [one["username"] for one in client.get(f"/projects/{number}/members").json] == [ADA]
    assert client.get(f"/projects/{number}/issues/1").json["author"]["username"] == ADA
    kept = rows(export(client, number, run_jobs), "project_members")
    assert [(one["access_level"], one["user"]["email"]) for one in kept if one["requested_at"]] == [
        (30, "dev@example.org")
    ]


@pytest.mark.parametrize(
    ("level", "given"), [(-1, None), (0, None), (5, None), (10, 10), (15, 10), (35, 30), (50, 40), (60, 40)]
)
def test_imported_members_do_not_get_a_higher_role(level, given, bring, as_, people):
    member = {"access_level": level, "user": {"id": 7, "email": "dev@example.org"}}

    number = bring(make_archive({"issues": [make_issue(1)], "project_members": [member]}), person=ADA)["id"]

    client = as_(ADA)
    levels = {one["username"]: one["access_level"] for one in client.get(f"/projects/{number}/members").json}
    assert (levels.get(DEV), client.get(f"/projects/{number}/issues/1").json["author"]["username"]) == (given, DEV)


@pytest.mark.both_databases
def test_imports_of_other_users_map_no_members(bring, as_):
    archive = make_archive({"issues": [make_issue(1, notes=[make_note()])], "project_members": MEMBERS})

    state = bring(archive)

    client = as_(MAX)
    [issue] = client.get(f"/projects/{state['id']}/issues").json
    [note] = client.get(f"/projects/{state['id']}/issues/1/notes").json
    members = [one["username"] for one in client.get(f"/projects/{state['id']}/members").json]
    assert (issue["author"]["username"], note["author"]["username"], members) == (MAX, MAX, [MAX])
    assert note["body"] == "A note\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"


@pytest.mark.parametrize(
    ("note", "body"),
    [
        (make_note(""), "*Blank note*\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note(None), "*Blank note*\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note("x", system=True), "x\n\n *By Tess on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (make_note("x", author=None), "x\n\n *By  on 2021-02-15T15:56:00 (imported from GitLab)*"),
        (
            make_note("x", updated_at="2016-06-14T15:02:47Z"),
            "x\n\n *By Tess on 2016-06-14T15:02:47Z (imported from GitLab)*",
        ),
        (
            make_note("x", updated_at="2016-06-14T15:02:47.5+02:00"),
            "x\n\n *By Tess on 2016-06-14T15:02:47 (imported from GitLab)*",
        ),
    ],
)
def test_notes_of_unmapped_users_name_their_author(note, body, bring, as_):
    state = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))

    [shown] = as_(MAX).get(f"/projects/{state['id']}/issues/1/notes").json
    assert shown["body"] == body


def test_user_references_are_mapped_or_become_the_importer(bring, as_, people, run_jobs):
    row = make_issue(1, author_id=7, closed_by_id=8, updated_by_id=9, issue_assignees=[{"user_id": 7}, {"user_id": 9}])
    number = bring(make_archive({"issues": [row], "project_members": MEMBERS}), person=ADA)["id"]

    [line] = rows(export(as_(ADA), number, run_jobs), "issues")
    ids = {name: people[name].id for name in (ADA, DEV, RITA)}
    assert (line["author_id"], line["closed_by_id"], line["updated_by_id"]) == (ids[DEV], ids[RITA], ids[ADA])
    assert {one["user_id"] for one in line["issue_assignees"]} == {ids[DEV], ids[ADA]}


def test_assignees_mapped_to_one_user_are_merged(bring, as_):
    row = make_issue(1, issue_assignees=[{"user_id": 7}, {"user_id": 8}])
    state = bring(make_archive({"issues": [row]}))

    [issue] = as_(MAX).get(f"/projects/{state['id']}/issues").json
    assert [one["username"] for one in issue["assignees"]] == [MAX]


@pytest.mark.parametrize("name", ["merge_request_assignees", "merge_request_reviewers"])
def test_merge_request_assignees_are_unique(name, bring, as_, run_jobs):
    people = [{"user_id": number, "state": "unreviewed"} for number in (7, 8, 7, 9)]
    row = make_issue(1, source_branch="a", target_branch="b", **{name: people})
    number = bring(make_archive({"merge_requests": [row], "project_members": MEMBERS}), person=ADA)["id"]

    [line] = rows(export(as_(ADA), number, run_jobs), "merge_requests")
    assert len(line[name]) == len({one["user_id"] for one in line[name]}) == 3


def test_notes_in_passed_through_rows_name_their_author(bring, as_, run_jobs):
    known, stranger = make_note("Known", author_id=7), make_note("", author_id=99)
    odd = [{"note": {"a": 1}}, {"note": True}, {"id": 5, "type": None}, 5]
    deep = functools.reduce(lambda inner, _: {"a": inner}, range(99), {})
    relations = {
        "project_members": MEMBERS,
        "oddities": [{"notes": odd}, deep, {"notes": [stranger | {"note": 5}]}],
        "ci_pipelines": [{"iid": 1, "notes": [known, stranger], "stages": [{"notes": [stranger]}, {"notes": None}]}],
        "commit_notes": [stranger, known],
    }
    number = bring(make_archive(relations), person=ADA)["id"]

    files = export(as_(ADA), number, run_jobs)
    [pipeline], notes = rows(files, "ci_pipelines"), rows(files, "commit_notes")
    signed = f"*Blank note*\n\n *By Tess on {MADE.partition('.')[0]} (imported from GitLab)*"
    assert [note["note"] for note in pipeline["notes"]] == ["Known", signed]
    assert pipeline["stages"] == [{"notes": [pipeline["notes"][1]]}, {"notes": None}]
    assert [note["note"] for note in notes] == [signed, "Known"]
    *kept, numbered = rows(files, "oddities")
    assert (kept, numbered["notes"][0]["note"]) == ([{"notes": odd}, deep], signed.replace("*Blank note*", "5"))


@pytest.mark.parametrize(("person", "invited"), [(ADA, True), (MAX, False)])
def test_invitations_of_an_administrators_import_are_exported(person, invited, bring, as_, run_jobs):
    invitation = {"user": None, "invite_email": "new@example.org", "access_level": 30}
    state = bring(make_archive({"project_members": [invitation]}), person=person)

    addresses = [one["invite_email"] for one in rows(export(as_(person), state["id"], run_jobs), "project_members")]
    assert ("new@example.org" in addresses, state["failed_relations"]) == (invited, [])


# labels, milestones and children of issues


@pytest.mark.both_databases
def test_labels_are_unique_per_title(bring, as_):
    archive = make_archive(
        {
            "labels": [{"title": "bug", "color": "#ff0000", "type": "GroupLabel", "group_id": 3}, {"title": "bug"}],
            "issues": [
                make_issue(
                    1, label_links=[{"label": {"title": "bug", "color": "#00ff00"}}, {"label": {"title": "new"}}]
                ),
                make_issue(2, label_links=[{"label": {"title": "new"}}]),
            ],
        }
    )
    number = bring(archive)["id"]

    labels = {issue["iid"]: sorted(issue["labels"]) for issue in as_(MAX).get(f"/projects/{number}/issues").json}
    assert labels == {1: ["bug", "new"], 2: ["new"]}


def test_a_relabelled_issue_exports_all_label_details(bring, as_, run_jobs):
    old, client = {"title": "old", "color": "#ff0000"}, as_(MAX)
    number = bring(make_archive({"labels": [old], "issues": [make_issue(1, label_links=[{"label": old}])]}))["id"]
    assert client.put(f"/projects/{number}/issues/1", json={"labels": "new,old"}).status_code == 200

    files = export(client, number, run_jobs)

    assert [(one["title"], one["color"]) for one in rows(files, "labels")] == [("old", "#ff0000"), ("new", "#6699cc")]
    [line] = rows(files, "issues")
    assert [link["label"]["title"] for link in line["label_links"]] == ["new", "old"]


def test_events_of_nested_milestones_are_imported(bring, as_):
    created = make_event(target_type="Milestone")
    closed = make_event("closed", target_type="Milestone", author_id=8)
    nobody = make_event("frobnicated", target_type="Milestone", author_id=None)
    brought = [[created, created], [created, nobody, closed], None, [closed, created], [closed | {"action": 3}]]
    issues = [
        make_issue(number, milestone={"title": "v1", "events": events}) for number, events in enumerate(brought, 1)
    ]
    number = bring(make_archive({"milestones": [{"title": "v1", "events": [created, created]}], "issues": issues}))[
        "id"
    ]

    events = as_(MAX).get(f"/projects/{number}/events?target_type=milestone").json
    assert sorted(event["action_name"] for event in events) == ["closed", "opened", "opened"]


@pytest.mark.both_databases
def test_milestones_are_unique_per_title_with_events_once(bring, as_):
    nested = {"title": "v1", "iid": 5, "events": [make_event(target_type="Milestone")]}
    number = bring(
        make_archive(
            {
                "milestones": [{"title": "v1", "iid": 3, "state": "closed", "events": nested["events"]}],
                "issues": [make_issue(1, milestone=nested), make_issue(2, milestone=nested)],
            }
        )
    )["id"]

    client = as_(MAX)
    [milestone] = client.get(f"/projects/{number}/milestones").json
    issues = client.get(f"/projects/{number}/issues").json
    events = client.get(f"/projects/{number}/events?target_type=milestone").json
    assert (milestone["iid"], milestone["state"], len(events)) == (3, "closed", 1)
    assert {issue["milestone"]["id"] for issue in issues} == {milestone["id"]}


def test_group_milestones_become_project_milestones_with_new_iids(bring, as_):
    number = bring(
        make_archive(
            {
                "milestones": [
                    {"title": "own", "iid": 1, "group_id": None},
                    {"title": "groups", "iid": 1, "group_id": 9},
                    {"title": "clash", "iid": 1, "group_id": None},
                ]
            }
        )
    )["id"]

    iids = {one["title"]: one["iid"] for one in as_(MAX).get(f"/projects/{number}/milestones").json}
    assert (iids["own"], sorted(iids.values())) == (1, [1, 2, 3])


def test_an_issue_without_iid_takes_a_free_one(bring, as_, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", LINES_PARSED_AT_ONCE)
    numbered = [make_issue(iid) for iid in range(1, 3 * LINES_PARSED_AT_ONCE)]
    unnumbered = [make_issue(0, title=title) | {"iid": None} for title in ("first", "second")]

    state = bring(make_archive({"issues": [unnumbered[0], *numbered, unnumbered[1]]}))

    client, listed = as_(MAX), f"/projects/{state['id']}/issues"
    found = [client.get(f"{listed}?search={title}").json[0]["iid"] for title in ("first", "second")]
    assert state["failed_relations"] == []
    assert found == [3 * LINES_PARSED_AT_ONCE, 3 * LINES_PARSED_AT_ONCE + 1]


def iids_of_milestones(client, number):
    return {one["title"]: one["iid"] for one in client.get(f"/projects/{number}/milestones").json}


def test_a_project_milestone_keeps_its_iid_before_a_group_milestone(bring, as_):
    milestones = [{"title": "groups", "iid": 5, "group_id": 9}, {"title": "own", "iid": 1}]

    number = bring(make_archive({"milestones": milestones}))["id"]

    assert iids_of_milestones(as_(MAX), number) == {"own": 1, "groups": 2}


def test_nested_milestones_keep_their_iids(bring, as_, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 1)
    of_group = {"title": "groups", "iid": 4, "group_id": 9}
    archive = make_archive(
        {
            "milestones": [of_group, {"title": "own", "iid": 8, "group_id": None}],
            "issues": [
                make_issue(1, milestone={"title": "another group's", "iid": 9, "group_id": 8}),
                make_issue(2, milestone={"title": "nested", "iid": 9, "group_id": None}),
                make_issue(3, milestone=of_group),
                make_issue(4, milestone={"title": "lost", "iid": 2, "group_id": 1}, events=[make_event("dancing")]),
                make_issue(5, milestone={"title": "third group's", "iid": 9, "group_id": 7}),
            ],
            "merge_requests": [
                make_issue(1, source_branch="a", target_branch="b", milestone={"title": "of a change", "iid": 1})
            ],
        }
    )

    number = bring(archive)["id"]

    client = as_(MAX)
    assert iids_of_milestones(client, number) == {
        "own": 8,
        "nested": 9,
        "of a change": 1,
        "groups": 10,
        "another group's": 11,
        "third group's": 12,
    }
    assert client.post(f"/projects/{number}/milestones", json={"title": "after"}).json["iid"] == 13


@pytest.mark.parametrize("iid", [0, -3, 2**31, 2**63 - 1, 2**64, "one", None, 1.5, True])
def test_a_milestone_with_an_invalid_iid_gets_another(iid, bring, as_):
    state = bring(make_archive({"milestones": [{"title": "odd", "iid": iid}, {"title": "next", "group_id": 1}]}))

    assert state["import_status"] == "finished"
    milestones = as_(MAX).get(f"/projects/{state['id']}/milestones").json
    assert sorted(one["iid"] for one in milestones) == [1, 2]
    assert as_(MAX).post(f"/projects/{state['id']}/milestones", json={"title": "after"}).json["iid"] == 3


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2016-06-14T15:02:47.5Z", "2016-06-14T15:02:47.500Z"),
        ("2016-06-14 15:02:47 UTC", "2016-06-14T15:02:47.000Z"),
        ("2016-06-14t15:02:47z", "2016-06-14T15:02:47.000Z"),
        ("Tue, 14 Jun 2016 15:02:47 +0200", "2016-06-14T13:02:47.000Z"),
        ("Tue, 14 Jun 2016 15:02:47 GMT", "2016-06-14T15:02:47.000Z"),
        ("2016/06/14 15:02:47", "2016-06-14T15:02:47.000Z"),
        ("2016-06-14T24:00:00Z", "2016-06-15T00:00:00.000Z"),
        ("2016-06-14T15:02:60Z", "2016-06-14T15:03:00.000Z"),
        ("2016-06-14T15:02:47." + "5" * 1000 + "+02:00", "2016-06-14T13:02:47.555Z"),
        (1465916567, "2016-06-14T15:02:47.000Z"),
        (1465916567123, "2016-06-14T15:02:47.123Z"),
    ],
)
def test_times_are_read_in_many_formats(written, read, bring, as_):
    number = bring(make_archive({"issues": [make_issue(1, created_at=written)]}))["id"]

    assert as_(MAX).get(f"/projects/{number}/issues/1").json["created_at"] == read


@pytest.mark.both_databases
@pytest.mark.parametrize("written", ["", "soon", "15:02", "3 June", 3, 2**62, True, -1, 1.5, [], {}, "9" * 5000, None])
def test_an_invalid_time_is_replaced_by_the_time_of_the_import(written, bring, as_):
    number = bring(make_archive({"issues": [make_issue(1, created_at=written)]}))["id"]

    made = dt.datetime.fromisoformat(as_(MAX).get(f"/projects/{number}/issues/1").json["created_at"])
    assert clock.now() - made < dt.timedelta(minutes=5)


def test_invalid_times_are_not_passed_through():
    tracemalloc.start()
    try:
        assert [moment_of(f"{number}{'x' * 100_000}") for number in range(100)] == [None] * 100
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def titles_seen(client, path):
    return [one.get("title") or one["body"].partition("\n")[0] for one in client.get(path).json]


@pytest.mark.parametrize("flag", [True, 1, "true", "t", "1", "yes", 2, [], {}])
def test_uncertain_confidentiality_is_confidential(flag, bring, as_):
    events = [make_event("commented", target_type="Note")]
    notes = [make_note("hidden", confidential=flag, events=events), make_note("hidden too", internal=flag)]
    hidden = make_issue(1, confidential=flag, events=[make_event()], notes=[make_note("in it", events=events)])
    archive = make_archive({"issues": [hidden, make_issue(2, notes=notes)]}, {"visibility_level": 20})

    number = bring(archive)["id"]

    stranger, importer = as_(SAM), as_(MAX)
    assert titles_seen(stranger, f"/projects/{number}/issues") == ["Issue 2"]
    assert stranger.get(f"/projects/{number}/issues/1").status_code == 404
    assert titles_seen(stranger, f"/projects/{number}/issues/2/notes") == []
    assert [one["action_name"] for one in stranger.get(f"/projects/{number}/events").json] == ["created"]
    assert len(titles_seen(importer, f"/projects/{number}/issues")) == 2
    assert len(titles_seen(importer, f"/projects/{number}/issues/2/notes")) == 2


@pytest.mark.parametrize("flag", [False, None, 0, "false", "f", "0", ""])
def test_explicitly_public_rows_are_not_confidential(flag, bring, as_):
    issue = make_issue(1, confidential=flag, notes=[make_note("open", confidential=flag)])

    number = bring(make_archive({"issues": [issue]}, {"visibility_level": 20, "archived": flag}))["id"]

    stranger = as_(SAM)
    assert titles_seen(stranger, f"/projects/{number}/issues") == ["Issue 1"]
    assert titles_seen(stranger, f"/projects/{number}/issues/1/notes") == ["open"]
    assert stranger.get(f"/projects/{number}").json["archived"] is False


@pytest.mark.both_databases
def test_actions_are_read_as_words_and_numbers(bring, as_):
    events = [make_event("created"), make_event(1), make_event("closed"), make_event(3), make_event(author_id=None)]
    number = bring(make_archive({"issues": [make_issue(1, events=events)]}))["id"]

    shown = as_(MAX).get(f"/projects/{number}/events?target_type=issue").json
    assert sorted(event["action_name"] for event in shown) == ["closed", "closed", "opened", "opened"]
    assert {event["created_at"] for event in shown} == {"2021-02-15T15:56:00.645Z"}
    assert {(event["target_iid"], event["target_title"]) for event in shown} == {(1, "Issue 1")}


def test_comment_events_show_their_note(bring, as_):
    note = make_note("Hello", events=[make_event("commented", target_type="Note")])
    number = bring(make_archive({"issues": [make_issue(1, notes=[note])]}))["id"]

    [event] = as_(MAX).get(f"/projects/{number}/events?target_type=note").json
    assert (event["action_name"], event["note"]["body"].startswith("Hello")) == ("commented on", True)


def test_a_merge_request_from_a_fork_has_no_source_project(bring, as_, run_jobs):
    row = make_issue(1, source_branch="a", target_branch="b", source_project_id=5, target_project_id=6)
    own = make_issue(2, source_branch="a", target_branch="b", source_project_id=6, target_project_id=6)
    number = bring(
        make_archive(
            {
                "merge_requests": [
                    row | {"merge_when_pipeline_succeeds": True},
                    own,
                    row | {"iid": 3, "diff_head_sha": "abc"},
                ]
            }
        )
    )["id"]

    found = {line["iid"]: line for line in rows(export(as_(MAX), number, run_jobs), "merge_requests")}
    assert {iid: line["source_project_id"] for iid, line in found.items()} == {1: None, 2: number, 3: number}
    assert found[1]["merge_when_pipeline_succeeds"] is False


def bundle_with_a_fork(folder):
    """Return a bundle with a commit that no branch points to, as for merge requests of forks, and the commit."""
    make_bundle(folder)
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]

    def git(*words):
        return subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True).stdout.decode()

    commit = git("commit-tree", "main^{tree}", "-p", "main", "-m", "fork").strip()
    git("update-ref", "refs/merge-requests/1/head", commit)
    git("branch", "dev", "main")
    git("bundle", "create", "--quiet", "fork.bundle", "HEAD", "--exclude=refs/heads/main", "--all", "refs/heads/main")
    return (folder / "fork.bundle").read_bytes(), commit


def refs_of(number):
    with repository_folder(db.session.get(Project, number)) as folder:
        told = git_commands.git("for-each-ref", "--format=%(refname) %(objectname)", folder=folder).decode()
    return dict(line.split() for line in told.splitlines())


@pytest.mark.parametrize("level", ["10", "private", 5, 10.0, True, [20], {}])
def test_an_invalid_feature_level_is_private(level, bring, as_):
    archive = make_archive({"project_feature": [{"issues_access_level": level, "wiki_access_level": 30}]})

    found = as_(MAX).get(f"/projects/{bring(archive)['id']}").json

    assert (found["issues_access_level"], found["wiki_access_level"]) == ("private", "enabled")


def test_an_unresolved_note_is_exported_as_unresolved(as_, bring, run_jobs):
    said = [{"confidential": False}, {"confidential": True}, {"confidential": None}, {}]
    notes = [make_note(f"note {index}", **each) for index, each in enumerate(said)]

    for files in exported_twice(as_(MAX), bring, make_archive({"issues": [make_issue(1, notes=notes)]}), run_jobs):
        [issue] = rows(files, "issues")
        assert [note["confidential"] for note in issue["notes"]] == [False, True, None, None]


def test_a_note_is_internal_when_either_of_its_flags_says_so(bring, as_):
    notes = [make_note(confidential=False, internal=True), make_note(confidential=True, internal=False), make_note()]
    number = bring(make_archive({"issues": [make_issue(1, notes=notes)]}))["id"]

    found = as_(MAX).get(f"/projects/{number}/issues/1/notes").json
    assert sorted(note["confidential"] for note in found) == [False, True, True]


@pytest.mark.parametrize("moment", ["2020 " + "9" * 30 + "h", "1" * 29 + ".5h 2020", "2020-01-01 1" + "0" * 30 + "m"])
def test_an_impossible_time_is_replaced_by_the_time_of_the_import(moment, bring):
    assert bring(make_archive({"issues": [make_issue(1, created_at=moment)]}))["import_status"] == "finished"


def test_an_open_merge_request_from_a_fork_gets_its_branch(bring, as_, run_jobs, tmp_path):
    bundle, commit = bundle_with_a_fork(tmp_path / "git")
    row = {"target_branch": "main", "source_project_id": 5, "target_project_id": 6, "diff_head_sha": commit}
    requests = [
        make_issue(1, source_branch="theirs/new", **row),
        make_issue(2, source_branch="closed", **row | {"state": "closed"}),
        make_issue(3, source_branch="own", **row | {"source_project_id": 6}),
        make_issue(4, source_branch="main", **row),
        make_issue(5, source_branch="gone", **row | {"diff_head_sha": "1" * 40}),
        make_issue(6, source_branch="bad..name", **row),
        make_issue(7, source_branch="theirs", **row),
        make_issue(8, source_branch="none", **row | {"diff_head_sha": None}),
        make_issue(9, source_branch="refs/heads/main", **row),
        make_issue(10, source_branch="HEAD", **row),
        make_issue(11, source_branch="a" * 1100, **row),
        make_issue(12, source_branch="a/" * 600 + "b", **row),
    ]
    number = bring(make_archive({"merge_requests": requests}, files={"project.bundle": bundle}))["id"]

    refs = refs_of(number)
    branches = ["refs/heads/dev", "refs/heads/main", "refs/heads/theirs/new"]
    assert sorted(refs) == [*branches, "refs/merge-requests/1/head"]
    assert refs["refs/heads/theirs/new"] == commit != refs["refs/heads/main"]
    assert reload(db.session.get(Project, number)).default_branch == "main"
    out = export(as_(MAX), number, run_jobs)
    again_imported = bring(make_archive(version=None, files=out), path="again")["id"]
    assert refs_of(again_imported) == refs
    assert reload(db.session.get(Project, again_imported)).default_branch == "main"


def test_the_branch_of_a_fork_survives_a_kill(as_, run_jobs, monkeypatch, tmp_path):
    bundle, commit = bundle_with_a_fork(tmp_path / "git")
    row = {"target_branch": "main", "source_project_id": 5, "target_project_id": 6, "diff_head_sha": commit}
    archive = make_archive(
        {"merge_requests": [make_issue(1, source_branch="theirs", **row)]}, files={"project.bundle": bundle}
    )
    for number in itertools.count(2):
        made = send(as_(MAX), archive, path=f"killed-{number}").json["id"]
        with killed_in_step(monkeypatch, number, before_commit=True) as hit:
            run_jobs()
        again()
        run_jobs()
        assert refs_of(made)["refs/heads/theirs"] == commit
        assert storage().names(f"projects/{made}") == []
        if not hit:
            break
    assert number > 4


@pytest.mark.both_databases
def test_protected_tags_are_imported_with_their_levels(bring, as_):
    levels = [{"access_level": 40}, {"access_level": 30, "user_id": 5}, {"access_level": 0, "group_id": 2}]
    number = bring(
        make_archive(
            {
                "protected_tags": [
                    {"name": "v*", "create_access_levels": [{"access_level": 30}]},
                    {"name": "none", "create_access_levels": [{"access_level": 0}]},
                    {"name": "people", "create_access_levels": levels},
                    {"name": "keys", "create_access_levels": [{"access_level": 40, "deploy_key_id": 9}]},
                    {"name": "v*"},
                ]
            }
        )
    )

    shown = as_(MAX).get(f"/projects/{number['id']}/protected_tags").json
    assert {tag["name"]: [level["access_level"] for level in tag["create_access_levels"]] for tag in shown} == {
        "v*": [30],
        "none": [0],
        "people": [40],
        "keys": [0],
    }
    [failed] = number["failed_relations"]
    assert failed["exception_message"].endswith("Name has already been taken")


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        (None, [40]),
        ([], [0]),
        ([{"access_level": 60}], [0]),
        ([{"access_level": 60}, {"access_level": 30}], [30]),
        ([{"access_level": 20}], [30]),
        ([{"access_level": 35}], [40]),
        ([{"access_level": -1}], [0]),
        ([{"access_level": 30, "user_id": 7}], [0]),
        ([{"access_level": "30"}], [0]),
        ([{"access_level": True}], [0]),
        (["x"], [0]),
        ({"access_level": 30}, [0]),
    ],
)
def test_an_imported_protected_tag_grants_no_further_access(given, levels, bring, as_):
    number = bring(make_archive({"protected_tags": [{"name": "v*", "create_access_levels": given}]}))["id"]

    [tag] = as_(MAX).get(f"/projects/{number}/protected_tags").json
    assert [level["access_level"] for level in tag["create_access_levels"]] == levels


def test_archived_fields_of_a_protected_tag_are_exported(as_, bring, run_jobs):
    odd = {"name": "odd", "odd": 1, "create_access_levels": [{"access_level": 60}, {"access_level": 30, "group_id": 3}]}
    none, usual = {"name": "none", "create_access_levels": []}, {"name": "v*", "create_access_levels": [LEVEL]}
    archive = make_archive({"protected_tags": [odd, none, usual]})

    for files in exported_twice(as_(MAX), bring, archive, run_jobs):
        lines = {line["name"]: line for line in rows(files, "protected_tags")}
        assert (lines["odd"]["odd"], lines["odd"]["create_access_levels"]) == (1, odd["create_access_levels"])
        assert lines["none"]["create_access_levels"] == []
        [level] = lines["v*"]["create_access_levels"]
        assert (level["access_level"], level["created_at"]) == (30, MADE)


def test_a_tag_protected_again_has_no_archived_fields(as_, bring, run_jobs):
    row, client = {"name": "v", "create_access_levels": [{"access_level": 60}]}, as_(MAX)
    number = bring(make_archive({"protected_tags": [row]}))["id"]
    client.delete(f"/projects/{number}/protected_tags/v")
    client.post(f"/projects/{number}/protected_tags", json={"name": "v", "create_access_level": 30})

    [line] = rows(export(client, number, run_jobs), "protected_tags")

    assert [one["access_level"] for one in line["create_access_levels"]] == [30]


def protections_of(number):
    columns = ("name", "push_access_level", "merge_access_level", "allow_force_push", "added_by_import")
    rows = db.session.scalars(select(ProtectedBranch).where(ProtectedBranch.project_id == number))
    return sorted(tuple(getattr(row, column) for column in columns) for row in rows)


@pytest.mark.both_databases
def test_the_default_branch_of_an_imported_project_is_protected(as_, bring, run_jobs, tmp_path):
    bundle = make_bundle(tmp_path / "code")
    number = bring(make_archive({}, files={"project.bundle": bundle}))["id"]

    assert protections_of(number) == [("main", 40, 40, False, True)]
    assert rows(export(as_(MAX), number, run_jobs), "protected_branches") == []


@pytest.mark.both_databases
def test_protected_branches_are_imported_and_exported_with_their_levels(as_, bring, run_jobs, tmp_path):
    given = [
        {"name": "ma*", "push_access_levels": [{"access_level": 0}], "merge_access_levels": [LEVEL], "odd": 1},
        {"name": "keys", "push_access_levels": [{"access_level": 30, "deploy_key_id": 5}], "allow_force_push": True},
        {"name": "several", "push_access_levels": [{"access_level": 40}, {"access_level": 30}]},
        {"name": "main"},
        {"name": "main"},
    ]
    archive = make_archive({"protected_branches": given}, files={"project.bundle": make_bundle(tmp_path / "code")})
    state = bring(archive)

    assert protections_of(state["id"]) == [
        ("keys", 0, 40, True, False),
        ("ma*", 0, 30, False, False),
        ("main", 40, 40, False, False),
        ("several", 30, 40, False, False),
    ]
    [failed] = state["failed_relations"]
    assert failed["exception_message"].endswith("Name has already been taken")
    lines = {line["name"]: line for line in rows(export(as_(MAX), state["id"], run_jobs), "protected_branches")}
    assert (lines["ma*"]["odd"], lines["keys"]["allow_force_push"]) == (1, True)
    for name, line in zip(("keys", "several"), given[1:], strict=False):
        assert lines[name]["push_access_levels"] == line["push_access_levels"]


def test_error_tracking_is_imported_disabled_and_without_token(bring, as_):
    row = {"api_url": "https://sentry.example.org/api/0/projects/a/b", "project_name": "A", "token": "secret"}
    number = bring(make_archive({"error_tracking_setting": [row | {"enabled": True}]}))["id"]

    shown = as_(MAX).get(f"/projects/{number}/error_tracking/settings").json
    assert (shown["active"], shown["project_name"], shown["api_url"]) == (False, "A", row["api_url"])


def test_forbidden_fields_are_ignored(bring, as_, run_jobs):
    rows_ = {
        name: [{"id": 1, "url": "http://x", "key": "K", "value": "v"}] for name in ("services", "hooks", "variables")
    }
    state = bring(make_archive(rows_))

    assert (state["import_status"], state["failed_relations"]) == ("finished", [])
    assert as_(MAX).get(f"/projects/{state['id']}/variables").json == []
    files = export(as_(MAX), state["id"], run_jobs)
    assert not [name for name in files if re.search("services|hooks|variables", name)]


def test_tokens_and_encrypted_values_are_not_imported(bring, as_, run_jobs):
    trigger = {"description": "t", "token": "SECRET", "encrypted_x": "SECRET", "secret": "SECRET", "owner_id": 7}
    trigger |= {"tokens": ["SECRET"], "secrets": {"a": "SECRET"}, "remote_avatar_url": "https://SECRET"}
    trigger |= {"notes_attributes": [{"note": "SECRET"}], "remote_attachment_request_header": "SECRET"}
    issue = make_issue(
        1,
        token="SECRET",
        tokens=["SECRET"],
        notes_attributes=[{"note": "SECRET"}],
        timelogs=[{"time_spent": 5, "runners_token": "SECRET"}],
    )
    number = bring(make_archive({"triggers": [trigger], "issues": [issue]}, {"runners_token": "SECRET"}))["id"]

    files = export(as_(MAX), number, run_jobs)
    assert not [name for name, content in files.items() if b"SECRET" in content]
    assert rows(files, "issues")[0]["timelogs"] == [{"time_spent": 5}]


@pytest.mark.both_databases
def test_rows_cannot_set_ids_or_belong_to_other_projects(bring, as_, project, people):
    victim = as_(MAX).post(f"/projects/{project.id}/issues", json={"title": "Theirs"}).json
    row = make_issue(
        1, id=victim["id"], project_id=project.id, milestone_id=1, notes=[make_note(noteable_id=victim["id"])]
    )
    state = bring(make_archive({"issues": [row], "labels": [{"title": "l", "project_id": project.id, "id": 1}]}))

    [theirs] = as_(MAX).get(f"/projects/{project.id}/issues").json
    [ours] = as_(MAX).get(f"/projects/{state['id']}/issues").json
    assert (theirs["title"], ours["title"], theirs["id"] != ours["id"]) == ("Theirs", "Issue 1", True)
    assert theirs["user_notes_count"] == 0
    assert ours["project_id"] == state["id"]


def test_junk_blank_lines_null_and_empty_files_are_skipped(bring, as_):
    files = {
        "._VERSION": b"junk",
        "tree/._project": b"junk",
        "tree/project/._issues.ndjson": b"junk",
        "tree/project/.DS_Store": b"junk",
        "tree/project/issues.ndjson": b"\n" + json.dumps(make_issue(1)).encode() + b"\n\n  \n",
        "tree/project/auto_devops.ndjson": b"null",
        "tree/project/labels.ndjson": b"",
    }
    state = bring(make_archive({}, files=files))

    assert (state["import_status"], state["failed_relations"]) == ("finished", [])
    assert len(as_(MAX).get(f"/projects/{state['id']}/issues").json) == 1


@pytest.mark.parametrize("version", ["0.2.4\n", "0.2.4.0", "0.2.04"])
def test_a_version_is_read_as_numbers(version, bring):
    assert bring(make_archive({}, version=version))["import_status"] == "finished"


def test_the_old_format_is_read_and_the_new_one_takes_precedence(bring, as_):
    legacy = {
        "description": "Old",
        "issues": [make_issue(1), make_issue(2)],
        "labels": [{"title": "l"}],
        "project_feature": {"wiki_access_level": 0},
        "services": [{"id": 1}],
        "milestones": None,
        "pipelines": [{"id": 3, "ref": "main"}],
    }
    old = bring(make_archive(files={"project.json": json.dumps(legacy).encode()}), path="old")
    both = bring(
        make_archive({"issues": [make_issue(5)]}, files={"project.json": json.dumps(legacy).encode()}), path="b"
    )

    client = as_(MAX)
    assert (old["import_status"], old["description"], both["description"]) == ("finished", "Old", None)
    assert {issue["iid"] for issue in client.get(f"/projects/{old['id']}/issues").json} == {1, 2}
    assert client.get(f"/projects/{old['id']}").json["wiki_access_level"] == "disabled"
    assert [issue["iid"] for issue in client.get(f"/projects/{both['id']}/issues").json] == [5]


@pytest.mark.both_databases
@pytest.mark.parametrize("number", [-(2**63), 2**63, -(2**63) - 1, 12345678901234567890123, 10**4299])
def test_numbers_of_any_length_are_kept_in_the_old_format(number, bring, as_, run_jobs):
    legacy = {"odd": number, "share": 0.1, "issues": [make_issue(1, odd=[number], share=1.5e-7)]}
    state = bring(make_archive(files={"project.json": json.dumps(legacy).encode()}))

    files = export(as_(MAX), state["id"], run_jobs)
    [issue], attributes = rows(files, "issues"), json.loads(files["tree/project.json"])
    assert (issue["odd"], issue["share"], attributes["odd"], attributes["share"]) == ([number], 1.5e-7, number, 0.1)


@pytest.mark.parametrize("digits", ["5" * 10_000, 'a \\" ' + "5" * 10_000, "\\" + "5" * 5000])
def test_digits_in_texts_are_not_numbers_in_the_old_format(digits, bring, as_, run_jobs):
    legacy = {"issues": [make_issue(1, description=digits, odd=2**70)]}
    lfs = {"0" * 64: [0, 2**70], digits: []}
    files = {"project.json": json.dumps(legacy).encode(), "lfs-objects.json": json.dumps(lfs).encode()}
    state = bring(make_archive(files=files | {f"lfs-objects/{'0' * 64}": b"blob"}))

    files = export(as_(MAX), state["id"], run_jobs)
    [issue] = rows(files, "issues")
    assert (issue["description"], issue["odd"]) == (digits, 2**70)
    assert json.loads(files["lfs-objects.json"]) == {"0" * 64: [0, 2**70]}


def test_single_objects_of_larger_editions_have_files_of_their_own(bring, as_, run_jobs):
    settings = {"service_desk_setting": {"project_key": "a"}, "security_setting": {"x": 1}, "push_rule": {"y": [2]}}
    archives = [
        make_archive(files={"project.json": json.dumps(settings).encode()}),
        make_archive({name: [row] for name, row in settings.items()}),
        make_archive({name: [row, {"second": True}] for name, row in settings.items()}),
    ]

    for number, archive in enumerate(archives):
        files = export(as_(MAX), bring(archive, path=f"p{number}")["id"], run_jobs)
        assert {name: json.loads(files[f"tree/project/{name}.ndjson"]) for name in settings} == settings
        assert not settings.keys() & json.loads(files["tree/project.json"]).keys()
    nothing = export(as_(MAX), bring(make_archive({}), path="none")["id"], run_jobs)
    assert not [name for name in settings if f"tree/project/{name}.ndjson" in nothing]


MIXED = [{"a": 1}, 2, "x", 0, False, [1]]


def test_unknown_attributes_are_passed_through_in_place(bring, as_, run_jobs):
    kept = {"tag_list": ["a", "b"], "import_data": {"x": 1}, "odd": [1, {"a": 2}], "empty": []}
    legacy = {"description": "d", "push_rules": MIXED, "issues": [make_issue(1)]}
    archives = [
        make_archive(files={"project.json": json.dumps(legacy | kept).encode()}),
        make_archive({"push_rules": MIXED, "issues": [make_issue(1)]}, {"description": "d"} | kept),
    ]

    for number, archive in enumerate(archives):
        state = bring(archive, path=f"p{number}")
        files = export(as_(MAX), state["id"], run_jobs)
        attributes = json.loads(files["tree/project.json"])
        assert (state["import_status"], state["description"], state["failed_relations"]) == ("finished", "d", [])
        assert {name: attributes[name] for name in kept} == kept
        assert (rows(files, "push_rules"), len(rows(files, "issues"))) == (MIXED, 1)
        assert not [name for name in files if "tag_list" in name or "import_data" in name]


def test_the_order_of_members_does_not_matter(bring, as_):
    files = {
        "tree/project/issues.ndjson": json.dumps(make_issue(1)).encode(),
        "tree/project.json": b"{}",
        "VERSION": b"0.2.4",
    }

    assert bring(make_archive(version=None, files=files))["import_status"] == "finished"


# hidden until complete


def full_archive(**options):
    """An archive with rows of every relation."""
    moments = {"created_at": MADE, "updated_at": MADE}
    relations = {
        "labels": [{"title": f"label {number}", **moments} for number in range(3)],
        "milestones": [
            {"title": "groups", "iid": 1, "group_id": 3, **moments},
            {"title": "v1", "iid": 1, **moments, "events": [make_event(target_type="Milestone")]},
            {"title": "another group's", "iid": 2, "group_id": 4, **moments},
        ],
        "issues": [
            make_issue(
                number,
                milestone={"title": "v1", "iid": 1},
                label_links=[{"label": {"title": f"label {number % 3}"}}],
                notes=[make_note(events=[make_event("commented", target_type="Note")]), make_note(system=True)],
                events=[make_event()],
                issue_assignees=[{"user_id": 7}],
                designs=[{"filename": "a.png", "iid": 1}],
            )
            for number in range(1, 6)
        ]
        + [make_issue(9, title=None)],
        "merge_requests": [make_issue(number, source_branch="a", target_branch="b") for number in (1, 2, 3)],
        "snippets": [{"title": "s", "content": "c", "visibility_level": 0, **moments, "notes": [make_note()]}],
        "releases": [{"tag": "v1", "author_id": 7, "links": []}],
        "protected_tags": [{"name": "v*", **moments, "create_access_levels": [{"access_level": 40}]}],
        "protected_branches": [{"name": "main", **moments, "push_access_levels": [{"access_level": 40}]}],
        "project_members": [{"user": None, "invite_email": "x@example.org", "access_level": 20}, *MEMBERS],
        "boards": [{"name": "Board", "lists": []}],
        "unheard_of": [{"a": 1}],
    }
    secret = "a" * 32
    files = {
        f"uploads/{secret}/a.png": b"one",
        f"uploads/{secret}/b.png": b"two",
        "avatar/me.png": b"three",
        f"lfs-objects/{'b' * 64}": b"four",
        "lfs-objects.json": json.dumps({"b" * 64: [0]}).encode(),
        **options.pop("files", {}),
    }
    return make_archive(relations, {"description": "Full"}, files=files, **options)


NOT_BROUGHT = {
    "projects",
    "routes",
    "project_imports",
    "memberships",
    "events",
    "import_failures",
    "personal_access_tokens",
    "counters",
}


def counts():
    """How many rows each table has, without audit events, which stay."""
    db.session.rollback()
    tables = [table for table in Base.metadata.sorted_tables if table.name != "audit_events"]
    return {table.name: db.session.scalar(select(func.count()).select_from(table)) for table in tables}


def difference(before):
    now = counts()
    return {name: now[name] - number for name, number in before.items() if now[name] != number}


def export(client, number, run_jobs):
    """The files of an export of a project."""
    assert client.post(f"/projects/{number}/export").status_code == 202
    run_jobs()
    return unpack(client.get(f"/projects/{number}/export/download").data)


class Interrupted(Exception):
    """Raised to interrupt an import."""


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


# resuming an interrupted import


@contextmanager
def killed_in_step(monkeypatch, wanted, *, before_commit):
    """Raise in one of the units of the import, before or right after it is committed."""
    real, passed, hit = jobs.step, itertools.count(1), []

    @contextmanager
    def step():
        number = next(passed)
        with real():
            yield
            if number == wanted and before_commit:
                hit.append(number)
                raise Interrupted
        if number == wanted:
            hit.append(number)
            raise Interrupted

    monkeypatch.setattr(jobs, "step", step)
    try:
        yield hit
    finally:
        monkeypatch.setattr(jobs, "step", real)


def canonical(files):
    """The lines of an export without what differs between two imports of one archive."""
    found = {}
    for name in files:
        if name.endswith(".ndjson"):
            lines = [settle(json.loads(line)) for line in files[name].splitlines()]
            if name == "tree/project/project_members.ndjson":  # who became a member by the import did so now
                lines = [line | {"created_at": None, "updated_at": None} for line in lines]
            found[name] = sorted(json.dumps(line, sort_keys=True) for line in lines)
        elif name == "tree/project.json":
            found[name] = settle(json.loads(files[name]))
        else:
            found[name] = files[name]
    return found


def settle(value):
    if isinstance(value, list):
        return [settle(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {name: settle(inner) for name, inner in value.items() if name not in DIFFERENT}


@pytest.mark.parametrize("before_commit", [True, False])
def test_a_killed_import_resumes_at_its_checkpoint(before_commit, as_, run_jobs, monkeypatch, tmp_path):
    client = as_(ADA)
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 3)
    monkeypatch.setattr(file_import, "FILES_AT_ONCE", 2)
    archive = full_archive(files={"project.bundle": make_bundle(tmp_path / "git", "v1")})
    before, files_before = counts(), len(stored())
    whole = send(client, archive, path="whole").json["id"]
    run_jobs()
    expected, kept = difference(before), len(stored()) - files_before
    wanted = canonical(export(client, whole, run_jobs))
    assert client.get(f"/projects/{whole}/import").json["progress"]["rows_done"] > 10

    for number in itertools.count(1 if before_commit else 2, 3):
        before, files_before = counts(), len(stored())
        path = f"killed-{number}"
        made = send(client, archive, path=path).json["id"]
        with killed_in_step(monkeypatch, number, before_commit=before_commit) as hit:
            run_jobs()
        if not hit:
            break
        again()
        run_jobs()
        state = client.get(f"/projects/{made}/import").json
        assert (number, state["import_status"], len(state["failed_relations"])) == (number, "finished", 1)
        assert (number, difference(before)) == (number, expected)
        assert (number, len(stored()) - files_before) == (number, kept)
        if number in (7, 17):
            assert canonical(export(client, made, run_jobs)) == wanted
    assert number > 20


@pytest.fixture
def killed_in_each(run_jobs, monkeypatch):
    """Imports an archive repeatedly, interrupted at each step in turn and then completed."""

    def run(client, archive):
        for number in range(1, 9):
            made = send(client, archive, path=f"killed-{number}").json["id"]
            with killed_in_step(monkeypatch, number, before_commit=False) as hit:
                run_jobs()
            again()
            run_jobs()
            yield number, bool(hit), made

    return run


def test_a_killed_import_creates_milestone_events_once(as_, killed_in_each, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 1)
    undated = {"action": "closed", "author_id": 7, "target_type": "Milestone"}
    milestone = {"title": "v1", "events": [make_event(target_type="Milestone"), undated]}
    archive = make_archive({"issues": [make_issue(iid, milestone=milestone) for iid in range(1, 5)]})

    def actions(made):
        events = as_(MAX).get(f"/projects/{made}/events?target_type=milestone").json
        return sorted(event["action_name"] for event in events)

    found = {number: (hit, actions(made)) for number, hit, made in killed_in_each(as_(MAX), archive)}
    assert found == dict.fromkeys(range(1, 9), (True, ["closed", "opened"]))


@pytest.mark.both_databases
def test_a_killed_import_gives_milestones_the_same_iids(as_, killed_in_each, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 1)
    client = as_(MAX)
    of_groups = [{"title": f"groups {number}", "iid": 5, "group_id": 9} for number in (1, 2)]
    archive = make_archive({"milestones": [{"title": "own", "iid": 5}, *of_groups, {"title": "own too", "iid": 6}]})

    found = {number: (hit, iids_of_milestones(client, made)) for number, hit, made in killed_in_each(client, archive)}

    expected = {"own": 5, "own too": 6, "groups 1": 7, "groups 2": 8}
    assert found == dict.fromkeys(range(1, 9), (True, expected))


@pytest.mark.parametrize("gap", range(5))
def test_the_iid_of_a_refused_row_is_free(gap, as_, bring, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 2)
    refused = make_issue(7) | {"notes": [make_note() | {"type": "DiffNote"}]}
    without = make_issue(50) | {"iid": None}
    archive = make_archive(
        {"issues": [refused, *(make_issue(20 + number) for number in range(gap)), make_issue(7), without]}
    )

    state = bring(archive)

    found = as_(MAX).get(f"/projects/{state['id']}/issues?per_page=100").json
    assert {one["title"]: one["iid"] for one in found} == {
        "Issue 7": 7,
        "Issue 50": 7 + 1 if not gap else 20 + gap,
        **{f"Issue {20 + number}": 20 + number for number in range(gap)},
    }
    assert [one["exception_message"] for one in state["failed_relations"]] == [
        "Validation failed: Position can't be blank"
    ]


@pytest.mark.both_databases
def test_iids_are_unique_across_batches(as_, bring, monkeypatch):
    monkeypatch.setattr(row_loading, "MAX_LINES_AT_ONCE", 2)
    iids = [4, None, 4, None, 15, 17, None, 17, None, 19, 4, None]
    issues = [make_issue(number) | {"iid": iid} for number, iid in enumerate(iids, 1)]

    state = bring(make_archive({"issues": issues}))

    found = as_(MAX).get(f"/projects/{state['id']}/issues?per_page=100").json
    assert {int(one["title"].removeprefix("Issue ")): one["iid"] for one in found} == {
        1: 4,
        5: 15,
        6: 17,
        10: 19,
        2: 20,
        4: 21,
        7: 22,
        9: 23,
        12: 24,
    }
    assert [one["exception_message"] for one in state["failed_relations"]] == [
        "Validation failed: Iid has already been taken"
    ] * 3


@pytest.mark.parametrize("before_commit", [True, False])
def test_the_removal_of_a_failed_import_survives_a_kill(before_commit, as_, run_jobs, monkeypatch):
    client = as_(ADA)
    monkeypatch.setattr(removal, "BATCH", 3)
    archive = full_archive(files={"tree/project/zzz.ndjson": b"broken\n"})
    for number in itertools.count(1):
        before = counts()
        made = send(client, archive, path=f"killed-{number}").json["id"]
        with killed_in_step(monkeypatch, number * 11, before_commit=before_commit) as hit:
            run_jobs()
        again()
        run_jobs()
        assert error_of(client.get(f"/projects/{made}/import").json) == "Incorrect JSON format"
        brought = {name: count for name, count in difference(before).items() if name not in NOT_BROUGHT}
        assert (number, brought, stored()) == (number, {}, [])
        if not hit:
            break
    assert number > 2


@pytest.mark.both_databases
def test_a_partly_written_batch_is_repeated(as_, run_jobs, monkeypatch):
    client = as_(MAX)
    real, left = Writer.write, itertools.count(1)

    def write(self, rows):
        real(self, rows)
        if next(left) == 9:
            raise Interrupted

    monkeypatch.setattr(Writer, "write", write)
    number = send(client, full_archive()).json["id"]
    run_jobs()
    again()
    run_jobs()

    assert client.get(f"/projects/{number}/import").json["import_status"] == "finished"
    assert client.get(f"/projects/{number}/issues").headers["X-Total"] == "5"
    assert len(client.get(f"/projects/{number}/issues/1/notes").json) == 2


def test_a_finished_import_leaves_no_working_files(as_, run_jobs, app):
    client = as_(MAX)
    send(client, full_archive())
    run_jobs()

    assert list((app.config["SETTINGS"].data_dir / "transfers").glob("*")) == []
    assert [name for name in stored() if name.startswith("imports/")] == []


def folders(app):
    return {folder.name for folder in (app.config["SETTINGS"].data_dir / "transfers").glob("*")}


def leave(app, *names):
    """Leave working directories as killed workers do."""
    for name in names:
        folder = app.config["SETTINGS"].data_dir / "transfers" / name
        (folder / "unpacked").mkdir(parents=True, exist_ok=True)
        (folder / "archive.tar.gz").write_bytes(b"half")


@pytest.mark.both_databases
def test_files_of_a_killed_worker_are_removed_without_a_successor(as_, run_jobs, app):
    client = as_(ADA)
    done = send(client, path="done").json["id"]
    run_jobs()
    client.post(f"/projects/{done}/export")
    waiting = send(client, path="waiting").json["id"]
    with unit_of_work(write=False):
        ids = dict(db.session.execute(select(ProjectImport.project_id, ProjectImport.id)).all())
        export_id = db.session.scalar(select(ProjectExport.id))
    kept = {f"import-{ids[waiting]}", f"export-{export_id}"}
    leave(app, *kept, f"import-{ids[done]}", f"import-{10**9}", f"export-{10**9}")

    transfer_jobs.remove_stale_workdirs()
    swept = folders(app)
    client.delete(f"/projects/{done}")
    client.delete(f"/projects/{waiting}")
    run_jobs()
    transfer_jobs.remove_stale_workdirs()

    assert (swept, folders(app)) == (kept, set())


def test_working_directories_in_use_are_not_removed(app):
    with workdir.working_directory("import-1") as folder:
        (folder / "archive.tar.gz").write_bytes(b"half")
        transfer_jobs.remove_stale_workdirs()
        kept = folders(app), (folder / "archive.tar.gz").exists()

    assert (kept, folders(app)) == (({"import-1"}, True), set())


def test_a_working_directory_removed_before_locking_is_recreated(app, monkeypatch):
    real, locked = fcntl.flock, []

    def slow(file, how):
        real(file, how)
        if not locked:
            locked.append(how)
            shutil.rmtree(app.config["SETTINGS"].data_dir / "transfers" / "import-1")

    monkeypatch.setattr(fcntl, "flock", slow)

    with workdir.working_directory("import-1") as folder:
        assert (folder.is_dir(), len(locked)) == (True, 1)


def test_a_delayed_worker_does_not_remove_the_directory_of_its_successor(app):
    with workdir.working_directory("import-1"):
        successor = workdir.working_directory("import-1")
        taken = successor.__enter__()

    assert taken.is_dir()
    successor.__exit__(None, None, None)
    assert folders(app) == set()


def test_orphaned_uploads_are_removed_after_a_day(as_, run_jobs, monkeypatch):
    with storage().write("imports/lost.tar.gz") as file:
        file.write(b"lost")
    client = as_(MAX)
    send(client, path="waiting")
    waiting = set(stored()) - {"imports/lost.tar.gz"}
    db.session.execute(update(Task).values(run_at=clock.now() + dt.timedelta(days=9)))
    db.session.commit()
    clear_up = jobs.JOBS["transfers.jobs.clear_up"]
    clear_up()
    db.session.commit()
    early = set(stored())
    later = clock.now() + dt.timedelta(hours=25)
    with monkeypatch.context() as changed:
        changed.setattr(clock, "now", lambda: later)
        changed.setattr("project_service.transfers.jobs._stop_endless_imports", lambda: None)
        clear_up()
        db.session.commit()

    assert (early, set(stored())) == (waiting | {"imports/lost.tar.gz"}, waiting)


def test_an_upload_that_cannot_be_removed_does_not_block_others(run_jobs, monkeypatch):
    for name in ("a-bad", "lost"):
        with storage().write(f"imports/{name}.tar.gz") as file:
            file.write(b"lost")
    real, later, done = type(storage()).delete, clock.now() + dt.timedelta(hours=25), []

    def delete(self, name):
        if "bad" in name:
            raise PermissionError(name)
        real(self, name)

    monkeypatch.setattr(type(storage()), "delete", delete)
    monkeypatch.setattr(clock, "now", lambda: later)
    monkeypatch.setattr("project_service.transfers.jobs.remove_stale_workdirs", lambda: done.append("next"))
    with pytest.raises(ExceptionGroup):
        jobs.JOBS["transfers.jobs.clear_up"]()

    assert (stored(), done) == (["imports/a-bad.tar.gz"], ["next"])


# removal


@pytest.mark.both_databases
def test_a_removed_project_leaves_no_files(as_, run_jobs, tmp_path):
    client = as_(ADA)
    before = counts()
    number = send(client, full_archive(files={"project.bundle": make_bundle(tmp_path / "git")})).json["id"]
    run_jobs()
    export(client, number, run_jobs)
    kept = len(stored())

    client.delete(f"/projects/{number}")
    run_jobs()

    left = {
        name for name in difference(before) if name not in ("personal_access_tokens", "rate_limits", "audit_events")
    }
    assert (kept > 0, stored(), left) == (True, [], set())
    assert not os.path.exists(storage().path(f"projects/{number}"))


@pytest.mark.both_databases
def test_removing_a_project_with_a_pending_import_succeeds(as_, run_jobs):
    client = as_(ADA)
    number = send(client, full_archive()).json["id"]

    client.delete(f"/projects/{number}")
    run_jobs()

    assert (stored(), known_projects()) == ([], 0)


@pytest.mark.both_databases
def test_removing_a_project_during_its_import_succeeds(as_, run_jobs, monkeypatch):
    client = as_(ADA)
    number = send(client, full_archive()).json["id"]
    real = importing.store_files

    def removed_meanwhile(*arguments):
        at_once(lambda: client.delete(f"/projects/{number}"))
        real(*arguments)

    monkeypatch.setattr(importing, "store_files", removed_meanwhile)
    run_jobs()
    again()
    run_jobs()

    assert (stored(), known_projects(), db.session.scalar(select(func.count()).select_from(Membership))) == ([], 0, 0)


@pytest.mark.parametrize("version", ["0.2.4", "9"])
def test_an_import_of_a_removed_project_ends(version, as_, run_jobs, monkeypatch):
    number = send(as_(ADA), full_archive(version=version)).json["id"]
    real = extraction.unpack

    def gone_meanwhile(*arguments, **options):
        at_once(functools.partial(_remove_at_once, number))
        return real(*arguments, **options)

    monkeypatch.setattr(extraction, "unpack", gone_meanwhile)
    run_jobs()

    db.session.rollback()
    assert list(db.session.scalars(select(Task).where(Task.attempts > 0))) == []


def _remove_at_once(number):
    with unit_of_work():
        db.session.execute(delete(Project).where(Project.id == number))


# the round trip


@pytest.mark.both_databases
def test_exports_of_imported_projects_are_equal(as_, run_jobs, tmp_path):
    client = as_(ADA)
    archive = full_archive(files={"project.bundle": make_bundle(tmp_path / "git", "v1", "v2")})
    first_id = send(client, archive, path="first").json["id"]
    run_jobs()
    first = export(client, first_id, run_jobs)
    from_export = make_archive(version=None, files=first)

    second_id = send(client, from_export, path="second").json["id"]
    run_jobs()
    second = export(client, second_id, run_jobs)

    state = client.get(f"/projects/{second_id}/import").json
    assert (state["import_status"], state["failed_relations"]) == ("finished", [])
    assert sorted(first) == sorted(second)
    mine, theirs = canonical(first), canonical(second)
    for name in mine:
        assert (name, mine[name]) == (name, theirs[name])
    assert first["project.bundle"] == unpack(archive)["project.bundle"]


@pytest.mark.both_databases
def test_rows_without_a_table_are_exported_in_place(as_, bring, run_jobs):
    issue = make_issue(1, health_status="at_risk", unheard_of={"a": [1]}, zoom_meetings=[{"url": "https://z"}])
    archive = make_archive(
        {"issues": [issue], "boards": [{"name": "B", "lists": [{"position": 1}]}], "unheard_of": [{"x": 1}, {"x": 2}]},
        {"description": "d", "merge_requests_template": "Tell", "approvals_before_merge": 2},
    )
    number = bring(archive)["id"]

    files = export(as_(MAX), number, run_jobs)
    [line] = rows(files, "issues")
    assert (line["health_status"], line["unheard_of"], line["zoom_meetings"]) == (
        "at_risk",
        {"a": [1]},
        [{"url": "https://z"}],
    )
    assert rows(files, "boards") == [{"name": "B", "lists": [{"position": 1}]}]
    assert rows(files, "unheard_of") == [{"x": 1}, {"x": 2}]
    attributes = json.loads(files["tree/project.json"])
    assert (attributes["merge_requests_template"], attributes["approvals_before_merge"]) == ("Tell", 2)


EVENT = make_event("closed", updated_at="2021-02-16T00:00:00.000Z", fingerprint="ab", mood={"a": 1}, weight=0)


@pytest.mark.both_databases
def test_archived_fields_of_events_without_column_are_exported(as_, bring, run_jobs):
    odd = make_event(push_event_payload=["odd"])
    archive = make_archive({"issues": [make_issue(1, events=[EVENT, odd, make_event()])]})

    for files in exported_twice(as_(MAX), bring, archive, run_jobs):
        [issue] = rows(files, "issues")
        first, second, usual = issue["events"]
        assert {name: first[name] for name in EVENT if name != "author_id"} == {
            name: value for name, value in EVENT.items() if name != "author_id"
        }
        assert second["push_event_payload"] == ["odd"]
        assert (usual["updated_at"], "push_event_payload" in usual) == (usual["created_at"], False)


def test_archived_feature_levels_are_exported_until_changed(as_, bring, run_jobs):
    said = {"pages_access_level": 30, "wiki_access_level": 30, "builds_access_level": "some"}
    number, client = bring(make_archive({"project_feature": [said]}))["id"], as_(MAX)
    client.put(f"/projects/{number}", json={"wiki_access_level": "private"})

    [line] = rows(export(client, number, run_jobs), "project_feature")
    levels = (line["pages_access_level"], line["wiki_access_level"], line["builds_access_level"])
    assert (levels, line["issues_access_level"]) == ((30, 10, "some"), 20)


@pytest.mark.parametrize(
    ("said", "types"),
    [
        (None, {"b" * 64: [0]}),
        ({}, {}),
        ([{}], {}),
        ({"b" * 64: [None, 2]}, {"b" * 64: [None, 2]}),
        ({"b" * 64: [10**4299, 2**63, 1]}, {"b" * 64: [10**4299, 2**63, 1]}),
        ({"c" * 64: [1], "b" * 64: [{"a": 1}, 2, "x"], "d": {"b": [1]}, "e": [[]]}, {"b" * 64: [2]}),
    ],
)
def test_the_owners_of_lfs_objects_are_kept(said, types, as_, bring, run_jobs):
    files = {f"lfs-objects/{'b' * 64}": b"blob", "avatar/me.png": b"me"}
    if said is not None:
        files["lfs-objects.json"] = json.dumps(said).encode()

    number = bring(make_archive({}, files=files))["id"]

    out = export(as_(MAX), number, run_jobs)
    assert (out[f"lfs-objects/{'b' * 64}"], json.loads(out["lfs-objects.json"])) == (b"blob", types)


LEVEL = {"access_level": 30, "user_id": None, "group_id": None, "created_at": MADE}
ODD = {"issue_type": "test_case", "severity": "terrible", "weight": 2**70 + 1, "due_date": "soon"}


def exported_twice(client, bring, archive, run_jobs):
    """Return the files of an export of an import, and those of a second round."""
    first = bring(archive, path="first")
    files = export(client, first["id"], run_jobs)
    second = bring(make_archive(version=None, files=files), path="second")
    assert first["failed_relations"] == second["failed_relations"] == []
    return files, export(client, second["id"], run_jobs)


def test_compared_references_survive_every_transfer(as_, bring, run_jobs, tmp_path):
    branches = {"source_branch": "a", "target_branch": "b", "target_project_id": 5, "assignee_id": 9}
    sources = [
        {"source_project_id": 5},
        {"source_project_id": 6},
        {"source_project_id": 6, "diff_head_sha": "a" * 40},
        {"source_project_id": None},
    ]
    label = {"title": "l", "group_id": 2}
    beside = {"timelogs": [{"time_spent": 1, "user_id": 9, "issue_id": 4}], "milestone_id": 3, "updated_by_id": None}
    relations = {
        "labels": [label],
        "milestones": [{"title": "m", "group_id": 2}],
        "issues": [make_issue(1, closed_by_id=9, label_links=[{"label": label, "label_id": 3}], **beside)],
        "merge_requests": [make_issue(iid, **branches, **one) for iid, one in enumerate(sources, 1)],
        "protected_branches": [{"name": "main", "push_access_levels": [{"user_id": 9}, {"deploy_key_id": 3}]}],
        "protected_tags": [{"name": "v*", "create_access_levels": [{"access_level": 40, "user_id": 9}]}],
        "project_members": [{"user_id": 9, "requested_at": MADE, "access_level": 30}, *MEMBERS],
    }
    archives = [make_archive(relations, {"namespace_id": 1, "creator_id": 1, "marked_for_deletion_by_user_id": 9})]
    for _ in range(2):
        number = bring(archives[-1], person=ADA, path=f"p{len(archives)}")["id"]
        archives.append(make_archive(version=None, files=export(as_(ADA), number, run_jobs)))
    places = [tmp_path / f"{number}.tar.gz" for number in range(3)]
    for place, archive in zip(places, archives, strict=True):
        place.write_bytes(archive)

    first, second = (list(map(str, compare(*pair))) for pair in itertools.pairwise(places))
    assert ([told for told in first if "_id" in told], second) == ([], [])


def test_a_trigger_without_an_owner_is_left_out(as_, bring, run_jobs):
    triggers = [{"description": "theirs", "owner_id": 7}, {"description": "nobody's", "owner_id": None}, {"ref": "x"}]
    state = bring(make_archive({"triggers": triggers}))

    kept = [line["description"] for line in rows(export(as_(MAX), state["id"], run_jobs), "triggers")]
    assert (kept, state["failed_relations"]) == (["theirs"], [])


@pytest.mark.both_databases
def test_values_that_no_column_holds_are_exported(as_, bring, run_jobs):
    archive = make_archive({"issues": [make_issue(1, **ODD), make_issue(2)], "labels": [{"title": "l", "template": 1}]})

    for files in exported_twice(as_(MAX), bring, archive, run_jobs):
        odd, usual = rows(files, "issues")
        assert {name: odd[name] for name in ODD} == ODD
        assert {name: usual[name] for name in ODD if name in usual} == {
            "issue_type": "issue",
            "weight": None,
            "due_date": None,
        }
        assert [one["template"] for one in rows(files, "labels")] == [True]


def test_archived_values_are_dropped_when_the_field_changes(as_, bring, run_jobs):
    client = as_(MAX)
    number = bring(make_archive({"issues": [make_issue(1, **ODD)]}))["id"]
    changes = {"issue_type": "incident", "weight": 3, "due_date": "2026-01-02"}

    assert client.put(f"/projects/{number}/issues/1", json=changes).status_code == 200

    [line] = rows(export(client, number, run_jobs), "issues")
    assert {name: line[name] for name in changes} == changes


def work_item(base_type):
    return {"work_item_type": {"base_type": base_type}}


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (work_item("incident"), "incident"),
        (work_item("incident") | {"issue_type": None}, "incident"),
        (work_item("incident") | {"issue_type": "issue"}, "issue"),
        (work_item("issue") | {"issue_type": "incident"}, "incident"),
        (work_item("task"), "issue"),
        (work_item(["odd"]), "issue"),
        ({"work_item_type": "incident"}, "issue"),
    ],
)
def test_the_type_of_an_issue_may_be_a_separate_field(said, found, as_, bring, run_jobs):
    client = as_(MAX)
    event = make_event("created", target_type="WorkItem")
    number = bring(make_issues(**said, events=[event]))["id"]

    [line] = rows(export(client, number, run_jobs), "issues")

    assert client.get(f"/projects/{number}/issues/1").json["issue_type"] == found
    assert (line["issue_type"], [one["target_type"] for one in line["events"]]) == (found, ["Issue"])


@pytest.mark.parametrize(("before", "after"), [("incident", "issue"), ("task", "incident")])
def test_a_changed_issue_type_is_exported_in_both_fields(before, after, as_, bring, run_jobs):
    client = as_(MAX)
    number = bring(make_issues(**work_item(before)))["id"]
    [unchanged] = rows(export(client, number, run_jobs), "issues")

    assert client.put(f"/projects/{number}/issues/1", json={"issue_type": after}).status_code == 200

    [changed] = rows(export(client, number, run_jobs), "issues")
    assert unchanged["work_item_type"] == {"base_type": before}
    assert (changed["issue_type"], changed["work_item_type"]) == (after, {"base_type": after})


@pytest.mark.parametrize("position", ["somewhere", "[1]", "7", '{"old_line": 3}', '{"a":[' + "{}," * 30_000 + "{}]}"])
def test_any_note_position_is_exported_unchanged(position, as_, bring, run_jobs):
    note = make_note(type="DiffNote", position=position)
    row = make_issue(1, source_branch="a", target_branch="b", notes=[note])
    known = {"old_line": 3} if "line" in position else position

    for files in exported_twice(as_(MAX), bring, make_archive({"merge_requests": [row]}), run_jobs):
        [line] = rows(files, "merge_requests")
        assert line["notes"][0]["position"] == known


@pytest.mark.both_databases
def test_numbers_keep_all_digits(as_, bring, run_jobs):
    long, odd = 2**70 + 1, {"odd": [-(2**80) - 1, 1.5, 10**20, 2.0**70]}
    issue = make_issue(1, external_key=odd, notes=[make_note(unheard_of=long)])

    number = bring(make_archive({"issues": [issue], "unheard_of": [odd]}, {"unheard_of_too": long}))["id"]

    files = export(as_(MAX), number, run_jobs)
    [line] = rows(files, "issues")
    assert (line["external_key"], line["notes"][0]["unheard_of"], rows(files, "unheard_of")) == (odd, long, [odd])
    assert json.loads(files["tree/project.json"])["unheard_of_too"] == long


def test_a_restored_repository_is_complete(as_, bring, tmp_path):
    number = bring(make_archive({}, files={"project.bundle": make_bundle(tmp_path / "git", "v1", "v2")}))["id"]

    project = db.session.get(Project, number)
    with repository_folder(project) as folder:
        refs = git_commands.git("for-each-ref", "--format=%(refname)", folder=folder).decode().split()
        git_commands.check(folder)
    assert refs == ["refs/heads/main", "refs/tags/v1", "refs/tags/v2"]
    assert reload(project).default_branch == "main"


@pytest.mark.parametrize("relation", ["issues", "merge_requests"])
def test_a_milestone_of_a_late_row_is_imported(relation, as_, bring):
    branches = {"source_branch": "a", "target_branch": "b"} if relation == "merge_requests" else {}
    late = {"milestone": {"title": "Late", "group_id": 9}}
    lines = [make_issue(iid, **branches, **(late if iid > LINES_PARSED_AT_ONCE else {})) for iid in range(1, 60)]

    state = bring(make_archive({"milestones": [{"title": "Early", "iid": 1}], relation: lines}))

    assert (state["import_status"], state["failed_relations"]) == ("finished", [])
    assert iids_of_milestones(as_(MAX), state["id"]) == {"Early": 1, "Late": 2}


@pytest.mark.parametrize(("level", "word"), [(0, "disabled"), (10, "private"), (20, "enabled"), (30, "public")])
def test_pages_may_be_public(level, word, as_, bring, run_jobs):
    archive = make_archive({"project_feature": [{"pages_access_level": level, "wiki_access_level": 30}]})

    number = bring(archive)["id"]

    shown = as_(MAX).get(f"/projects/{number}").json
    assert (shown["pages_access_level"], shown["wiki_access_level"]) == (word, "enabled")
    as_(MAX).put(f"/projects/{number}", json={"pages_access_level": "private"})
    as_(MAX).put(f"/projects/{number}", json={"pages_access_level": word})
    [features] = rows(export(as_(MAX), number, run_jobs), "project_feature")
    assert (features["pages_access_level"], features["wiki_access_level"]) == (level, 30)


def with_two_branches(folder):
    make_bundle(folder)
    for name in ("trunk", "topic"):
        subprocess.run(["git", "branch", name, "main"], cwd=folder, check=True)
    subprocess.run(["git", "bundle", "create", "--quiet", "both.bundle", "HEAD", "--all"], cwd=folder, check=True)
    return (folder / "both.bundle").read_bytes()


def test_the_default_branch_survives_export_and_import(as_, bring, run_jobs, tmp_path):
    client, bundle = as_(MAX), with_two_branches(tmp_path / "git")
    number = bring(make_archive({}, files={"project.bundle": bundle}))["id"]
    before = client.get(f"/projects/{number}").json["default_branch"]
    as_it_was = export(client, number, run_jobs)["project.bundle"]

    changed = client.put(f"/projects/{number}", json={"default_branch": "topic"})
    refused = client.put(f"/projects/{number}", json={"default_branch": "nowhere"})

    exported = export(client, number, run_jobs)
    assert (before in ("main", "trunk"), as_it_was == bundle, changed.status_code) == (True, True, 200)
    assert (refused.status_code, refused.json["message"]) == (
        400,
        {"base": ["Could not change HEAD: branch 'nowhere' does not exist"]},
    )
    again = bring(make_archive(version=None, files=exported), path="again")
    assert client.get(f"/projects/{again['id']}").json["default_branch"] == "topic"
    with repository_folder(db.session.get(Project, again["id"])) as folder:
        refs = git_commands.git("for-each-ref", "--format=%(refname)", folder=folder).decode().split()
    assert refs == ["refs/heads/main", "refs/heads/topic", "refs/heads/trunk"]


@pytest.mark.parametrize(("wanted", "found"), [("main", "main"), ("nowhere", "main")])
def test_only_an_existing_branch_overrides_the_default(wanted, found, as_, bring, tmp_path):
    archive = make_archive({}, files={"project.bundle": make_bundle(tmp_path / "git")})

    number = bring(archive, **{"override_params[default_branch]": wanted})["id"]

    assert as_(MAX).get(f"/projects/{number}").json["default_branch"] == found


def git(folder, *words):
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    done = subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)
    return done.stdout.decode().strip()


def bundled(folder, *refs):
    git(folder, "bundle", "create", "--quiet", "it.bundle", *refs)
    return (folder / "it.bundle").read_bytes()


def test_a_bundle_with_a_detached_head_is_kept(as_, bring, run_jobs, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder)
    further = git(folder, "commit-tree", "main^{tree}", "-p", "main", "-m", "second")
    git(folder, "update-ref", "--no-deref", "HEAD", further)
    detached, headless = bundled(folder, "HEAD", "--all"), bundled(folder, "--branches")

    for path, bundle in (("detached", detached), ("headless", headless)):
        number = bring(make_archive({}, files={"project.bundle": bundle}), path=path)["id"]
        assert as_(MAX).get(f"/projects/{number}").json["default_branch"] == "main"
        assert export(as_(MAX), number, run_jobs)["project.bundle"] == bundle


def test_no_ref_is_lost_when_the_default_branch_is_changed(as_, bring, run_jobs, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder, "v1")
    git(folder, "branch", "topic", "main")
    git(folder, "update-ref", "refs/remotes/origin/x", "main")
    further = git(folder, "commit-tree", "main^{tree}", "-p", "main", "-m", "second")
    git(folder, "update-ref", "--no-deref", "HEAD", further)
    number = bring(make_archive({}, files={"project.bundle": bundled(folder, "HEAD", "--all")}))["id"]

    assert as_(MAX).put(f"/projects/{number}", json={"default_branch": "topic"}).status_code == 200
    place = tmp_path / "made.bundle"
    place.write_bytes(export(as_(MAX), number, run_jobs)["project.bundle"])

    heads = dict(reversed(line.split()) for line in git(tmp_path, "bundle", "list-heads", str(place)).splitlines())
    assert {"refs/remotes/origin/x", "refs/tags/v1", "refs/heads/main", "refs/heads/topic"} <= heads.keys()
    assert (heads["HEAD"], further in heads.values()) == (heads["refs/heads/topic"], True)


def test_a_branch_name_that_is_not_utf8_is_not_the_default(as_, bring, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder)
    odd = os.fsdecode(b"refs/heads/\xff\xfe")
    git(folder, "update-ref", odd, "main")
    git(folder, "symbolic-ref", "HEAD", odd)

    state = bring(make_archive({}, files={"project.bundle": bundled(folder, "HEAD", "--all")}))

    assert state["import_status"] == "finished"
    assert as_(MAX).get(f"/projects/{state['id']}").json["default_branch"] == "main"


@pytest.mark.parametrize("refs", [["HEAD", "--all"], pytest.param(["--branches"], marks=pytest.mark.nightly)])
def test_the_default_branch_is_exported_when_git_would_choose_master(refs, as_, bring, run_jobs, tmp_path):
    client, folder = as_(MAX), tmp_path / "git"
    make_bundle(folder)
    for name in ("develop", "master", "zeta"):
        git(folder, "branch", name, "main")
    number = bring(make_archive({}, files={"project.bundle": bundled(folder, *refs)}))["id"]
    assert client.get(f"/projects/{number}").json["default_branch"] == "master"

    for path, branch in (("one", "develop"), ("two", "zeta"), ("three", "main"), ("four", "master")):
        assert client.put(f"/projects/{number}", json={"default_branch": branch}).status_code == 200
        files = export(client, number, run_jobs)
        number = bring(make_archive(version=None, files=files), path=path)["id"]
        assert client.get(f"/projects/{number}").json["default_branch"] == branch


def test_an_ambiguous_branch_is_not_the_default(as_, bring, tmp_path):
    folder = tmp_path / "git"
    make_bundle(folder)
    git(folder, "update-ref", "refs/heads/HEAD", "main")
    number = bring(make_archive({}, files={"project.bundle": bundled(folder, "--branches")}))["id"]

    assert as_(MAX).put(f"/projects/{number}", json={"default_branch": "HEAD"}).status_code == 400


def test_a_project_without_repository_has_a_null_default_branch(as_, bring):
    number = bring(make_archive({}))["id"]

    responses = [as_(MAX).put(f"/projects/{number}", json={"default_branch": name}) for name in ("trunk", "")]

    assert [response.json["default_branch"] for response in responses] == ["trunk", None]


@pytest.mark.parametrize("nothing", ["", None])
def test_a_project_with_branches_has_a_default_one(nothing, as_, bring, tmp_path):
    number = bring(make_archive({}, files={"project.bundle": make_bundle(tmp_path / "git")}))["id"]

    response = as_(MAX).put(f"/projects/{number}", json={"default_branch": nothing, "description": "new"})

    assert response.status_code == 400
    assert as_(MAX).get(f"/projects/{number}").json["default_branch"] == "main"


@pytest.mark.parametrize("brought", [True, False, None])
def test_the_integrated_flag_of_error_tracking_is_imported(brought, as_, bring, run_jobs):
    client = as_(MAX)
    row = {"api_url": "https://s.example/api/0/projects/a/b/", "project_name": "b", "organization_name": "a"}
    said = {} if brought is None else {"integrated": brought}
    number = bring(make_archive({"error_tracking_setting": [row | said]}))["id"]

    shown = client.get(f"/projects/{number}/error_tracking/settings").json["integrated"]
    [before] = rows(export(client, number, run_jobs), "error_tracking_setting")
    client.put(f"/projects/{number}/error_tracking/settings", json={"active": False, "integrated": not brought})
    [after] = rows(export(client, number, run_jobs), "error_tracking_setting")

    assert (shown, before.get("integrated"), after["integrated"]) == (brought is True, brought, not brought)


@pytest.mark.parametrize(
    ("content", "left_out"),
    [
        (b'{"api_url":"a"}\n{"api_url":"b"}\n', [(2, "There can be one row only")]),
        (b'"text"\n', [(1, "no implicit conversion into Hash")]),
        (b'{"api_url":"\\u0000"}\n', [(1, "string contains null byte")]),
        (b'{"a":' + b"[" * 101 + b"]" * 101 + b"}\n", [(1, "nested too deeply")]),
    ],
)
def test_skipped_rows_of_error_tracking_are_reported(content, left_out, bring):
    state = bring(make_archive({}, files={"tree/project/error_tracking_setting.ndjson": content}))

    told = [(one["line_number"], one["exception_message"]) for one in state["failed_relations"]]
    assert (state["import_status"], told) == ("finished", left_out)


def test_notes_on_designs_are_exported_with_their_author(as_, bring, run_jobs):
    note = make_note("Nice", author_id=9, author={"name": "Alice"}, updated_at="2021-02-15T15:56:00.000Z")
    design = {"filename": "a.png", "iid": 1, "notes": [note]}

    for files in exported_twice(
        as_(ADA), functools.partial(bring, person=ADA), make_issues(designs=[design]), run_jobs
    ):
        [line] = rows(files, "issues")
        [written] = line["designs"][0]["notes"]
        assert written["note"] == "Nice\n\n *By Alice on 2021-02-15T15:56:00 (imported from GitLab)*"
        assert written["author"] == {"name": "Ada"}


def make_issues(**fields):
    return make_archive({"issues": [make_issue(1, **fields)]})


def test_a_tag_protected_again_has_no_archived_access(as_, bring, run_jobs):
    client = as_(MAX)
    levels = [{"access_level": 30}, {"access_level": 40, "user_id": 5}]
    number = bring(make_archive({"protected_tags": [{"name": "v*", "create_access_levels": levels}]}))["id"]
    kept = rows(export(client, number, run_jobs), "protected_tags")[0]["create_access_levels"]

    assert client.delete(f"/projects/{number}/protected_tags/v*").status_code == 204
    client.post(f"/projects/{number}/protected_tags", json={"name": "v*", "create_access_level": 30})

    [tag] = rows(export(client, number, run_jobs), "protected_tags")
    assert [len(kept), len(tag["create_access_levels"])] == [2, 1]
    assert tag["create_access_levels"][0]["user_id"] is None


def test_the_auto_devops_setting_is_imported(as_, bring, run_jobs):
    client = as_(MAX)
    brought = {"enabled": True, "deploy_strategy": "timed_incremental", "unheard_of": 1}
    number = bring(make_archive({"auto_devops": [brought]}))["id"]

    shown = client.get(f"/projects/{number}").json
    [before] = rows(export(client, number, run_jobs), "auto_devops")
    client.put(f"/projects/{number}", json={"auto_devops_enabled": False, "auto_devops_deploy_strategy": "manual"})
    [after] = rows(export(client, number, run_jobs), "auto_devops")

    assert (shown["auto_devops_enabled"], shown["auto_devops_deploy_strategy"]) == (True, "timed_incremental")
    assert before == brought
    assert after == brought | {"enabled": False, "deploy_strategy": "manual"}


SET = {
    "allow_merge_on_skipped_pipeline": (True, False),
    "auto_cancel_pending_pipelines": ("disabled", "enabled"),
    "autoclose_referenced_issues": (False, True),
    "build_coverage_regex": ("a", "b"),
    "build_timeout": (120, 240),
    "ci_config_path": ("a.yml", None),
    "ci_default_git_depth": (9, 33),
    "ci_forward_deployment_enabled": (False, True),
    "container_registry_enabled": (False, True),
    "emails_disabled": (True, False),
    "lfs_enabled": (False, True),
    "only_allow_merge_if_all_discussions_are_resolved": (True, False),
    "only_allow_merge_if_pipeline_succeeds": (True, False),
    "packages_enabled": (False, True),
    "printing_merge_request_link_enabled": (False, True),
    "public_builds": (False, True),
    "remove_source_branch_after_merge": (False, True),
    "request_access_enabled": (False, True),
    "resolve_outdated_diff_discussions": (True, False),
    "restrict_user_defined_variables": (True, False),
    "shared_runners_enabled": (False, True),
    "suggestion_commit_message": ("a", "b"),
    "tag_list": (["old"], ["new"]),
}
NEVER_WRITTEN = {"emails_disabled", "lfs_enabled", "packages_enabled", "tag_list"}
BEFORE, AFTER = ({name: values[place] for name, values in SET.items()} for place in (0, 1))


def settings_among(names, files):
    found = json.loads(files["tree/project.json"])
    return {name: found[name] for name in names if name in found}


def test_current_settings_are_exported(as_, bring, run_jobs):
    client = as_(MAX)
    assert {*STORED_SETTINGS, "tag_list"} - SET.keys() == {"build_git_strategy", "merge_method", *AUTO_DEVOPS}
    number = bring(make_archive({}, BEFORE))["id"]

    before = export(client, number, run_jobs)
    response = client.put(f"/projects/{number}", json=AFTER)
    after = export(client, number, run_jobs)

    assert (settings_among(SET, before), settings_among(SET, after)) == (BEFORE, AFTER)
    assert (response.status_code, response.json["tag_list"], response.json["lfs_enabled"]) == (200, ["new"], True)
    again = client.get(f"/projects/{bring(make_archive(version=None, files=after), path='again')['id']}").json
    assert {name: again[name] for name in AFTER if name in again} == {
        name: value for name, value in AFTER.items() if name in again
    }


def test_fields_missing_in_the_archive_are_exported_from_the_database(as_, bring, run_jobs):
    client = as_(MAX)
    number = bring(make_archive({}))["id"]
    nothing = settings_among(SET, export(client, number, run_jobs))

    client.put(f"/projects/{number}", json=BEFORE)

    assert nothing == {}
    said = {name: value for name, value in BEFORE.items() if name not in NEVER_WRITTEN}
    assert settings_among(SET, export(client, number, run_jobs)) == said


def test_unusual_archived_settings_are_exported(as_, bring, run_jobs):
    odd = {name: {"odd": 1} for name in SET} | {"tag_list": ["a", "a", 1], "topics": ["b"], "auto_devops_enabled": True}
    row = {"group_runners_enabled": True, "default_git_depth": 9, "forward_deployment_enabled": "x"}
    archive = make_archive({"ci_cd_settings": [row]}, odd | {"ci_default_git_depth": 7})

    for files in exported_twice(as_(MAX), bring, archive, run_jobs):
        assert settings_among(odd, files) == odd | {"ci_default_git_depth": 7}
        assert rows(files, "ci_cd_settings") == [row]
        assert [one for one in rows(files, "auto_devops") if one] == []


def test_current_settings_of_separate_files_are_exported(as_, bring, run_jobs):
    client = as_(MAX)
    row = {"group_runners_enabled": True, "default_git_depth": 9, "forward_deployment_enabled": False}
    features = {"container_registry_access_level": 20, "issues_access_level": 20}
    archive = make_archive({"ci_cd_settings": [row], "project_feature": [features]}, {"topics": ["old"]})
    number = bring(archive)["id"]

    shown = client.get(f"/projects/{number}").json
    changes = {"ci_default_git_depth": 33, "restrict_user_defined_variables": True, "container_registry_enabled": False}
    client.put(f"/projects/{number}", json=changes | {"topics": []})
    files = export(client, number, run_jobs)

    assert (shown["ci_default_git_depth"], shown["ci_forward_deployment_enabled"], shown["topics"]) == (
        9,
        False,
        ["old"],
    )
    assert rows(files, "ci_cd_settings") == [row | {"default_git_depth": 33}]
    assert rows(files, "project_feature")[0]["container_registry_access_level"] == 0
    assert settings_among([*changes, "topics"], files) == changes | {"topics": []}


def test_auto_devops_of_a_new_project_is_exported(as_, bring, run_jobs):
    client = as_(MAX)
    number = bring(make_archive({}))["id"]
    nothing = rows(export(client, number, run_jobs), "auto_devops")

    client.put(f"/projects/{number}", json={"auto_devops_enabled": True})
    exported = export(client, number, run_jobs)

    assert [row for row in nothing if row] == []
    again = bring(make_archive(version=None, files=exported), path="again")
    assert client.get(f"/projects/{again['id']}").json["auto_devops_enabled"] is True


def test_archived_fields_of_error_tracking_without_column_are_exported(as_, bring, run_jobs):
    row = {"api_url": "https://s.example/api/0/projects/a/b/", "project_name": "b", "organization_name": "a"}
    beside = {"integrated": False, "unheard_of": "x"}
    archive = make_archive({"error_tracking_setting": [row | beside | {"enabled": True, "encrypted_token": "secret"}]})

    for files in exported_twice(as_(MAX), bring, archive, run_jobs):
        [line] = rows(files, "error_tracking_setting")
        assert {name: value for name, value in line.items() if name != "project_id"} == row | beside


def test_former_members_are_still_mapped(as_, bring, run_jobs, people):
    member = {
        "user_id": 7,
        "access_level": 30,
        "expires_at": "2024-01-01",
        "user": {"id": 7, "email": people[DEV].email},
    }
    assigned = [
        {"user_id": 7, "created_at": "2021-02-15T00:00:00.000Z"},
        {"user_id": 8, "created_at": "2021-02-14T00:00:00.000Z"},
    ]
    change = make_issue(1, source_branch="a", target_branch="b", merge_request_assignees=assigned)
    archive = make_archive({"project_members": [member], "merge_requests": [change]})

    for files in exported_twice(as_(ADA), functools.partial(bring, person=ADA), archive, run_jobs):
        [line] = rows(files, "merge_requests")
        assert [one["user_id"] for one in line["merge_request_assignees"]] == [people[DEV].id, people[ADA].id]
        ended = [one for one in rows(files, "project_members") if one["user_id"] == people[DEV].id]
        assert [one["expires_at"] for one in ended] == ["2024-01-01"]


ELSEWHERE = [
    "http://evil.example/x.exe",
    "//evil.example/x",
    " javascript:alert(1)",
    "/\\evil.example/x",
    "ht\ntp://evil.example/x",
    "\x01javascript:alert(1)",
]


@pytest.mark.parametrize("url", ELSEWHERE)
def test_a_remote_attachment_is_not_imported(url, bring, as_, run_jobs):
    note = make_note(attachment={"url": url}, events=[make_event("commented")])

    number = bring(make_issues(notes=[note, make_note(attachment={"url": "C:a b.png"})]))["id"]

    [line] = rows(export(as_(MAX), number, run_jobs), "issues")
    assert [one["attachment"]["url"] for one in line["notes"]] == [None, "C:a b.png"]


def test_only_secret_fields_are_dropped(as_, bring, run_jobs):
    said = {"secret_push_protection_enabled": True, "secret_token": "s", "secret": "s", "encrypted_secret": "s"}

    number = bring(make_archive({"security_setting": [said]}, {"import_url": "https://ada:pw@example.org/a.git"}))["id"]

    files = export(as_(MAX), number, run_jobs)
    assert rows(files, "security_setting") == [{"secret_push_protection_enabled": True}]
    assert "import_url" not in json.loads(files["tree/project.json"])


KEYWORDS = {
    "script": ["x"],
    "secrets": {"DB": {"vault": "a/b@c"}},
    "id_tokens": {"T": {"aud": "x"}},
    "before": {"user_id": 99, "notes": [{"note": "x"}]},
    "variables": {"attributes": 1, "token": None, "empty": {}},
}


@pytest.mark.both_databases
def test_free_form_columns_are_kept_unchanged(as_, bring, run_jobs):
    job = {"options": KEYWORDS, "yaml_variables": [KEYWORDS], "metadata": {"config_options": KEYWORDS}}
    pipeline = {"stages": [{"statuses": [{"name": "rspec", **job}]}]}
    release = {"tag": "v1", "evidences": [{"summary": KEYWORDS}]}
    note = make_note(original_position=KEYWORDS, position=[KEYWORDS])
    change = make_issue(1, source_branch="a", target_branch="b", merge_params=KEYWORDS, notes=[note])
    relations = {"ci_pipelines": [pipeline], "releases": [release], "merge_requests": [change], "commit_notes": [note]}

    for files in exported_twice(as_(MAX), bring, make_archive(relations), run_jobs):
        [line], [released], [changed], [noted] = (rows(files, name) for name in relations)
        assert noted["position"] == [KEYWORDS]
        assert line == pipeline
        assert released == release
        assert changed["merge_params"] == changed["notes"][0]["original_position"] == KEYWORDS
        assert changed["notes"][0]["position"] == [KEYWORDS]


def test_free_form_columns_exist_only_in_their_relations(as_, bring, run_jobs, people):
    odd = {"options": {"token": "SECRET", "user_id": 99}, "merge_params": {"secret": "SECRET", "user_id": 99}}
    job = {"token": "SECRET", "encrypted_x": "SECRET", "metadata": odd, "secrets": "SECRET", "user_id": 99}
    relations = {"boards": [odd], "issues": [make_issue(1, **odd)], "ci_pipelines": [{"stages": [{"statuses": [job]}]}]}
    number = bring(make_archive(relations, odd))["id"]

    files = export(as_(MAX), number, run_jobs)

    assert not [name for name, content in files.items() if b"SECRET" in content]
    [line] = rows(files, "issues")
    assert line["options"] == line["merge_params"] == {"user_id": people[MAX].id}


def test_the_nesting_of_free_form_columns_is_limited(bring):
    deep = functools.reduce(lambda inner, _: {"a": inner}, range(98), {})
    rows_of = [{"stages": [{"statuses": [{"options": deep}]}]}, {"stages": []}]

    state = bring(make_archive({"ci_pipelines": rows_of}))

    assert [each["exception_message"] for each in state["failed_relations"]] == ["nested too deeply"]


def test_the_text_colour_of_a_label_is_exported(as_, bring, run_jobs):
    client = as_(MAX)
    number = bring(
        make_archive({"labels": [{"title": "dark", "color": "#000000"}, {"title": "light", "color": "#fff"}]})
    )["id"]

    lines = rows(export(client, number, run_jobs), "labels")

    shown = {one["name"]: one["text_color"] for one in client.get(f"/projects/{number}/labels").json}
    assert {one["title"]: one["textColor"] for one in lines} == shown == {"dark": "#FFFFFF", "light": "#333333"}


def test_an_overwrite_with_a_changed_path_gets_the_wanted_name(as_, run_jobs):
    client = as_(MAX)
    old = send(client, make_archive({}), path="tools").json["id"]
    run_jobs()
    new = send(client, make_archive({}), path="tools", overwrite="true").json["id"]

    assert client.put(f"/projects/{new}", json={"path": "elsewhere"}).status_code == 200
    assert client.delete(f"/projects/{old}").status_code == 202
    run_jobs()

    shown = client.get(f"/projects/{new}").json
    assert (shown["import_status"], shown["name"], shown["path"]) == ("finished", "tools", "tools")


def test_a_directory_that_cannot_be_removed_does_not_block_others(app, monkeypatch):
    folder = app.config["SETTINGS"].data_dir / "transfers" / "import-1"
    folder.mkdir(parents=True)

    def full(*_arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(workdir.fcntl, "flock", full)
        workdir.remove_workdirs(["import-1"])
    assert folder.exists()

    workdir.remove_workdirs(["import-1"])
    assert not folder.exists()


def test_labels_used_only_by_boards_or_label_events_are_imported(as_, bring, run_jobs):
    label = {"title": "Doing", "type": "GroupLabel", "group_id": 900, "color": "#ff0000"}
    history = [{"action": "add", "label": {"title": title}} for title in ("Gone", "bug")] + [{"label": None}]
    relations = {
        "labels": [{"title": "bug"}],
        "issues": [make_issue(1, resource_label_events=history)],
        "merge_requests": [
            make_issue(2, source_branch="a", target_branch="b", resource_label_events=[{"label": {"title": "Merged"}}])
        ],
        "boards": [{"name": "Board", "lists": [{"position": 0, "label": label}, {"position": 1, "label": None}]}],
    }
    number = bring(make_archive(relations))["id"]

    shown = {one["name"]: one["color"] for one in as_(MAX).get(f"/projects/{number}/labels").json}
    assert set(shown) == {"bug", "Gone", "Merged", "Doing"}
    assert shown["Doing"] == "#ff0000"
    files = export(as_(MAX), number, run_jobs)
    assert {row["title"] for row in rows(files, "labels")} == set(shown)
    assert rows(files, "boards")[0]["lists"] == relations["boards"][0]["lists"]


@pytest.mark.both_databases
@pytest.mark.parametrize("relation", ["ci_pipelines", "pipelines", "commit_notes"])
def test_comment_events_on_commits_are_not_duplicated_by_transfers(relation, as_, bring, run_jobs):
    event = make_event("commented", target_type="Note")
    note = make_note("Look at this", noteable_type="Commit", commit_id="a" * 40, events=[event], author_id=9)
    silent = make_note("Nobody was told of this")
    row = note if relation == "commit_notes" else {"iid": 1, "notes": [note, silent]}

    first = bring(make_archive({relation: [row]}), path="first")
    files = export(as_(MAX), first["id"], run_jobs)
    second = bring(make_archive(version=None, files=files), path="second")

    for number in (first["id"], second["id"]):
        feed = as_(MAX).get(f"/projects/{number}/events").json
        [told] = [one for one in feed if one["action_name"] == "commented on"]
        assert (told["target_type"], told["note"]["noteable_type"], len(feed)) == ("Note", "Commit", 2)
        assert told["note"]["body"].startswith("Look at this")


@pytest.mark.parametrize("name", ["description", "ci_config_path", "default_branch"])
def test_blank_overrides_are_ignored(name, as_, bring):
    number = bring(make_archive({}, {"description": "Theirs"}), **{f"override_params[{name}]": " \t "})["id"]

    shown = as_(MAX).get(f"/projects/{number}").json
    assert (shown["description"], shown["ci_config_path"], shown["default_branch"]) == ("Theirs", None, None)


def test_an_avatar_override_is_ignored(as_, bring):
    picture = (io.BytesIO(b"a picture"), "me.png")

    state = bring(make_archive({}, {"description": "Theirs"}), **{"override_params[avatar]": picture})

    assert (state["import_status"], state["description"]) == ("finished", "Theirs")


def test_an_overwrite_fails_when_its_name_was_taken(as_, run_jobs):
    client = as_(MAX)
    old = send(client, make_archive({}), path="tools").json["id"]
    run_jobs()
    new = send(client, make_archive({}), path="tools", overwrite="true").json["id"]
    assert client.put(f"/projects/{old}", json={"path": "moved"}).status_code == 200
    run_jobs()

    state = client.get(f"/projects/{new}/import").json
    assert error_of(state) == "Name has already been taken"
    assert client.get("/projects/max%2Fmoved").json["id"] == old


@pytest.mark.both_databases
def test_a_project_with_a_very_long_path_can_be_overwritten(as_, run_jobs):
    client, path = as_(MAX), "t" * 250
    old = send(client, make_archive({}), path=path).json["id"]
    run_jobs()

    response = send(client, make_archive({}), path=path, overwrite="true")
    assert client.delete(f"/projects/{old}").status_code == 202
    run_jobs()

    shown = client.get(f"/projects/max%2F{path}").json
    assert (response.status_code, shown["id"], shown["name"]) == (201, response.json["id"], path)


def test_the_default_branch_is_exported_when_git_would_choose_another(as_, bring, run_jobs, tmp_path):
    client, folder = as_(MAX), tmp_path / "git"
    make_bundle(folder)
    git(folder, "branch", "topic", "main")
    git(folder, "update-ref", "refs/heads/HEAD", "main")
    number = bring(make_archive({}, files={"project.bundle": bundled(folder, "--all")}), path="first")["id"]
    assert client.put(f"/projects/{number}", json={"default_branch": "topic"}).status_code == 200

    files = export(client, number, run_jobs)
    again = bring(make_archive(version=None, files=files), path="second")["id"]

    assert client.get(f"/projects/{again}").json["default_branch"] == "topic"


@pytest.mark.parametrize("is_complete", [True, False])
def test_an_upload_of_a_killed_web_process_is_removed(is_complete, app):
    def take_in():
        with workdir.receiving_upload() as name:
            if is_complete:
                storage().store(io.BytesIO(b"an archive"), name)
            else:
                place = Path(storage().path(name))
                place.parent.mkdir(exist_ok=True)
                (place.parent / f".{place.name}.0123").write_bytes(b"half")
            os._exit(9)

    killed_in(take_in)
    left = storage().names(workdir.UPLOADS)
    transfer_jobs.remove_stale_workdirs()

    assert (len(left), storage().names(workdir.UPLOADS), folders(app)) == (1, [], set())


def killed_in(action):
    """Call a function in a process of its own."""
    process = multiprocessing.get_context("fork").Process(target=action)
    process.start()
    process.join()


def test_an_upload_in_progress_is_not_removed(as_, app, run_jobs):
    with workdir.receiving_upload() as name:
        storage().store(io.BytesIO(b"an archive"), name)
        transfer_jobs.remove_stale_workdirs()
        kept = storage().names(workdir.UPLOADS)
    number = send(as_(MAX)).json["id"]
    with unit_of_work(write=False):
        stored_as = db.session.scalar(select(ProjectImport.storage_name).where(ProjectImport.project_id == number))
    token = stored_as.removeprefix("imports/").removesuffix(".tar.gz")
    leave(app, f"upload-{token}")

    transfer_jobs.remove_stale_workdirs()

    assert (kept, folders(app), storage().exists(stored_as)) == ([name], set(), True)


@pytest.mark.parametrize("kind", ["Issue", "Milestone", "AlertManagement::Alert"])
def test_the_archived_type_of_a_note_does_not_change_its_target(kind, as_, bring, run_jobs):
    theirs = bring(make_issues(title="Secret", confidential=True, events=[make_event()]), person=ADA, path="theirs")
    event = make_event("commented", target_type="Note")
    notes = [make_note(type=kind, events=[event]) for _ in range(5)]

    ours = bring(make_issues(notes=notes), path="ours")["id"]

    feed = as_(MAX).get(f"/projects/{ours}/events").json
    assert [one["target_type"] for one in feed if one["action_name"] == "commented on"] == ["Note"] * 5
    [line] = rows(export(as_(ADA), theirs["id"], run_jobs), "issues")
    assert len(line["events"]) == 1


@pytest.mark.both_databases
def test_an_event_with_a_target_of_another_project_shows_nothing(as_, bring, run_jobs):
    theirs = bring(make_issues(title="Secret", events=[make_event()]), person=ADA, path="theirs")["id"]
    ours = bring(make_issues(events=[make_event()]), path="ours")["id"]
    with unit_of_work():
        issue_id = db.session.scalar(select(Issue.id).where(Issue.project_id == theirs))
        db.session.execute(
            update(Event).where(Event.project_id == ours, Event.target_type == "Issue").values(target_id=issue_id)
        )

    feed = as_(MAX).get(f"/projects/{ours}/events").json
    [line] = rows(export(as_(ADA), theirs, run_jobs), "issues")

    assert {one["target_title"] for one in feed} == {None}
    assert len(line["events"]) == 1


def test_nested_labels_do_not_depend_on_ids(app):
    context = SimpleNamespace(nested_bytes_left=export_context.MAX_NESTED_BYTES)
    small = {"id": 1, "title": "bug", "project_id": 1, "description": ""}
    room = nested_serializer.MAX_NESTED_ROW_BYTES - len(
        json.dumps(small | {"events": None, "id": None, "project_id": None}, separators=(",", ":"))
    )

    for spare, is_complete in ((0, True), (1, False)):
        line = small | {"description": "x" * (room + spare)}
        for number in (1, 10**12):
            nested = nested_serializer._nested_line(
                context, line | {"id": number, "project_id": number}, ("id", "title")
            )
            assert ("description" in nested) is is_complete


@pytest.mark.parametrize("levels", [90, 96, 97, 98, 100, 101])
def test_a_note_with_a_text_position_is_imported(levels, as_, bring, run_jobs):
    position = functools.reduce(lambda inner, _: {"a": inner}, range(levels - 1), {})
    note = make_note(type="DiffNote", position=json.dumps(position))

    first, second = exported_twice(as_(MAX), bring, make_issues(notes=[note]), run_jobs)

    [before], [after] = rows(first, "issues"), rows(second, "issues")
    assert before["notes"][0]["position"] == after["notes"][0]["position"]


@pytest.mark.parametrize("odd", [{"type": "DiffNote", "position": None}, {"events": [make_event("transferred")]}])
def test_a_commit_note_without_event_is_passed_through(odd, as_, bring, run_jobs):
    note = make_note("Look", **{"events": [make_event("commented", target_type="Note")], **odd})
    pipeline = {"iid": 1, "notes": [note, make_note("Here", events=note["events"])]}

    state = bring(make_archive({"ci_pipelines": [pipeline], "commit_notes": [note]}))

    files = export(as_(MAX), state["id"], run_jobs)
    assert state["failed_relations"] == []
    assert [len(rows(files, "ci_pipelines")[0]["notes"]), len(rows(files, "commit_notes"))] == [2, 1]


@pytest.mark.parametrize("label", [{"id": 3}, {"title": " "}, {"title": "x" * 256}])
def test_an_invalid_label_does_not_exclude_its_issue_or_board(label, as_, bring):
    issue = make_issue(1, resource_label_events=[{"action": "add", "label": label}, {"label": {"title": "good"}}])

    state = bring(make_archive({"issues": [issue], "boards": [{"name": "b", "lists": [{"label": label}]}]}))

    assert (state["failed_relations"], state["import_status"]) == ([], "finished")
    assert [one["name"] for one in as_(MAX).get(f"/projects/{state['id']}/labels").json] == ["good"]


@pytest.mark.both_databases
def test_notes_without_text_are_compared_by_position(as_, bring, run_jobs, tmp_path):
    notes = [make_note(None, author_id=8), make_note("b", author_id=8, author={"name": "Zed"})]
    archive = make_archive({"ci_pipelines": [{"iid": 1, "notes": notes}]})
    number = bring(make_archive({"ci_pipelines": [{"iid": 1, "notes": notes}]}))["id"]
    before, after = tmp_path / "before.tar.gz", tmp_path / "after.tar.gz"
    before.write_bytes(archive)
    after.write_bytes(make_archive(version=None, files=export(as_(MAX), number, run_jobs)))

    assert [one for one in compare(before, after) if one.place.startswith("ci_pipelines")] == []
