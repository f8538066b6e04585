"""What is in an exported archive."""

from __future__ import annotations

import datetime as dt
import json
import re
import tarfile
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
from project_service.kit import clock, exact_json
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from project_service.transfers.archive import diff
from project_service.transfers.exporting import context, exporter
from project_service.transfers.exporting.serializers import nested as nested_serializer
from project_service.transfers.exporting.serializers import serialize
from project_service.transfers.importing import finalization, protected_refs
from project_service.transfers.models import ArchivedRow, ProjectExport
from tests.support.archives import make_archive, make_event, make_issue, make_note, pack, rows, send, unpack
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import (
    DEV,
    GUS,
    MAX,
    OLIVE,
    RITA,
    add_member,
    make_user,
)
from tests.transfers.exporting.support import status, stored


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


def test_labels_that_issues_created_are_exported(export, as_maintainer, project):
    place = f"/projects/{project.id}/issues"
    for title, titles in (("First", "bug,new"), ("Second", "new")):
        as_maintainer.post(place, json={"title": title, "labels": titles})

    files = export()

    labels = {line["title"]: line for line in rows(files, "labels")}
    assert {title: line["color"] for title, line in labels.items()} == {"bug": "#6699cc", "new": "#6699cc"}
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
