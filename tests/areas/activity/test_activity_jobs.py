"""Periodic jobs of events and memberships: retention and expiry."""

from __future__ import annotations

import contextvars
import datetime as dt

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select, text

from project_service.areas.activity import jobs as activity
from project_service.areas.activity import service
from project_service.areas.members import service as members_service
from project_service.areas.members.jobs import expire_memberships
from project_service.cli import database, main
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Action, Event
from project_service.domain.memberships import Membership
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from tests.support.sample_data import DEV, MAX, OLIVE, RITA, SAM, add_member, make_project

pytestmark = pytest.mark.both_databases

NOW = dt.datetime(2026, 3, 14, 12, tzinfo=dt.UTC)
LIMIT = NOW.replace(year=2024)
INSTANT = dt.timedelta(microseconds=1)
DAY = dt.timedelta(days=1)


@pytest.fixture(autouse=True)
def _own_contexts(monkeypatch):
    # a request in the context of the test would see the ``g`` of the previous one
    send = FlaskClient.open
    monkeypatch.setattr(FlaskClient, "open", lambda *args, **options: contextvars.Context().run(send, *args, **options))


@pytest.fixture
def time(monkeypatch):
    """Set the clock."""

    def set_to(moment):
        monkeypatch.setattr(clock, "now", lambda: moment)

    return set_to


@pytest.fixture
def store(people, project):
    """Store events with these times; return their IDs."""

    def store_events(*moments):
        row = {"action": 8, "kind": 1, "restriction": 0, "author_id": people[DEV].id, "project_id": project.id}
        events = [Event(**row, created_at=moment) for moment in moments]
        db.session.add_all(events)
        db.session.commit()
        return [event.id for event in events]

    return store_events


@pytest.fixture
def command(app, monkeypatch, capsys):
    """Run an operator command on this instance; return its output."""
    monkeypatch.setattr(database, "create_app", lambda: app)

    def run(*arguments):
        main.main(arguments, standalone_mode=False)
        return capsys.readouterr().out

    return run


def stored_ids():
    db.session.remove()
    return db.session.scalars(select(Event.id).order_by(Event.id)).all()


def run_job(job, run_jobs):
    with unit_of_work():
        job.defer()
    run_jobs()
    return db.session.scalars(select(Task.error)).all()


# Retention


def test_events_older_than_two_years_are_removed(store, time, run_jobs):
    _, limit, new = store(LIMIT - INSTANT, LIMIT, NOW)
    time(NOW)

    failures = run_job(activity.prune_events, run_jobs)

    assert (stored_ids(), failures) == ([limit, new], [])


@pytest.mark.parametrize(("day", "oldest"), [((2028, 2, 29), (2026, 2, 28)), ((2026, 3, 1), (2024, 3, 1))])
def test_two_years_are_calendar_years(day, oldest, app, time):
    time(dt.datetime(*day, tzinfo=dt.UTC))

    assert service.oldest_kept() == dt.datetime(*oldest, tzinfo=dt.UTC)


def test_each_batch_of_removed_events_is_a_transaction(store, time, run_jobs, monkeypatch):
    store(*(LIMIT - INSTANT for _ in range(7)))
    (new,) = store(NOW)
    time(NOW)
    monkeypatch.setattr(activity, "PRUNE_BATCH_SIZE", 3)
    removed = []
    prune = service.prune_batch
    monkeypatch.setattr(service, "prune_batch", lambda size: removed.append(prune(size)) or removed[-1])

    run_job(activity.prune_events, run_jobs)

    assert (removed, stored_ids()) == ([3, 3, 1, 0], [new])


def test_a_batch_blocks_other_writers_only_briefly(store, time, people, project, run_jobs, monkeypatch):
    store(*(LIMIT - DAY for _ in range(3 * activity.PRUNE_BATCH_SIZE)))
    monkeypatch.setattr(clock, "now", lambda: NOW)
    seconds = []

    def timed(size, prune=service.prune_batch):
        import time as stopwatch

        started = stopwatch.process_time()
        count = prune(size)
        seconds.append(stopwatch.process_time() - started)
        return count

    monkeypatch.setattr(service, "prune_batch", timed)

    run_job(activity.prune_events, run_jobs)

    assert len(seconds) == 4
    assert max(seconds) < 0.1


def test_batches_of_a_killed_worker_stay_removed(store, time, run_jobs, monkeypatch):
    store(*(LIMIT - DAY for _ in range(5)))
    time(NOW)
    monkeypatch.setattr(activity, "PRUNE_BATCH_SIZE", 2)
    prune, calls = service.prune_batch, []

    def fail_on_the_second(size):
        calls.append(size)
        if len(calls) == 2:
            raise RuntimeError("killed")
        return prune(size)

    monkeypatch.setattr(service, "prune_batch", fail_on_the_second)

    failures = run_job(activity.prune_events, run_jobs)

    assert (len(stored_ids()), failures) == (3, ["RuntimeError: killed"])


