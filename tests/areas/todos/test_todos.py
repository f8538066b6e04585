"""The routes of to-do items, and what makes some."""

from __future__ import annotations

import pytest

from project_service.areas.alerts.models import Alert
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.transfers.models import ProjectExport
from project_service.transfers.notifications import fail_export
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM, make_todo
from tests.support.visitors import store


@pytest.fixture
def issues(project):
    return f"/projects/{project.id}/issues"


def todos(client, **query):
    return [(row["action_name"], row["body"]) for row in client.get("/todos", query_string=query).json]


def test_an_item_has_the_documented_keys(as_, issues, project, people):
    as_(MAX).post(issues, json={"title": "Till", "assignee_ids": [people[DEV].id, people[MAX].id]})
    [item] = as_(DEV).get("/todos").json

    assert list(item) == [
        *("id", "project", "author", "action_name", "target_type", "target", "target_url", "body", "state"),
        *("created_at", "updated_at"),
    ]
    assert (item["action_name"], item["target_type"], item["state"]) == ("assigned", "Issue", "pending")
    assert (item["author"]["username"], item["target"]["title"], item["body"]) == (MAX, "Till", "#1 Till")
    assert item["project"]["path_with_namespace"] == "acme/shop"
    assert item["target_url"] == "http://localhost/acme/shop/-/issues/1"
    assert todos(as_(MAX)) == []


def test_mentions_in_texts_and_comments_make_items_of_who_may_see_them(as_, issues, people):
    as_(MAX).post(issues, json={"title": "Till", "description": "@Rita and @sam, not `@dev`", "confidential": True})
    as_(MAX).post(f"{issues}/1/notes", json={"body": "@gus @max @dev."})
    as_(MAX).put(f"{issues}/1", json={"description": "@rita again"})

    assert {name: todos(as_(name)) for name in (RITA, SAM, GUS, MAX, DEV)} == {
        RITA: [("mentioned", "#1 Till")],
        SAM: [],
        GUS: [],
        MAX: [],
        DEV: [("mentioned", "@gus @max @dev.")],
    }


def test_a_new_reason_renews_a_pending_item_and_a_done_one_stays(as_, issues, people):
    as_(MAX).post(issues, json={"title": "Till", "assignee_ids": [people[DEV].id]})
    note = as_(MAX).post(f"{issues}/1/notes", json={"body": "@dev look"}).json
    [item] = as_(DEV).get("/todos").json
    done = as_(DEV).post(f"/todos/{item['id']}/mark_as_done")
    as_(MAX).post(f"{issues}/1/notes", json={"body": "@dev again"})

    assert (done.status_code, done.json["state"]) == (201, "done")
    assert item["target_url"].endswith(f"/issues/1?note={note['id']}#note_{note['id']}")
    assert todos(as_(DEV)) == [("mentioned", "@dev again")]
    assert todos(as_(DEV), state="done") == [("mentioned", "@dev look")]


def test_all_items_of_a_filter_are_completed(as_, issues, project, people):
    as_(MAX).post(issues, json={"title": "Till", "assignee_ids": [people[DEV].id]})
    make_todo(store(Alert(project_id=project.id, iid=1, title="Slow", started_at=clock.now())), people[DEV])

    assert as_(DEV).post("/todos/mark_as_done", json={"type": "Issue"}).status_code == 204
    assert todos(as_(DEV)) == [("marked", "#1 Slow")]
    assert as_(DEV).post("/todos/mark_as_done").status_code == 204
    assert todos(as_(DEV)) == []


def test_closing_and_deleting_an_issue_completes_and_removes_items(as_, issues, people):
    for title in ("One", "Two"):
        as_(MAX).post(issues, json={"title": title, "assignee_ids": [people[DEV].id, people[RITA].id]})
    as_(DEV).put(f"{issues}/1", json={"state_event": "close"})
    as_("olive").delete(f"{issues}/2")

    assert [todos(as_(name)) for name in (DEV, RITA)] == [[], [("assigned", "#1 One")]]
    assert todos(as_(DEV), state="done") == [("assigned", "#1 One")]


def test_an_issue_is_added_once(as_, issues):
    as_(MAX).post(issues, json={"title": "Till"})
    statuses = [as_(RITA).post(f"{issues}/1/todo").status_code for _ in range(2)]

    assert (statuses, todos(as_(RITA))) == ([201, 304], [("marked", "#1 Till")])


def test_a_failed_export_makes_an_item_that_leads_to_its_page(as_, project, people):
    with unit_of_work():
        export = ProjectExport(project_id=project.id, user_id=people[MAX].id)
        db.session.add(export)
        db.session.flush()
        fail_export(export, "the disk is full")
    [item] = as_(MAX).get("/todos").json

    assert (item["action_name"], item["target_type"], item["target"]["id"]) == ("build_failed", "Project", project.id)
    assert item["target_url"] == "http://localhost/acme/shop/-/settings/general"


def test_items_of_hidden_targets_are_left_out(as_, issues, people):
    as_(MAX).post(issues, json={"title": "Till", "assignee_ids": [people[DEV].id]})
    with unit_of_work():
        db.session.query(Membership).filter(Membership.user_id == people[DEV].id).delete()

    assert todos(as_(DEV)) == []


@pytest.mark.parametrize(
    ("query", "text"),
    [("state=x", "state"), ("action=x", "action"), ("type=x", "type")],
)
def test_unknown_values_are_refused(query, text, as_, people):
    response = as_(DEV).get(f"/todos?{query}")

    assert (response.status_code, response.json) == (400, {"error": f"{text} does not have a valid value"})


def test_anonymous_callers_and_others_are_refused(as_, project, people):
    alert = store(Alert(project_id=project.id, iid=1, title="Slow", started_at=clock.now()))
    todo = make_todo(alert, people[DEV])

    assert as_(NOBODY).get("/todos").status_code == 401
    assert as_(MAX).post(f"/todos/{todo.id}/mark_as_done").status_code == 404
