"""Processes killed during an import or export: it resumes and creates every row exactly once."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import suppress

import gitlab
import pytest

from tests.contract import service as services
from tests.contract.service import COMMAND, TOKEN, Service, is_running, tree_of, wait_for
from tests.support.archives import MOMENT, make_archive, make_event, make_issue, make_note, rows, unpack
from tests.support.git_repositories import make_bundle
from tests.support.remote_servers import reply

ISSUES, NOTES = 2000, 3
SMALL_ARCHIVE_ISSUES = 20
PATIENCE = 120.0
CLAIM_SECONDS = 30.0
WORKER, REDIS, SERVER = "worker", "redis", "server"
nightly = pytest.mark.nightly
names = (f"shop{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    running = Service(tmp_path_factory.mktemp("transfers"))
    running.patience = 3 * running.start()
    yield running
    running.stop()


@pytest.fixture
def gl(service):
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        yield client


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """An archive whose import takes some seconds."""
    bundle = make_bundle(tmp_path_factory.mktemp("repository"), "v1")
    issues = [
        make_issue(
            iid,
            notes=[make_note(f"{iid} {number} {'word ' * 60}") for number in range(NOTES)],
            events=[make_event()],
            milestone={"title": f"M{iid % 5}", "iid": iid % 5 + 1, "created_at": MOMENT, "events": [make_event()]},
        )
        for iid in range(1, ISSUES + 1)
    ]
    uploads = {f"uploads/{number:032x}/file.txt": b"content" for number in range(20)}
    return make_archive({"issues": issues}, {"description": "big"}, files=uploads | {"project.bundle": bundle})


@pytest.fixture(scope="module")
def small_archive():
    """An archive that is imported at once."""
    return make_archive({"issues": [make_issue(iid) for iid in range(1, SMALL_ARCHIVE_ISSUES + 1)]})


def kill(service, what):
    """Kill a process with SIGKILL; the server with all its children, Redis with its data."""
    if what == SERVER:
        pids = [service.pid, *tree_of(service.pid)]
        for pid in pids:
            with suppress(ProcessLookupError):  # the kernel kills children of a dead parent
                services.kill(pid)
        assert wait_for(lambda: not [pid for pid in pids if is_running(pid)])
        service.start()
        return
    if what == REDIS:
        subprocess.run(["rm", "-rf", str(service.directory / "data" / "redis")], check=True)
    # either of the two workers may have claimed the job
    for role in ("worker", "remote worker") if what == WORKER else (what,):
        services.kill(wait_for(lambda role=role: service.child(role), PATIENCE))


def start_import(gl, archive):
    made = gl.projects.import_project(archive, path=next(names))
    assert made["import_status"] == "scheduled"
    return made["id"]


def state_of(service, number):
    """Return the status of an import, or ``None`` while the server does not respond."""
    try:
        with gitlab.Gitlab(service.url, private_token=TOKEN, timeout=5) as client:
            return client.http_get(f"/projects/{number}/import")
    except (gitlab.GitlabError, OSError):
        return {"import_status": "unknown", "progress": None}


def progress(service, number):
    return (state_of(service, number)["progress"] or {}).get("rows_done") or 0


def has_ended(service, number):
    return state_of(service, number)["import_status"] in ("finished", "failed")


def leftovers(service, number):
    """Return stored files without a row, and left-over working directories."""
    data = service.directory / "data"
    with sqlite3.connect(data / "project-service.db") as connection:
        tables = ("project_files", "project_exports", "project_imports")
        known = {
            name
            for table in tables
            for (name,) in connection.execute(f"SELECT storage_name FROM {table} WHERE storage_name IS NOT NULL")
        }
    places = [*(data / "storage" / "projects" / str(number)).rglob("*"), *(data / "storage" / "imports").rglob("*")]
    found = {str(place.relative_to(data / "storage")) for place in places if place.is_file()}
    return found - known, list((data / "transfers").glob("*"))


def total(gl, path):
    return int(gl.http_request("get", path).headers["X-Total"])


def contents(service, number):
    with sqlite3.connect(service.directory / "data" / "project-service.db") as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table} WHERE project_id = ?", [number]).fetchone()[0]
            for table in ("issues", "notes", "events", "milestones", "repositories", "project_files")
        }


EVERYTHING = {
    "issues": ISSUES,
    "notes": ISSUES * NOTES,
    "events": ISSUES + 5 + 1,
    "milestones": 5,
    "repositories": 1,
    "project_files": 20,
}


@nightly  # test_transfers_do_not_wait_for_a_slow_remote_server shows that other jobs get a worker
def test_other_jobs_do_not_wait_for_an_import(service, gl, archive):
    doomed = gl.projects.create({"name": next(names)})
    imported = {"job": "transfers.jobs.import_project", "event": "job done"}
    before = len(service.lines(**imported))
    number = start_import(gl, archive)
    assert wait_for(lambda: state_of(service, number)["import_status"] == "started", PATIENCE)

    response = gl.http_request("delete", f"/projects/{doomed.id}")

    removed = {"request_id": response.headers["X-Request-Id"], "job": "core.removal.remove_project"}
    [is_removed] = wait_for(lambda: service.lines(**removed, event="job done"), PATIENCE)
    assert wait_for(lambda: has_ended(service, number), PATIENCE)
    # compare the times of the log, because the requests of this test take time too
    is_imported = wait_for(lambda: service.lines(**imported)[before:], PATIENCE)[0]
    assert is_removed["timestamp"] < is_imported["timestamp"]


@pytest.fixture
def slow_git(tmp_path):
    """A service whose git waits for a file ``quick``, and the folder with that file and the pids of git."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(
        f"#!/bin/sh\necho $$ > {tmp_path}/$$.pid\n[ -e {tmp_path}/quick ] || sleep 30\n"
        f'exec {shutil.which("git")} "$@"\n'
    )
    program.chmod(0o755)
    running = Service(tmp_path / "service", PATH=f"{program.parent}:{os.environ['PATH']}")
    running.start()
    yield running, tmp_path
    running.stop()


