"""Work that can wait: from the request that asks for it to the worker that does it, on both databases."""

from __future__ import annotations

import datetime as dt
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from project_service.domain import instance_settings
from project_service.kit import clock, jobs, logs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import PeriodicRun, Task

MINUTE = dt.timedelta(minutes=1)


@pytest.fixture
def make_job():
    """Makes a function a job for the length of a test."""
    made = []

    def make(function, **options):
        made.append(jobs.job(f"{function.__module__}.{function.__name__}", **options)(function))
        return made[-1]

    yield make
    for one in made:
        jobs.JOBS.pop(one.name, None)
        jobs.PERIODIC.pop(one.name, None)


@pytest.fixture
def note(make_job):
    """A job that leaves a mark in the database."""

    def leave_mark(text):
        instance_settings.set_gate("marks", "groups", text)

    return make_job(leave_mark)


@pytest.fixture
def bells(monkeypatch):
    """The bells that were rung, instead of Redis."""
    rung = []
    monkeypatch.setattr(jobs, "ring", lambda queue, task_id: rung.append((queue, task_id)) or True)
    return rung


@pytest.fixture
def pass_time(monkeypatch):
    """Lets time pass for everything that asks what time it is; otherwise it stands still."""
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


def test_a_task_comes_with_the_unit_of_work_and_is_rung_after_it(app, note, bells):
    with unit_of_work():
        task = note.defer("a")
        rung_inside = list(bells)

    assert rung_inside == []
    assert bells == [("default", task.id)]
    assert [(one.name, one.arguments, one.queue) for one in tasks()] == [(note.name, ["a"], "default")]


def test_a_unit_of_work_that_fails_leaves_neither_task_nor_bell(app, note, bells):
    def defer_and_fail():
        with unit_of_work():
            note.defer("a")
            raise LookupError

    with pytest.raises(LookupError):
        defer_and_fail()
    with unit_of_work():
        pass

    assert (tasks(), bells) == ([], [])


def test_a_request_defers_its_job_with_its_id(as_admin, group, bells):
    answer = as_admin.delete(f"/groups/{group.id}", headers={"X-Request-Id": "from-the-client"})

    assert answer.status_code == 202
    assert [task.request_id for task in tasks()] == ["from-the-client"]
    assert len(bells) == 1


def test_a_queue_that_is_away_fails_no_request(as_admin, group, run_jobs):
    answer = as_admin.delete(f"/groups/{group.id}")

    assert answer.status_code == 202
    assert len(tasks()) == 1
    assert run_jobs() == 1


def test_keyword_arguments_reach_the_job(app, note, bells):
    with unit_of_work():
        task = note.defer(text="by name")

    jobs.answer(task.id)

    assert marks() == ["by name"]


def test_a_job_that_cannot_be_called_so_is_not_deferred(app, note, bells):
    with pytest.raises(TypeError), unit_of_work():
        note.defer("one", "too many")

    assert tasks() == []


def test_a_job_for_later_is_not_rung_and_not_taken_before_its_time(app, note, bells, pass_time):
    with unit_of_work():
        task = note.defer_until(clock.now() + MINUTE, "a")

    jobs.answer(task.id)
    early = marks()
    swept_early = jobs.sweep()
    pass_time(MINUTE)
    swept = jobs.sweep()
    jobs.answer(task.id)

    assert (early, swept_early, swept, bells) == ([], 0, 1, [("default", task.id)])
    assert marks() == ["a"]


# Answering


def test_an_answered_task_is_done_and_gone(app, note, bells):
    task_id = defer(note, "a")

    jobs.answer(task_id)
    jobs.answer(task_id)

    assert (marks(), tasks()) == (["a"], [])


def test_the_request_id_travels_into_the_job(app, make_job, bells):
    before, seen = logs.request_id(), []
    job = make_job(lambda: seen.append(logs.request_id()))
    with logs.bound(request_id="of-the-request"):
        task_id = defer(job)

    jobs.answer(task_id)

    assert seen == ["of-the-request"]
    assert logs.request_id() == before


def test_many_workers_that_answer_one_bell_run_it_once(app, make_job, bells):
    ran = []
    together = threading.Barrier(6)
    job = make_job(lambda: ran.append(threading.get_ident()))
    task_id = defer(job)

    def worker():
        with app.app_context():
            together.wait()
            jobs.answer(task_id)

    with ThreadPoolExecutor(6) as threads:
        for one in [threads.submit(worker) for _ in range(6)]:
            one.result()

    assert len(ran) == 1
    assert tasks() == []


