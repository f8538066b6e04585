"""Settings of the collector on the settings page, its periodic jobs, and mails."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import select, update

from project_service.areas.error_tracking.errors import jobs
from project_service.areas.error_tracking.errors.models import (
    DAY_SECONDS,
    HOUR_SECONDS,
    ErrorStatus,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorEvent,
)
from project_service.areas.error_tracking.settings.models import ClientKey, ErrorTrackingSetting
from project_service.domain.tracker import issue_rules
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.areas.error_tracking.errors.test_errors import ago
from tests.support import sample_data
from tests.support.sample_data import DEV, MAX
from tests.support.sentry_requests import Sender, track_errors

PAGE = "/acme/shop/-/settings/operations"
SETTINGS_PATH = f"{PAGE}/error_tracking"


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


def setting():
    db.session.remove()
    return db.session.scalars(select(ErrorTrackingSetting)).one()


def all_of(model):
    db.session.remove()
    return list(db.session.scalars(select(model).order_by(model.id)))


def test_choosing_this_server_creates_a_key_and_shows_snippets(visit, project):
    maintainer = visit(MAX)

    saved = maintainer.send(
        SETTINGS_PATH, enabled="y", backend="integrated", hidden_keys="iban\r\n\r\n tax \r\niban", store_addresses="y"
    )

    assert (saved.status_code, setting().integrated, setting().hidden_keys) == (302, True, ["iban", "tax"])
    shown = maintainer.get(PAGE).text
    dsn = f"http://{all_of(ClientKey)[0].public_key}@localhost/api/v4/error_tracking/collector/{project.id}"
    assert f'sentry_sdk.init(dsn="{dsn}")' in shown
    assert "Every event that arrived was stored." in shown
    wrong = maintainer.send(
        SETTINGS_PATH, enabled="y", backend="integrated", resolve_after_days="-1", hidden_keys="x" * 101
    )
    assert (wrong.status_code, "must be between 0 and 3650" in wrong.text) == (422, True)
    assert setting().store_addresses is True


def test_switching_to_sentry_and_back_keeps_the_settings(visit, sender):
    sender.event(message="low")
    address = "https://203.0.113.7/api/0/projects/acme/shop"
    maintainer = visit(MAX)

    maintainer.send(SETTINGS_PATH, enabled="y", backend="sentry", api_url=address, token="t")
    assert (setting().integrated, sender.event(message="low").status_code) == (False, 404)
    maintainer.send(SETTINGS_PATH, enabled="y", backend="integrated", api_url=address)
    assert (setting().integrated, setting().token, sender.event(message="low").status_code) == (True, "t", 200)
    assert [error.count for error in all_of(TrackedError)] == [2]


def test_keys_are_added_and_removed_after_confirmation(visit, sender):
    maintainer = visit(MAX)
    maintainer.send(f"{SETTINGS_PATH}/keys")
    first, second = all_of(ClientKey)

    assert "Remove client key?" in maintainer.get(f"{SETTINGS_PATH}/keys/{first.id}/delete").text
    maintainer.send(f"{SETTINGS_PATH}/keys/{first.id}/delete")

    assert [key.id for key in all_of(ClientKey)] == [second.id]
    assert sender.event(message="low").status_code == 404
    assert visit(DEV).send(f"{SETTINGS_PATH}/keys").status_code == 403


def test_dropped_events_are_shown(visit, sender):
    sender.replay_all("ignored")
    sender.event(extra="x" * 2_000_000)

    shown = visit(MAX).get(PAGE).text

    assert ("1 too large" in shown, "1 discarded by SDKs: event processor" in shown) == (True, True)


@pytest.mark.both_databases
def test_errors_past_the_retention_are_removed_unless_they_have_an_issue(app, project, people):
    track_errors(project)
    old = clock.now() - dt.timedelta(days=91)
    recent, linked, _gone = (
        sample_data.make_error(project, title, last_seen=moment, first_seen=old)
        for title, moment in (("kept", clock.now()), ("linked", old), ("gone", old))
    )
    with unit_of_work():
        issue = issue_rules.create_issue(people[DEV], project, title="known")
        db.session.execute(update(TrackedError).where(TrackedError.id == linked.id).values(issue_id=issue.id))
        db.session.execute(update(TrackedErrorEvent).values(received_at=old))
        epoch = int(clock.now().timestamp())
        db.session.add_all(
            TrackedErrorCount(error_id=recent.id, seconds=seconds, start=epoch - days * DAY_SECONDS, count=1)
            for seconds, days in ((HOUR_SECONDS, 8), (HOUR_SECONDS, 6), (DAY_SECONDS, 89), (DAY_SECONDS, 91))
        )

    jobs.prune()

    assert [(error.title, error.count, error.stored_events) for error in all_of(TrackedError)] == [
        ("kept", 1, 0),
        ("linked", 1, 0),
    ]
    assert all_of(TrackedErrorEvent) == []
    counts = db.session.scalars(select(TrackedErrorCount.start).where(TrackedErrorCount.error_id == recent.id))
    assert sorted((epoch - start) // DAY_SECONDS for start in counts) == [0, 6, 89]


@pytest.mark.both_databases
def test_errors_without_new_events_are_resolved_automatically(sender, as_, project):
    sender.event(message="old", timestamp=ago(days=4))
    sender.event(message="new", timestamp=ago(days=2))
    jobs.settle()
    assert {error.status for error in all_of(TrackedError)} == {ErrorStatus.UNRESOLVED}
    with unit_of_work():
        db.session.execute(update(ErrorTrackingSetting).values(resolve_after_days=3))

    jobs.settle()

    assert [error.status for error in all_of(TrackedError)] == [ErrorStatus.RESOLVED, ErrorStatus.UNRESOLVED]
