"""Events that a project does not want, and check-ins, which are only counted."""

from __future__ import annotations

import pytest

from project_service.areas.error_tracking.collection import event_limits
from project_service.areas.error_tracking.errors.models import TrackedErrorEvent
from project_service.kit.db.session import db
from tests.areas.error_tracking.errors.test_errors import CRASH
from tests.support.sample_data import DEV, MAX
from tests.support.sentry_requests import Sender, track_errors

SETTINGS = "/acme/shop/-/settings/operations"


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


@pytest.fixture
def rules(project):
    """The path of the list."""
    return f"/projects/{project.id}/error_tracking/ignore_rules"


def stored_events():
    db.session.remove()
    return db.session.query(TrackedErrorEvent).count()


@pytest.mark.both_databases
def test_events_that_match_all_patterns_of_a_rule_are_counted_not_stored(sender, rules, as_maintainer):
    rule = as_maintainer.post(
        rules, json={"title": "zeroDIVISION*: by ZERO", "release": "1.*", "file": "app/*.py"}
    ).json

    sent = sender.event(**CRASH, release="1.2")
    sender.event(**CRASH, release="2.0")
    sender.event(message="ZeroDivisionError: by zero", release="1.3")

    assert (sent.status_code, stored_events()) == (200, 2)
    [shown] = as_maintainer.get(rules).json
    assert (shown["dropped_events"], shown["id"], shown["last_dropped_at"] is not None) == (1, rule["id"], True)
    as_maintainer.delete(f"{rules}/{rule['id']}")
    sender.event(**CRASH, release="1.2")
    assert stored_events() == 3


@pytest.mark.parametrize(
    ("patterns", "problem"),
    [
        ({}, "at least one pattern"),
        ({"title": "* *"}, "at least one pattern"),
        ({"file": "x" * 256}, "is too long"),
        ({"release": "*a" * 11}, "has too many wildcards"),
    ],
    ids=["none", "everything", "long", "wildcards"],
)
def test_rules_that_would_drop_everything_or_cost_too_much_are_refused(
    patterns, problem, project, rules, as_maintainer
):
    refused = as_maintainer.post(rules, json=patterns)

    assert (refused.status_code, problem in refused.text, as_maintainer.get(rules).json) == (400, True, [])


def test_a_project_has_a_bounded_number_of_rules(project, rules, as_maintainer, as_):
    for number in range(50):
        as_maintainer.post(rules, json={"title": f"error {number}"})

    assert as_maintainer.post(rules, json={"title": "one more"}).status_code == 400
    assert as_(DEV).get(rules).status_code == 403


class CountingRedis:
    """Hashes of a Redis in memory, also as its own pipeline."""

    def __init__(self):
        self.hashes, self.results = {}, []

    def pipeline(self, **_options):
        self.results = []
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        pass

    def hincrby(self, key, name, quantity):
        counts = self.hashes.setdefault(key, {})
        counts[name.encode()] = counts.get(name.encode(), 0) + quantity

    def expire(self, key, seconds):
        assert (key in self.hashes, seconds > 0) == (True, True)

    def hgetall(self, key):
        self.results.append(self.hashes.get(key, {}))

    def execute(self):
        return self.results


def test_the_settings_add_and_remove_rules_and_count_check_ins(visit, sender, app, monkeypatch):
    monkeypatch.setitem(app.extensions, "redis", CountingRedis())
    app.extensions.pop(event_limits.PAUSED_UNTIL, None)
    maintainer = visit(MAX)
    maintainer.send(f"{SETTINGS}/error_tracking/ignore_rules", title="Zero*", environment="prod*")
    sender.event(**CRASH)
    check_in = {"check_in_id": "a" * 32, "monitor_slug": "nightly", "status": "ok"}
    answered = sender.envelope({}, {"type": "check_in"}, check_in, {"type": "check_in"}, check_in)
    sender.envelope(
        {}, {"type": "user_report"}, {}, {"type": "feedback"}, {}, {"type": "attachment"}, {}, {"type": "x"}, {}
    )

    page = maintainer.get(SETTINGS).text

    assert (answered.status_code, answered.json, stored_events()) == (200, {}, 0)
    assert "2 check-ins of scheduled jobs came in the last 24 hours" in page
    assert all(f"<li>{text}</li>" in page for text in ("2 user feedback", "1 attachments", "1 other items"))
    assert ('data-label="Dropped">1, last' in page, "1 ignored by a rule" in page) == (True, True)
    rule = page.partition("/ignore_rules/")[2].partition("/")[0]
    assert (
        "title Zero*, environment prod*" in maintainer.get(f"{SETTINGS}/error_tracking/ignore_rules/{rule}/delete").text
    )
    maintainer.send(f"{SETTINGS}/error_tracking/ignore_rules/{rule}/delete")
    sender.event(**CRASH)
    assert stored_events() == 1
    refused = maintainer.send(f"{SETTINGS}/error_tracking/ignore_rules", title=" ")
    assert (refused.status_code, "at least one pattern" in refused.text) == (422, True)
