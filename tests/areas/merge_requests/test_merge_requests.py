"""Imported merge requests through HTTP."""

from __future__ import annotations

import datetime as dt
import io

import pytest

from project_service.domain.access_levels import Visibility
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db.session import db
from tests.support.archives import make_archive
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    RITA,
    SAM,
    add_member,
    make_merge_request,
    make_note,
    make_project,
    make_user,
)

MISSING = {"message": "404 Not found"}
CREATED_AT = dt.datetime(2026, 3, 14, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)


def merge_requests_path(project, *more):
    return "/".join((f"/projects/{project.id}/merge_requests", *map(str, more)))


def update_project(project, **fields):
    found = db.session.get(Project, project.id)
    for name, value in fields.items():
        setattr(found, name, value)
    db.session.commit()


def make_milestone(project, title="1.0", iid=1):
    milestone = Milestone(project_id=project.id, iid=iid, title=title)
    db.session.add(milestone)
    db.session.commit()
    return milestone


# Keys


def test_a_merge_request_has_the_documented_keys(people, project, as_):
    milestone = make_milestone(project)
    created = make_merge_request(
        project,
        description="*sums*",
        author_id=people[DEV].id,
        milestone_id=milestone.id,
        labels=["bug", "api"],
        created_at=CREATED_AT,
        updated_at=CREATED_AT,
    )
    make_note(created)
    make_note(created, "changed the title", system=True)

    listed = as_(RITA).get(merge_requests_path(project)).json
    shown = as_(RITA).get(merge_requests_path(project, created.iid)).json

    assert listed == [
        {
            "id": created.id,
            "iid": 1,
            "project_id": project.id,
            "title": "Better totals",
            "description": "*sums*",
            "state": "opened",
            "created_at": "2026-03-14T12:00:00.000Z",
            "updated_at": "2026-03-14T12:00:00.000Z",
            "target_branch": "main",
            "source_branch": "totals",
            "user_notes_count": 1,
            "author": listed[0]["author"],
            "target_project_id": project.id,
            "labels": ["api", "bug"],
            "draft": False,
            "work_in_progress": False,
            "milestone": as_(RITA).get(f"/projects/{project.id}/milestones/{milestone.id}").json,
            "reference": "!1",
            "references": {"short": "!1", "relative": "!1", "full": "acme/shop!1"},
            "web_url": "http://localhost/acme/shop/-/merge_requests/1",
        }
    ]
    assert listed[0]["author"]["username"] == DEV
    assert shown.items() >= listed[0].items()


def test_a_merge_request_shows_the_fields_of_its_archive(project, as_):
    extra = {
        "metrics": {"merged_at": "2021-02-15T15:56:00.645Z", "latest_closed_at": None},
        "merge_status": "can_be_merged",
        "diff_head_sha": "a" * 40,
        "merge_commit_sha": "b" * 40,
        "squash": True,
        "merge_request_diff": {
            "base_commit_sha": "c" * 40,
            "head_commit_sha": "a" * 40,
            "start_commit_sha": "c" * 40,
            "merge_request_diff_files": [{"diff": "+1"}],
        },
    }
    created = make_merge_request(project, state="merged", extra=extra)

    shown = as_(RITA).get(merge_requests_path(project, created.iid)).json

    assert {name: shown[name] for name in list(shown)[20:]} == {
        "source_project_id": project.id,
        "merged_at": "2021-02-15T15:56:00.645Z",
        "closed_at": None,
        "merge_status": "can_be_merged",
        "merge_error": None,
        "sha": "a" * 40,
        "merge_commit_sha": "b" * 40,
        "squash_commit_sha": None,
        "squash": True,
        "discussion_locked": None,
        "diff_refs": {"base_sha": "c" * 40, "head_sha": "a" * 40, "start_sha": "c" * 40},
    }


