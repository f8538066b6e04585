"""A project that is exported and imported is the same."""

from __future__ import annotations

import errno
import functools
import io
import itertools
import json
import multiprocessing
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
from sqlalchemy import select, update

from project_service.areas.projects.schemas import LATER_SETTINGS, STORED_SETTINGS
from project_service.domain.events.models import Event
from project_service.domain.projects import Project
from project_service.domain.repositories import git as git_commands
from project_service.domain.tracker.issues import Issue
from project_service.kit import file_locks
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers import jobs as transfer_jobs
from project_service.transfers import workdir
from project_service.transfers.archive.diff import compare
from project_service.transfers.exporting import context as export_context
from project_service.transfers.exporting.serializers import nested as nested_serializer
from project_service.transfers.importing.row_loading import LINES_PARSED_AT_ONCE
from project_service.transfers.models import ProjectImport
from project_service.transfers.project_settings import AUTO_DEVOPS
from tests.support.archives import MOMENT as MADE
from tests.support.archives import make_archive, make_event, make_issue, make_note, rows, send, unpack
from tests.support.git_repositories import make_bundle, repository_folder
from tests.support.sample_data import (
    ADA,
    DEV,
    MAX,
    reload,
)
from tests.transfers.importing.support import (
    MEMBERS,
    canonical,
    error_of,
    export,
    exported_twice,
    folders,
    full_archive,
    git,
    iids_of_milestones,
    leave,
)


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
    files = {f"lfs-objects/{'b' * 64}": b"blob", "avatar/me.png": b"\x89PNG\r\n\x1a\n"}
    if said is not None:
        files["lfs-objects.json"] = json.dumps(said).encode()

    number = bring(make_archive({}, files=files))["id"]

    out = export(as_(MAX), number, run_jobs)
    assert (out[f"lfs-objects/{'b' * 64}"], json.loads(out["lfs-objects.json"])) == (b"blob", types)


ODD = {"issue_type": "test_case", "severity": "terrible", "weight": 2**70 + 1, "due_date": "soon"}


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
    others = {"build_git_strategy", "merge_method", *AUTO_DEVOPS}
    assert {*STORED_SETTINGS, "tag_list"} - SET.keys() - LATER_SETTINGS == others
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
        patched.setattr(file_locks.fcntl, "flock", full)
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
def test_label_events_of_issues_are_imported_and_exported(as_, bring, run_jobs):
    at = "2021-03-04T05:06:07.000Z"
    history = [
        {"action": action, "user_id": 9, "created_at": at, "label": label}
        for action, label in (("add", {"title": "bug"}), ("remove", {"title": "bug"}), ("add", None), ("moved", None))
    ]
    number = bring(make_archive({"issues": [make_issue(1, resource_label_events=history)]}))["id"]

    shown = as_(MAX).get(f"/projects/{number}/issues/1/resource_label_events").json
    [exported] = rows(export(as_(MAX), number, run_jobs), "issues")

    expected = [("add", "bug", at), ("remove", "bug", at), ("add", None, at)]
    for events, name in ((shown, "name"), (exported["resource_label_events"], "title")):
        changes = [(one["action"], one["label"] and one["label"][name], one["created_at"]) for one in events]
        assert changes == expected


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
