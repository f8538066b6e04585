"""Imports that are interrupted go on where they stopped."""

from __future__ import annotations

import datetime as dt
import fcntl
import itertools
import shutil

import pytest
from sqlalchemy import select, update

from project_service.domain import removal
from project_service.kit import clock, jobs
from project_service.kit.db.bulk import Writer
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from project_service.transfers import jobs as transfer_jobs
from project_service.transfers import workdir
from project_service.transfers.importing import files as file_import
from project_service.transfers.importing import row_loading
from project_service.transfers.models import ProjectExport, ProjectImport
from tests.support.archives import make_archive, make_event, make_issue, make_note, send
from tests.support.git_repositories import make_bundle
from tests.support.sample_data import (
    ADA,
    MAX,
)
from tests.transfers.importing.support import (
    NOT_BROUGHT,
    Interrupted,
    again,
    canonical,
    counts,
    difference,
    error_of,
    export,
    folders,
    full_archive,
    iids_of_milestones,
    killed_in_step,
    leave,
    stored,
)


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

    with monkeypatch.context() as changed:
        changed.setattr(type(storage()), "delete", delete)
        changed.setattr(clock, "now", lambda: later)
        changed.setattr("project_service.transfers.jobs.remove_stale_workdirs", lambda: done.append("next"))
        with pytest.raises(ExceptionGroup):
            jobs.JOBS["transfers.jobs.clear_up"]()

    left = stored()
    storage().delete("imports/a-bad.tar.gz")
    assert (left, done) == (["imports/a-bad.tar.gz"], ["next"])