def test_a_job_that_fails_leaves_nothing_of_its_unit(app, make_job, bells):
    def write_and_fail():
        instance_settings.set_gate("marks", "groups", "half")
        raise LookupError("not there")

    task_id = defer(make_job(write_and_fail))

    jobs.answer(task_id)

    (task,) = tasks()
    assert marks() == []
    assert (task.attempts, task.error, task.failed_at, task.leased_until) == (1, "LookupError: not there", None, None)


def test_a_failed_job_is_tried_again_ever_later(app, make_job, bells, pass_time):
    def fail():
        raise LookupError

    task_id = defer(make_job(fail))
    waits = []
    for _ in range(3):
        jobs.answer(task_id)
        waits.append(round((tasks()[0].run_at - clock.now()).total_seconds()))
        jobs.answer(task_id)
        pass_time(MINUTE)

    assert waits == [2, 4, 8]
    assert tasks()[0].attempts == 3


def test_a_retry_is_rung_as_soon_as_it_is_due(app, make_job, bells, pass_time):
    def fail():
        raise LookupError

    task_id = defer(make_job(fail))
    jobs.answer(task_id)
    bells.clear()

    early = jobs.sweep()
    pass_time(dt.timedelta(seconds=3))
    due = jobs.sweep()

    assert (early, due, bells) == (0, 1, [("default", task_id)])


def test_a_job_that_never_works_fails_for_good_and_says_so(app, make_job, bells, pass_time):
    told = []

    def fail(number):
        raise LookupError("not there")

    def failed(arguments, text):
        told.append((arguments, text))
        instance_settings.set_gate("marks", "groups", "failed")

    task_id = defer(make_job(fail, attempts=3, failed=failed), 7)
    for _ in range(5):
        jobs.answer(task_id)
        pass_time(MINUTE)
    swept = jobs.sweep()

    (task,) = tasks()
    assert told == [((7,), "LookupError: not there")]
    assert marks() == ["failed"]
    assert (task.attempts, swept, task.failed_at is None) == (3, 0, False)


def test_a_callback_that_fails_itself_ends_the_task_all_the_same(app, make_job, bells):
    def fail():
        raise LookupError("not there")

    def failed(arguments, text):
        instance_settings.set_gate("marks", "groups", "half")
        raise RuntimeError("the callback too")

    task_id = defer(make_job(fail, attempts=1, failed=failed))

    jobs.answer(task_id)

    (task,) = tasks()
    assert marks() == []
    assert (task.failed_at is None, task.error) == (False, "LookupError: not there")


def test_failed_tasks_are_kept_for_two_weeks(app, make_job, bells, pass_time):
    def fail():
        raise LookupError

    jobs.answer(defer(make_job(fail, attempts=1)))
    pass_time(dt.timedelta(days=13))
    jobs.sweep()
    kept = len(tasks())
    pass_time(dt.timedelta(days=2))
    jobs.sweep()

    assert (kept, tasks()) == (1, [])


def test_a_task_of_a_newer_release_waits_for_a_worker_that_knows_it(app, make_job, bells, pass_time):
    job = make_job(lambda: instance_settings.set_gate("marks", "groups", "known now"))
    task_id = defer(job)
    del jobs.JOBS[job.name]
    jobs.answer(task_id)
    unknown = tasks()[0]

    jobs.JOBS[job.name] = job
    pass_time(MINUTE)
    jobs.answer(task_id)

    assert unknown.error.startswith("LookupError: no job is called")
    assert (unknown.failed_at, marks(), tasks()) == (None, ["known now"], [])


# Sweeping


def test_the_sweep_rings_again_for_whom_nobody_answered(app, note, bells, pass_time):
    task_id = defer(note, "a")
    bells.clear()

    at_once = jobs.sweep()
    pass_time(dt.timedelta(seconds=11))
    later = jobs.sweep()

    assert (at_once, later, bells) == (0, 1, [("default", task_id)])


def test_the_sweep_leaves_a_task_alone_that_somebody_works_on(app, note, bells, pass_time):
    task_id = defer(note, "a")
    pass_time(dt.timedelta(seconds=11))
    lease = jobs.take_up(task_id)

    held = jobs.sweep()
    pass_time(dt.timedelta(seconds=21))
    abandoned = jobs.sweep()

    assert lease is not None
    assert (held, abandoned) == (0, 1)


# Leases


def test_a_task_is_held_until_its_lease_runs_out_and_then_taken_over_with_a_higher_fence(app, note, bells, pass_time):
    task_id = defer(note, "a")

    first = jobs.take_up(task_id)
    refused = jobs.take_up(task_id)
    pass_time(dt.timedelta(seconds=21))
    second = jobs.take_up(task_id)

    assert (first.fence, refused, second.fence) == (1, None, 2)


