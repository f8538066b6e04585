"""The to-do list of the signed-in user."""

from __future__ import annotations

import re

import pytest

from project_service.areas.alerts.models import Alert
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, MAX, make_todo
from tests.support.visitors import store

PAGE = "/dashboard/todos"


@pytest.fixture
def todos(project, people):
    """Three to-do items of dev, and one of max."""
    created, first = [], None
    for iid in (1, 2, 3):
        alert = store(Alert(project_id=project.id, iid=iid, title=f"Alert {iid}", started_at=clock.now()))
        created.append(make_todo(alert, people[DEV]))
        first = alert if iid == 1 else first
    make_todo(first, people[MAX])
    return [todo.id for todo in created]


def titles(page):
    return re.findall(r"details\" id=\"todo-\d+\">#\d+ ([^<]+)<", page.text)


def test_to_do_items_are_listed_completed_and_restored(visit, todos):
    developer = visit(DEV)
    before = titles(developer.get(PAGE))

    done = developer.send(f"{PAGE}/{todos[1]}/done")
    lists = [titles(developer.get(f"{PAGE}{query}")) for query in ("", "?state=done")]
    restored = developer.send(f"{PAGE}/{todos[1]}/restore")

    assert before == ["Alert 3", "Alert 2", "Alert 1"]
    assert (done.location, lists) == (PAGE, [["Alert 3", "Alert 1"], ["Alert 2"]])
    assert (restored.location, "To do (3)" in developer.get(PAGE).text) == (f"{PAGE}?state=done", True)


def test_all_own_to_do_items_are_completed_at_once(visit, todos):
    developer, maintainer = visit(DEV), visit(MAX)

    developer.send(f"{PAGE}/done")

    assert (titles(developer.get(PAGE)), "Nothing to do." in developer.get(PAGE).text) == ([], True)
    assert (len(titles(developer.get(f"{PAGE}?state=done"))), titles(maintainer.get(PAGE))) == (3, ["Alert 1"])


def test_to_do_items_of_other_users_are_not_found(visit, todos):
    maintainer = visit(MAX)

    assert [maintainer.send(f"{PAGE}/{todos[1]}/{change}").status_code for change in ("done", "restore")] == [404] * 2
    assert visit(None).get(PAGE).status_code == 302


def test_to_do_items_of_hidden_alerts_are_left_out(visit, todos, people):
    developer = visit(DEV)
    with unit_of_work():
        db.session.query(Membership).filter(Membership.user_id == people[DEV].id).delete()

    assert titles(developer.get(PAGE)) == []


def test_to_do_items_are_paginated(visit, project, people):
    for iid in range(1, 22):
        alert = store(Alert(project_id=project.id, iid=iid, title=f"Alert {iid}", started_at=clock.now()))
        make_todo(alert, people[DEV])

    pages = [titles(visit(DEV).get(f"{PAGE}?page={number}")) for number in (1, 2, 3)]

    assert [len(page) for page in pages] == [20, 1, 1]


def test_the_header_counts_what_is_to_be_done(visit, todos):
    assert '<span class="count">3<span' in visit(DEV).get("/dashboard/groups").text


def test_an_issue_says_why_it_is_to_be_looked_at(visit, as_, project, people):
    issue = (
        as_(MAX).post(f"/projects/{project.id}/issues", json={"title": "Till", "assignee_ids": [people[DEV].id]}).json
    )
    assigned = visit(DEV).get(PAGE).text
    as_(MAX).post(f"/projects/{project.id}/issues/{issue['iid']}/notes", json={"body": "@dev, <b>look</b>"})
    mentioned = visit(DEV).get(PAGE).text

    assert "Max assigned it to you" in assigned
    assert "Max mentions you" in mentioned
    assert "@dev, &lt;b&gt;look" in mentioned
    assert "assigned it" not in mentioned
