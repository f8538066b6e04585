"""Things that a process of its own makes, one ahead of whoever uses them."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from sqlalchemy import select

from project_service.domain.instance_settings import FeatureGate
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs.ahead import Ended, ahead

pytestmark = pytest.mark.both_databases


@pytest.fixture(autouse=True)
def _several_processors(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)


class Odd(Exception):
    """Something that goes wrong."""


def mark(value):
    with unit_of_work():
        db.session.add(FeatureGate(feature="marks", key="groups", value=value))


def marks():
    with unit_of_work(write=False):
        return sorted(db.session.scalars(select(FeatureGate.value).where(FeatureGate.feature == "marks")))


def test_things_come_in_their_order_from_another_process(app):
    with ahead((number, os.getpid()) for number in range(5)) as things:
        found = list(things)

    assert [number for number, _ in found] == [0, 1, 2, 3, 4]
    assert {pid for _, pid in found}.isdisjoint({os.getpid()})


@pytest.mark.parametrize("room", [1, 300, 5000])
def test_things_come_whole_whether_there_is_room_for_them_in_the_shared_memory_or_not(app, monkeypatch, room):
    monkeypatch.setattr("project_service.kit.jobs.ahead.PLACE", room)
    given = [bytes([number]) * (number * 400) for number in range(8)]

    with ahead(iter(given)) as things:
        assert list(things) == given


def test_a_thing_stays_as_it_is_while_the_next_ones_are_made(app):
    with ahead(bytearray([number]) * 1000 for number in range(6)) as things:
        kept = list(things)

    assert kept == [bytearray([number]) * 1000 for number in range(6)]


def test_nothing_at_all_is_no_error(app):
    with ahead(iter(())) as things:
        assert list(things) == []


def test_no_more_than_one_thing_is_made_ahead(app, tmp_path):
    def make():
        for number in range(5):
            Path(tmp_path, str(number)).touch()
            yield number

    with ahead(make()) as things:
        for number in things:
            time.sleep(0.1)
            assert len(list(tmp_path.iterdir())) <= number + 2


def test_what_is_used_up_is_seen_where_the_things_are_made(app):
    def make():
        for number in range(4):
            yield number, marks()

    with ahead(make()) as things:
        for number, seen in things:
            assert {f"mark {earlier}" for earlier in range(number - 1)} <= set(seen)
            mark(f"mark {number}")

    assert marks() == ["mark 0", "mark 1", "mark 2", "mark 3"]


def test_what_is_written_where_the_things_are_made_is_committed_there(app):
    def make():
        for number in range(3):
            mark(f"mark {number}")
            yield number

    with ahead(make()) as things:
        assert list(things) == [0, 1, 2]
    assert marks() == ["mark 0", "mark 1", "mark 2"]


def test_an_error_is_raised_behind_the_things_before_it(app):
    def make():
        yield 1
        raise Odd("broken")

    found = []
    with pytest.raises(Odd, match="broken") as raised, ahead(make()) as things:
        found += things

    assert found == [1]
    assert "in make" in raised.value.__notes__[0]


def test_an_error_that_cannot_travel_is_told_all_the_same(app):
    class Local(Exception):
        """One that no other process knows."""

    def make():
        yield 1
        raise Local("here only")

    with pytest.raises(Ended, match="here only"), ahead(make()) as things:
        list(things)


@pytest.mark.parametrize("error", [EOFError("cut short"), ConnectionResetError("far away")])
def test_an_error_is_not_taken_for_an_end(app, error):
    def make():
        yield 1
        raise error

    with pytest.raises(type(error), match=str(error)), ahead(make()) as things:
        list(things)


def test_a_thing_that_cannot_travel_is_an_error(app):
    with pytest.raises(AttributeError, match="pickle") as raised, ahead([1, lambda: 2]) as things:
        assert next(things) == 1
        next(things)
    assert "ahead.py" in raised.value.__notes__[0]


def test_few_things_are_made_where_they_are_used(app):
    with ahead((os.getpid() for _ in range(3)), are_many=False) as things:
        assert set(things) == {os.getpid()}


def test_a_single_processor_makes_and_uses_them_in_turn(app, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with ahead(os.getpid() for _ in range(3)) as things:
        assert set(things) == {os.getpid()}


def test_who_makes_the_things_and_dies_is_missed(app):
    def make():
        yield 1
        os.kill(os.getpid(), signal.SIGKILL)
        yield 2

    with pytest.raises(Ended), ahead(make()) as things:
        list(things)


@pytest.mark.parametrize("busy", [True, False])
def test_nobody_is_left_when_the_rest_is_not_wanted(app, busy):
    def make():
        yield os.getpid()
        while busy:
            time.sleep(0.01)
        yield 0

    with ahead(make()) as things:
        pid = next(things)

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
