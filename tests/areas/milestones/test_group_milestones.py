"""Milestones of groups through HTTP."""

from __future__ import annotations

import pytest

from tests.support.archives import make_archive, send
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_merge_request,
    make_project,
)
from tests.transfers.importing.support import export

TAKEN = '{:title=>["already being used for another group or project milestone."]}'


def of(group, number=None):
    path = f"/groups/{group.id}/milestones"
    return path if number is None else f"{path}/{number}"


@pytest.fixture
def create(group, as_):
    """Creates a milestone of the group through the API; returns it."""
    return lambda title="1.0", owner=None, **fields: (
        as_(ADA).post(of(owner or group), json={"title": title} | fields).json
    )


def test_a_milestone_of_a_group_has_exactly_the_documented_keys(group, as_):
    sent = {"title": "1.0", "description": "soon", "start_date": "2030-01-01", "due_date": "2030-02-01"}

    created = as_(OLIVE).post(of(group), json=sent)

    assert created.status_code == 201
    times = {name: created.json[name] for name in ("created_at", "updated_at")}
    url = "http://localhost/groups/acme/-/milestones/1"
    own = {"id": created.json["id"], "iid": 1, "group_id": group.id, "state": "active", "expired": False}
    assert created.json == sent | times | own | {"web_url": url}
    assert as_(OLIVE).get(of(group, created.json["id"])).json == created.json


@pytest.mark.parametrize(
    ("method", "statuses"), [("GET", [200, 200, 200, 404, 401]), ("POST", [201, 201, 403, 404, 401])]
)
def test_developers_of_the_group_write_its_milestones(method, statuses, group, people, as_):
    for name in (DEV, RITA):
        add_member(group, people[name], ROLES[name])
    callers = (OLIVE, DEV, RITA, SAM, NOBODY)

    actual = [as_(name).open(method, of(group), json={"title": f"by {name}"}).status_code for name in callers]

    assert actual == statuses


def test_titles_are_unique_up_and_down_the_tree(group, project, create, as_):
    below = make_group("below", group)
    create("above")
    as_(MAX).post(f"/projects/{project.id}/milestones", json={"title": "inside"})

    refused = [
        as_(MAX).post(f"/projects/{project.id}/milestones", json={"title": "above"}),
        as_(OLIVE).post(of(group), json={"title": "inside"}),
        as_(OLIVE).post(of(below), json={"title": "above"}),
        as_(OLIVE).put(of(group, create("other")["id"]), json={"title": "inside"}),
    ]

    assert [response.status_code for response in refused] == [400] * 4
    texts = [response.json["message"] for response in refused]
    assert texts == [*[f"Failed to create milestone {TAKEN}"] * 3, f"Failed to update milestone {TAKEN}"]
    assert as_(OLIVE).post(of(below), json={"title": "inside"}).status_code == 201


def test_issues_of_projects_below_have_it(group, project, create, as_):
    inner = make_project("inner", make_group("below", group))
    milestone = create()

    issue = (
        as_(ADA).post(f"/projects/{inner.id}/issues", json={"title": "Totals", "milestone_id": milestone["id"]}).json
    )

    assert issue["milestone"] == milestone
    listed = [
        f"/projects/{inner.id}/issues?milestone=1.0",
        f"/groups/{group.id}/issues?milestone=1.0",
        f"{of(group, milestone['id'])}/issues",
    ]
    assert [[row["milestone"] for row in as_(ADA).get(path).json] for path in listed] == [[milestone]] * 3
    assert as_(GUS).get(f"/projects/{project.id}/issues?milestone=1.0").json == []


def test_issues_of_hidden_projects_are_not_listed(group, people, create, as_):
    add_member(group, people[SAM], ROLES[GUS])
    shown, hidden = make_project("open", group), make_project("closed", group, issues_access_level="disabled")
    milestone = create()
    for each in (shown, hidden):
        make_merge_request(each, milestone_id=milestone["id"])
    as_(ADA).post(f"/projects/{shown.id}/issues", json={"title": "a", "milestone_id": milestone["id"]})
    as_(ADA).post(
        f"/projects/{shown.id}/issues", json={"title": "b", "milestone_id": milestone["id"], "confidential": True}
    )

    found = [
        len(as_(name).get(f"{of(group, milestone['id'])}/{kind}").json)
        for name in (SAM, ADA)
        for kind in ("issues", "merge_requests")
    ]

    assert found == [1, 0, 2, 2]


def test_filters_of_the_list(group, project, create, as_):
    below = make_group("below", group)
    early, late = create("early", due_date="2030-01-02", start_date="2030-01-01"), create("late", description="the end")
    inner = create("inner", below)
    as_(MAX).post(f"/projects/{project.id}/milestones", json={"title": "own"})
    as_(OLIVE).put(of(group, late["id"]), json={"state_event": "close"})

    def titles(query, owner=group):
        return [row["title"] for row in as_(ADA).get(f"{of(owner)}?{query}").json]

    assert titles("") == ["early", "late"]
    assert titles("state=closed") == titles("search=the+end") == titles(f"iids[]={late['iid']}") == ["late"]
    assert titles("title=early") == titles("search_title=ear") == titles("containing_date=2030-01-02") == ["early"]
    assert titles("include_descendants=true") == ["early", "own", "inner", "late"]
    assert titles("include_ancestors=true", below) == titles("include_parent_milestones=true", below)
    assert titles(f"include_ancestors=true&iids[]={inner['iid']}", below) == ["early", "inner", "late"]
    assert titles(f"updated_before={early['created_at'][:4]}-01-01T00:00:00Z") == []
    both = as_(ADA).get(f"{of(below)}?include_ancestors=true&include_parent_milestones=true")
    assert both.json == {"error": "include_ancestors, include_parent_milestones are mutually exclusive"}