@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"merged_at": 7}, {"merged_at": "soon"}, [{}]])
def test_archived_values_of_unexpected_types_are_shown_as_null(value, project, as_):
    names = ("metrics", "merge_status", "squash", "merge_request_diff", "diff_head_sha", "discussion_locked")
    created = make_merge_request(project, extra=dict.fromkeys(names, value))

    shown = as_(RITA).get(merge_requests_path(project, created.iid))

    expected = "x" if value == "x" else None
    assert (shown.status_code, shown.json["merged_at"], shown.json["diff_refs"]) == (200, None, None)
    assert (shown.json["merge_status"], shown.json["squash"], shown.json["sha"]) == (expected, None, expected)


def test_merge_requests_of_a_fork_have_no_source_project(project, as_):
    created = make_merge_request(project, extra={"source_project_id": None})

    assert as_(RITA).get(merge_requests_path(project, created.iid)).json["source_project_id"] is None


@pytest.mark.parametrize(
    ("title", "draft"),
    [
        ("Draft: a", True),
        ("[Draft] a", True),
        ("(draft) a", True),
        ("WIP: a", True),
        ("[wip] a", True),
        ("WIP", True),
        ("Drafty", False),
        ("a draft: b", False),
        ("Wipe", False),
    ],
)
def test_the_title_decides_whether_it_is_a_draft(title, draft, project, as_):
    make_merge_request(project, title)

    (listed,) = as_(RITA).get(merge_requests_path(project)).json

    assert (listed["draft"], listed["work_in_progress"]) == (draft, draft)


@pytest.mark.both_databases
def test_lists_do_not_load_columns_of_the_single_view(project, as_, count_queries):
    for _ in range(3):
        make_merge_request(project, extra={"merge_request_diff": {"merge_request_diff_files": ["x" * 1000]}})

    with count_queries() as queries:
        as_(RITA).get(merge_requests_path(project))

    assert not [statement for statement in queries if "merge_requests.extra" in statement]


# Visibility


@pytest.mark.parametrize("more", [(), (1,), (1, "notes"), None])
@pytest.mark.parametrize(
    ("visibility", "level", "statuses"),
    [
        ("private", "enabled", [200, 200, 200, 200, 200, 403, 404, 401]),
        ("private", "private", [200, 200, 200, 200, 200, 403, 404, 401]),
        ("internal", "enabled", [200, 200, 200, 200, 200, 200, 200, 401]),
        ("public", "enabled", [200, 200, 200, 200, 200, 200, 200, 401]),
        ("public", "private", [200, 200, 200, 200, 200, 403, 403, 401]),
        ("public", "disabled", [403, 403, 403, 403, 403, 403, 403, 401]),
    ],
)
def test_visibility_and_access_level_decide_who_reads_merge_requests(visibility, level, statuses, more, project, as_):
    update_project(project, visibility=Visibility.of(visibility), merge_requests_access_level=level)
    make_merge_request(project, milestone_id=(milestone := make_milestone(project)).id)
    path = (
        f"/projects/{project.id}/milestones/{milestone.id}/merge_requests"
        if more is None
        else merge_requests_path(project, *more)
    )

    callers = (ADA, OLIVE, MAX, DEV, RITA, GUS, SAM, NOBODY)
    assert {*callers} == {*PEOPLE, NOBODY}
    assert [as_(person).get(path).status_code for person in callers] == statuses


def test_external_users_read_merge_requests_of_public_and_their_own_projects(project, client_of):
    external = make_user(external=True)
    update_project(project, visibility=Visibility.INTERNAL)
    responses = [client_of(external).get(merge_requests_path(project)).status_code]
    update_project(project, visibility=Visibility.PUBLIC)
    responses.append(client_of(external).get(merge_requests_path(project)).status_code)
    update_project(project, visibility=Visibility.PRIVATE)
    add_member(project, external, 20)
    responses.append(client_of(external).get(merge_requests_path(project)).status_code)

    assert responses == [404, 200, 200]


@pytest.mark.parametrize("person", [OLIVE, ADA])
def test_rows_of_an_unfinished_import_are_hidden(person, project, as_):
    created = make_merge_request(project, milestone_id=(milestone := make_milestone(project)).id)
    update_project(project, loading=True)

    client = as_(person)

    assert client.get(merge_requests_path(project)).json == []
    assert client.get(merge_requests_path(project, created.iid)).status_code == 404
    assert client.get(merge_requests_path(project, created.iid, "notes")).status_code == 404
    assert client.get(f"/projects/{project.id}/milestones/{milestone.id}/merge_requests").status_code == 404


