"""Uploads of exported archives to a URL, and mails about exports."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import select, update

from project_service.domain.projects import Project
from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.transfers import workdir
from project_service.transfers.exporting import exporter
from project_service.transfers.models import ProjectExport
from project_service.transfers.remote import sending
from tests.support.mails import queued_mails
from tests.support.remote_servers import raw, reply
from tests.support.sample_data import (
    MAX,
)
from tests.transfers.exporting.support import status, stored


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


def test_the_requesting_user_is_mailed(export, mails):
    export()

    [(recipient, subject, text)] = mails()
    assert (recipient, subject) == ("max@example.org", "shop | Project was exported")
    assert "http://localhost/acme/shop/download_export" in text


def test_without_a_mail_server_no_mail_is_queued(export):
    export()

    assert queued_mails() == []


def test_blocked_users_are_not_mailed(as_, as_admin, people, project, run_jobs, mails):
    as_(MAX).post(f"/projects/{project.id}/export")
    as_admin.post(f"/users/{people[MAX].id}/block")
    run_jobs()

    assert mails() == []
