"""The list of issues and the sidebar of one."""

from __future__ import annotations

import re

import pytest

from project_service.domain.tracker.issues import Issue
from tests.support.sample_data import DEV, GUS, MAX, RITA, make_label, reload
from tests.support.visitors import store

LIST = "/acme/shop/-/issues"


@pytest.fixture
def issues(project, as_, people):
    make_label(project, "bug", color="#ff0000")
    path = f"/projects/{project.id}"
    milestone = as_(MAX).post(f"{path}/milestones", json={"title": "v1"}).json["id"]
    for fields in (
        {"title": "One", "labels": "bug,slow", "assignee_ids": [people[DEV].id]},
        {"title": "Two", "description": "the drawer", "milestone_id": milestone},
        {"title": "Three", "issue_type": "incident", "labels": "bug"},
    ):
        as_(MAX).post(f"{path}/issues", json=fields)
    as_(RITA).post(f"{path}/issues", json={"title": "Four"})


def titles(page):
    return re.findall(r"<strong>(One|Two|Three|Four)</strong>", page.text)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["Four", "Three", "Two", "One"]),
        ("label=bug", ["Three", "One"]),
        ("label=bug, slow", ["One"]),
        ("label=none", ["Four", "Two"]),
        ("milestone=v1", ["Two"]),
        ("assignee=dev", ["One"]),
        ("assignee=none", ["Four", "Three", "Two"]),
        ("author=@rita", ["Four"]),
        ("author=me", []),
        ("issue_type=incident", ["Three"]),
        ("search=DRAW", ["Two"]),
        ("search=e", ["Three", "Two", "One"]),
        ("order=title", ["Four", "One", "Three", "Two"]),
        ("order=x&issue_type=x&state=x", ["Four", "Three", "Two", "One"]),
        ("state=closed", []),
    ],
    ids=[*"abcdefghijklmno"],
)
def test_filters_of_the_address_select_issues(query, expected, visit, issues):
    assert titles(visit(DEV).get(f"{LIST}?{query}")) == expected


def test_labels_and_people_are_links_that_filter(visit, issues):
    page = visit(DEV).get(f"{LIST}?order=title").text

    assert '<a class="label" href="?order=title&amp;label=bug">' in page
    assert 'fill="#ff0000"' in page
    assert 'href="?order=title&amp;assignee=dev"' in page


def test_selected_issues_are_changed_at_once(visit, as_, issues, project, people):
    address = f"{LIST}?order=title"
    fields = {"issues": ["1", "2"], "state_event": "close", "add_label": "late", "remove_label": "slow"}
    changed = visit(RITA).send(address, **fields, assign_to="me")

    shown = {row["title"]: row for row in as_(MAX).get(f"/projects/{project.id}/issues").json}
    assert (changed.status_code, changed.location) == (302, f"{LIST}?order=title")
    assert [shown[title]["state"] for title in ("One", "Two", "Three")] == ["closed", "closed", "opened"]
    assert (shown["One"]["labels"], shown["Two"]["labels"]) == (["bug", "late"], ["late"])
    assert [user["username"] for user in shown["One"]["assignees"]] == [DEV, RITA]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"issues": "1"}, "Choose what to change."),
        ({"state_event": "close"}, "Select at least one issue."),
        ({"issues": "1", "assign_to": "nobody"}, "There is no user nobody."),
    ],
    ids=["nothing", "none", "user"],
)
def test_incomplete_changes_are_refused(fields, text, visit, issues):
    refused = visit(RITA).send(LIST, **fields)

    assert (refused.status_code, text in refused.text) == (422, True)


def test_guests_cannot_change_many(visit, issues):
    assert visit(GUS).send(LIST, issues="1", state_event="close").status_code == 403
    assert 'id="bulk"' not in visit(GUS).get(LIST).text


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("assign", "@max", {"assignees": [MAX, DEV]}),
        ("unassign", DEV, {"assignees": []}),
        ("add_label", "new", {"labels": ["bug", "new", "slow"]}),
        ("remove_label", "bug", {"labels": ["slow"]}),
        ("due_date", "2030-12-31", {"due_date": "2030-12-31"}),
    ],
    ids=["assign", "unassign", "add", "remove", "due"],
)
def test_the_sidebar_changes_one_thing(field, value, expected, visit, as_, issues, project):
    response = visit(RITA).send(f"{LIST}/1/fields", field=field, value=value)

    issue = as_(MAX).get(f"/projects/{project.id}/issues/1").json
    issue["assignees"] = [user["username"] for user in issue["assignees"]]
    assert response.status_code == 302
    assert {name: issue[name] for name in expected} == expected
    assert issue["title"] == "One"


def test_the_sidebar_sets_the_milestone_and_refuses_what_does_not_fit(visit, issues, project):
    issue = store(Issue(project_id=project.id, iid=50, title="Fifty"))
    visitor = visit(RITA)
    page = visitor.get(f"{LIST}/50").text
    [milestone] = re.findall(r'<option value="(\d+)">v1</option>', page)

    statuses = [
        visitor.send(f"{LIST}/50/fields", field=field, value=value).status_code
        for field, value in (("milestone", milestone), ("assign", "sam"), ("due_date", "soon"), ("title", "x"))
    ]
    assert (statuses, reload(issue).milestone.title) == ([302, 422, 422, 422], "v1")


def test_forms_suggest_the_labels_that_exist_with_their_colours(visit, issues):
    pages = [visit(RITA).get(f"{LIST}/{name}").text for name in ("new", "1/edit")]

    for page in pages:
        assert '<option value="bug" data-color="#ff0000"></option>' in page
        assert 'data-picks="label-titles"' in page


def test_the_sidebar_says_what_it_saved(visit, issues):
    visitor = visit(RITA)
    visitor.send(f"{LIST}/1/fields", field="confidential", value="true")
    page = visitor.get(f"{LIST}/1").text

    assert ("Visibility saved." in page, "Show to all" in page) == (True, True)