def pids_in(folder):
    return [int(path.stem) for path in folder.glob("*.pid")]


@pytest.mark.nightly  # tests/domain/test_repositories.py kills a process that runs git in every run
@pytest.mark.parametrize("what", [WORKER, SERVER])
def test_git_processes_end_with_their_parent_and_leave_no_files(what, slow_git, archive):
    service, folder = slow_git
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        number = start_import(client, archive)
    assert wait_for(lambda: any(map(is_running, pids_in(folder))), PATIENCE)
    running = [pid for pid in pids_in(folder) if is_running(pid)]
    (folder / "quick").touch()

    kill(service, what)

    assert wait_for(lambda: not any(map(is_running, running)), 3.0)
    assert wait_for(lambda: has_ended(service, number), PATIENCE)
    assert (state_of(service, number)["import_status"], contents(service, number)) == ("finished", EVERYTHING)
    assert not list((service.directory / "data" / "repositories").glob(".*.git.*"))


@pytest.mark.nightly  # tests/runtime/test_supervisor.py stops a process that does not stop by itself in every run
def test_a_stop_ends_git_processes_of_a_frozen_worker(slow_git, archive):
    service, folder = slow_git
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        start_import(client, archive)
    assert wait_for(lambda: any(map(is_running, pids_in(folder))), PATIENCE)

    os.kill(wait_for(lambda: service.child(WORKER), PATIENCE), signal.SIGSTOP)
    service.stop()

    assert wait_for(lambda: not any(map(is_running, pids_in(folder))), 3.0)