def test_a_renewed_lease_is_not_taken_over(app, note, bells, pass_time):
    task_id = defer(note, "a")
    lease = jobs.take_up(task_id)
    pass_time(dt.timedelta(seconds=15))
    jobs._renew(lease)
    pass_time(dt.timedelta(seconds=15))

    assert jobs.take_up(task_id) is None


def test_a_worker_renews_the_lease_of_the_job_it_runs(app, make_job, bells, monkeypatch):
    monkeypatch.setattr(jobs, "RENEW_EVERY_SECONDS", 0.01)
    renewed = threading.Event()
    renew = jobs._renew

    def note_renewal(lease):
        renew(lease)
        renewed.set()

    monkeypatch.setattr(jobs, "_renew", note_renewal)
    seen = []
    task_id = defer(make_job(lambda: seen.append(renewed.wait(30))))

    jobs.answer(task_id)

    assert seen == [True]


def test_who_lost_the_lease_writes_nothing_more_and_ends_nothing(app, make_job, bells, pass_time):
    taken_over = []

    def long_job():
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "first step")
        pass_time(dt.timedelta(seconds=21))
        taken_over.append(jobs.take_up(task_id))
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "second step")

    task_id = defer(make_job(long_job))

    jobs.answer(task_id)

    (task,) = tasks()
    assert marks() == ["first step"]
    assert (taken_over[0].fence, task.fence, task.failed_at, task.error) == (2, 2, None, None)


def test_a_short_job_that_lost_its_lease_leaves_nothing(app, make_job, bells, pass_time):
    def short_job():
        pass_time(dt.timedelta(seconds=21))
        with ThreadPoolExecutor(1) as other:
            other.submit(take_over).result()
        instance_settings.set_gate("marks", "groups", "too late")

    def take_over():
        with app.app_context():
            jobs.take_up(task_id)

    task_id = defer(make_job(short_job))

    jobs.answer(task_id)

    assert marks() == []
    assert tasks()[0].fence == 2


def test_each_step_of_a_long_job_is_kept_when_a_later_one_fails(app, make_job, bells):
    def long_job():
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "first step")
        with jobs.step():
            instance_settings.set_gate("marks", "groups", "second step")
            raise LookupError

    jobs.answer(defer(make_job(long_job)))

    assert marks() == ["first step"]


def test_steps_work_without_a_worker_too(app):
    with jobs.step():
        instance_settings.set_gate("marks", "groups", "by hand")

    assert marks() == ["by hand"]


def test_what_a_step_defers_is_rung_when_it_is_committed(app, make_job, note, bells):
    heard = []

    def long_job():
        with jobs.step():
            note.defer("later")
        heard.extend(bells[1:])

    jobs.answer(defer(make_job(long_job)))

    assert len(heard) == 1


# Periodic jobs


@pytest.fixture
def periodic(make_job, monkeypatch):
    """Makes a periodic job; the program's own stay out of the way."""
    monkeypatch.setattr(jobs, "PERIODIC", {})

    def make(first=dt.timedelta()):
        return jobs.periodic(every=MINUTE, first=first)(make_job(lambda: None))

    return make


def test_a_periodic_job_starts_when_it_is_due_and_again_after_its_time(app, periodic, bells, pass_time, run_jobs):
    job = periodic()
    started = []
    for time in (0, 0, 0, 59, 2, 0, 600):
        pass_time(dt.timedelta(seconds=time))
        started.append(jobs.start_periodic())
        run_jobs()

    assert started == [[], [job.name], [], [], [job.name], [], [job.name]]


def test_a_periodic_job_may_wait_before_its_first_start(app, periodic, bells, pass_time):
    job = periodic(first=10 * MINUTE)

    planned = jobs.start_periodic()
    pass_time(9 * MINUTE)
    early = jobs.start_periodic()
    pass_time(MINUTE)

    assert (planned, early, jobs.start_periodic()) == ([], [], [job.name])


def test_many_schedulers_start_a_periodic_job_once(app, periodic, bells, pass_time):
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

    assert len(started) == len(tasks()) == len(bells) == 1


def test_many_schedulers_plan_a_periodic_job_once(app, periodic, bells):
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


def test_a_periodic_job_is_not_piled_up_while_no_worker_takes_it(app, periodic, bells, pass_time):
    periodic()
    for _ in range(5):
        jobs.start_periodic()
        pass_time(2 * MINUTE)

    assert len(tasks()) == 1


# Looking on


def test_the_queues_tell_how_much_is_due_and_for_how_long(app, note, bells, pass_time):
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
