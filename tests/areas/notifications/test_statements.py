"""What rules and hooks cost the request of an alert."""

from __future__ import annotations

from sqlalchemy import event

from project_service.kit.db.session import db
from tests.areas.notifications.conftest import make_rule, to
from tests.areas.webhooks.conftest import make_hook

__all__ = ["make_hook"]
MAX_STATEMENTS = 4  # the alert is loaded; a payload, a delivery and an event are written


def test_an_alert_costs_few_statements_more_with_a_hook_and_a_rule(post, channel, project, make_hook):
    found = []
    post({"title": "First"})

    def note(_connection, _cursor, statement, *_rest):
        found.append(statement)

    event.listen(db.engine, "before_cursor_execute", note)
    try:
        post({"title": "Without"})
        without = len(found)
        make_rule(project, to(channel))
        make_hook(alert_events=True)
        found.clear()
        post({"title": "With"})
    finally:
        event.remove(db.engine, "before_cursor_execute", note)

    assert 0 < len(found) - without <= MAX_STATEMENTS