def test_a_missing_merge_request_is_not_found(project, as_):
    make_merge_request(make_project())

    responses = [as_(RITA).get(merge_requests_path(project, number)) for number in (1, 99, 10**30, "1/notes")]

    assert [(response.status_code, response.json) for response in responses] == [(404, MISSING)] * 4
    assert as_(RITA).get(merge_requests_path(project, "x")).json == {"error": "404 Not Found"}


@pytest.mark.parametrize("path", ["", "/1", "/1/notes"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_merge_requests_have_no_write_routes(method, path, project, as_):
    make_merge_request(project)

    assert as_(OLIVE).open(method, merge_requests_path(project) + path, json={}).status_code == 405


# Filters


@pytest.fixture
def merge_requests(people, project):
    """Five merge requests by name, each a day younger than the one before."""
    milestone, other = make_milestone(project), make_milestone(project, "2.0", 2)
    fields = {
        "plain": {"author_id": people[DEV].id, "description": "All is fine"},
        "bugs": {
            "author_id": people[RITA].id,
            "labels": ["bug"],
            "milestone_id": milestone.id,
            "updated_at": CREATED_AT + 9 * DAY,
        },
        "both": {"state": "closed", "labels": ["bug", "api"], "milestone_id": milestone.id, "target_branch": "next"},
        "done": {"state": "merged", "milestone_id": other.id, "source_branch": "done"},
        "held": {"state": "locked", "title": "Fine totals"},
    }
    created = {}
    for number, (name, values) in enumerate(fields.items()):
        moments = {"created_at": CREATED_AT + number * DAY, "updated_at": CREATED_AT + number * DAY}
        created[make_merge_request(project, **moments | values).id] = name
    return created


def names_of(merge_requests, response):
    assert response.status_code == 200, response.json
    return " ".join(merge_requests[row["id"]] for row in response.json)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "held done both bugs plain"),
        ("state=all", "held done both bugs plain"),
        ("state=opened", "bugs plain"),
        ("state=closed", "both"),
        ("state=merged", "done"),
        ("state=locked", "held"),
        ("labels=bug", "both bugs"),
        ("labels=bug,api", "both"),
        ("labels=Bug", ""),
        ("labels=None", "held done plain"),
        ("labels=Any", "both bugs"),
        ("milestone=1.0", "both bugs"),
        ("milestone=None", "held plain"),
        ("milestone=Any", "done both bugs"),
        ("milestone=3.0", ""),
        ("iids[]=1&iids[]=3", "both plain"),
        ("author_username=DEV", "plain"),
        ("author_username=nemo", ""),
        ("author_id=99999", ""),
        ("scope=created_by_me", "bugs"),
        ("scope=assigned_to_me", ""),
        ("scope=all", "held done both bugs plain"),
        ("source_branch=done", "done"),
        ("target_branch=next", "both"),
        ("search=fine", "held plain"),
        ("search=fine&in=title", "held"),
        ("search=fine&in=description", "plain"),
        ("search=%25", ""),
        ("created_after=2026-03-16T12:00:00Z", "held done both"),
        ("created_before=2026-03-15T12:00:00Z", "bugs plain"),
        ("updated_after=2026-03-18T12:00:01Z", "bugs"),
        ("updated_before=2026-03-14T12:00:00Z", "plain"),
        ("sort=asc", "plain bugs both done held"),
        ("order_by=updated_at", "bugs held done both plain"),
        ("order_by=updated_at&sort=asc", "plain both done held bugs"),
        ("state=opened&labels=bug&milestone=1.0", "bugs"),
        ("per_page=2&page=2", "both bugs"),
    ],
)
def test_merge_requests_are_filtered_and_ordered(query, expected, merge_requests, project, as_):
    assert names_of(merge_requests, as_(RITA).get(f"{merge_requests_path(project)}?{query}")) == expected


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("state=gone", "state does not have a valid value"),
        ("scope=mine", "scope does not have a valid value"),
        ("order_by=title", "order_by does not have a valid value"),
        ("sort=up", "sort does not have a valid value"),
        ("author_id=x", "author_id is invalid"),
        ("in=body", "in does not have a valid value"),
        ("created_after=soon", "created_after is invalid"),
        ("per_page=0", "per_page has a value not allowed"),
    ],
)
def test_invalid_filters_are_refused(query, error, project, as_):
    response = as_(RITA).get(f"{merge_requests_path(project)}?{query}")

    assert (response.status_code, response.json) == (400, {"error": error})


