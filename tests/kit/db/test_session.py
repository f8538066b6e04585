"""The unit of work, and what both databases promise in it."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import pytest
from sqlalchemy import NullPool, create_engine, select, text, update
from sqlalchemy.exc import IntegrityError, OperationalError, StatementError

from project_service.domain import instance_settings
from project_service.domain.accounts.users import User
from project_service.domain.instance_settings import ApplicationSetting, FeatureGate
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import (
    MAX_OVERFLOW_CONNECTIONS,
    POOL_SIZE,
    add_unique,
    after_commit,
    db,
    dispose_after_fork,
    reading,
    rollback,
    unique,
    unit_of_work,
)
from project_service.kit.http.errors import Conflict
from tests.conftest import POSTGRESQL, SQLITE, make_app

both = pytest.mark.both_databases
TAKEN = Conflict("taken")
WRITERS, ROUNDS = 4, 15


def gate(value, feature="marks"):
    return FeatureGate(feature=feature, key="groups", value=value)


def marks():
    with unit_of_work(write=False):
        return [one.value for one in instance_settings.gates_of("marks")]


# Units of work


@both
def test_a_unit_of_work_commits_and_runs_its_callbacks(app):
    order = []
    with unit_of_work():
        db.session.add(gate("a"))
        after_commit(lambda: order.append(("called", marks())))
        order.append("ending")

    assert order == ["ending", ("called", ["a"])]


@both
def test_a_failed_unit_of_work_writes_nothing_and_runs_no_callback(app):
    called = []

    def write_and_fail():
        with unit_of_work():
            db.session.add(gate("a"))
            db.session.flush()
            after_commit(lambda: called.append("a"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_fail()
    with unit_of_work():
        db.session.add(gate("b"))

    assert (marks(), called) == (["b"], [])


@both
def test_a_failed_commit_runs_no_callback(app):
    called = []

    def write():
        with unit_of_work():
            after_commit(lambda: called.append("a"))
            db.session.add_all([gate("a"), gate("a")])

    with pytest.raises(IntegrityError):
        write()

    assert (marks(), called) == ([], [])


@both
def test_a_duplicate_raises_the_given_error_and_the_unit_continues(app):
    with unit_of_work():
        add_unique(gate("a"), TAKEN)
        with pytest.raises(Conflict, match="taken"):
            add_unique(gate("a"), TAKEN)
        add_unique(gate("b"), TAKEN)

    assert marks() == ["a", "b"]


@both
def test_an_update_to_a_duplicate_raises_the_given_error_and_the_unit_continues(app):
    def rename(row):
        with unique(TAKEN):
            row.value = "a"

    with unit_of_work():
        second = add_unique(gate("b"), TAKEN)
        add_unique(gate("a"), TAKEN)
        with pytest.raises(Conflict, match="taken"):
            rename(second)
        add_unique(gate("c"), TAKEN)

    assert sorted(marks()) == ["a", "b", "c"]


@both
def test_other_integrity_errors_are_not_reported_as_duplicates(app):
    def add_an_orphan():
        with unit_of_work():
            add_unique(Membership(user_id=4711, project_id=4711, access_level=30), TAKEN)

    with pytest.raises(IntegrityError):
        add_an_orphan()


@both
def test_database_errors_do_not_contain_parameters(app):
    with unit_of_work():
        db.session.add(gate("to-be-kept-secret"))

    def write_again():
        with unit_of_work():
            db.session.add(gate("to-be-kept-secret"))

    with pytest.raises(IntegrityError) as refused:
        write_again()

    # the part that names the key comes from PostgreSQL itself, and speaks of columns that are unique, never encrypted
    assert "to-be-kept-secret" not in str(refused.value).partition("DETAIL")[0]


# Values


@both
def test_ids_are_not_reused(app):
    with unit_of_work():
        db.session.add_all([gate("a"), gate("b")])
    last = db.session.scalar(select(FeatureGate.id).order_by(FeatureGate.id.desc()))
    with unit_of_work():
        instance_settings.clear_gates("marks")
    with unit_of_work():
        fresh = add_unique(gate("c"), TAKEN)

    assert fresh.id > last


@both
def test_times_are_returned_aware_and_in_utc(app, people):
    east = dt.timezone(dt.timedelta(hours=5, minutes=30))
    with unit_of_work():
        user = db.session.merge(people["dev"])
        user.confirmed_at = dt.datetime(2021, 1, 20, 13, 45, 30, 123456, tzinfo=east)
    db.session.expire_all()

    with unit_of_work(write=False):
        stored = db.session.get_one(type(user), user.id).confirmed_at

    assert stored == dt.datetime(2021, 1, 20, 8, 15, 30, 123456, tzinfo=dt.UTC)
    assert stored.tzinfo is dt.UTC


@pytest.fixture
def far_from_utc(app, backend):
    """Has the sessions of the database begin in another zone, where it has zones."""
    if backend == SQLITE:
        yield
        return

    def have(change):
        db.session.remove()
        with db.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            name = connection.scalar(text("SELECT current_database()"))
            connection.execute(text(f'ALTER DATABASE "{name}" {change}'))
        db.engine.dispose()

    have("SET timezone TO 'Asia/Kolkata'")
    yield
    have("RESET timezone")


@both
@pytest.mark.parametrize("unit", [reading, unit_of_work])
def test_times_are_in_utc_in_any_server_time_zone(far_from_utc, app, people, unit):
    moment = dt.datetime(1901, 1, 20, 8, 15, 30, 123456, tzinfo=dt.UTC)
    with unit_of_work():
        db.session.merge(people["dev"]).confirmed_at = moment
    db.session.remove()
    with suppress(RuntimeError), unit():
        db.session.scalar(select(User.confirmed_at))
        raise RuntimeError  # whatever is undone

    with unit():
        stored = db.session.scalar(select(User.confirmed_at).where(User.id == people["dev"].id))

    assert (stored, stored.tzinfo) == (moment, dt.UTC)


@both
def test_a_naive_time_is_refused(app, people):
    with pytest.raises(StatementError, match="needs a time zone"), unit_of_work():
        db.session.merge(people["dev"]).confirmed_at = dt.datetime(2021, 1, 20)

    assert clock.now().tzinfo is dt.UTC


@both
def test_any_json_value_is_read_back_unchanged(app):
    values = {"number": 7, "large": 2**63 - 1, "real": 1.5, "text": "7", "flag": True, "none": None, "list": [1, "a"]}
    with unit_of_work():
        db.session.add_all([ApplicationSetting(name=name, value=value) for name, value in values.items()])
    db.session.expire_all()

    with unit_of_work(write=False):
        stored = {row.name: row.value for row in db.session.scalars(select(ApplicationSetting))}

    assert stored == values
    assert [type(stored[name]) for name in ("number", "real", "text", "flag")] == [int, float, str, bool]


# Several writers


def count_up(app):
    """Read a number, and write it back one higher, again and again."""
    with app.app_context():
        for _ in range(ROUNDS):
            with unit_of_work():
                value = db.session.scalar(
                    select(ApplicationSetting.value).where(ApplicationSetting.name == "count").with_for_update()
                )
                time.sleep(0.001)
                db.session.execute(
                    update(ApplicationSetting).where(ApplicationSetting.name == "count").values(value=value + 1)
                )
            db.session.remove()


def counted():
    with unit_of_work(write=False):
        return db.session.scalar(select(ApplicationSetting.value).where(ApplicationSetting.name == "count"))


@pytest.fixture
def counter(app):
    with unit_of_work():
        db.session.add(ApplicationSetting(name="count", value=0))
    db.session.remove()


@both
def test_writers_in_threads_wait_for_each_other(app, counter):
    with ThreadPoolExecutor(WRITERS) as threads:
        for one in [threads.submit(count_up, app) for _ in range(WRITERS)]:
            one.result()

    assert counted() == WRITERS * ROUNDS


def in_a_process(app, function):
    def run():
        with app.app_context():
            dispose_after_fork()
            function()

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    return process


@both
def test_writers_in_processes_wait_for_each_other(app, counter):
    processes = [in_a_process(app, lambda: count_up(app)) for _ in range(WRITERS)]
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0] * WRITERS
    assert counted() == WRITERS * ROUNDS


@both
def test_a_reader_does_not_wait_for_a_writer(app, counter):
    def read():
        with app.app_context():
            return counted()

    with unit_of_work(), ThreadPoolExecutor(1) as thread:
        db.session.execute(update(ApplicationSetting).values(value=1))
        seen = thread.submit(read).result(timeout=20)

    assert (seen, counted()) == (0, 1)


@both
def test_a_snapshot_reads_one_state(app, counter):
    def write():
        with app.app_context(), unit_of_work():
            db.session.execute(update(ApplicationSetting).values(value=1))

    with unit_of_work(write=False), ThreadPoolExecutor(1) as thread:
        before = db.session.scalar(text("SELECT count(*) FROM application_settings"))
        thread.submit(write).result(timeout=20)
        after = db.session.scalar(text("SELECT count(*) FROM application_settings"))

    assert (before, after, counted()) == (1, 1, 1)


def test_a_killed_writer_releases_its_lock(app, counter):
    def write_and_die():
        with unit_of_work():
            db.session.execute(update(ApplicationSetting).values(value=1))
            os.kill(os.getpid(), signal.SIGKILL)

    process = in_a_process(app, write_and_die)
    process.join(30)

    with unit_of_work():
        db.session.execute(update(ApplicationSetting).values(value=ApplicationSetting.value))
    assert (process.exitcode, counted()) == (-signal.SIGKILL, 0)


def test_a_failed_writer_releases_its_lock(app, counter):
    for _ in range(3):
        with pytest.raises(LookupError):
            write_and_fail()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(count_up, app).result(timeout=20)
    assert counted() == ROUNDS


def write_and_fail():
    with unit_of_work():
        db.session.execute(update(ApplicationSetting).values(value=1))
        raise LookupError


def test_sqlite_is_configured_for_several_processes(tmp_path):
    app = make_app(SQLITE, tmp_path, SQLITE_SYNCHRONOUS="FULL")

    with app.app_context(), unit_of_work(write=False):
        names = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        found = {name: db.session.scalar(text(f"PRAGMA {name}")) for name in names}
    with app.app_context():
        db.engine.dispose()

    assert found == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30_000}


def test_many_threads_share_the_pool(app, counter):
    together = threading.Barrier(30)

    def read():
        together.wait()
        with app.app_context():
            return counted()

    with ThreadPoolExecutor(30) as threads:
        seen = [one.result(timeout=30) for one in [threads.submit(read) for _ in range(30)]]

    assert seen == [0] * 30


def test_a_write_within_reading_is_its_own_unit_of_work(app, backend):
    with reading():
        db.session.execute(text("SELECT 1"))
        with unit_of_work():
            connection = db.session.connection()
            locked = backend != SQLITE or "write_lock" in connection.info
            level = connection.get_execution_options().get("isolation_level")
        db.session.execute(text("SELECT 1"))

    assert (locked, level) == (True, None)


# Connections


@both
def test_statements_and_objects_are_written_in_one_transaction(app):
    with unit_of_work():
        first = db.session.connection()
        db.session.add(gate("a"))
        db.session.flush()
        seen = (
            db.session.connection().execute(text("SELECT count(*) FROM feature_gates WHERE feature = 'marks'")).scalar()
        )

        assert (db.session.connection() is first, db.session.connection() is first, seen) == (True, True, 1)


@both
def test_a_rollback_covers_statements_and_objects(app):
    insert_b = text("INSERT INTO feature_gates (feature, key, value) VALUES ('marks', 'groups', 'b')")
    with unit_of_work():
        db.session.connection().execute(insert_b)
        rollback()
        db.session.add(gate("a"))
        db.session.flush()
        rollback()
        db.session.connection().execute(insert_b)

    assert marks() == ["b"]


@both
def test_a_commit_within_a_unit_releases_the_locks(app):
    def another():
        with app.app_context(), unit_of_work():
            db.session.add(gate("b"))

    with unit_of_work():
        db.session.add(gate("a"))
        db.session.commit()
        there = marks()
        with ThreadPoolExecutor(1) as thread:
            thread.submit(another).result(timeout=20)
        db.session.add(gate("c"))

    assert (there, marks()) == (["a"], ["a", "b", "c"])


def test_connections_to_a_sqlite_file_are_not_limited(applications):
    with applications(SQLITE).app_context(), ExitStack() as opened:
        for _ in range(2 * (POOL_SIZE + MAX_OVERFLOW_CONNECTIONS)):
            opened.enter_context(db.engine.connect())


@both
def test_a_write_within_a_snapshot_waits_for_other_writers(app):
    def another():
        with app.app_context(), unit_of_work():
            db.session.add(gate("b"))

    with unit_of_work(write=False):
        assert marks() == []
        with ThreadPoolExecutor(1) as thread:
            thread.submit(another).result(timeout=20)
        with unit_of_work():
            db.session.add(gate("a"))

    assert sorted(marks()) == ["a", "b"]


@pytest.mark.parametrize("way", [reading, unit_of_work])
def test_a_closed_connection_is_replaced(way, applications):
    app = applications(POSTGRESQL)

    def pid():
        with app.app_context(), way():
            return db.session.scalar(text("SELECT pg_backend_pid()"))

    with app.app_context():
        db.session.remove()
        db.engine.dispose()
        before = pid()
        assert pid() == before
        engine = create_engine(db.engine.url, poolclass=NullPool)
        with engine.begin() as other:
            other.execute(text(f"SELECT pg_terminate_backend({before}, 5000)"))

        assert pid() != before


def test_reading_begins_no_transaction_on_the_server(applications):
    with applications(POSTGRESQL).app_context():
        db.session.remove()
        with reading():
            first = db.session.scalar(text("SELECT now()"))
            second = db.session.scalar(text("SELECT now()"))
        with unit_of_work():
            third = db.session.scalar(text("SELECT now()"))
            fourth = db.session.scalar(text("SELECT now()"))

        assert (first < second, third == fourth) == (True, True)


@both
def test_the_next_unit_works_after_a_failed_commit(app, monkeypatch):
    def refuse(connection):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(db.engine.dialect, "do_commit", refuse)
        with pytest.raises(OSError, match="full"), unit_of_work():
            db.session.add(gate("a"))
    with unit_of_work():
        db.session.add(gate("b"))

    assert marks() == ["b"]


def test_a_transaction_that_cannot_begin_raises_a_database_error(applications):
    with applications(SQLITE).app_context():
        db.session.remove()
        with db.engine.connect() as impatient:
            impatient.connection.dbapi_connection.execute("PRAGMA busy_timeout=0")
            with closing(sqlite3.connect(db.engine.url.database, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # without the lock file, as a foreign tool does
                with pytest.raises(OperationalError, match="locked"):
                    impatient.begin()
            with impatient.begin():
                impatient.execute(text("SELECT 1"))
            impatient.invalidate()
