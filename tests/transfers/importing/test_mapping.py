"""Mapping of archived rows: labels, milestones, children of issues, settings."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
import subprocess
import tracemalloc

import pytest
from sqlalchemy import select

from project_service.domain.projects import Project
from project_service.domain.repositories import git as git_commands
from project_service.domain.repositories.protected_refs import ProtectedBranch
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.storage import storage
from project_service.transfers.importing import row_loading
from project_service.transfers.importing.mapping.values import moment_of
from project_service.transfers.importing.row_loading import LINES_PARSED_AT_ONCE
from tests.support.archives import MOMENT as MADE
from tests.support.archives import make_archive, make_event, make_issue, make_note, rows, send
from tests.support.git_repositories import make_bundle, repository_folder
from tests.support.sample_data import (
    MAX,
    SAM,
    reload,
)
from tests.transfers.importing.support import again, export, exported_twice, iids_of_milestones, killed_in_step


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


def test_labels_of_an_issue_beyond_the_limit_of_the_api_are_cut(bring, as_):
    links = [{"label": {"title": f"{number:03}"}} for number in range(501)]
    number = bring(make_archive({"issues": [make_issue(1, label_links=links)]}))["id"]

    [issue] = as_(MAX).get(f"/projects/{number}/issues").json
    [failed] = as_(MAX).get(f"/projects/{number}/import").json["failed_relations"]
    assert (len(issue["labels"]), failed["exception_message"]) == (
        500,
        "Validation failed: Labels are too many (maximum is 500) and were cut",
    )


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


LEVEL = {"access_level": 30, "user_id": None, "group_id": None, "created_at": MADE}