def test_the_merge_requests_of_a_milestone_are_listed(merge_requests, project, as_):
    path = f"/projects/{project.id}/milestones"
    first, second = sorted(row["id"] for row in as_(RITA).get(path).json)

    responses = [as_(RITA).get(f"{path}/{number}/merge_requests") for number in (first, second)]

    assert [names_of(merge_requests, response) for response in responses] == ["both bugs", "done"]
    assert responses[0].headers["X-Total"] == "2"
    assert as_(RITA).get(f"{path}/999/merge_requests").json == {"message": "404 Milestone Not Found"}


def test_lists_are_paginated_and_linked_from_the_project(merge_requests, project, as_):
    address = as_(RITA).get(f"/projects/{project.id}").json["_links"]["merge_requests"]

    response = as_(RITA).get(address.partition("/api/v4")[2] + "?per_page=2")

    assert (len(response.json), response.headers["X-Total"], response.headers["X-Next-Page"]) == (2, "5", "2")


# Notes


def test_notes_of_a_merge_request_are_filtered_and_ordered(people, project, as_):
    created, other = make_merge_request(project), make_merge_request(project)
    stored_notes = [
        make_note(
            created, f"{number}", author_id=people[DEV].id, system=number == 1, created_at=CREATED_AT + number * DAY
        )
        for number in range(3)
    ]
    make_note(other)
    path = merge_requests_path(project, created.iid, "notes")

    queries = (
        "",
        "?sort=asc",
        "?activity_filter=only_comments",
        "?activity_filter=only_activity",
        "?per_page=1&page=2",
    )
    bodies = [[note["body"] for note in as_(RITA).get(path + query).json] for query in queries]
    (note,) = as_(RITA).get(f"{path}?per_page=1").json

    assert bodies == [["2", "1", "0"], ["0", "1", "2"], ["2", "0"], ["1"], ["1"]]
    assert (
        note["id"],
        note["noteable_type"],
        note["noteable_id"],
        note["noteable_iid"],
        note["author"]["username"],
    ) == (
        stored_notes[2].id,
        "MergeRequest",
        created.id,
        created.iid,
        DEV,
    )


def test_internal_notes_are_visible_to_reporters_and_higher_roles(project, as_):
    update_project(project, visibility=Visibility.PUBLIC)
    created = make_merge_request(project)
    make_note(created, "among us", confidential=True)

    assert [
        len(as_(person).get(merge_requests_path(project, created.iid, "notes")).json) for person in (SAM, GUS, RITA)
    ] == [0, 0, 1]


# Imports


def test_merge_requests_are_imported_with_labels_and_notes(as_admin, run_jobs):
    link = {"target_type": "MergeRequest", "label": {"title": "bug", "color": "#ff0000"}}
    row = {
        "iid": 3,
        "title": "Better totals",
        "source_branch": "totals",
        "target_branch": "main",
        "source_project_id": 5,
        "target_project_id": 5,
        "author_id": 7,
        "state": "merged",
        "label_links": [link, link, {"label": None}],
        "milestone": {"title": "1.0", "iid": 1},
        "notes": [{"note": "Good", "author_id": 7, "author": {"name": "Tess"}, "noteable_type": "MergeRequest"}],
        "metrics": {"merged_at": "2021-02-15T15:56:00.645Z"},
    }
    archive = make_archive({"merge_requests": [row]})
    number = as_admin.post(
        "/projects/import", data={"path": "brought", "file": (io.BytesIO(archive), "a.tar.gz")}
    ).json["id"]
    run_jobs()

    (listed,) = as_admin.get(f"/projects/{number}/merge_requests?labels=bug&milestone=1.0&state=merged").json
    shown = as_admin.get(f"/projects/{number}/merge_requests/3").json
    notes = as_admin.get(f"/projects/{number}/merge_requests/3/notes").json

    assert (listed["labels"], listed["user_notes_count"], listed["milestone"]["title"]) == (["bug"], 1, "1.0")
    assert shown["merged_at"] == "2021-02-15T15:56:00.645Z"
    assert [note["body"].splitlines()[0] for note in notes] == ["Good"]
    assert [label["name"] for label in as_admin.get(f"/projects/{number}/labels").json] == ["bug"]


