"""Imports of archives from a URL."""

from __future__ import annotations

import datetime as dt
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask import current_app
from sqlalchemy import select, update

from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.transfers import jobs as transfer_jobs
from project_service.transfers import workdir
from project_service.transfers.importing import importer as importing
from project_service.transfers.remote import downloads
from tests.support.archives import make_archive, make_issue, send
from tests.support.remote_servers import reply
from tests.support.sample_data import (
    MAX,
    NOBODY,
    OLIVE,
)
from tests.transfers.importing.support import NO_NAMESPACE, error_of, known_projects, stored

NOT_ALLOWED = "not allowed. (Allowed content types: application/gzip)"


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
