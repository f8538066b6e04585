"""Requests of exports: permissions, status, limits."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import select

from project_service.domain.access_levels import Role
from project_service.domain.project_files import ProjectFile
from project_service.kit import jobs
from project_service.kit.db.session import db
from project_service.transfers.exporting import exporter
from project_service.transfers.models import ProjectExport
from tests.support.archives import unpack
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
)
from tests.transfers.exporting.support import ACCEPTED, NO_EXPORT, again, status, stored

WAYS = [("POST", "export"), ("GET", "export"), ("GET", "export/download")]


@pytest.mark.parametrize(
    ("person", "status"),
    [(NOBODY, 401), (SAM, 404), (GUS, 403), (RITA, 403), (DEV, 403), (MAX, 200), (OLIVE, 200), (ADA, 200)],
)
def test_roles_that_export_a_private_project(person, status, as_, project):
    responses = [as_(person).open(method, f"/projects/{project.id}/{place}") for method, place in WAYS]

    expected = [202, 200, 404] if status == 200 else [status] * 3
    assert [response.status_code for response in responses] == expected
    if status == 404:
        assert {response.json["message"] for response in responses} == {"404 Project Not Found"}
    if status == 403:
        assert {response.json["message"] for response in responses} == {"403 Forbidden"}


def test_non_members_cannot_export_a_public_project(as_):
    project = make_project("open", make_group(), visibility="public")

    responses = [as_(SAM).open(method, f"/projects/{project.id}/{place}").status_code for method, place in WAYS]

    assert responses == [403] * 3


@pytest.mark.parametrize("person", [ADA, MAX, SAM, NOBODY])
@pytest.mark.parametrize("where", ["acme%2Fshop", "99999999"])
def test_disabled_exports_are_not_found(person, where, as_, project, settings):
    settings(project_export_enabled=False)

    responses = [as_(person).open(method, f"/projects/{where}/{place}") for method, place in WAYS]

    assert [(response.status_code, response.json) for response in responses] == [
        (404, {"message": "404 Not Found"})
    ] * 3


def test_disabled_exports_are_checked_before_the_token(as_, project, settings):
    settings(project_export_enabled=False)
    bad = {"headers": {"PRIVATE-TOKEN": "bad"}}

    responses = [as_(NOBODY).open(method, f"/projects/{project.id}/{place}", **bad) for method, place in WAYS]
    broken = as_(NOBODY).post(f"/projects/{project.id}/export", data="{", content_type="application/json", **bad)

    assert [(one.status_code, one.json) for one in (*responses, broken)] == [(404, {"message": "404 Not Found"})] * 4


def test_permissions_are_checked_before_parameters(as_, project):
    assert as_(DEV).post(f"/projects/{project.id}/export", json={"upload": "text"}).status_code == 403


def test_an_archived_project_can_be_exported(as_, project, export):
    as_(OLIVE).post(f"/projects/{project.id}/archive")

    assert json.loads(export()["tree/project.json"])["archived"] is True


def test_a_project_is_found_by_its_path(as_maintainer, project):
    assert as_maintainer.post("/projects/acme%2Fshop/export").status_code == 202
    assert as_maintainer.get("/projects/acme%2Fshop/export").json["id"] == project.id


@pytest.mark.parametrize(("limit", "expected"), [(0, 202), (1, 400), (2, 400), (3, 202)])
def test_a_project_above_the_size_limit_is_not_exported(limit, expected, as_maintainer, project, repository, settings):
    mib = 1 << 20
    repository.size = 2 * mib
    files = {"uploads/a/b.txt": mib - 1, "lfs-objects/c": 1}
    db.session.add_all(
        ProjectFile(project_id=project.id, path=path, storage_name=path, size=size) for path, size in files.items()
    )
    db.session.commit()
    settings(max_export_size=limit)

    response = as_maintainer.post(f"/projects/{project.id}/export")
    bad = as_maintainer.post(f"/projects/{project.id}/export", json={"upload": {"url": "whatever"}})

    told = ACCEPTED if expected == 202 else {"message": "The project size exceeds the export limit."}
    assert (response.status_code, response.json) == (expected, told)
    assert bad.json == {"message": {"url": ["is blocked: Only allowed schemes are http, https"]}}
    assert status(as_maintainer, project) == ("queued" if expected == 202 else "none")


KEYS = [
    "id",
    "description",
    "name",
    "name_with_namespace",
    "path",
    "path_with_namespace",
    "created_at",
    "export_status",
]


def test_the_statuses_of_an_export(as_maintainer, project, run_jobs):
    client, path = as_maintainer, f"/projects/{project.id}/export"

    none, missing = client.get(path).json, client.get(f"{path}/download")
    accepted = client.post(path)
    queued = client.get(path).json
    run_jobs()
    finished, file = client.get(path).json, client.get(f"{path}/download")

    assert ([key for key in none if key in KEYS], none["export_status"]) == (KEYS, "none")
    assert (missing.status_code, missing.json) == (404, NO_EXPORT)
    assert (accepted.status_code, accepted.json) == (202, ACCEPTED)
    assert (queued["export_status"], finished["export_status"]) == ("queued", "finished")
    assert ("_links" in none, "_links" in queued) == (False, False)
    assert finished["_links"] == {
        "api_url": f"http://localhost/api/v4/projects/{project.id}/export/download",
        "web_url": "http://localhost/acme/shop/download_export",
    }
    assert (file.status_code, file.data[:2]) == (200, b"\x1f\x8b")


def test_the_export_status_describes_the_project(as_maintainer, project):
    shown = as_maintainer.get(f"/projects/{project.id}/export").json

    assert (shown["id"], shown["description"], shown["name"], shown["path"]) == (project.id, None, "shop", "shop")
    assert (shown["name_with_namespace"], shown["path_with_namespace"]) == ("Acme / shop", "acme/shop")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", shown["created_at"])


def test_an_export_is_started_until_its_follow_ups_are_done(as_maintainer, project, run_jobs, monkeypatch):
    seen, real = [], exporter._finish

    def finish(*arguments):
        seen.append(status(as_maintainer, project))
        real(*arguments)

    monkeypatch.setattr(exporter, "_finish", finish)
    as_maintainer.post(f"/projects/{project.id}/export")
    run_jobs()

    assert (seen, status(as_maintainer, project)) == (["started"], "finished")


def test_the_old_file_can_be_downloaded_until_the_new_one_exists(as_maintainer, project, export, run_jobs):
    client, path = as_maintainer, f"/projects/{project.id}/export"
    export(description="Old")
    old = client.get(f"{path}/download")

    client.post(path, json={"description": "New"})
    shown, meanwhile = client.get(path).json, client.get(f"{path}/download")
    run_jobs()
    new = client.get(f"{path}/download")

    assert (shown["export_status"], "_links" in shown) == ("regeneration_in_progress", False)
    assert (meanwhile.status_code, meanwhile.data) == (200, old.data)
    assert json.loads(unpack(new.data)["tree/project.json"])["description"] == "New"
    assert (status(client, project), len(stored())) == ("finished", 1)


def test_a_second_request_before_the_first_is_done_is_accepted(as_maintainer, project, run_jobs):
    client, path = as_maintainer, f"/projects/{project.id}/export"

    responses = [client.post(path).status_code for _ in range(2)]
    run_jobs()

    assert (responses, status(client, project), len(stored())) == ([202, 202], "finished", 1)
    assert client.get(f"{path}/download").status_code == 200


@pytest.mark.both_databases
def test_concurrent_exports_keep_their_own_files(as_maintainer, project, run_jobs, monkeypatch):
    client, path = as_maintainer, f"/projects/{project.id}/export"
    real, nested = exporter._finish, []

    def finish(*arguments):
        if not nested:  # the first has stored its file when the second runs from its beginning to its end
            nested.append(1)
            [other] = db.session.scalars(select(ProjectExport.id).where(ProjectExport.state == "queued"))
            exporter.run(other, project.id)
        real(*arguments)

    monkeypatch.setattr(exporter, "_finish", finish)
    client.post(path, json={"description": "First"})
    client.post(path, json={"description": "Second"})
    run_jobs()

    file = client.get(f"{path}/download")
    assert (file.status_code, status(client, project), len(stored())) == (200, "finished", 1)
    assert json.loads(unpack(file.data)["tree/project.json"])["description"] == "Second"


def test_a_failed_export_has_status_none_and_leaves_no_file(as_maintainer, project, run_jobs, monkeypatch, mails):
    def full(*_arguments):
        raise OSError(28, "No space left on device", "/somewhere/secret")

    monkeypatch.setattr(exporter, "_add_files", full)
    as_maintainer.post(f"/projects/{project.id}/export")
    run_jobs()

    assert (status(as_maintainer, project), stored()) == ("none", [])
    [(recipient, subject, text)] = mails()
    assert (recipient, subject) == ("max@example.org", "shop | Project export failed")
    assert ("No space left on device" in text, "secret" in text) == (True, False)


def test_a_failed_export_keeps_the_previous_file(as_maintainer, project, export, run_jobs, monkeypatch):
    export()

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporter, "_add_files", full)
    as_maintainer.post(f"/projects/{project.id}/export")
    run_jobs()

    assert status(as_maintainer, project) == "finished"
    assert as_maintainer.get(f"/projects/{project.id}/export/download").status_code == 200


@pytest.mark.both_databases
def test_an_export_that_keeps_failing_has_status_none(as_maintainer, project, run_jobs, monkeypatch, mails):
    def broken(*_arguments):
        raise OSError(5, "Input/output error", "/somewhere/secret")

    monkeypatch.setattr(exporter, "_add_files", broken)
    as_maintainer.post(f"/projects/{project.id}/export")
    run_jobs()
    for _ in range(jobs.MAX_ATTEMPTS):
        again()

    assert (status(as_maintainer, project), stored()) == ("none", [])
    [(_, subject, text)] = mails()
    assert (subject, "secret" in text) == ("shop | Project export failed", False)


@pytest.mark.both_databases
def test_a_killed_export_starts_again(as_maintainer, project, run_jobs, monkeypatch):
    class Killed(Exception):
        pass

    def killed(*_arguments):
        raise Killed

    with monkeypatch.context() as changed:
        changed.setattr(exporter, "_finish", killed)  # the file is stored without a row
        as_maintainer.post(f"/projects/{project.id}/export")
        run_jobs()
    before = status(as_maintainer, project)
    again()

    assert (before, status(as_maintainer, project), len(stored())) == ("started", "finished", 1)


TOO_OFTEN = {"message": {"error": "This endpoint has been requested too many times. Try again later."}}


def test_requests_are_limited_per_user(as_, project, settings):
    settings(project_export_limit=2)
    path = f"/projects/{project.id}/export"

    responses = [as_(MAX).post(path) for _ in range(3)]

    assert [response.status_code for response in responses] == [202, 202, 429]
    assert (responses[2].json, responses[2].headers["Retry-After"].isdigit()) == (TOO_OFTEN, True)
    assert as_(OLIVE).post(path).status_code == 202
    assert {as_(MAX).get(path).status_code for _ in range(5)} == {200}


def test_an_invalid_parameter_does_not_count(as_, project, settings):
    settings(project_export_limit=1)
    client, path = as_(MAX), f"/projects/{project.id}/export"

    responses = [client.post(path, json={"upload": "x"}).status_code, client.post(path).status_code]

    assert [*responses, client.post(path).status_code] == [400, 202, 429]


@pytest.mark.both_databases
def test_downloads_are_limited_per_user_and_project_without_a_file_too(as_, project, people, settings):
    settings(project_download_export_limit=1)
    other = make_project("other", people[MAX])
    add_member(other, people[MAX], Role.OWNER)
    client, path = as_(MAX), f"/projects/{project.id}/export/download"

    responses = [
        client.get(path),
        client.get(path),
        as_(OLIVE).get(path),
        client.get(f"/projects/{other.id}/export/download"),
    ]

    assert [response.status_code for response in responses] == [404, 429, 404, 404]
    assert responses[1].json == TOO_OFTEN