def test_projects_list_those_of_groups_above_on_request(project, create, as_):
    create()
    path = f"/projects/{project.id}/milestones"

    assert [len(as_(GUS).get(f"{path}{query}").json) for query in ("", "?include_ancestors=true")] == [0, 1]


def test_a_deleted_one_leaves_its_issues_and_moves_their_time(project, group, create, as_):
    milestone = create()
    issue = as_(MAX).post(f"/projects/{project.id}/issues", json={"title": "a", "milestone_id": milestone["id"]}).json

    assert as_(OLIVE).delete(of(group, milestone["id"])).status_code == 204

    after = as_(MAX).get(f"/projects/{project.id}/issues/{issue['iid']}").json
    assert (after["milestone"], after["updated_at"] > issue["updated_at"]) == (None, True)
    assert as_(OLIVE).delete(of(group, milestone["id"])).json == {"message": "404 Milestone Not Found"}
    assert create("next")["iid"] == 2  # numbers are not given again


def test_promoting_merges_the_milestones_of_the_title(project, group, as_):
    other, issues = make_project("other", group), []
    for each in (project, other):
        made = as_(ADA).post(f"/projects/{each.id}/milestones", json={"title": "1.0", "due_date": "2030-01-01"}).json
        issues.append(
            as_(ADA).post(f"/projects/{each.id}/issues", json={"title": "a", "milestone_id": made["id"]}).json
        )

    response = as_(ADA).post(f"/projects/{other.id}/milestones/{made['id']}/promote")

    assert (response.status_code, response.json["group_id"], response.json["due_date"]) == (200, group.id, "2030-01-01")
    shown = [as_(ADA).get(f"/projects/{issue['project_id']}/issues/{issue['iid']}").json for issue in issues]
    assert [issue["milestone"] for issue in shown] == [response.json] * 2
    assert as_(ADA).get(f"/projects/{project.id}/milestones").json == []


def test_promoting_needs_a_group_its_role_and_a_free_title(project, group, people, as_):
    personal = make_project("own", people[OLIVE])
    paths = []
    for each in (project, personal):
        made = as_(ADA).post(f"/projects/{each.id}/milestones", json={"title": "1.0"}).json
        paths.append(f"/projects/{each.id}/milestones/{made['id']}/promote")

    assert [as_(MAX).post(paths[0]).status_code, as_(ADA).post(paths[1]).status_code] == [403, 403]


def test_a_transferred_project_keeps_copies_of_those_in_use(project, create, people, as_):
    milestone, place = create(description="soon"), make_group("elsewhere")
    create("unused")
    issue = as_(ADA).post(f"/projects/{project.id}/issues", json={"title": "a", "milestone_id": milestone["id"]}).json

    assert as_(ADA).put(f"/projects/{project.id}/transfer", json={"namespace": place.id}).status_code == 200

    (copy,) = as_(ADA).get(f"/projects/{project.id}/milestones").json
    assert (copy["title"], copy["description"], copy["project_id"]) == ("1.0", "soon", project.id)
    assert as_(ADA).get(f"/projects/{project.id}/issues/{issue['iid']}").json["milestone"] == copy


def test_releases_take_titles_of_groups(project, create, as_):
    milestone = create()
    body = {"tag_name": "v1", "ref": "main", "milestones": ["1.0"]}
    content = {"branch": "main", "commit_message": "a", "content": "a"}
    as_(MAX).post(f"/projects/{project.id}/repository/files/a", json=content)

    response = as_(MAX).post(f"/projects/{project.id}/releases", json=body)

    assert response.json["milestones"] == [milestone]


def test_archives_carry_milestones_of_groups(project, group, create, as_, run_jobs):
    milestone = create(description="soon", due_date="2030-01-01")
    as_(MAX).post(f"/projects/{project.id}/issues", json={"title": "a", "milestone_id": milestone["id"]})
    archive = make_archive(version=None, files=export(as_(MAX), project.id, run_jobs))
    places = [make_group("far"), group]

    found = [imported_milestone(as_(ADA), archive, place, run_jobs) for place in places]

    assert [("group_id" in each, each["title"], each["due_date"]) for each in found] == [
        (False, "1.0", "2030-01-01"),
        (True, "1.0", "2030-01-01"),
    ]
    assert found[1] == milestone


def imported_milestone(client, archive, place, run_jobs):
    """Imports an archive; returns the milestone of its only issue."""
    number = send(client, archive, path="copy", namespace=place.full_path).json["id"]
    run_jobs()
    (issue,) = client.get(f"/projects/{number}/issues").json
    return issue["milestone"]


def test_pages_of_groups_and_promoting(project, group, visit):
    olive = visit(OLIVE)
    olive.send("/groups/acme/-/milestones/new", title="Opening day")
    olive.send("/acme/shop/-/milestones/new", title="Closing day")

    def text_of(visitor, path):
        return visitor.get(path).text

    listed = text_of(olive, "/acme/shop/-/milestones")
    olive.send("/acme/shop/-/milestones/1/promote")

    assert "/groups/acme/-/milestones/1" in listed
    assert "Closing day" in text_of(olive, "/groups/acme/-/milestones")
    assert "No issues are planned" in text_of(olive, "/groups/acme/-/milestones/2")
