"""Label events of issues, and labels as objects in lists of issues."""

from __future__ import annotations

import re

import pytest

from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, RITA, SAM, make_label, make_project


@pytest.fixture
def issue(project, as_):
    make_label(project, "bug")
    return as_(RITA).post(f"/projects/{project.id}/issues", json={"title": "Totals", "labels": "bug,fresh"}).json


def path_of(issue):
    return f"/projects/{issue['project_id']}/issues/{issue['iid']}"


def events_of(issue, client):
    return client.get(f"{path_of(issue)}/resource_label_events").json


def changes_of(issue, client):
    return [(one["action"], one["label"] and one["label"]["name"]) for one in events_of(issue, client)]


def test_each_change_of_labels_makes_events(issue, as_):
    as_(DEV).put(path_of(issue), json={"add_labels": "new", "remove_labels": "bug"})
    as_(DEV).put(path_of(issue), json={"labels": "fresh,new"})

    assert changes_of(issue, as_(GUS)) == [("add", "bug"), ("add", "fresh"), ("add", "new"), ("remove", "bug")]
    first, *_, last = events_of(issue, as_(GUS))
    assert list(first) == ["id", "user", "created_at", "resource_type", "resource_id", "label", "action"]
    assert list(first["label"]) == ["id", "name", "description", "description_html", "text_color", "color"]
    assert (first["user"]["username"], last["user"]["username"]) == (RITA, DEV)
    assert (first["resource_type"], first["resource_id"]) == ("Issue", issue["id"])
    assert as_(GUS).get(f"{path_of(issue)}/resource_label_events/{last['id']}").json == last


def test_a_label_that_is_added_and_removed_at_once_is_removed(issue, as_):
    changed = as_(DEV).put(path_of(issue), json={"add_labels": "new", "remove_labels": [" new", "bug "]})

    assert changed.json["labels"] == ["fresh"]


def test_events_show_labels_by_their_names_of_today(issue, as_):
    labels = f"/projects/{issue['project_id']}/labels"

    as_(RITA).put(f"{labels}/bug", json={"new_name": "defect"})
    as_(RITA).delete(f"{labels}/fresh")

    assert changes_of(issue, as_(GUS)) == [("add", "defect"), ("add", None)]


def test_events_are_for_those_who_see_the_issue(issue, as_):
    as_(RITA).put(path_of(issue), json={"confidential": True})
    path = f"{path_of(issue)}/resource_label_events"

    assert [as_(name).get(path).status_code for name in (NOBODY, SAM, GUS, RITA)] == [401, 404, 404, 200]


def test_events_of_another_issue_are_not_found(issue, as_):
    other = as_(RITA).post(f"/projects/{issue['project_id']}/issues", json={"title": "Till"}).json
    event = events_of(issue, as_(RITA))[0]

    answer = as_(RITA).get(f"{path_of(other)}/resource_label_events/{event['id']}")

    assert (answer.status_code, answer.json) == (404, {"message": "404 Not found"})


def test_lists_show_labels_as_objects_on_request(issue, group, as_):
    make_label(group, "bug", color="#00ff00")
    make_label(group, "wide", color="#0000ff")
    second = make_project("stock", namespace=group)
    as_(MAX).put(path_of(issue), json={"add_labels": "wide"})
    as_(ADA).post(f"/projects/{second.id}/issues", json={"title": "Shelf", "labels": "bug"})

    listed = as_(ADA).get(f"/groups/{group.id}/issues?with_labels_details=true&sort=asc").json

    own = as_(GUS).get(f"/projects/{issue['project_id']}/issues?with_labels_details=true").json
    assert [label["name"] for label in own[0]["labels"]] == ["bug", "fresh", "wide"]
    colors = [{label["name"]: label["color"] for label in one["labels"]} for one in listed]
    assert colors[0]["wide"] == "#0000ff"
    assert colors[0]["bug"] != "#00ff00"
    assert colors[1] == {"bug": "#00ff00"}


def test_the_page_of_an_issue_shows_the_latest_changes_of_labels(issue, project, visit):
    page = visit(GUS).get(f"/{project.full_path}/-/issues/{issue['iid']}").text

    assert re.findall(r"(added|removed) <span class=\"label\">(\w+)", page) == [("added", "fresh"), ("added", "bug")]
