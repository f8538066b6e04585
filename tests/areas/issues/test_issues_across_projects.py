"""Issues of all projects and of groups, and their numbers, through HTTP."""

from __future__ import annotations

import pytest

from project_service.domain.memberships import Membership
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, DEV, GUS, MAX, make_project
from tests.support.visitors import store


@pytest.fixture
def issues(project, people):
    """Two issues of the shop, the second confidential and closed, and one of a project of strangers."""
    cellar = make_project("cellar")
    own = {"created_at": clock.now(), "author_id": people[DEV].id}
    rows = (
        {"project_id": project.id, "iid": 1, "title": "Till is stuck"},
        {"project_id": project.id, "iid": 2, "title": "Money is missing", "confidential": True, "state": "closed"},
        {"project_id": cellar.id, "iid": 1, "title": "Cellar is wet"},
    )
    return [store(Issue(**own | row)) for row in rows]


def references(response):
    assert response.status_code == 200, response.json
    return [issue["references"]["full"].rpartition("/")[2] for issue in response.json]


@pytest.mark.parametrize(
    ("person", "query", "expected"),
    [
        (DEV, "", ["shop#2", "shop#1"]),
        (MAX, "", []),
        (MAX, "scope=all", ["shop#2", "shop#1"]),
        (MAX, "scope=all&search=till", ["shop#1"]),
        (MAX, "scope=all&state=closed", ["shop#2"]),
        (GUS, "scope=all", ["shop#1"]),
        (ADA, "scope=all", ["cellar#1", "shop#2", "shop#1"]),
        (ADA, "scope=created-by-me", []),
    ],
)
def test_issues_of_all_projects_are_those_the_caller_may_see(person, query, expected, as_, issues):
    assert references(as_(person).get(f"/issues?{query}")) == expected


def test_issues_of_a_group_are_those_of_its_projects(as_, issues, group, project):
    found = as_(MAX).get(f"/groups/{group.id}/issues?sort=asc")

    assert references(found) == ["shop#1", "shop#2"]
    assert found.json[0]["web_url"] == f"http://localhost/{project.full_path}/-/issues/1"
    assert as_(None).get(f"/groups/{group.id}/issues").status_code == 401


def test_issues_of_archived_projects_are_left_out_unless_asked_for(as_, issues, group, project):
    db.session.get(type(project), project.id).archived = True
    db.session.commit()

    lists = [as_(MAX).get(f"/groups/{group.id}/issues?{query}") for query in ("", "non_archived=false")]

    assert [references(found) for found in lists] == [[], ["shop#2", "shop#1"]]


@pytest.mark.parametrize(("place", "query"), [("", "?scope=all"), ("/groups/{group}", ""), ("/projects/{project}", "")])
def test_issues_are_counted_by_state(place, query, as_, issues, group, project):
    address = place.format(group=group.id, project=project.id)

    counts = [as_(person).get(f"{address}/issues_statistics{query}").json for person in (MAX, GUS)]

    assert [one["statistics"]["counts"] for one in counts] == [
        {"all": 2, "closed": 1, "opened": 1},
        {"all": 1, "closed": 0, "opened": 1},
    ]


def test_a_search_that_no_index_serves_says_how_many_issues_it_compared(as_, issues, monkeypatch):
    monkeypatch.setattr("project_service.kit.db.text_search.MAX_SCANNED_ROWS", 2)

    short, indexed = (as_(ADA).get(f"/issues?scope=all&search={word}") for word in ("is", "till"))

    assert short.headers["X-Newest-Only"] == "2"
    assert references(indexed) == ["shop#1"]


def test_participants_are_those_who_wrote_or_are_assigned_and_see_the_project(as_, issues, project, people):
    place = f"/projects/{project.id}/issues/1"
    as_(MAX).put(place, json={"assignee_ids": [people[GUS].id]})
    as_(MAX).post(f"{place}/notes", json={"body": "I look"})
    as_(MAX).post(f"{place}/notes", json={"body": "I look again"})
    db.session.query(Membership).filter_by(user_id=people[GUS].id).delete()
    db.session.commit()

    found = as_(DEV).get(f"{place}/participants")

    assert ({one["username"] for one in found.json}, found.headers["X-Total"]) == ({DEV, MAX}, "2")


@pytest.mark.parametrize("of_note", [False, True], ids=["issue", "note"])
def test_an_issue_has_no_reactions(of_note, as_, issues, project):
    place, client = f"/projects/{project.id}/issues/1", as_(DEV)
    if of_note:
        place += f"/notes/{client.post(f'{place}/notes', json={'body': 'A remark'}).json['id']}"
    place += "/award_emoji"

    listed, created = client.get(place), client.post(place, json={"name": "thumbsup"})

    assert (listed.status_code, listed.json) == (200, [])
    assert (created.status_code, created.json) == (404, {"message": "404 Award Emoji Not Found"})