def test_the_first_run_is_a_day_after_the_first_start_and_then_every_day(app, time, run_jobs):
    name = activity.prune_events.name
    started = {}
    for hours in (0, 23, 24, 25, 47, 48):
        time(NOW + dt.timedelta(hours=hours))
        started[hours] = name in jobs.start_periodic()
        run_jobs()

    assert started == {0: False, 23: False, 24: True, 25: False, 47: False, 48: True}


def test_a_dry_run_of_the_command_only_counts(store, time, command):
    old = store(LIMIT - DAY, LIMIT - DAY)
    new = store(NOW)
    time(NOW)

    output = command("events", "prune", "--dry-run")

    assert (output, stored_ids()) == ("2 events would be removed\n", old + new)


def test_the_command_removes_old_events(store, time, command):
    store(LIMIT - DAY, LIMIT - DAY)
    new = store(NOW)
    time(NOW)

    output = command("events", "prune")

    assert (output, stored_ids()) == ("2 events were removed\n", new)


def test_an_old_event_is_shown_until_it_is_removed(store, time, as_):
    (old,) = store(dt.datetime(2001, 1, 1, tzinfo=dt.UTC))

    assert [event["id"] for event in as_(DEV).get("/events").json] == [old]


# Expiring memberships


def memberships():
    db.session.remove()
    return {(row.user_id, row.project_id) for row in db.session.scalars(select(Membership))}


def events():
    rows = db.session.scalars(select(Event).order_by(Event.id))
    return [(Action(event.action), event.author.username, event.project_id) for event in rows]


def test_a_membership_ends_on_its_last_day_with_an_event(people, project, run_jobs):
    for name, days in ((SAM, 0), (OLIVE, -1), ("ada", 1)):
        add_member(project, people[name], Role.REPORTER, expires_at=clock.today() + days * DAY)

    failures = run_job(expire_memberships, run_jobs)

    left = memberships()
    assert failures == []
    assert {name: (people[name].id, project.id) in left for name in (SAM, OLIVE, "ada", DEV)} == {
        SAM: False,
        OLIVE: False,
        "ada": True,
        DEV: True,
    }
    assert events() == [(Action.EXPIRED, SAM, project.id), (Action.EXPIRED, OLIVE, project.id)]


def test_a_membership_of_a_group_ends_without_an_event(people, group, run_jobs):
    add_member(group, people[SAM], Role.REPORTER, expires_at=clock.today())

    run_job(expire_memberships, run_jobs)

    assert {user_id for user_id, _ in memberships()} == {people[OLIVE].id}
    assert events() == []


def test_a_membership_of_a_project_that_is_being_deleted_ends_without_an_event(people, project, run_jobs, as_):
    add_member(project, people[SAM], Role.REPORTER, expires_at=clock.today())
    db.session.execute(text("UPDATE projects SET deleting_since = created_at"))
    db.session.commit()

    failures = run_job(expire_memberships, run_jobs)

    assert (events(), failures) == ([], [])
    assert (people[SAM].id, project.id) not in memberships()


def test_a_failing_membership_does_not_block_others(people, project, run_jobs, monkeypatch):
    projects = [make_project() for _ in range(3)]
    for one in projects:
        add_member(one, people[SAM], Role.GUEST, expires_at=clock.today())
    failing_id, original = projects[0].id, members_service.expire_member

    def expire_member(resource, membership):
        if resource.id == failing_id:
            raise LookupError("bad row")
        original(resource, membership)

    monkeypatch.setattr(members_service, "expire_member", expire_member)
    failures = run_job(expire_memberships, run_jobs)

    assert {number for user_id, number in memberships() if user_id == people[SAM].id} == {failing_id}
    assert failures == ["ExceptionGroup: 1 rows failed (1 sub-exception)"]


def test_expired_memberships_are_removed_at_start_and_daily(app, time, run_jobs):
    name = expire_memberships.name
    started = {}
    for hours in (0, 1, 23, 24, 25):
        time(NOW + dt.timedelta(hours=hours))
        started[hours] = name in jobs.start_periodic()
        run_jobs()

    assert [hour for hour, is_due in started.items() if is_due] in ([0, 24], [1, 25])


def test_an_expired_membership_is_described(people, project, run_jobs, as_):
    add_member(project, people[SAM], Role.REPORTER, expires_at=clock.today())
    before = as_(SAM).get(f"/projects/{project.id}").status_code

    run_job(expire_memberships, run_jobs)

    (event,) = as_(MAX).get(f"/projects/{project.id}/events").json
    assert before == 404
    assert (event["action_name"], event["author_username"]) == ("removed due to membership expiration from", SAM)
    assert (event["target_type"], event["target_id"]) == (None, None)
    assert as_(RITA).get(f"/users/{people[SAM].id}/events").json[0]["id"] == event["id"]
