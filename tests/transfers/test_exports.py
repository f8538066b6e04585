"""Project exports: permissions, status, content of the archive, download and upload."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
import tarfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import orjson
import pytest
from sqlalchemy import func, select, update

from project_service.domain import removal
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock, exact_json, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.mail import Mail
from project_service.kit.storage import storage
from project_service.transfers import workdir
from project_service.transfers.archive import diff
from project_service.transfers.exporting import context, exporter
from project_service.transfers.exporting.serializers import nested as nested_serializer
from project_service.transfers.exporting.serializers import serialize
from project_service.transfers.importing import finalization, protected_refs
from project_service.transfers.models import ArchivedRow, ProjectExport, ProjectFile
from project_service.transfers.remote import sending
from tests.support.archives import make_archive, make_event, make_issue, make_note, pack, rows, send, unpack
from tests.support.git_repositories import keep_repository
from tests.support.remote_servers import raw, reply
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
)

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
NO_EXPORT = {"message": "404 Not found or has expired"}
ACCEPTED = {"message": "202 Accepted"}
TOO_OFTEN = {"message": {"error": "This endpoint has been requested too many times. Try again later."}}
NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d{3}_acme_shop_export\.tar\.gz")
WAYS = [("POST", "export"), ("GET", "export"), ("GET", "export/download")]


@pytest.fixture(autouse=True)
def _empty_storage(app):
    for name in stored():
        storage().delete(name)


@pytest.fixture
def settings(as_admin):
    """Changes application settings."""

    def change(**values):
        assert as_admin.put("/application/settings", json=values).status_code == 200

    return change


@pytest.fixture
def export(as_maintainer, project, run_jobs):
    """Exports the shop; returns the files of the archive."""

    def run(**fields):
        response = as_maintainer.post(f"/projects/{project.id}/export", json=fields)
        assert (response.status_code, response.json) == (202, ACCEPTED)
        run_jobs()
        return unpack(as_maintainer.get(f"/projects/{project.id}/export/download").data)

    return run


@pytest.fixture
def mails(app, monkeypatch):
    """Configures a mail server; returns the queued mails: recipients, subjects and texts."""
    monkeypatch.setitem(
        app.config, "SETTINGS", dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1", smtp_port=1)
    )

    def queued():
        db.session.rollback()
        return [(one.recipient, one.subject, one.body) for one in db.session.scalars(select(Mail).order_by(Mail.id))]

    return queued


def stored():
    return storage().names("imports") + storage().names("projects")


def status(client, project):
    return client.get(f"/projects/{project.id}/export").json["export_status"]


# permissions and the order of checks


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


# status of an export


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


def again():
    """Try tasks that failed again, at once."""
    db.session.rollback()
    waiting = list(db.session.scalars(select(Task.id).where(Task.failed_at.is_(None), Task.attempts > 0)))
    db.session.execute(update(Task).where(Task.id.in_(waiting)).values(run_at=clock.now() - dt.timedelta(seconds=1)))
    db.session.commit()
    for task_id in waiting:
        jobs.run(task_id)


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


# the download


def test_a_download_has_these_headers(as_maintainer, project, export):
    export()

    response = as_maintainer.get(f"/projects/{project.id}/export/download")

    name = re.search(r'filename="([^"]+)"', response.headers["Content-Disposition"])[1]
    assert NAME.fullmatch(name)
    assert response.headers["Content-Disposition"] == f"attachment; filename=\"{name}\"; filename*=UTF-8''{name}"
    assert response.headers["Content-Type"] == "application/octet-stream"
    assert response.headers["Content-Transfer-Encoding"] == "binary"
    assert int(response.headers["Content-Length"]) == len(response.data)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("namespace/project", "2017-12-05_22-11-148_namespace_project_export.tar.gz"),
        ("a/b/c-d.e", "2017-12-05_22-11-148_a_b_c-d.e_export.tar.gz"),
        ("x" * 99, f"2017-12-05_22-11-148_{'x' * 30}_export.tar.gz"),
    ],
)
def test_a_download_has_this_file_name(path, name):
    moment = dt.datetime(2017, 12, 5, 22, 11, 35, 148_999, tzinfo=dt.UTC)

    assert exporter.file_name(path, moment) == name


def test_a_download_can_be_repeated(as_maintainer, project, export):
    export()

    responses = [as_maintainer.get(f"/projects/{project.id}/export/download").status_code for _ in range(3)]

    assert responses == [200, 200, 200]


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("bytes=10-19", slice(10, 20)), ("bytes=100-", slice(100, None)), ("bytes=-7", slice(-7, None))],
)
def test_a_download_can_be_resumed(wanted, given, as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    whole = as_maintainer.get(address)

    part = as_maintainer.get(address, headers={"Range": wanted, "If-Range": whole.headers["ETag"]})

    first, last, _ = given.indices(len(whole.data))
    assert (whole.status_code, whole.headers["Accept-Ranges"]) == (200, "bytes")
    assert (part.status_code, part.data) == (206, whole.data[given])
    assert part.headers["Content-Range"] == f"bytes {first}-{last - 1}/{len(whole.data)}"
    assert int(part.headers["Content-Length"]) == len(part.data)


def test_a_range_past_the_end_is_416(as_maintainer, project, export):
    export()

    response = as_maintainer.get(f"/projects/{project.id}/export/download", headers={"Range": "bytes=99999999-"})

    assert (response.status_code, response.json) == (416, {"message": "416 Requested Range Not Satisfiable"})
    assert re.fullmatch(r"bytes \*/\d+", response.headers["Content-Range"])


@pytest.mark.parametrize(
    "asked", ["items=0-5", "bytes=abc", "bytes=0-1,4-5", "bytes=5-2", "bytes", "", "bytes=-9999999"]
)
def test_unsupported_ranges_return_the_complete_file(asked, as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    whole = as_maintainer.get(address)

    response = as_maintainer.get(address, headers={"Range": asked})

    assert (response.status_code, response.data, "Content-Range" in response.headers) == (200, whole.data, False)
    assert response.headers["Accept-Ranges"] == "bytes"


def test_ranges_need_a_strong_validator(as_maintainer, project, export):
    export()
    address, part = f"/projects/{project.id}/export/download", {"Range": "bytes=0-9"}
    tag = as_maintainer.get(address).headers["ETag"]

    head = as_maintainer.head(address, headers=part)
    weakly, strongly = (as_maintainer.get(address, headers=part | {"If-Range": one}) for one in (f"W/{tag}", tag))

    assert (head.status_code, weakly.status_code, strongly.status_code) == (200, 200, 206)
    assert int(head.headers["Content-Length"]) == len(weakly.data) > len(strongly.data) == 10


def test_a_range_of_an_older_file_returns_the_complete_file(as_maintainer, project, export):
    export()
    address = f"/projects/{project.id}/export/download"
    older = as_maintainer.get(address).headers["ETag"]
    export()

    response = as_maintainer.get(address, headers={"Range": "bytes=10-", "If-Range": older})

    assert response.status_code == 200
    assert response.headers["ETag"] != older
    assert len(response.data) == int(response.headers["Content-Length"])


def test_a_file_missing_in_the_storage_is_not_found(as_maintainer, project, export):
    export()
    for name in stored():
        storage().delete(name)

    response = as_maintainer.get(f"/projects/{project.id}/export/download")

    assert (response.status_code, response.json) == (404, {"message": "The project export file is not available yet"})


def test_an_export_expires_after_a_day(as_maintainer, project, export, monkeypatch):
    export()
    real, passed = clock.now, [dt.timedelta(hours=23, minutes=59)]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])
    clear_up()
    young = (status(as_maintainer, project), len(stored()))
    passed[0] = dt.timedelta(hours=24, minutes=1)
    expired = status(as_maintainer, project)
    response = as_maintainer.get(f"/projects/{project.id}/export/download")
    clear_up()

    assert (young, expired) == (("finished", 1), "none")
    assert (response.status_code, response.json, stored()) == (404, NO_EXPORT, [])


def clear_up():
    jobs.JOBS["transfers.jobs.clear_up"]()
    db.session.commit()


# limits


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


# uploads that are refused at once


@pytest.mark.parametrize(
    ("upload", "response"),
    [
        ("text", {"error": "upload is invalid"}),
        ({"http_method": "PUT"}, {"error": "upload[url] is missing"}),
        ({"url": "whatever"}, {"message": {"url": ["is blocked: Only allowed schemes are http, https"]}}),
        ({"url": "ftp://a.example.org/"}, {"message": {"url": ["is blocked: Only allowed schemes are http, https"]}}),
        ({"url": "file:///etc/passwd"}, {"message": {"url": ["is blocked: Only allowed schemes are http, https"]}}),
        ({"url": "http://a.example.org/\r\nx"}, {"message": {"url": ["is blocked: URI is invalid"]}}),
        ({"url": "http://"}, {"message": {"url": ["is blocked: Hostname or IP address invalid"]}}),
        (
            {"url": "http://a.example.org", "http_method": "patch"},
            {"message": {"http_method": ["invalid. Only PUT and POST methods allowed."]}},
        ),
        (
            {"url": "whatever", "http_method": "GET"},
            {
                "message": {
                    "url": ["is blocked: Only allowed schemes are http, https"],
                    "http_method": ["invalid. Only PUT and POST methods allowed."],
                }
            },
        ),
    ],
)
def test_invalid_upload_urls_are_refused(upload, response, as_maintainer, project, export):
    export()

    said = as_maintainer.post(f"/projects/{project.id}/export", json={"upload": upload})

    assert (said.status_code, said.json) == (400, response)
    assert (status(as_maintainer, project), len(stored())) == ("finished", 1)


@pytest.mark.parametrize("url", ["http://localhost/a", "http://10.0.0.1/a", "http://169.254.169.254/a"])
def test_upload_urls_are_checked_again_when_sent(url, as_maintainer, project, run_jobs, mails):
    response = as_maintainer.post(f"/projects/{project.id}/export", json={"upload": {"url": url}})
    run_jobs()

    [(_, subject, text)] = mails()
    assert (response.status_code, status(as_maintainer, project)) == (202, "finished")
    assert (subject, "URL is blocked: Requests to" in text) == ("shop | Project export failed", True)


def test_a_blank_url_means_no_upload(as_maintainer, project, run_jobs):
    response = as_maintainer.post(f"/projects/{project.id}/export", data={"upload[url]": ""})
    run_jobs()

    assert (response.status_code, status(as_maintainer, project)) == (202, "finished")


# uploads


@pytest.fixture
def upload(remote, as_maintainer, project, run_jobs, settings):
    """Exports the shop to a path of the remote server."""
    settings(outbound_local_requests_whitelist=[f"127.0.0.1:{remote.port}"])

    def run(path="/store", **fields):
        url = remote.url(path)
        form = {"upload[url]": url} | {f"upload[{name}]": value for name, value in fields.items()}
        assert as_maintainer.post(f"/projects/{project.id}/export", data=form).status_code == 202
        run_jobs()

    return run


@pytest.mark.parametrize(
    ("url", "queue"), [("http://example.com/store", jobs.REMOTE_TRANSFERS), (None, jobs.TRANSFERS)]
)
def test_exports_to_remote_servers_wait_for_their_own_workers(url, queue, as_maintainer, project, run_jobs):
    as_maintainer.post(f"/projects/{project.id}/export", data={"upload[url]": url} if url else {})
    at_first = db.session.scalars(select(Task.queue)).all()
    db.session.execute(update(Project).where(Project.id == project.id).values(loading=True))
    db.session.commit()

    run_jobs()

    assert (at_first, db.session.scalars(select(Task.queue)).all()) == ([queue], [queue])


@pytest.mark.parametrize(
    ("method", "sent"), [(None, "PUT"), ("PUT", "PUT"), ("put", "PUT"), ("POST", "POST"), ("post", "POST")]
)
def test_an_export_is_uploaded_unchanged(method, sent, remote, upload, as_maintainer, project, mails):
    upload("/store", **({"http_method": method} if method else {}))

    [request] = remote.received
    file = as_maintainer.get(f"/projects/{project.id}/export/download").data
    assert request.line == f"{sent} /store HTTP/1.1"
    assert request.headers["Content-Type"] == "application/gzip"
    assert (int(request.headers["Content-Length"]), request.body) == (len(file), file)
    assert not {"authorization", "private-token", "cookie"} & {name.lower() for name in request.headers}
    assert status(as_maintainer, project) == "finished"
    [(recipient, subject, _)] = mails()
    assert (recipient, subject) == ("max@example.org", "shop | Project was exported")


@pytest.mark.parametrize(
    "query",
    [
        "X-Amz-Signature=abc%2Fdef%3D&X-Amz-Date=20210101T000000Z",
        "b=2&a=1&a=%20+%2B&sig=a/b==&x=%0A",
        "q=%e2%82%ac&Q=%E2%82%AC&empty=&flag",
    ],
)
def test_a_signed_url_is_requested_unchanged(query, remote, upload):
    upload(f"/store/a%2Fb.tar.gz?{query}")

    assert [one.line for one in remote.received] == [f"PUT /store/a%2Fb.tar.gz?{query} HTTP/1.1"]


@pytest.mark.parametrize("code", [200, 201, 204, 206])
def test_any_2xx_status_counts_as_success(code, remote, upload, as_maintainer, project, mails):
    remote.responses["/store"] = lambda handler: reply(handler, code, b"")

    upload()

    assert (status(as_maintainer, project), [mail[1] for mail in mails()]) == (
        "finished",
        ["shop | Project was exported"],
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (404, "Error uploading the project. Code 404: Not Found"),
        (500, "Error uploading the project. Code 500: Internal Server Error"),
        (403, "Error uploading the project. Code 403: Forbidden"),
    ],
)
def test_a_refused_upload_is_not_retried_and_keeps_the_file(code, text, remote, upload, as_maintainer, project, mails):
    remote.responses["/store"] = lambda handler: reply(handler, code)

    upload()

    [(_, subject, body)] = mails()
    assert (subject, text in body) == ("shop | Project export failed", True)
    assert (len(remote.received), status(as_maintainer, project)) == (1, "finished")
    assert as_maintainer.get(f"/projects/{project.id}/export/download").status_code == 200


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_an_upload_follows_no_redirect(code, remote, upload, as_maintainer, project, mails):
    remote.redirects("/store", remote.url("/other"), code)

    upload()

    assert [one.line for one in remote.received] == ["PUT /store HTTP/1.1"]
    assert (status(as_maintainer, project), mails()[0][1]) == ("finished", "shop | Project export failed")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"404 Page not found", "Code 404: Page not found"),
        (b"404", "Code 404: Not Found"),
        (b"403 \x1b[31mNo\x9b", "Code 403: [31mNo"),
        (b"599 " + b"x" * 999, f"Code 599: {'x' * 100}"),
    ],
)
def test_a_refused_upload_reports_the_response_of_the_remote_server(line, told, remote, upload, mails):
    remote.responses["/store"] = raw(b"HTTP/1.1 " + line + b"\r\nContent-Length: 0\r\n\r\n")

    upload()

    assert mails()[0][2].splitlines()[0] == f"Error uploading the project. {told}"


def test_a_closed_connection_fails_the_upload(remote, upload, as_maintainer, project, mails):
    remote.responses["/store"] = raw(b"")

    upload()

    assert (status(as_maintainer, project), mails()[0][1]) == ("finished", "shop | Project export failed")


def test_a_silent_remote_server_fails_the_upload(remote, upload, as_maintainer, project, mails, monkeypatch):
    monkeypatch.setattr(sending, "SILENT_SECONDS", 0.2)
    remote.responses["/store"] = raw(b"", pause=30)

    upload()

    assert (status(as_maintainer, project), "timed out" in mails()[0][2]) == ("finished", True)


def test_a_trickling_remote_server_fails_the_upload(remote, upload, as_maintainer, project, mails, monkeypatch):
    monkeypatch.setattr(sending, "SLOW_SECONDS", 0.3)
    remote.responses["/store"] = raw(b"HTTP/1.1 200 OK\r\nX-Slow: ", *[b"x"] * 100, pause=0.3)
    started = time.monotonic()

    upload()

    assert (status(as_maintainer, project), "remote server is too slow" in mails()[0][2]) == ("finished", True)
    assert time.monotonic() - started < 20  # of 30


@pytest.mark.both_databases
def test_an_upload_of_a_removed_project_is_stopped(remote, upload, project, monkeypatch):
    monkeypatch.setattr(workdir, "CHECK_INTERVAL_SECONDS", 0)
    real = exporter._check_not_canceled

    def removed_meanwhile(export_id):
        db.session.execute(update(Project).values(deleting_since=clock.now()))
        db.session.commit()
        real(export_id)

    monkeypatch.setattr(exporter, "_check_not_canceled", removed_meanwhile)
    remote.responses["/store"] = raw(b"")

    upload()

    assert db.session.scalar(select(ProjectExport.state)) == "started"
    assert db.session.scalar(select(Task.error)) is None


def test_the_signature_of_an_upload_url_is_not_stored_or_shown(remote, upload, as_maintainer, project, mails, capfd):
    remote.responses["/store"] = lambda handler: reply(handler, 404)

    upload("/store?signature=SIGNED")

    kept = db.session.connection().exec_driver_sql("SELECT upload_url FROM project_exports").scalar()
    shown = as_maintainer.get(f"/projects/{project.id}/export").text
    assert kept is None
    assert "SIGNED" not in capfd.readouterr().err + shown + str(mails())


@pytest.mark.both_databases
def test_an_upload_url_is_stored_encrypted(as_maintainer, project):
    as_maintainer.post(f"/projects/{project.id}/export", json={"upload": {"url": "http://a.example.org/?s=SIGNED"}})

    kept = db.session.connection().exec_driver_sql("SELECT upload_url FROM project_exports").scalar()
    assert (kept is not None, "SIGNED" in str(kept)) == (True, False)


# e-mail


def test_the_requesting_user_is_mailed(export, mails):
    export()

    [(recipient, subject, text)] = mails()
    assert (recipient, subject) == ("max@example.org", "shop | Project was exported")
    assert "http://localhost/acme/shop/download_export" in text


def test_without_a_mail_server_no_mail_is_queued(export):
    export()

    assert db.session.scalar(select(Mail.id)) is None


def test_blocked_users_are_not_mailed(as_, as_admin, people, project, run_jobs, mails):
    as_(MAX).post(f"/projects/{project.id}/export")
    as_admin.post(f"/users/{people[MAX].id}/block")
    run_jobs()

    assert mails() == []


# what is in the archive


def test_an_archive_has_this_layout(export, as_maintainer, project):
    files = export()

    assert (files["VERSION"], files["GITLAB_VERSION"]) == (b"0.2.4", b"13.8.0")
    assert {"GITLAB_REVISION", "tree/project.json", "lfs-objects.json"} <= files.keys()
    relations = {name.split("/")[-1] for name in files if name.startswith("tree/project/")}
    assert len(relations) == 23
    assert {"issues.ndjson", "ci_cd_settings.ndjson", "protected_tags.ndjson"} <= relations
    assert (files["tree/project/labels.ndjson"], files["tree/project/auto_devops.ndjson"]) == (b"", b"null")
    assert json.loads(files["lfs-objects.json"]) == {}
    assert "project.bundle" not in files


def test_an_archive_is_a_plain_tar_with_relative_names(export, as_maintainer, project, tmp_path):
    export()
    place = tmp_path / "it.tar.gz"
    place.write_bytes(as_maintainer.get(f"/projects/{project.id}/export/download").data)

    with tarfile.open(place) as tar:
        members = tar.getmembers()
    assert {member.name.split("/")[0] for member in members} == {"."}
    assert {member.isfile() or member.isdir() for member in members} == {True}
    assert "./snippets" in [member.name for member in members]


def test_lines_end_with_newlines_and_times_are_iso_8601(export, as_maintainer, project):
    as_maintainer.post(f"/projects/{project.id}/issues", json={"title": "One", "labels": "bug"})
    as_maintainer.post(f"/projects/{project.id}/issues/1/notes", json={"body": "Hello"})

    files = export()

    [issue] = rows(files, "issues")
    assert files["tree/project/issues.ndjson"].endswith(b"}\n")
    for moment in (issue["created_at"], issue["notes"][0]["created_at"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment)
    assert issue["notes"][0]["author"] == {"name": "Max"}
    assert [link["label"]["title"] for link in issue["label_links"]] == ["bug"]


@pytest.mark.both_databases
def test_rows_created_here_are_exported(export, as_maintainer, project):
    path = f"/projects/{project.id}"
    milestone = as_maintainer.post(f"{path}/milestones", json={"title": "v1", "due_date": "2030-01-02"}).json["id"]
    as_maintainer.post(f"{path}/issues", json={"title": "One", "milestone_id": milestone, "confidential": True})
    as_maintainer.post(f"{path}/protected_tags", json={"name": "v*", "create_access_level": 30})
    as_maintainer.put(f"{path}/issues/1", json={"state_event": "close"})

    files = export()

    [issue] = rows(files, "issues")
    [tag] = rows(files, "protected_tags")
    assert (issue["state"], issue["confidential"], issue["milestone"]["due_date"]) == ("closed", True, "2030-01-02")
    assert [event["action"] for event in issue["events"]] == ["created", "closed"]
    assert (tag["name"], [level["access_level"] for level in tag["create_access_levels"]]) == ("v*", [30])


def test_unused_labels_are_exported(export, as_maintainer, project):
    place = f"/projects/{project.id}/issues"
    first = as_maintainer.post(place, json={"title": "First", "labels": "bug,new"}).json
    as_maintainer.post(place, json={"title": "Second", "labels": "new"})

    files = export()

    labels = {line["title"]: line for line in rows(files, "labels")}
    assert {title: line["color"] for title, line in labels.items()} == {"bug": "#6699cc", "new": "#6699cc"}
    assert labels["new"]["created_at"] == first["created_at"]
    nested = [link["label"] for line in rows(files, "issues") for link in line["label_links"]]
    assert [label["title"] for label in nested] == ["bug", "new", "new"]
    assert all(label.items() <= labels[label["title"]].items() for label in nested)


def test_a_large_nested_label_or_milestone_has_only_its_name(brought, bring_again, monkeypatch):
    monkeypatch.setattr(nested_serializer, "MAX_NESTED_ROW_BYTES", 2000)
    large = "x" * 3000
    label, milestone = {"title": "l", "description": large}, {"title": "m", "iid": 1, "description": large}
    small = {"title": "s", "description": "Small"}
    of_issue = {"label_links": [{"label": label}, {"label": small}], "milestone": milestone}
    export, files = brought({"labels": [label], "milestones": [milestone], "issues": [make_issue(1, **of_issue)]})
    export()
    again, state = bring_again(files())

    assert (state["import_status"], state["failed_relations"]) == ("finished", [])
    for found in (files(), again):
        said = {row["title"]: row["description"] for row in rows(found, "labels") + rows(found, "milestones")}
        [issue] = rows(found, "issues")
        nested = {link["label"]["title"]: link["label"].get("description") for link in issue["label_links"]}
        assert said == {"l": large, "s": "Small", "m": large}
        assert (nested, issue["milestone"].get("description")) == ({"l": None, "s": "Small"}, None)


@pytest.mark.parametrize("is_legacy", [False, True])
def test_a_relation_named_project_is_not_the_project(is_legacy, as_maintainer, run_jobs):
    odd = [{"description": "No"}, 7]
    given = make_archive({"project": odd}, {"odd": 1})
    legacy = make_archive(files={"project.json": json.dumps({"odd": 1, "project": odd}).encode()})
    number = send(as_maintainer, legacy if is_legacy else given).json["id"]
    run_jobs()
    kept = [ArchivedRow(project_id=number, relation="project", data=data) for data in (7, {"description": "No"})]
    first = db.session.scalar(select(ArchivedRow).where(ArchivedRow.relation == "project"))
    kept.append(ArchivedRow(project_id=number, relation="project", data=first.data))
    assert first.data == {"odd": 1}
    db.session.add_all(kept)
    db.session.delete(first)
    db.session.commit()
    as_maintainer.post(f"/projects/{number}/export")
    run_jobs()

    files = unpack(as_maintainer.get(f"/projects/{number}/export/download").data)
    assert (json.loads(files["tree/project.json"])["odd"], "tree/project/project.ndjson" in files) == (1, False)


@pytest.mark.parametrize(
    ("name", "value", "listed"),
    [
        ("issues", None, []),
        ("auto_devops", None, []),
        ("boards", "x", [("boards", 1)]),
        ("releases", 7, [("releases", 1)]),
        ("pipelines", False, [("ci_pipelines", 1)]),
        ("Foo", [{}], [("project.json", None)]),
        ("a-b", [{}], [("project.json", None)]),
    ],
)
def test_empty_relations_of_the_old_format_are_not_attributes(name, value, listed, as_maintainer, run_jobs):
    content = json.dumps({"odd": 1, name: value}).encode()
    number = send(as_maintainer, make_archive(files={"project.json": content})).json["id"]
    run_jobs()
    state = as_maintainer.get(f"/projects/{number}/import").json
    as_maintainer.post(f"/projects/{number}/export")
    run_jobs()

    said = json.loads(unpack(as_maintainer.get(f"/projects/{number}/export/download").data)["tree/project.json"])
    assert (said["odd"], name in said) == (1, False)
    told = [(one["relation_name"], one["line_number"]) for one in state["failed_relations"]]
    assert (state["import_status"], told) == ("finished", listed)


def test_the_number_of_fully_nested_labels_is_limited(brought, monkeypatch):
    monkeypatch.setattr(context, "MAX_NESTED_BYTES", 2000)
    labels = [{"title": f"{number}", "description": "x" * 1000} for number in range(5)]
    links = [{"label": {"title": label["title"]}} for label in labels]
    export, files = brought({"labels": labels, "issues": [make_issue(1, label_links=links)]})
    export()

    [issue] = rows(files(), "issues")
    assert ["description" in link["label"] for link in issue["label_links"]] == [True, False, False, False, False]
    assert {len(row["description"]) for row in rows(files(), "labels")} == {1000}


@pytest.mark.parametrize("relation", ["labels", "milestones", "protected_tags"])
def test_large_rows_are_not_in_memory_together(relation, brought, monkeypatch):
    monkeypatch.setattr(context, "MAX_BYTES_AT_ONCE", 1 << 20)
    monkeypatch.setattr(protected_refs, "MAX_BYTES_AT_ONCE", 1 << 20)
    real, peaks = finalization.store_protected_refs, []

    def protect(*given):
        with traced(peaks):
            real(*given)

    monkeypatch.setattr(finalization, "store_protected_refs", protect)
    given = [{"title": f"{n}", "name": f"{n}", "description": "d", "odd": "x" * 1_000_000} for n in range(40)]
    export, _ = brought({relation: given})
    project = db.session.get(Project, export.number)
    with traced(peaks):
        reader = context.ExportContext(db.session.connection(), project, with_group_members=False)
        nested_serializer.load_nested(reader)
        assert {len(line["odd"]) for line in serialize(reader, relation)} == {1_000_000}

    assert len(peaks) == 3
    assert max(peaks) < 24 << 20, peaks  # of 40


@contextmanager
def traced(peaks):
    """Records the peak memory."""
    tracemalloc.start()
    try:
        yield
        peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


@pytest.mark.both_databases
def test_an_export_is_equal_after_an_import(export, as_maintainer, project, run_jobs, tmp_path):
    place = f"/projects/{project.id}/issues"
    for labels in ("bug,new", "new"):
        as_maintainer.post(place, json={"title": "One", "labels": labels})
    archives = [tmp_path / "a.tar.gz", tmp_path / "b.tar.gz"]
    archives[0].write_bytes(make_archive(version=None, files=export()))
    number = send(as_maintainer, archives[0].read_bytes()).json["id"]
    run_jobs()
    as_maintainer.post(f"/projects/{number}/export")
    run_jobs()
    archives[1].write_bytes(as_maintainer.get(f"/projects/{number}/export/download").data)

    assert diff.compare(*archives) == []


@pytest.mark.both_databases
def test_an_export_takes_a_constant_number_of_statements(export, as_maintainer, project, count_queries):
    path = f"/projects/{project.id}"

    def open_issues(count):
        for _ in range(count):
            issue = as_maintainer.post(f"{path}/issues", json={"title": "Mend it", "labels": "bug,urgent"}).json
            as_maintainer.post(f"{path}/issues/{issue['iid']}/notes", json={"body": "Soon"})

    open_issues(3)
    export()
    with count_queries() as few:
        export()
    open_issues(27)
    with count_queries() as many:
        files = export()

    def without_counts(statements):
        return sorted(re.sub(r" IN \((?:[^()]|\([^()]*\))*\)", " IN (...)", statement) for statement in statements)

    assert (len(rows(files, "issues")), without_counts(many)) == (30, without_counts(few))
    for table in ("issues", "notes", "events", "issue_labels", "issue_assignees"):
        assert any(re.search(rf"FROM {table}\b", one) for one in many), table


def test_secrets_and_instance_data_are_not_exported(export, as_maintainer, project):
    path = f"/projects/{project.id}"
    as_maintainer.post(f"{path}/variables", json={"key": "KEY", "value": "SECRET-VALUE"})
    as_maintainer.put(
        f"{path}/error_tracking/settings",
        json={"active": True, "integrated": True},
    )

    files = export()

    assert not [name for name, content in files.items() if b"SECRET-VALUE" in content]
    for line in rows(files, "error_tracking_setting"):
        assert {"token", "enabled"} & line.keys() == set()
    assert {"id", "name", "path", "namespace_id", "creator_id"} & json.loads(files["tree/project.json"]).keys() == set()


def test_members_are_exported_with_their_email_addresses(export):
    members = {row["user"]["username"]: row for row in rows(export(), "project_members")}

    assert {name: row["access_level"] for name, row in members.items()} == {MAX: 40, DEV: 30, RITA: 20, GUS: 10}
    assert members[DEV]["user"].keys() == {"id", "email", "username"}
    assert {row["source_type"] for row in members.values()} == {"Project"}


def test_an_owners_export_includes_members_of_the_group(as_, project, run_jobs):
    as_(OLIVE).post(f"/projects/{project.id}/export")
    run_jobs()

    files = unpack(as_(OLIVE).get(f"/projects/{project.id}/export/download").data)
    members = {row["user"]["username"]: row for row in rows(files, "project_members")}
    assert {name: row["access_level"] for name, row in members.items()} == {
        OLIVE: 50,
        MAX: 40,
        DEV: 30,
        RITA: 20,
        GUS: 10,
    }
    assert members[OLIVE]["source_type"] == "Project"


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"description": "Theirs"}, "Theirs"),
        ({"description": " Theirs"}, " Theirs"),
        ({"description": ""}, "Ours"),
        ({"description": " \n"}, "Ours"),
        ({}, "Ours"),
    ],
)
def test_the_description_can_be_overridden_in_the_archive_only(given, written, as_, export, project):
    as_(MAX).put(f"/projects/{project.id}", json={"description": "Ours"})

    files = export(**given)

    assert json.loads(files["tree/project.json"])["description"] == written
    assert as_(MAX).get(f"/projects/{project.id}/export").json["description"] == "Ours"


def test_a_single_object_stored_twice_is_exported_once(export, project):
    rows = [ArchivedRow(project_id=project.id, relation="auto_devops", data={"enabled": one}) for one in (True, False)]
    db.session.add_all(rows)
    db.session.commit()

    assert export()["tree/project/auto_devops.ndjson"] == b'{"enabled":true}'


def test_the_repository_is_exported(export, project, tmp_path):
    keep_repository(project, tmp_path / "git", "v1")
    bundle = (tmp_path / "git" / "all.bundle").read_bytes()

    assert export()["project.bundle"] == bundle


@pytest.mark.both_databases
def test_concurrent_writes_are_exported_completely_or_not_at_all(as_maintainer, project, run_jobs, monkeypatch):
    client = as_maintainer
    client.post(f"/projects/{project.id}/issues", json={"title": "Before"})
    real = exporter._write

    def write(reader, relation, file):
        if relation == "milestones":
            db.session.rollback()
            client.post(f"/projects/{project.id}/issues", json={"title": "After"})
        yield from real(reader, relation, file)

    monkeypatch.setattr(exporter, "_write", write)
    client.post(f"/projects/{project.id}/export")
    run_jobs()

    files = unpack(client.get(f"/projects/{project.id}/export/download").data)
    assert [row["title"] for row in rows(files, "issues")] == ["Before"]
    assert len(client.get(f"/projects/{project.id}/issues").json) == 2


@pytest.mark.both_databases
def test_an_export_reports_progress(as_maintainer, project, export):
    as_maintainer.post(f"/projects/{project.id}/issues", json={"title": "One"})

    export()

    progress = as_maintainer.get(f"/projects/{project.id}/export").json["progress"]
    assert progress == {"rows_done": 1, "rows_total": 1, "relations_done": 23, "relations_total": 23}


def test_an_export_waits_for_a_running_import(as_, run_jobs, monkeypatch):
    client = as_(MAX)
    number = send(client, make_archive({"issues": [make_issue(1)]})).json["id"]
    db.session.execute(update(Task).values(run_at=clock.now() + dt.timedelta(minutes=5)))
    db.session.commit()
    client.post(f"/projects/{number}/export")
    run_jobs()
    early = client.get(f"/projects/{number}/export").json["export_status"]
    real = clock.now
    monkeypatch.setattr(clock, "now", lambda: real() + dt.timedelta(minutes=10))
    run_jobs()

    files = unpack(client.get(f"/projects/{number}/export/download").data)
    assert (early, len(rows(files, "issues"))) == ("queued", 1)


def test_an_export_leaves_no_working_files(export, app):
    export()

    assert list((app.config["SETTINGS"].data_dir / "transfers").glob("*")) == []


@pytest.mark.both_databases
def test_exports_are_removed_with_their_project(as_, project, export, run_jobs):
    export()

    as_(OLIVE).delete(f"/projects/{project.id}")
    run_jobs()

    assert stored() == []


@pytest.mark.parametrize("step", ["_add_relations", "_store_progress", "_add_files", "_finish"])
@pytest.mark.parametrize("wholly", [False, True])
def test_removing_a_project_during_its_export_leaves_no_file(
    step, wholly, as_, as_maintainer, app, project, run_jobs, monkeypatch, capfd
):
    real, number, done = getattr(exporter, step), project.id, []

    def remove():
        with app.app_context():
            done.append(as_(OLIVE).delete(f"/projects/{number}").status_code)
            if wholly:
                removal.remove_project.function(number)

    def removed_meanwhile(*arguments):
        if not done:
            with ThreadPoolExecutor(1) as executor:
                executor.submit(remove).result(timeout=20)
        return real(*arguments)

    monkeypatch.setattr(exporter, step, removed_meanwhile)
    as_maintainer.post(f"/projects/{project.id}/export")
    run_jobs()

    assert (done, stored()) == ([202], [])
    assert db.session.scalar(select(func.count()).select_from(Project)) == 0
    assert "job failed" not in capfd.readouterr().err


def test_files_of_a_killed_export_are_removed_by_the_next_attempt(as_, project, run_jobs):
    as_(MAX).post(f"/projects/{project.id}/export")
    export_id = db.session.scalar(select(ProjectExport.id))
    as_(OLIVE).delete(f"/projects/{project.id}")
    removal.remove_project.function(project.id)
    with storage().write(f"projects/{project.id}/exports/{export_id}.tar.gz") as file:
        file.write(b"left")
    run_jobs()

    assert stored() == []


def test_tasks_of_earlier_releases_without_project_are_run(as_maintainer, project, run_jobs):
    as_maintainer.post(f"/projects/{project.id}/export")
    db.session.execute(update(Task).values(arguments=[db.session.scalar(select(ProjectExport.id))]))
    db.session.commit()
    run_jobs()

    assert (status(as_maintainer, project), len(stored())) == ("finished", 1)


@pytest.mark.parametrize(
    "said", [{}, {"lock_version": None, "time_estimate": None, "squash": None, "merge_status": None}]
)
def test_required_fields_are_exported_with_their_default(said, brought, as_maintainer):
    branches = {"source_branch": "a", "target_branch": "b", "merge_when_pipeline_succeeds": True}
    export, files = brought({"issues": [make_issue(1, **said)], "merge_requests": [make_issue(1, **branches, **said)]})
    as_maintainer.post(f"/projects/{export.number}/issues", json={"title": "Made here"})
    export()

    made = {"lock_version": 0, "time_estimate": 0}
    merged = {"merge_status": "unchecked", "merge_when_pipeline_succeeds": False, "squash": False}
    assert [{name: row[name] for name in made} for row in rows(files(), "issues")] == [made, made]
    [request] = rows(files(), "merge_requests")
    assert {name: request[name] for name in made | merged} == made | merged


def test_an_export_of_a_removed_user_is_completed(as_, as_admin, project, run_jobs):
    user = make_user("leaving")
    add_member(project, user, Role.MAINTAINER)
    response = as_admin.post(f"/projects/{project.id}/export")
    db.session.execute(update(ProjectExport).values(user_id=None))
    db.session.commit()
    run_jobs()

    assert (response.status_code, status(as_admin, project)) == (202, "finished")


@pytest.fixture
def brought(as_maintainer, run_jobs):
    """Imports an archive; returns functions that export the project and that read the files of the export."""

    def bring(relations, attributes=None):
        number = send(as_maintainer, make_archive(relations, attributes), path="brought").json["id"]
        run_jobs()

        def export():
            as_maintainer.post(f"/projects/{number}/export")
            run_jobs()

        def files():
            return unpack(as_maintainer.get(f"/projects/{number}/export/download").data)

        export.number = number
        return export, files

    return bring


@pytest.fixture
def bring_again(as_maintainer, run_jobs):
    """Imports the files of an export and exports the result; returns the files and the state of the import."""

    def bring(given):
        number = send(as_maintainer, pack(given), path="again").json["id"]
        run_jobs()
        state = as_maintainer.get(f"/projects/{number}/import").json
        as_maintainer.post(f"/projects/{number}/export")
        run_jobs()
        return unpack(as_maintainer.get(f"/projects/{number}/export/download").data), state

    return bring


def with_notes(number, count, **fields):
    return make_issue(number, notes=[make_note(f"note {each} of {number}") for each in range(count)], **fields)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("MAX_NOTES_AT_ONCE", 2),
        ("MAX_NOTES_AT_ONCE", 3),
        ("MAX_NOTES_AT_ONCE", 5),
        ("MAX_NOTE_BYTES_AT_ONCE", 1),
        ("MAX_BYTES_AT_ONCE", 1),
        ("MAX_BYTES_AT_ONCE", 40),
    ],
)
def test_small_batches_give_the_same_archive(name, most, brought, monkeypatch):
    branches = {"source_branch": "a", "target_branch": "b"}
    export, files = brought(
        {
            # not in the order of their ids
            "issues": [with_notes(number, number % 4, odd="x" * number) for number in (*range(6, 12), *range(1, 6))],
            "merge_requests": [with_notes(number, 3, **branches) for number in range(1, 4)],
            "snippets": [{"title": "s", "content": "c" * 50, "notes": [make_note(), make_note()]}],
            "boards": [{"name": f"Board {number}", "lists": []} for number in range(3)],
        }
    )
    export()
    whole = files()
    monkeypatch.setattr(context, name, most)
    export()

    assert {one: text for one, text in files().items() if one.startswith("tree/")} == {
        one: text for one, text in whole.items() if one.startswith("tree/")
    }


def test_an_export_stops_when_its_project_is_deleted(brought, monkeypatch):
    export, _ = brought({"issues": [make_issue(number) for number in range(1, 6)]})
    monkeypatch.setattr(exporter, "PROGRESS_INTERVAL_ROWS", 1)
    real = exporter._write

    def write(reader, relation, file):
        for number, size in enumerate(real(reader, relation, file)):
            if relation == "issues" and number == 2:
                with unit_of_work():
                    db.session.execute(
                        update(Project).where(Project.id == export.number).values(deleting_since=clock.now())
                    )
            yield size

    monkeypatch.setattr(exporter, "_write", write)
    export()

    assert db.session.scalar(select(ProjectExport.storage_name)) is None


def sparse_notes(count):
    """Notes with few fields, which exports complete with nulls."""
    return [{"note": f"note {number}", "noteable_type": "Issue", "author_id": 1} for number in range(count)]


@pytest.mark.both_databases
@pytest.mark.parametrize(("kind", "name"), [("notes", sparse_notes(300)), ("events", [make_event()] * 300)])
def test_large_stored_rows_are_exported_again(kind, name, brought, bring_again, monkeypatch):
    monkeypatch.setattr(exact_json, "MAX_EVENTS", 6000)
    export, files = brought({"issues": [make_issue(1, **{kind: name})]})
    export()
    first = files()

    again, state = bring_again(first)

    assert state["failed_relations"] == []
    assert len(rows(again, "issues")[0][kind]) == 300


def test_an_oversized_row_loses_its_null_fields(brought, bring_again, monkeypatch):
    export, files = brought({"issues": [make_issue(1, notes=sparse_notes(200), odd=None), make_issue(2)]})
    export()
    [whole, other] = rows(files(), "issues")
    monkeypatch.setattr(exporter, "MAX_LINE_BYTES", 2 * len(orjson.dumps(whole)) // 3)
    export()
    brief = files()

    [short, same] = rows(brief, "issues")
    assert same == other
    assert len(orjson.dumps(short)) < 2 * len(orjson.dumps(whole)) // 3
    assert short["odd"] is None
    assert "resolved_at" not in short["notes"][7]
    assert {name: value for name, value in short.items() if name != "notes"}.items() <= whole.items()
    monkeypatch.undo()
    again, state = bring_again(brief)
    assert state["failed_relations"] == []
    told = zip(rows(again, "issues")[0]["notes"], whole["notes"], strict=True)
    assert all(note["note"].startswith(before["note"]) for note, before in told)


@pytest.mark.parametrize(
    "row",
    [
        ["x" * 9000],
        "x" * 9000,
        {"notes": "x" * 9000, "events": 1, "type": None},
        {"notes": [{"id": 1, "type": None}, 5, "x" * 9000], "squash": None},
    ],
)
@pytest.mark.parametrize("name", ["MAX_LINE_BYTES", "MAX_EVENTS"])
def test_an_archived_row_is_exported_completely_or_not_at_all(row, name, brought, monkeypatch):
    export, files = brought({"oddities": [row, {"b": 1}]})
    if name == "MAX_LINE_BYTES":
        monkeypatch.setattr(exporter, name, 8000)
    else:
        monkeypatch.setattr(exact_json, "max_events", lambda size: 1)
        monkeypatch.setattr(exact_json, name, 1)
    export()

    assert rows(files(), "oddities") == ([row] if name == "MAX_EVENTS" else []) + [{"b": 1}]


def test_events_of_milestones_are_shortened(brought, bring_again, monkeypatch):
    for name in ("MAX_EVENTS", "MAX_SPARSE_EVENTS"):
        monkeypatch.setattr(exact_json, name, 5500)
    events = [{"action": "created", "author_id": 1}] * 300
    issue = make_issue(1, milestone={"title": "m", "iid": 1})
    export, files = brought({"milestones": [{"title": "m", "iid": 1, "events": events}], "issues": [issue]})
    export()

    again, state = bring_again(files())

    assert state["failed_relations"] == []
    assert len(rows(again, "milestones")[0]["events"]) == 300
    assert rows(again, "issues")[0]["milestone"]["title"] == "m"


def test_unusual_imported_values_are_shortened(brought, bring_again, monkeypatch):
    odd = {"weight": [], "issue_type": [], "notes": [make_note(position=[]), *sparse_notes(100)]}
    export, files = brought({"issues": [make_issue(1, **odd)]})
    monkeypatch.setattr(exporter, "MAX_LINE_BYTES", 30_000)
    export()

    [issue] = rows(files(), "issues")
    assert (issue["weight"], issue["issue_type"], issue["notes"][0]["position"]) == ([], [], [])


@pytest.mark.parametrize("odd", [False, 5, "x", {"a": 1}])
def test_invalid_label_links_are_ignored(odd, brought):
    export, files = brought({"issues": [make_issue(1, label_links=odd)]})
    export()

    assert [row["iid"] for row in rows(files(), "issues")] == [1]


def test_extra_fields_of_an_issue_are_shortened(brought, monkeypatch):
    export, files = brought({"issues": [make_issue(1, notes=sparse_notes(100), squash=None, type=[], weight=None)]})
    monkeypatch.setattr(exporter, "MAX_LINE_BYTES", 30_000)
    export()

    [issue] = rows(files(), "issues")
    assert (issue["squash"], issue["type"], "weight" in issue) == (None, [], False)


def test_a_row_that_stays_oversized_is_left_out(brought, monkeypatch):
    export, files = brought({"issues": [make_issue(1, description="x" * 9000), make_issue(2)]})
    monkeypatch.setattr(exporter, "MAX_LINE_BYTES", 8000)
    export()

    assert [row["iid"] for row in rows(files(), "issues")] == [2]


@pytest.mark.parametrize("is_ff", [True, False, None])
@pytest.mark.parametrize("is_rebase", [True, False, None])
def test_an_archived_merge_method_is_exported_unchanged(is_ff, is_rebase, brought):
    said = {"merge_requests_ff_only_enabled": is_ff, "merge_requests_rebase_enabled": is_rebase}
    export, files = brought({}, said)
    export()

    project = json.loads(files()["tree/project.json"])
    assert {name: project.get(name) for name in said} == said


@pytest.mark.parametrize(
    ("method", "is_ff", "is_rebase"), [("ff", True, True), ("rebase_merge", False, True), ("merge", False, False)]
)
@pytest.mark.parametrize("says", [True, False])
def test_a_changed_merge_method_is_exported_as_by_gitlab(method, is_ff, is_rebase, says, brought, as_maintainer):
    before = {"merge_requests_ff_only_enabled": method != "ff", "merge_requests_rebase_enabled": method == "ff"}
    export, files = brought({}, before if says else {})
    as_maintainer.put(f"/projects/{export.number}", json={"merge_method": method})
    export()

    project = json.loads(files()["tree/project.json"])
    assert (project["merge_requests_ff_only_enabled"], project["merge_requests_rebase_enabled"]) == (is_ff, is_rebase)


MUCH_IN_MEMORY = {
    "many notes": {"issues": [with_notes(number, 1000) for number in range(1, 61)]},
    "large differences": {
        "merge_requests": [
            make_issue(number, source_branch="a", target_branch="b", merge_request_diff={"diff": "x" * 2_000_000})
            for number in range(1, 41)
        ]
    },
    "large rows without a table": {"ci_pipelines": [{"stages": [{"name": "x" * 2_000_000}]} for _ in range(40)]},
    "issues with much in few bytes": {"issues": [make_issue(number, odd=[{}] * 27_000) for number in range(1, 81)]},
    "notes with much in few bytes": {
        "issues": [make_issue(number, notes=[make_note(odd=[{}] * 7900)] * 20) for number in range(1, 21)]
    },
    "positions with much in few bytes": {
        "issues": [make_issue(number, notes=[make_note(position={"odd": [{}] * 7900})] * 20) for number in range(1, 51)]
    },
    "merge requests with much in few bytes": {
        "merge_requests": [make_issue(1, source_branch="a", target_branch="b", odd=[{}] * 27_000)] * 100
    },
    "rows without a table with much in few bytes": {"ci_pipelines": [{"stages": [{}] * 27_000}] * 100},
}
MUCH_IN_EVERY_RUN = {
    "many notes",
    "issues with much in few bytes",
}


@pytest.mark.parametrize(
    "relations",
    [
        pytest.param(relations, id=name, marks=() if name in MUCH_IN_EVERY_RUN else pytest.mark.nightly)
        for name, relations in MUCH_IN_MEMORY.items()
    ],
)
def test_the_memory_of_an_export_does_not_grow_with_its_rows(relations, brought):
    export, _ = brought(relations)

    tracemalloc.start()
    try:
        export()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert peak < 60 << 20


def test_an_invalid_label_does_not_exclude_its_issue(project, people, export):
    issue = make_issue_of(project, people[DEV], labels=["fine", "x" * 256])

    files = export()

    [line] = rows(files, "issues")
    assert line["iid"] == issue
    assert [link["label"]["title"] for link in line["label_links"]] == ["fine"]
    assert [label["title"] for label in rows(files, "labels")] == ["fine"]


def make_issue_of(project, author, *, labels):
    """An issue from before the length of labels was limited."""
    made = Issue(project_id=project.id, iid=1, title="old", author_id=author.id, labels=labels)
    db.session.add(made)
    db.session.commit()
    return made.iid
