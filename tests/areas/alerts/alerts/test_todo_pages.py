"""The to-do list of the signed-in user."""

from __future__ import annotations

import re

import pytest

from project_service.areas.alerts.models import Alert, AlertTodo
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, MAX
from tests.support.visitors import store

PAGE = "/dashboard/todos"


@pytest.fixture
def todos(project, people):
    """Three to-do items of dev, and one of max."""
    created = []
    for iid in (1, 2, 3):
        alert = store(Alert(project_id=project.id, iid=iid, title=f"Alert {iid}", started_at=clock.now()))
        created.append(store(AlertTodo(alert_id=alert.id, user_id=people[DEV].id)))
    store(AlertTodo(alert_id=created[0].alert_id, user_id=people[MAX].id))
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
        store(AlertTodo(alert_id=alert.id, user_id=people[DEV].id))

    pages = [titles(visit(DEV).get(f"{PAGE}?page={number}")) for number in (1, 2, 3)]

    assert [len(page) for page in pages] == [20, 1, 1]
