"""The routes of the search."""

from __future__ import annotations

import pytest

from project_service.areas.search import service
from project_service.domain.access_levels import Role
from project_service.kit.db import text_search
from tests.support.git_repositories import keep_bundle, make_history
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    RITA,
    SAM,
    add_member,
    make_group,
    make_merge_request,
    make_project,
)


@pytest.fixture
def code(project, tmp_path):
    keep_bundle(project, make_history(tmp_path))


def search(client, place="", **query):
    return client.get(f"{place}/search", query_string=query)


def titles(response):
    return [row.get("title") or row.get("name") for row in response.json]


def make_issue(client, project, title, **fields):
    return client.post(f"/projects/{project.id}/issues", json={"title": title, **fields}).json


def test_the_address_of_the_page_works_too(as_, project):
    make_issue(as_(MAX), project, "The till is stuck")

    for place in (f"/groups/{project.namespace_id}/-", f"/projects/{project.id}/-"):
        assert titles(search(as_(MAX), place, scope="issues", search="till")) == ["The till is stuck"]


@pytest.mark.both_databases
def test_issues_are_found_by_words_in_any_order_newest_first(as_, project):
    make_issue(as_(MAX), project, "The till is stuck", description="since NOON")
    make_issue(as_(MAX), project, "Noon is when the tills close")
    make_issue(as_(MAX), project, "Else")

    for text, expected in (
        ("noon till", ["Noon is when the tills close", "The till is stuck"]),
        ('"till is"', ["The till is stuck"]),
        ("is", ["Noon is when the tills close", "The till is stuck"]),
        ("#3", ["Else"]),
        ("100% till", []),
    ):
        for place in ("", f"/groups/{project.namespace_id}", f"/projects/{project.id}"):
            assert (text, place, titles(search(as_(MAX), place, scope="issues", search=text))) == (
                text,
                place,
                expected,
            )


@pytest.mark.both_databases
def test_a_search_shows_only_what_the_caller_may_see(as_, project, people):
    make_issue(as_(MAX), project, "Secret till", confidential=True)
    make_issue(as_(MAX), project, "Open till", confidential=False)
    seen = {name: titles(search(as_(name), scope="issues", search="till")) for name in (ADA, RITA, GUS, SAM)}

    assert seen == {ADA: ["Open till", "Secret till"], RITA: ["Open till", "Secret till"], GUS: ["Open till"], SAM: []}


@pytest.mark.both_databases
def test_projects_and_people_and_milestones_are_found(as_, project, group, people):
    make_project("store", make_group("other"), name="Shop of others")
    as_(MAX).post(f"/projects/{project.id}/milestones", json={"title": "Opening of the shop"})

    assert titles(search(as_(DEV), scope="projects", search="shop")) == ["shop"]
    assert titles(search(as_(ADA), scope="projects", search="SHO")) == ["Shop of others", "shop"]
    assert titles(search(as_(DEV), scope="milestones", search="opening")) == ["Opening of the shop"]
    assert titles(search(as_(SAM), scope="milestones", search="opening")) == []
    assert titles(search(as_(SAM), scope="users", search="rit")) == ["Rita"]
    assert titles(search(as_(SAM), scope="users", search="Rita@example.org")) == ["Rita"]
    assert titles(search(as_(DEV), f"/projects/{project.id}", scope="users", search="sam")) == []


def test_members_of_a_group_are_people_of_it(as_, group, people):
    add_member(group, people[SAM], Role.GUEST)

    assert titles(search(as_(ADA), f"/groups/{group.id}", scope="users", search="sam")) == ["Sam"]


def test_comments_of_a_project_are_found_except_internal_ones(as_, project):
    issue = make_issue(as_(MAX), project, "x")
    for body, internal in (("the drawer jams", False), ("the drawer is a secret", True)):
        as_(MAX).post(f"/projects/{project.id}/issues/{issue['iid']}/notes", json={"body": body, "internal": internal})
    path = f"/projects/{project.id}"

    found = search(as_(RITA), path, scope="notes", search="drawer").json

    assert [(note["body"], note["noteable_iid"]) for note in found] == [
        ("the drawer is a secret", 1),
        ("the drawer jams", 1),
    ]
    assert [note["body"] for note in search(as_(GUS), path, scope="notes", search="drawer").json] == ["the drawer jams"]


def test_merge_requests_are_found_by_state(as_, project):
    make_merge_request(project, "Oil the till", state="merged")
    make_merge_request(project, "Paint the till")

    assert titles(search(as_(DEV), scope="merge_requests", search="till", state="merged")) == ["Oil the till"]


