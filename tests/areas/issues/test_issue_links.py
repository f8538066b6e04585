"""Links between issues."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, RITA, ROLES, SAM, add_member, make_project


@pytest.fixture
def issues(project, as_):
    """Three issues of the project; the last one is confidential."""
    path = f"/projects/{project.id}/issues"
    titles = {"Totals": False, "Till": False, "Safe": True}
    return [as_(RITA).post(path, json={"title": title, "confidential": kind}).json for title, kind in titles.items()]


def links_of(issue):
    return f"/projects/{issue['project_id']}/issues/{issue['iid']}/links"


def to(issue):
    return {"target_project_id": issue["project_id"], "target_issue_iid": issue["iid"]}


def test_a_link_is_shown_from_both_sides(issues, as_):
    first, second, _ = issues

    made = as_(RITA).post(links_of(first), json=to(second))

    assert made.status_code == 201
    assert list(made.json) == ["id", "source_issue", "target_issue", "link_type"]
    assert (made.json["source_issue"]["id"], made.json["target_issue"]["id"]) == (first["id"], second["id"])
    (listed,) = as_(GUS).get(links_of(second)).json
    assert (listed["id"], listed["issue_link_id"], listed["link_type"]) == (first["id"], made.json["id"], "relates_to")
    assert listed["link_created_at"].endswith("Z")
    assert listed["link_updated_at"].endswith("Z")
    assert as_(GUS).get(f"{links_of(second)}/{made.json['id']}").json["id"] == made.json["id"]
    notes = [as_(GUS).get(links_of(each).replace("links", "notes")).json[0]["body"] for each in (first, second)]
    assert notes == ["marked this issue as related to #2", "marked this issue as related to #1"]
    assert as_(GUS).get(links_of(first).removesuffix("/links")).json["updated_at"] > first["updated_at"]


def test_a_removed_link_is_answered_and_gone(issues, as_):
    made = as_(RITA).post(links_of(issues[0]), json=to(issues[1])).json
    path = f"{links_of(issues[1])}/{made['id']}"

    removed = as_(DEV).delete(path)

    assert (removed.status_code, removed.json["id"]) == (200, made["id"])
    assert (as_(DEV).delete(path).json, as_(DEV).get(links_of(issues[0])).json) == ({"message": "404 Not found"}, [])


def test_refusals(issues, as_):
    first, second, hidden = issues
    path = links_of(first)
    as_(RITA).post(path, json=to(second))

    found = [
        as_(RITA).post(links_of(second), json=to(first)),
        as_(RITA).post(path, json=to(first)),
        as_(RITA).post(path, json=to(second) | {"target_issue_iid": 99}),
        as_(GUS).post(path, json=to(second)),
        as_(RITA).post(path, json={}),
        as_(RITA).post(path, json=to(hidden) | {"link_type": "blocks"}),
        as_(SAM).post(path, json=to(second)),
        as_(NOBODY).post(path, json=to(second)),
    ]

    assert [(response.status_code, *response.json.values()) for response in found] == [
        (409, "Issue(s) already assigned"),
        (422, "#1 cannot be added: cannot be related to itself"),
        (404, "404 Not found"),
        (403, "Couldn't link issues. You must have at least the Reporter role in both projects."),
        (400, "target_project_id is missing, target_issue_iid is missing"),
        (400, "link_type does not have a valid value"),
        (404, "404 Project Not Found"),
        (401, "401 Unauthorized"),
    ]


def test_links_to_hidden_issues_are_not_shown(issues, people, as_):
    first, _, hidden = issues
    far = make_project("far")
    add_member(far, people[RITA], ROLES[RITA])
    other = as_(RITA).post(f"/projects/{far.id}/issues", json={"title": "Far"}).json

    made = [as_(RITA).post(links_of(first), json=to(each)).json for each in (hidden, other)]

    assert [len(as_(name).get(links_of(first)).json) for name in (GUS, DEV, RITA)] == [0, 1, 2]
    assert as_(GUS).get(f"{links_of(first)}/{made[0]['id']}").json == {"message": "404 Not found"}
    assert as_(GUS).get(links_of(first).replace("links", "notes")).json == []
    assert as_(MAX).post(links_of(first), json=to(other)).json == {"message": "404 Not found"}
    add_member(far, people[MAX], ROLES[GUS])
    assert as_(MAX).delete(f"{links_of(first)}/{made[1]['id']}").json == {"message": "No Issue Link found"}


def test_an_issue_has_at_most_a_hundred_links(issues, project, as_, monkeypatch):
    monkeypatch.setattr("project_service.domain.tracker.issue_links.MAX_LINKS", 1)
    as_(RITA).post(links_of(issues[0]), json=to(issues[1]))

    response = as_(RITA).post(links_of(issues[2]), json=to(issues[0]))

    assert response.status_code == 422
    assert response.json["message"].endswith("This issue would exceed the maximum number of linked issues (1).")


def test_the_page_links_and_unlinks(issues, visit, as_):
    rita = visit(RITA)
    page = "/acme/shop/-/issues/1"

    rita.send(f"{page}/links", reference="acme/shop#2")
    linked = rita.get(page).text
    number = as_(ADA).get(links_of(issues[0])).json[0]["issue_link_id"]
    rita.send(f"{page}/links", reference="nonsense")
    refused = rita.get(page).text
    rita.send(f"{page}/links/{number}/delete")

    assert "#2 Till" in linked
    assert "There is no such issue" in refused
    assert as_(ADA).get(links_of(issues[0])).json == []


def test_administrators_find_an_issue_by_its_id(issues, as_):
    found = [as_(name).get(f"/issues/{issues[2]['id']}") for name in (ADA, MAX, NOBODY)]

    assert [response.status_code for response in found] == [200, 403, 401]
    assert found[0].json["references"]["full"] == "acme/shop#3"
    assert as_(ADA).get("/issues/99999").json == {"message": "404 Not found"}