@pytest.mark.parametrize("person", ["\N{SUPERSCRIPT TWO}", "1" * 5000, 10**19, -1, "root", {"odd": 1}])
def test_a_resolved_note_without_a_known_resolver_is_resolved(person, project, as_):
    extra = {"resolved_at": "2021-03-04T05:06:07.008Z", "resolved_by_id": person}
    make_note(make_merge_request(project), "a", type="DiscussionNote", extra=extra)

    (note,) = as_(DEV).get(merge_requests_path(project, 1, "notes")).json

    assert (note["resolved"], note["resolved_by"]) == (True, None)


def test_notes_of_discussions_show_whether_they_are_resolved(people, project, as_):
    merge_request = make_merge_request(project)
    extra = {"resolved_at": "2021-03-04T05:06:07.008Z", "resolved_by_id": people[MAX].id}
    make_note(merge_request, "a", type="DiscussionNote", extra=extra)
    make_note(
        merge_request, "b", type="DiffNote", extra={"resolved_at": "2021-03-04T05:06:07.008Z", "resolved_by_id": None}
    )
    make_note(merge_request, "c", type="DiscussionNote", extra={"resolved_at": {"odd": 1}})
    make_note(merge_request, "d", type="DiscussionNote")
    make_note(merge_request, "e", extra=extra)
    make_note(merge_request, "f", type="DiscussionNote", system=True)

    notes = as_(DEV).get(merge_requests_path(project, 1, "notes?sort=asc")).json

    keys = ("resolvable", "resolved", "resolved_at")
    moment = "2021-03-04T05:06:07.008Z"
    assert [tuple(note.get(key) for key in keys) for note in notes] == [
        (True, True, moment),
        (True, True, moment),
        *[(True, False, None)] * 2,
        *[(False, None, None)] * 2,
    ]
    assert [note["resolved_by"] and note["resolved_by"]["username"] for note in notes[:4]] == [MAX, None, None, None]
    assert {"resolved", "resolved_by"}.isdisjoint(notes[4])


# Commits and closed issues


def test_merge_requests_of_a_commit_are_found_by_archived_data(project, as_):
    make_merge_request(project, extra={"merge_commit_sha": "a" * 40})
    make_merge_request(project, "Other", extra={"merge_commit_sha": "b" * 40})
    commits = f"/projects/{project.id}/repository/commits"

    assert [row["iid"] for row in as_(RITA).get(f"{commits}/{'a' * 40}/merge_requests").json] == [1]
    assert as_(RITA).get(f"{commits}/{'c' * 40}/merge_requests").json == []


@pytest.mark.parametrize(
    ("description", "iids"),
    [
        ("Closes #1, #2 and #3", [1, 2, 3]),
        ("this fixes: #2. See #1", [2]),
        ("Implements issue #3\nresolved #1", [1, 3]),
        ("#1, disclose #2, closes other/project#3", []),
        (None, []),
    ],
)
def test_issues_closed_by_a_merge_request_are_listed(description, iids, project, as_):
    for _ in range(3):
        as_(DEV).post(f"/projects/{project.id}/issues", json={"title": "Till"})
    make_merge_request(project, description=description)

    closed = as_(RITA).get(f"{merge_requests_path(project, 1)}/closes_issues").json

    assert sorted(row["iid"] for row in closed) == iids