def test_transfers_do_not_wait_for_a_slow_remote_server(service, gl, remote):
    """Three remote archives arrive slowly; transfers of other users are not delayed."""
    release = threading.Event()
    large = make_archive({"issues": [make_issue(1)]}, files={f"uploads/{1:032x}/file.bin": os.urandom(1 << 20)})

    def slowly(handler):
        handler.send_response(200)
        handler.send_header("Content-Type", "application/gzip")
        handler.send_header("Content-Length", str(len(large)))
        handler.end_headers()
        sent = 0
        while handler.command == "GET" and sent < len(large):
            size = len(large) if release.wait(0.5) else 4096
            handler.wfile.write(large[sent : sent + size])
            sent += size

    remote.responses["/it.tar.gz"] = slowly
    quick = make_archive({"issues": [make_issue(1)]})
    remote.responses["/quick.tar.gz"] = lambda handler: reply(handler, 200, quick, content_type="application/gzip")
    remote.responses["/store"] = reply
    gl.features.set("import_project_from_remote_file", True)
    gl.http_put("/application/settings", post_data={"outbound_local_requests_whitelist": ["127.0.0.1"]})
    url = remote.url("/it.tar.gz")
    downloads = [gl.http_post("/projects/remote-import", post_data={"url": url, "path": next(names)}) for _ in range(3)]
    try:
        assert wait_for(lambda: any(one.line.startswith("GET") for one in remote.received), PATIENCE)
        here = start_import(gl, make_archive({"issues": [make_issue(1)]}))
        assert wait_for(lambda: has_ended(service, here), PATIENCE)
        gl.http_post(f"/projects/{here}/export")
        assert wait_for(lambda: gl.http_get(f"/projects/{here}/export")["export_status"] == "finished", PATIENCE)

        user = gl.users.create({"username": "other", "name": "Other", "email": "other@example.org", "password": TOKEN})
        token = user.personal_access_tokens.create({"name": "all", "scopes": ["api"]}).token
        with gitlab.Gitlab(service.url, private_token=token) as other:
            asked = {"url": remote.url("/quick.tar.gz"), "path": next(names)}
            theirs = other.http_post("/projects/remote-import", post_data=asked)["id"]
            assert wait_for(lambda: has_ended(service, theirs), PATIENCE)
            other.http_post(f"/projects/{theirs}/export", post_data={"upload": {"url": remote.url("/store")}})
            assert wait_for(
                lambda: other.http_get(f"/projects/{theirs}/export")["export_status"] == "finished", PATIENCE
            )

        states = sorted(state_of(service, one["id"])["import_status"] for one in downloads)
        assert states == ["scheduled", "started", "started"]
    finally:
        release.set()
    assert wait_for(lambda: all(has_ended(service, one["id"]) for one in downloads), PATIENCE)
    assert [state_of(service, one["id"])["import_status"] for one in downloads] == ["finished"] * 3
    assert wait_for(lambda: not list((service.directory / "data" / "transfers").glob("*")), PATIENCE)


@pytest.mark.parametrize("what", [WORKER, *(pytest.param(one, marks=nightly) for one in (REDIS, SERVER))])
def test_an_import_that_is_interrupted_creates_every_row_once(what, service, gl, archive):
    number = start_import(gl, archive)
    assert wait_for(lambda: progress(service, number), PATIENCE)

    before = progress(service, number)
    kill(service, what)
    killed = time.monotonic()
    assert wait_for(lambda: progress(service, number) > before or has_ended(service, number), PATIENCE)
    claim_seconds = time.monotonic() - killed

    assert wait_for(lambda: has_ended(service, number), PATIENCE)
    assert state_of(service, number)["import_status"] == "finished", state_of(service, number)
    assert contents(service, number) == EVERYTHING
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        assert total(client, f"/projects/{number}/issues") == ISSUES
    assert wait_for(lambda: leftovers(service, number) == (set(), []), PATIENCE), leftovers(service, number)
    # the bound grows with the load of the machine
    assert claim_seconds < CLAIM_SECONDS * max(1.0, os.getloadavg()[0] / 2)


@pytest.mark.parametrize("what", [WORKER, pytest.param(SERVER, marks=nightly)])
def test_an_interrupted_import_of_a_removed_project_leaves_no_rows(what, service, gl, archive):
    number = start_import(gl, archive)
    assert wait_for(lambda: progress(service, number), PATIENCE)

    kill(service, what)
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        client.projects.delete(number)

    assert wait_for(lambda: leftovers(service, number) == (set(), []), PATIENCE), leftovers(service, number)


@nightly  # an import whose worker dies is shown in every run; tests/transfers stops exports at every step
@pytest.mark.parametrize("what", [SERVER, WORKER, REDIS])
def test_an_export_that_is_interrupted_contains_every_row_once(what, service, gl, archive):
    number = start_import(gl, archive)
    assert wait_for(lambda: has_ended(service, number), PATIENCE)
    gl.http_post(f"/projects/{number}/export")
    assert wait_for(lambda: gl.http_get(f"/projects/{number}/export")["export_status"] != "queued", PATIENCE)

    kill(service, what)

    def ended():
        try:
            with gitlab.Gitlab(service.url, private_token=TOKEN, timeout=5) as client:
                return client.http_get(f"/projects/{number}/export")["export_status"] == "finished"
        except (gitlab.GitlabError, OSError):
            return False

    assert wait_for(ended, PATIENCE)
    with gitlab.Gitlab(service.url, private_token=TOKEN) as client:
        files = unpack(client.projects.get(number, lazy=True).exports.get().download())
    issues = rows(files, "issues")
    assert [issue["iid"] for issue in issues] == list(range(1, ISSUES + 1))
    assert sum(len(issue["notes"]) for issue in issues) == ISSUES * NOTES
    assert wait_for(lambda: leftovers(service, number) == (set(), []), PATIENCE), leftovers(service, number)


