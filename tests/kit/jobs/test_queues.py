"""Background jobs with a real Redis, on SQLite."""

from __future__ import annotations

import datetime as dt
import signal
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
import rq

from project_service.domain import instance_settings
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.runtime import embedded_redis
from tests.conftest import SQLITE, make_app
from tests.support.redis_servers import wait_until_ready


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """An application with a Redis of its own."""
    app = make_app(SQLITE, tmp_path_factory.mktemp("jobs"))
    settings = app.config["SETTINGS"]
    process = subprocess.Popen(embedded_redis.redis_command(settings))
    try:
        wait_until_ready(settings)
        app.extensions["redis"] = redis.Redis.from_url(settings.redis_url)
        yield app
    finally:
        process.terminate()
        process.wait()
        with app.app_context():
            db.engine.dispose()


@pytest.fixture
def app(server):
    """The application with empty queues."""
    with server.app_context():
        server.extensions["redis"].flushall()
        yield server
        db.session.remove()


@jobs.job("tests.kit.jobs.test_queues.leave_mark")
def leave_mark(text):
    """Write a row, or fail."""
    if text == "bad":
        raise LookupError(text)
    instance_settings.set_gate("marks", "groups", text)


@pytest.fixture(autouse=True)
def _leave_no_job():
    jobs.JOBS[leave_mark.name] = leave_mark
    yield
    del jobs.JOBS[leave_mark.name]


def marks():
    with unit_of_work(write=False):
        return [gate.value for gate in instance_settings.gates_of("marks")]


def defer(text):
    with unit_of_work():
        task = leave_mark.defer(text)
    db.session.remove()
    return task.id


def work():
    """Run all queued jobs, one after the other."""
    connection = jobs.connect()
    queues = [rq.Queue(name, connection=connection) for name in jobs.QUEUES]
    worker = rq.SimpleWorker(queues, connection=connection, log_job_description=False)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        worker.work(burst=True, logging_level=None)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    db.session.remove()


def test_a_notification_reaches_a_worker_through_redis(app):
    defer("notified")
    waiting = rq.Queue("default", connection=jobs.connect()).count

    work()

    assert (waiting, rq.Queue("default", connection=jobs.connect()).count) == (1, 0)
    assert "notified" in marks()


def test_a_job_can_be_moved_to_another_queue(app):
    with unit_of_work():
        task = leave_mark.on(jobs.MAIL).defer("other queue")
        found = (task.name, task.queue)
    waiting = [rq.Queue(name, connection=jobs.connect()).count for name in (jobs.DEFAULT, jobs.MAIL)]

    work()

    assert (found, waiting) == ((leave_mark.name, jobs.MAIL), [0, 1])
    assert "other queue" in marks()


def test_a_task_that_is_notified_twice_runs_once(app):
    task_id = defer("notified twice")
    jobs.notify("default", task_id)
    jobs.notify("default", task_id)

    work()

    assert marks().count("notified twice") == 1
    assert jobs.outcomes()[leave_mark.name, "done"] == 1


def test_no_job_is_lost_when_redis_loses_its_data(app, monkeypatch):
    defer("forgotten by Redis")
    jobs.connect().flushall()
    work()
    before = marks()
    later = clock.now() + dt.timedelta(seconds=11)
    monkeypatch.setattr(clock, "now", lambda: later)

    jobs.sweep()
    work()

    assert "forgotten by Redis" not in before
    assert "forgotten by Redis" in marks()


def test_outcomes_of_jobs_are_counted_across_processes(app):
    for text in ("one", "two", "bad"):
        defer(text)

    work()

    assert jobs.outcomes() == {(leave_mark.name, "done"): 2, (leave_mark.name, "failed"): 1}
    metrics = app.test_client().get("/-/metrics").text
    assert f'project_service_jobs_total{{job="{leave_mark.name}",outcome="done"}} 2.0' in metrics


def test_the_sweep_sends_no_notifications_while_many_are_pending(app, monkeypatch):
    defer("waits")
    queue = rq.Queue("default", connection=jobs.connect())
    jobs.connect().rpush(queue.key, *(f"notification-{number}" for number in range(1001)))
    later = clock.now() + dt.timedelta(seconds=11)
    monkeypatch.setattr(clock, "now", lambda: later)

    swept, length = jobs.sweep(), queue.count

    assert (swept >= 1, length) == (True, 1002)


def test_a_lease_starts_when_the_database_lock_is_acquired_and_not_before(app, monkeypatch):
    task_id = defer("late")
    held, release = threading.Event(), threading.Event()

    def hold_the_database():
        with app.app_context(), unit_of_work():
            db.session.connection()
            held.set()
            release.wait(10)

    def claim():
        with app.app_context():
            asking.set()
            return jobs.claim(task_id)

    asking = threading.Event()
    real, passed = clock.now, [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])
    with ThreadPoolExecutor(2) as threads:
        holder = threads.submit(hold_the_database)
        held.wait(10)
        taker = threads.submit(claim)
        asking.wait(10)
        threading.Event().wait(0.1)
        passed[0] = dt.timedelta(seconds=30)
        release.set()
        holder.result()
        assert taker.result() is not None

    with unit_of_work(write=False):
        left = db.session.get_one(Task, task_id).leased_until - clock.now()
    assert dt.timedelta(seconds=10) < left <= jobs.LEASE


def test_the_name_of_every_job_ends_in_the_name_of_its_function():
    for name, job in jobs.JOBS.items():
        assert name.rpartition(".")[2] == job.function.__name__
        assert job.queue in jobs.QUEUES


def test_names_under_which_tasks_are_stored_do_not_change():
    stored = {
        "accounts.jobs.prune_sessions",
        "activity.jobs.prune_events",
        "core.removal.remove_namespace",
        "core.removal.remove_project",
        "core.removal.remove_user",
        "members.jobs.expire_memberships",
        "namespaces.jobs.refresh_seats",
        "transfers.jobs.clear_up",
        "transfers.jobs.export_project",
        "transfers.jobs.import_project",
    }

    assert stored <= set(jobs.JOBS)
