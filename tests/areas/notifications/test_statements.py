"""What rules and hooks cost the request of an event."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import delete, event

from project_service.domain.notifications.models import SUBJECTS, NotificationRule
from project_service.kit.db.session import db, unit_of_work
from tests.areas.notifications.conftest import make_rule, to
from tests.areas.webhooks.conftest import make_hook

__all__ = ["make_hook"]
MAX_STATEMENTS = 3  # a payload, a delivery and an event are written
ONE_MORE = {
    "new alert": "hooks are looked up only where there are some",
    "alert recovered": "hooks are looked up only where there are some",
    "comment on an issue": "the payload has the assignees of the issue",
    "incident closed": "the payload has the labels of the issue",
}
FLAGS = ("alert_events", "issues_events", "note_events", "milestone_events")
FIRING = {"title": "Known", "fingerprint": "known"}


@pytest.fixture
def counted(app):
    """Counts the statements of an action."""
    statements = []

    def note(_connection, _cursor, statement, *_rest):
        statements.append(statement)

    def count(action):
        db.session.remove()
        statements.clear()
        action()
        return len(statements)

    event.listen(db.engine, "before_cursor_execute", note)
    yield count
    event.remove(db.engine, "before_cursor_execute", note)


@pytest.fixture
def actions(post, project, as_maintainer):
    """Events by name, each a function that makes it happen once more."""
    path, numbers = f"/projects/{project.id}", itertools.count()

    def send(method, rest, **fields):
        response = getattr(as_maintainer, method)(path + rest, json=fields)
        assert response.status_code < 300, response.json

    def prepare():
        post(FIRING)
        db.session.remove()
        alert = as_maintainer.get(f"{path}/alert_management_alerts").json[0]["iid"]
        fields = {"title": "One", "labels": "a,b", "issue_type": "incident", "assignee_ids": [project.creator_id]}
        issue = as_maintainer.post(f"{path}/issues", json=fields).json["iid"]
        return {
            "new alert": lambda: post({"title": f"New {next(numbers)}"}),
            "alert acknowledged": lambda: send("put", f"/alert_management_alerts/{alert}", status="acknowledged"),
            "comment on an alert": lambda: send("post", f"/alert_management_alerts/{alert}/notes", body="Seen"),
            "alert recovered": lambda: post(FIRING | {"end_time": "2026-01-01T00:00:00Z"}),
            "incident opened": lambda: send("post", "/issues", title="Two", issue_type="incident"),
            "comment on an issue": lambda: send("post", f"/issues/{issue}/notes", body="Hello"),
            "incident closed": lambda: send("put", f"/issues/{issue}", state_event="close"),
        }

    return prepare


def test_an_event_costs_few_statements_more_with_a_hook_and_a_rule(counted, actions, channel, project, make_hook):
    for action in actions().values():
        action()
    with unit_of_work():
        db.session.execute(delete(NotificationRule))
    without = {name: counted(action) for name, action in actions().items()}
    make_rule(project, to(channel), events=list(SUBJECTS))
    make_hook(**dict.fromkeys(FLAGS, True))

    more = {name: counted(action) - without[name] for name, action in actions().items()}

    assert {name: number for name, number in more.items() if number > MAX_STATEMENTS + (name in ONE_MORE)} == {}
    assert all(more.values())