def test_commits_are_found_by_message_and_by_id(as_, project, code):
    path = f"/projects/{project.id}"
    [found] = search(as_(RITA), path, scope="commits", search="second: ün").json

    assert (found["title"], "stats" in found) == ("Second: ünï", False)
    assert titles(search(as_(RITA), path, scope="commits", search=found["id"][:9])) == ["Second: ünï"]
    assert search(as_(GUS), path, scope="commits", search="second").json == []


def test_code_is_found_by_name_then_by_content(as_, project, code):
    path = f"/projects/{project.id}"
    by_content, by_name = (search(as_(RITA), path, scope="blobs", search=text).json for text in ("RETURN x", "app.py"))

    assert by_content == [
        {
            "basename": "app",
            "data": "def f(x):\n    return x + 1\nmore\n",
            "path": "app.py",
            "filename": "app.py",
            "id": None,
            "ref": "main",
            "startline": 1,
            "project_id": project.id,
        }
    ]
    assert (by_name[0]["startline"], by_name[0]["id"] is not None, by_name[0]["data"][:9]) == (1, True, "def f(x):")
    for text, count in (("return extension:py", 1), ("return -extension:py", 0), ("return filename:b*", 0)):
        assert (text, len(search(as_(RITA), path, scope="blobs", search=text).json)) == (text, count)
    assert search(as_(RITA), path, scope="blobs", search="--help").json == []
    assert search(as_(RITA), path, scope="blobs", search="x", ref="nope").json == []


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        ({"scope": "issues"}, 400, {"error": "search is missing"}),
        ({"search": "x", "scope": "blobs"}, 400, {"error": "scope does not have a valid value"}),
        ({"search": "x" * 5000, "scope": "issues"}, 400, {"message": service.TOO_LONG}),
        ({"search": "a " + " ".join(map(str, range(64))), "scope": "issues"}, 400, {"message": service.TOO_LONG}),
        ({"search": "x", "scope": "snippet_titles"}, 200, []),
        ({"search": " ", "scope": "issues"}, 200, []),
    ],
    ids=["no-text", "scope", "characters", "words", "titles", "blank"],
)
def test_refusals(query, status, body, as_, people):
    response = search(as_(MAX), **query)

    assert (response.status_code, response.json) == (status, body)


def test_anonymous_callers_are_refused(as_, project):
    assert search(as_(NOBODY), scope="issues", search="x").status_code == 401
    assert search(as_(SAM), f"/projects/{project.id}", scope="issues", search="x").status_code == 404


def test_pages_have_no_totals(as_, project):
    for number in range(3):
        make_issue(as_(MAX), project, f"Till {number}")

    first = search(as_(MAX), scope="issues", search="till", per_page=2)
    last = search(as_(MAX), scope="issues", search="till", per_page=2, page=2)

    assert (titles(first), first.headers["X-Next-Page"]) == (["Till 2", "Till 1"], "2")
    assert (titles(last), last.headers["X-Next-Page"], "X-Total" in last.headers) == (["Till 0"], "", False)


def test_searches_are_limited_per_user_and_minute(as_admin, as_, people):
    as_admin.put("/application/settings", json={"search_rate_limit": 2})
    statuses = [search(as_(MAX), scope="issues", search="x").status_code for _ in range(3)]

    assert (statuses, search(as_(DEV), scope="issues", search="x").status_code) == ([200, 200, 429], 200)


def test_short_words_are_looked_for_in_the_newest_rows(as_, project, monkeypatch):
    monkeypatch.setattr(text_search, "MAX_SCANNED_ROWS", 1)
    for title in ("ab old", "ab new"):
        make_issue(as_(MAX), project, title)

    assert titles(search(as_(MAX), scope="issues", search="ab")) == ["ab new"]
    assert titles(search(as_(MAX), scope="issues", search="old")) == ["ab old"]


def test_archived_projects_are_left_out_unless_asked_for(as_, as_admin, project):
    make_issue(as_(MAX), project, "Till")
    as_admin.post(f"/projects/{project.id}/archive")

    assert titles(search(as_(MAX), scope="issues", search="till")) == []
    assert titles(search(as_(MAX), scope="issues", search="till", include_archived="true")) == ["Till"]
    assert titles(search(as_(MAX), f"/projects/{project.id}", scope="issues", search="till")) == ["Till"]
