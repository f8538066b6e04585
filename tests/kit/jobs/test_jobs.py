"""Background jobs: deferring, running, retries, leases, sweep and periodic jobs, on both databases."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import OperationalError

from project_service.domain import instance_settings
from project_service.kit import clock, jobs, logs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import PeriodicRun, Task, leases, queues, scheduling

pytestmark = pytest.mark.both_databases

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def make_job():
    """Registers a function as a job for the duration of a test."""
    registered = []

    def make(function, **options):
        registered.append(jobs.job(f"{function.__module__}.{function.__name__}", **options)(function))
        return registered[-1]

    yield make
    for one in registered:
        jobs.JOBS.pop(one.name, None)
        jobs.PERIODIC_JOBS.pop(one.name, None)


@pytest.fixture
def note(make_job):
    """A job that writes a row."""

    def leave_mark(text):
        instance_settings.set_gate("marks", "groups", text)

    return make_job(leave_mark)


@pytest.fixture
def notifications(monkeypatch):
    """The notifications of workers, recorded instead of sent through Redis."""
    sent = []
    monkeypatch.setattr(queues, "notify", lambda queue, task_id: sent.append((queue, task_id)) or True)
    return sent


@pytest.fixture
def pass_time(monkeypatch):
    """Advances the clock, which otherwise stands still."""
    began, passed = clock.now(), [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: began + passed[0])

    def let_pass(time):
        passed[0] += time

    return let_pass


def defer(job, *arguments):
    with unit_of_work():
        task = job.defer(*arguments)
    return task.id


def tasks():
    with unit_of_work(write=False):
        found = list(db.session.scalars(select(Task).order_by(Task.id)))
    db.session.expunge_all()
    return found


def marks():
    with unit_of_work(write=False):
        return [gate.value for gate in instance_settings.gates_of("marks")]


# Deferring


def test_a_task_is_committed_with_the_unit_of_work_and_a_worker_notified_after_it(app, note, notifications):
    with unit_of_work():
        task = note.defer("a")
        sent_inside = list(notifications)

    assert sent_inside == []
    assert notifications == [("default", task.id)]
    assert [(one.name, one.arguments, one.queue) for one in tasks()] == [(note.name, ["a"], "default")]


def test_a_unit_of_work_that_fails_leaves_neither_task_nor_notification(app, note, notifications):
    def defer_and_fail():
        with unit_of_work():
            note.defer("a")
            raise LookupError

    with pytest.raises(LookupError):
        defer_and_fail()
    with unit_of_work():
        pass

    assert (tasks(), notifications) == ([], [])


def test_a_request_defers_its_job_with_its_id(as_admin, group, notifications):
    response = as_admin.delete(f"/groups/{group.id}", headers={"X-Request-Id": "from-the-client"})

    assert response.status_code == 202
    assert [task.request_id for task in tasks()] == ["from-the-client"]
    assert len(notifications) == 1


def test_a_request_succeeds_while_redis_is_unavailable(as_admin, group, run_jobs):
    response = as_admin.delete(f"/groups/{group.id}")

    assert response.status_code == 202
    assert len(tasks()) == 1
    assert run_jobs() == 1


def test_keyword_arguments_reach_the_job(app, note, notifications):
    with unit_of_work():
        task = note.defer(text="by name")

    jobs.run(task.id)

    assert marks() == ["by name"]


def test_a_job_with_wrong_arguments_is_not_deferred(app, note, notifications):
    with pytest.raises(TypeError), unit_of_work():
        note.defer("one", "too many")

    assert tasks() == []


def test_a_job_for_later_is_neither_notified_nor_claimed_before_its_time(app, note, notifications, pass_time):
    with unit_of_work():
        task = note.defer_until(clock.now() + MINUTE, "a")

    jobs.run(task.id)
    early = marks()
    swept_early = jobs.sweep()
    pass_time(MINUTE)
    swept = jobs.sweep()
    jobs.run(task.id)

    assert (early, swept_early, swept, notifications) == ([], 0, 1, [("default", task.id)])
    assert marks() == ["a"]


# Running


def test_a_task_is_run_once_and_deleted(app, note, notifications):
    task_id = defer(note, "a")

    jobs.run(task_id)
    jobs.run(task_id)

    assert (marks(), tasks()) == (["a"], [])


def test_a_job_runs_with_the_request_id_of_the_request_that_deferred_it(app, make_job, notifications):
    before, seen = logs.request_id(), []
    job = make_job(lambda: seen.append(logs.request_id()))
    with logs.bound(request_id="of-the-request"):
        task_id = defer(job)

    jobs.run(task_id)

    assert seen == ["of-the-request"]
    assert logs.request_id() == before


def test_a_task_claimed_by_many_workers_runs_once(app, make_job, notifications):
    ran = []
    together = threading.Barrier(6)
    job = make_job(lambda: ran.append(threading.get_ident()))
    task_id = defer(job)

    def worker():
        with app.app_context():
            together.wait()
            jobs.run(task_id)

    with ThreadPoolExecutor(6) as threads:
        for one in [threads.submit(worker) for _ in range(6)]:
            one.result()

    assert len(ran) == 1
    assert tasks() == []


def test_a_job_that_fails_is_rolled_back(app, make_job, notifications):
    def write_and_fail():
        instance_settings.set_gate("marks", "groups", "half")
        raise LookupError("not there")

    task_id = defer(make_job(write_and_fail))

    jobs.run(task_id)

    (task,) = tasks()
    assert marks() == []
    assert (task.attempts, task.error, task.failed_at, task.leased_until) == (1, "LookupError: not there", None, None)


def test_a_failed_job_is_retried_with_backoff(app, make_job, notifications, pass_time):
    def fail():
        raise LookupError

    task_id = defer(make_job(fail))
    waits = []
    for _ in range(3):
        jobs.run(task_id)
        waits.append(round((tasks()[0].run_at - clock.now()).total_seconds()))
        jobs.run(task_id)
        pass_time(MINUTE)

    assert waits == [2, 4, 8]
    assert tasks()[0].attempts == 3


def test_a_worker_is_notified_of_a_retry_as_soon_as_it_is_due(app, make_job, notifications, pass_time):
    def fail():
        raise LookupError

    task_id = defer(make_job(fail))
    jobs.run(task_id)
    notifications.clear()

    early = jobs.sweep()
    pass_time(dt.timedelta(seconds=3))
    due = jobs.sweep()

    assert (early, due, notifications) == (0, 1, [("default", task_id)])


def test_a_job_fails_for_good_after_its_last_attempt_and_calls_its_callback(app, make_job, notifications, pass_time):
    calls = []

    def fail(number):
        raise LookupError("not there")

    def failed(arguments, text):
        calls.append((arguments, text))
        instance_settings.set_gate("marks", "groups", "failed")

    task_id = defer(make_job(fail, max_attempts=3, on_failure=failed), 7)
    for _ in range(5):
        jobs.run(task_id)
        pass_time(MINUTE)
    swept = jobs.sweep()

    (task,) = tasks()
    assert calls == [((7,), "LookupError: not there")]
    assert marks() == ["failed"]
    assert (task.attempts, swept, task.failed_at is None) == (3, 0, False)


def test_a_task_ends_even_if_its_failure_callback_fails(app, make_job, notifications):
    def fail():
        raise LookupError("not there")

    def failed(arguments, text):
        instance_settings.set_gate("marks", "groups", "half")
        raise RuntimeError("the callback too")

    task_id = defer(make_job(fail, max_attempts=1, on_failure=failed))

    jobs.run(task_id)

    (task,) = tasks()
    assert marks() == []
    assert (task.failed_at is None, task.error) == (False, "LookupError: not there")


def test_failed_tasks_are_kept_for_two_weeks(app, make_job, notifications, pass_time):
    def fail():
        raise LookupError

    jobs.run(defer(make_job(fail, max_attempts=1)))
    pass_time(dt.timedelta(days=13))
    jobs.sweep()
    kept = len(tasks())
    pass_time(dt.timedelta(days=2))
    jobs.sweep()

    assert (kept, tasks()) == (1, [])


def test_a_task_of_a_newer_release_waits_for_a_worker_that_knows_it(app, make_job, notifications, pass_time):
    job = make_job(lambda: instance_settings.set_gate("marks", "groups", "known now"))
    task_id = defer(job)
    del jobs.JOBS[job.name]
    jobs.run(task_id)
    unknown = tasks()[0]

    jobs.JOBS[job.name] = job
    pass_time(MINUTE)
    jobs.run(task_id)

    assert unknown.error.startswith("LookupError: no job is called")
    assert (unknown.failed_at, marks(), tasks()) == (None, ["known now"], [])


# Sweeping


def test_the_sweep_notifies_again_of_a_task_that_was_not_claimed(app, note, notifications, pass_time):
    task_id = defer(note, "a")
    notifications.clear()

    at_once = jobs.sweep()
    pass_time(dt.timedelta(seconds=11))
    later = jobs.sweep()

    assert (at_once, later, notifications) == (0, 1, [("default", task_id)])


def test_the_sweep_ignores_a_task_that_is_running(app, note, notifications, pass_time):
    task_id = defer(note, "a")
    pass_time(dt.timedelta(seconds=11))
    lease = jobs.claim(task_id)

    held = jobs.sweep()
    pass_time(dt.timedelta(seconds=21))
    abandoned = jobs.sweep()

    assert lease is not None
    assert (held, abandoned) == (0, 1)


# Leases


def test_a_task_can_be_claimed_again_with_a_higher_fence_once_its_lease_has_expired(
    app, note, notifications, pass_time
):
    task_id = defer(note, "a")

    first = jobs.claim(task_id)
    refused = jobs.claim(task_id)
    pass_time(dt.timedelta(seconds=21))
    second = jobs.claim(task_id)

    assert (first.fence, refused, second.fence) == (1, None, 2)


def test_a_task_with_a_renewed_lease_cannot_be_claimed(app, note, notifications, pass_time):
    task_id = defer(note, "a")
    lease = jobs.claim(task_id)
    pass_time(dt.timedelta(seconds=15))
    leases.renew(lease)
    pass_time(dt.timedelta(seconds=15))

    assert jobs.claim(task_id) is None


def test_a_worker_renews_the_lease_of_the_job_it_runs(app, make_job, notifications, monkeypatch):
    monkeypatch.setattr(leases, "RENEWAL_SECONDS", 0.01)
    renewed = threading.Event()
    renew = leases.renew

    def note_renewal(lease):
        renew(lease)
        renewed.set()

    monkeypatch.setattr(leases, "renew", note_renewal)
    seen = []
    task_id = defer(make_job(lambda: seen.append(renewed.wait(30))))

    jobs.run(task_id)

    assert seen == [True]


def test_a_job_without_lease_stops_writing_and_keeps_the_task(app, make_job, notifications, pass_time):
    taken_over = []

    def long_job():
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "first step")
        pass_time(dt.timedelta(seconds=21))
        taken_over.append(jobs.claim(task_id))
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "second step")

    task_id = defer(make_job(long_job))

    jobs.run(task_id)

    (task,) = tasks()
    assert marks() == ["first step"]
    assert (taken_over[0].fence, task.fence, task.failed_at, task.error) == (2, 2, None, None)


def test_a_short_job_that_lost_its_lease_is_rolled_back(app, make_job, notifications, pass_time):
    def short_job():
        pass_time(dt.timedelta(seconds=21))
        with ThreadPoolExecutor(1) as other:
            other.submit(take_over).result()
        instance_settings.set_gate("marks", "groups", "too late")

    def take_over():
        with app.app_context():
            jobs.claim(task_id)

    task_id = defer(make_job(short_job))

    jobs.run(task_id)

    assert marks() == []
    assert tasks()[0].fence == 2


def test_each_step_of_a_long_job_stays_committed_when_a_later_one_fails(app, make_job, notifications):
    def long_job():
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "first step")
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "second step")
            raise LookupError

    jobs.run(defer(make_job(long_job)))

    assert marks() == ["first step"]


def test_steps_work_without_a_worker_too(app):
    with jobs.step():
        instance_settings.set_gate("marks", "groups", "by hand")

    assert marks() == ["by hand"]


@pytest.mark.parametrize(("failing", "tried"), [({1, 2, 4}, [0, 1, 2, 3, 4, 5]), ({1, 2, 3}, [0, 1, 2, 3])])
def test_refused_rows_do_not_block_others_unless_the_database_is_down(app, failing, tried):
    seen = []

    def act(row):
        seen.append(row)
        if row in failing:
            raise OperationalError("statement", {}, Exception("too long"))

    with pytest.raises((ExceptionGroup, OperationalError)):
        jobs.for_each(range(6), act)

    assert seen == tried


def test_a_worker_is_notified_of_a_job_that_a_step_defers_when_the_step_is_committed(
    app, make_job, note, notifications
):
    sent = []

    def long_job():
        with jobs.step():
            note.defer("later")
        sent.extend(notifications[1:])

    jobs.run(defer(make_job(long_job)))

    assert len(sent) == 1


# Periodic jobs


@pytest.fixture
def periodic(make_job, monkeypatch):
    """Registers a periodic job; those of the application are hidden."""
    monkeypatch.setattr(scheduling, "PERIODIC_JOBS", {})

    def make(first=dt.timedelta()):
        return jobs.periodic(every=MINUTE, first=first)(make_job(lambda: None))

    return make


def test_a_periodic_job_starts_when_it_is_due_and_again_after_its_time(
    app, periodic, notifications, pass_time, run_jobs
):
    job = periodic()
    started = []
    for time in (0, 0, 0, 59, 2, 0, 600):
        pass_time(dt.timedelta(seconds=time))
        started.append(jobs.start_periodic())
        run_jobs()

    assert started == [[], [job.name], [], [], [job.name], [], [job.name]]


def test_a_periodic_job_may_wait_before_its_first_start(app, periodic, notifications, pass_time):
    job = periodic(first=10 * MINUTE)

    planned = jobs.start_periodic()
    pass_time(9 * MINUTE)
    early = jobs.start_periodic()
    pass_time(MINUTE)

    assert (planned, early, jobs.start_periodic()) == ([], [], [job.name])


def test_many_schedulers_start_a_periodic_job_once(app, periodic, notifications, pass_time):
    periodic()

    def schedulers():
        together = threading.Barrier(6)

        def schedule():
            with app.app_context():
                together.wait()
                return jobs.start_periodic()

        with ThreadPoolExecutor(6) as threads:
            return [name for one in [threads.submit(schedule) for _ in range(6)] for name in one.result()]

    jobs.start_periodic()
    started = schedulers()

    assert len(started) == len(tasks()) == len(notifications) == 1


def test_many_schedulers_plan_a_periodic_job_once(app, periodic, notifications):
    periodic(first=MINUTE)
    together = threading.Barrier(6)

    def schedule():
        with app.app_context():
            together.wait()
            jobs.start_periodic()

    with ThreadPoolExecutor(6) as threads:
        for one in [threads.submit(schedule) for _ in range(6)]:
            one.result()

    assert db.session.scalar(select(func.count(PeriodicRun.id))) == 1


def test_a_periodic_job_is_not_deferred_again_before_its_last_task_has_run(app, periodic, notifications, pass_time):
    periodic()
    for _ in range(5):
        jobs.start_periodic()
        pass_time(2 * MINUTE)

    assert len(tasks()) == 1


# Monitoring


def test_queues_report_the_number_of_due_tasks_and_the_age_of_the_oldest(app, note, notifications, pass_time):
    defer(note, "a")
    pass_time(MINUTE)
    defer(note, "b")
    with unit_of_work():
        note.defer_until(clock.now() + MINUTE, "later")

    with unit_of_work(write=False):
        counts = jobs.counts()

    assert counts["default"][0] == 2
    assert 60 <= counts["default"][1] < 70
    assert counts["mail"] == (0, 0.0)
