"""Imports that fail, and rows that are skipped."""

from __future__ import annotations

import datetime as dt
import errno
import shutil

import pytest
from sqlalchemy import func, select, update

from project_service.domain.access_levels import Role
from project_service.domain.events.models import Event
from project_service.domain.repositories import models
from project_service.kit import clock, jobs
from project_service.kit.db.session import db
from project_service.kit.jobs import Task
from project_service.transfers import notifications
from project_service.transfers.archive import extraction
from project_service.transfers.importing import row_loading
from project_service.transfers.importing.mapping import context as mapping_context
from project_service.transfers.models import ImportFailure, ProjectImport
from tests.support.archives import make_archive, make_event, make_issue, make_note, send
from tests.support.git_repositories import make_bundle
from tests.support.sample_data import (
    ADA,
    MAX,
    add_member,
    make_project,
)
from tests.transfers.importing.support import (
    MOMENT,
    NOT_BROUGHT,
    again,
    counts,
    difference,
    error_of,
    export,
    full_archive,
    known_projects,
    stored,
)

NO_ROOM = "507 Insufficient Storage: there is no room left on the disk of this server"


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


def test_overlong_texts_are_truncated_and_reported(bring, as_, monkeypatch):
    monkeypatch.setattr(mapping_context, "LONGEST_TEXT", 2000)
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