def test_a_failed_import_leaves_an_empty_project_and_keeps_the_one_to_be_overwritten(service, gl):
    existing = gl.projects.create({"name": next(names)})
    existing.issues.create({"title": "Mine"})
    broken = make_archive(
        {"issues": [make_issue(iid) for iid in range(1, 900)]}, {}, files={"tree/project/releases.ndjson": b"{broken\n"}
    )

    made = gl.projects.import_project(broken, path=existing.path, overwrite=True)

    assert wait_for(lambda: has_ended(service, made["id"]), PATIENCE)
    state = state_of(service, made["id"])
    assert (state["import_status"], state["import_error"].endswith("Incorrect JSON format")) == ("failed", True)
    assert contents(service, made["id"]) == dict.fromkeys(EVERYTHING, 0) | {"events": 1}
    assert [issue.title for issue in gl.projects.get(existing.id).issues.list(get_all=True)] == ["Mine"]
    assert wait_for(lambda: leftovers(service, made["id"]) == (set(), []), PATIENCE), leftovers(service, made["id"])


def operate(service, *words, **streams):
    environment = {**os.environ, "PROJECT_SERVICE_DATA_DIR": str(service.directory / "data")}
    environment.pop("PYTHONUNBUFFERED", None)  # which would hide buffering errors
    command = [COMMAND, "archive", *map(str, words), "--as", "root"]
    streams = {"capture_output": True, "text": True} | streams
    return subprocess.run(command, env=environment, timeout=PATIENCE, check=False, **streams)


def test_commands_import_and_export_with_progress(service, small_archive, tmp_path):
    name, source, target = next(names), tmp_path / "in.tar.gz", tmp_path / "out.tar.gz"
    source.write_bytes(small_archive)

    def run(*words):
        done = operate(service, *words)
        assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr
        return done.stdout.strip()

    assert run("import", source, name) == f"root/{name}"
    assert run("export", f"root/{name}", target) == str(target)
    assert len(rows(unpack(target.read_bytes()), "issues")) == SMALL_ARCHIVE_ISSUES


def test_archives_are_read_from_and_written_to_pipes(service, small_archive, tmp_path):
    name, pipe = next(names), tmp_path / "pipe"
    os.mkfifo(pipe)

    came = operate(service, "import", "-", name, input=small_archive, text=False)
    went = operate(service, "export", f"root/{name}", "-", text=False)
    with subprocess.Popen(["cp", str(pipe), str(tmp_path / "read")]) as reader:
        named = operate(service, "export", f"root/{name}", pipe)
        reader.wait(PATIENCE)

    assert [one.returncode for one in (came, went, named)] == [0, 0, 0], (came.stderr, went.stderr, named.stderr)
    assert [len(rows(unpack(content), "issues")) for content in (went.stdout, (tmp_path / "read").read_bytes())] == [
        SMALL_ARCHIVE_ISSUES,
        SMALL_ARCHIVE_ISSUES,
    ]


@nightly  # tests/cli covers the refusals of each command
def test_a_command_reports_an_archive_that_cannot_be_written(service, small_archive):
    name = next(names)
    operate(service, "import", "-", name, input=small_archive, text=False)

    with open("/dev/full", "wb") as full:
        warnings = [
            operate(service, "export", f"root/{name}", "/dev/full"),
            operate(service, "export", f"root/{name}", "-", stdout=full, stderr=subprocess.PIPE, capture_output=False),
        ]

    assert [(one.returncode, one.stderr.splitlines()[-1]) for one in warnings] == [
        (1, "project-service: the archive cannot be written (No space left on device)")
    ] * 2


@nightly  # tests/cli covers what the command prints
def test_a_command_lists_relations_that_an_import_skipped(service, tmp_path):
    name, source = next(names), tmp_path / "in.tar.gz"
    source.write_bytes(make_archive({"issues": [make_issue(1), make_issue(2, title=None)]}))

    done = operate(service, "import", source, name)

    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning")]
    assert (done.returncode, done.stdout.strip()) == (0, f"root/{name}")
    assert warnings == ["Warning: issues, line 2: Validation failed: Title can't be blank"]
