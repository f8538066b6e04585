"""Pages of labels, and subscriptions to labels."""

from __future__ import annotations

import pytest

from tests.support.sample_data import ADA, GUS, MAX, NOBODY, OLIVE, RITA, SAM, make_label


def test_labels_are_created_prioritised_renamed_and_deleted(project, visit, as_):
    rita, path = visit(RITA), "/acme/shop/-/labels"
    rita.send(f"{path}/new", title="bug", color="red", description="")
    (made,) = as_(RITA).get(f"/projects/{project.id}/labels").json

    rita.send(f"{path}/{made['id']}/priority", priority="2")
    rita.send(f"{path}/{made['id']}/edit", title="defect", color="#00f", description="It fails")

    (found,) = as_(RITA).get(f"/projects/{project.id}/labels").json
    assert (made["color"], made["description"]) == ("#FF0000", None)
    assert (found["name"], found["color"], found["description"], found["priority"]) == ("defect", "#00f", "It fails", 2)
    assert "It fails" in rita.get(path).text
    rita.send(f"{path}/{made['id']}/priority", priority="")
    assert as_(RITA).get(f"/projects/{project.id}/labels").json[0]["priority"] is None
    rita.send(f"{path}/{made['id']}/delete")
    assert "There are no labels." in rita.get(path).text


def test_refusals_are_shown_in_the_form(project, visit):
    make_label(project, "bug")
    rita = visit(RITA)

    taken = rita.send("/acme/shop/-/labels/new", title="bug", color="red")
    colourless = rita.send("/acme/shop/-/labels/new", title="a", color="no colour")

    assert (taken.status_code, "Label already exists" in taken.text) == (422, True)
    assert (colourless.status_code, "must be a valid color code" in colourless.text) == (422, True)


def test_labels_of_groups_have_pages_and_are_shown_in_projects(project, group, visit):
    olive = visit(OLIVE)
    olive.send("/groups/acme/-/labels/new", title="shared", color="teal")
    own = make_label(project, "own")

    listed = olive.get("/acme/shop/-/labels").text
    olive.send(f"/acme/shop/-/labels/{own.id}/promote")

    assert 'href="/groups/acme/-/labels"' in listed
    assert "own" in olive.get("/groups/acme/-/labels").text
    assert visit(GUS).get(f"/acme/shop/-/labels/{own.id}/edit").status_code == 403


@pytest.mark.parametrize("kind", ["project", "group"])
def test_subscriptions_are_answered(kind, project, group, people, as_):
    owner = project if kind == "project" else group
    make_label(owner, "bug")
    path, client = f"/{kind}s/{owner.id}/labels", as_(OLIVE)

    answers = [client.post(f"{path}/bug/{verb}") for verb in ("subscribe", "subscribe", "unsubscribe", "unsubscribe")]

    assert [answer.status_code for answer in answers] == [201, 304, 201, 304]
    assert [answers[0].json["subscribed"], answers[2].json["subscribed"]] == [True, False]
    assert client.get(path).json[0]["subscribed"] is False
    statuses = [as_(name).post(f"{path}/bug/subscribe").status_code for name in (SAM, NOBODY)]
    assert statuses == [404, 401]


def test_a_promoted_label_keeps_its_subscribers(project, group, as_):
    make_label(project, "bug")
    path = f"/projects/{project.id}/labels"
    as_(ADA).post(f"{path}/bug/subscribe")

    as_(ADA).put(f"{path}/bug/promote")

    assert [as_(name).get(path).json[0]["subscribed"] for name in (ADA, MAX)] == [True, False]
