"""What several requests write at the same moment is written together, and fails apart."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from project_service.domain.instance_settings import FeatureGate
from project_service.kit.db import group_commit as module
from project_service.kit.db.group_commit import group_commit
from project_service.kit.db.session import DEADLOCK_DETECTED, after_commit, db, unit_of_work

pytestmark = pytest.mark.both_databases
MANY = 12


class Chosen(Exception):
    """What the driver says when the database has this transaction give way."""

    sqlstate = DEADLOCK_DETECTED


@pytest.fixture
def stored(app):
    """The values that were committed."""

    def values():
        with unit_of_work(write=False):
            return sorted(db.session.scalars(select(FeatureGate.value).where(FeatureGate.feature == "marks")))

    return values


def add(values):
    db.session.add_all(FeatureGate(feature="marks", key="groups", value=value) for value in values)
    db.session.flush()


def at_once(app, write, items):
    """Call for all items, each in a thread of its own; what it gave or raised."""

    def called(item):
        with app.app_context():
            try:
                return write(item)
            except Exception as error:
                return error

    with ThreadPoolExecutor(len(items)) as threads:
        return list(threads.map(called, items))


def test_an_item_is_committed_when_its_result_is_there(app, stored):
    @group_commit(key=type)
    def write(values):
        add(values)
        return [value.upper() for value in values]

    assert (write("a"), stored()) == ("A", ["a"])


def test_who_comes_while_somebody_writes_is_written_for_together(app, stored):
    groups, begun, everybody_waits = [], threading.Event(), threading.Event()

    @group_commit(key=type)
    def write(values):
        groups.append(len(values))
        begun.set()
        everybody_waits.wait(20)
        add(values)
        return [value.upper() for value in values]

    first = threading.Thread(target=at_once, args=(app, write, ["first"]))
    first.start()
    begun.wait(20)
    others = [f"{number:02}" for number in range(MANY)]
    with ThreadPoolExecutor(1) as waiting:
        results = waiting.submit(at_once, app, write, others)
        while write.waiting() < MANY:
            threading.Event().wait(0.01)
        everybody_waits.set()
        found = results.result(20)
    first.join(20)

    assert (found, groups) == ([other.upper() for other in others], [1, MANY])
    assert stored() == sorted(["first", *others])


def test_one_that_cannot_be_written_harms_no_other(app, stored):
    @group_commit(key=type)
    def write(values):
        if "bad" in values:
            raise ValueError("bad")
        add(values)
        return values

    items = [f"{number:02}" for number in range(MANY)]
    found = at_once(app, write, [*items, "bad"])

    assert found[:-1] == items
    assert (repr(found[-1]), stored()) == ("ValueError('bad')", items)


@pytest.mark.parametrize(("times", "is_stored"), [(module.ATTEMPTS, True), (module.ATTEMPTS + 1, False)])
def test_what_had_to_give_way_is_tried_again_but_not_for_ever(app, stored, times, is_stored):
    left = [None] * times

    @group_commit(key=type)
    def write(values):
        add(values)
        if left:
            left.pop()
            raise OperationalError("an update", {}, Chosen())
        return values

    found = at_once(app, write, ["a"])[0]

    assert (found == "a", stored()) == (is_stored, ["a"] if is_stored else [])


def test_what_failed_after_it_was_written_is_not_written_again(app, stored):
    """Nobody knows whether a commit without an answer took place."""
    begun, everybody_waits, calls = threading.Event(), threading.Event(), []

    def fail():
        calls.append(1)
        raise ConnectionError

    @group_commit(key=type)
    def write(values):
        begun.set()
        everybody_waits.wait(20)
        add(values)
        after_commit(fail)
        return values

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(at_once, app, write, ["first"])
        begun.wait(20)
        others = threads.submit(at_once, app, write, ["a", "b", "c"])
        while write.waiting() < 3:
            threading.Event().wait(0.01)
        everybody_waits.set()
        found = first.result(20) + others.result(20)

    assert ({type(error) for error in found}, len(calls)) == ({ConnectionError}, 2)
    assert stored() == ["a", "b", "c", "first"]


def test_what_holds_some_up_does_not_hold_up_others(app, stored):
    begun, go_on = threading.Event(), threading.Event()

    @group_commit(key=len)
    def write(values):
        if "a" in values:
            begun.set()
            go_on.wait(20)
        return values

    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(at_once, app, write, ["a"])
        begun.wait(20)
        waiting = write.waiting()
        if db.engine.dialect.name != "sqlite":
            assert write("bb") == "bb"
        go_on.set()

    assert (waiting, held.result(20)) == (0, ["a"])


def test_a_database_that_cannot_be_reached_is_told_to_everybody(app, monkeypatch):
    @group_commit(key=type)
    def write(values):
        return values

    monkeypatch.setattr(module.db.session, "connection", lambda: 1 / 0)
    found = at_once(app, write, ["a", "b", "c"])

    monkeypatch.undo()
    assert {type(error) for error in found} == {ZeroDivisionError}
    assert write("d") == "d"


def written_with(short):
    """A group that takes a short way where there is one, and what came to be written in a transaction."""
    written = []

    @group_commit(type, short)
    def write(values):
        written.append(values)
        add(values)
        return [value.upper() for value in values]

    return write, written


def short_of(results):
    """A short way with what one statement may do: it adds a row, and gives this."""

    def write(values):
        add_shortly(values[0])
        return results

    return write


def add_shortly(value):
    statement = f"INSERT INTO feature_gates (feature, key, value) VALUES ('marks', 'groups', '{value}')"
    db.session.connection().exec_driver_sql(statement)


def test_what_one_statement_does_is_not_written_in_a_transaction(app, stored):
    write, written = written_with(short_of(["short"]))
    result, in_transaction = at_once(app, write, ["a"])[0], db.engine.dialect.name == "sqlite"

    assert (result, written) == (("A", [["a"]]) if in_transaction else ("short", []))
    assert stored() == ["a"]


def test_what_one_statement_does_not_do_is_written_in_a_transaction(app, stored):
    asked = []
    write, written = written_with(asked.append)

    assert at_once(app, write, ["a"]) == ["A"]
    assert (written, asked) == ([["a"]], [] if db.engine.dialect.name == "sqlite" else [["a"]])
    assert stored() == ["a"]


def test_what_one_statement_fails_to_do_is_written_in_transactions(app, stored):
    def fail(_values):
        raise OperationalError("an update", {}, Chosen())

    write, written = written_with(fail)

    assert at_once(app, write, ["a"]) == ["A"]
    assert (written, stored()) == ([["a"]], ["a"])


@pytest.mark.parametrize(
    "error",
    [
        OperationalError("an update", {}, Exception("the connection is lost"), connection_invalidated=True),
        MemoryError("while its rows were read"),
    ],
)
def test_a_statement_that_may_have_been_carried_out_is_not_sent_again(app, stored, error):
    def lose(values):
        add_shortly(values[0])
        raise error

    write, written = written_with(lose)
    [found] = at_once(app, write, ["a"])

    if db.engine.dialect.name == "postgresql":
        assert (found, written) == (error, [])
    assert stored() == ["a"]
