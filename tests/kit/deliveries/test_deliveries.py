"""The delivery engine, with a sender of the tests' own."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
import time

import pytest
from sqlalchemy import select

from project_service.kit import clock, deliveries, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import (
    Delivery,
    DeliveryOutcome,
    DeliveryResult,
    Hold,
    Loaded,
    ReceiverUnavailable,
    dispatching,
    senders,
)
from project_service.kit.deliveries.dispatching import Dispatcher
from project_service.kit.jobs import stopping


class Recorder(deliveries.Sender):
    """Records what is sent; answers by text."""

    kind = "test"

    def __init__(self, *, keeps_order=False, merge_after=None):
        self.keeps_order, self.merge_after = keeps_order, merge_after
        self.sent, self.keys, self.settled, self.results, self.gone, self.hold = [], [], [], {}, set(), None
        self.lock, self.shares = threading.Lock(), {}

    def load(self, batch):
        if self.hold:
            return self.hold
        [delivery] = batch
        message = (delivery.receiver_id, delivery.content["text"], delivery.idempotency_key)
        return Loaded([None if delivery.receiver_id in self.gone else message], self.shares.get(delivery.receiver_id))

    def send(self, messages):
        for receiver_id, text, key in messages:
            result = self.results.get(text, DeliveryResult.DELIVERED)
            if callable(result):
                result = result()
            with self.lock:
                self.sent.append((receiver_id, text))
                self.keys.append(key)
            yield DeliveryOutcome(result, None if result is DeliveryResult.DELIVERED else "because")

    def settle(self, delivery, outcome, next_attempt_at):
        self.settled.append((delivery.content["text"], outcome.result, next_attempt_at is not None))

    def retry_delay(self, delivery, outcome):
        return deliveries.backoff([dt.timedelta(seconds=10)] * 2, delivery, outcome, dt.timedelta(hours=1))

    def merge(self, late):
        return {"text": "+".join(delivery.content["text"] for delivery in late)}


@pytest.fixture
def recorder(app, monkeypatch):
    def register(**options):
        sender = Recorder(**options)
        monkeypatch.setitem(senders.SENDERS, "test", sender)
        return sender

    return register


@pytest.fixture
def later(monkeypatch):
    real, passed = clock.now, [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])

    def move(**time):
        passed[0] += dt.timedelta(**time)

    return move


def enqueue(*texts, receiver=1):
    with unit_of_work():
        deliveries.enqueue_all((f"test:{receiver}", {"text": text}) for text in texts)


def waiting():
    db.session.remove()
    return [row.content["text"] for row in db.session.scalars(select(Delivery).order_by(Delivery.id))]


@pytest.mark.both_databases
def test_deliveries_of_a_receiver_are_sent_in_order_and_deleted(recorder):
    sender = recorder()
    enqueue("a", "b")
    enqueue("c", receiver=2)
    enqueue("d")

    deliveries.send_all_due()

    assert [text for receiver, text in sender.sent if receiver == 1] == ["a", "b", "d"]
    assert (len(sender.sent), waiting()) == (4, [])


def test_a_rolled_back_change_sends_nothing(recorder):
    sender = recorder()
    with pytest.raises(LookupError), unit_of_work():
        deliveries.enqueue("test:1", {"text": "a"})
        raise LookupError

    deliveries.send_all_due()

    assert sender.sent == []


@pytest.mark.parametrize(("keeps_order", "sent"), [(True, ["a"]), (False, ["a", "b"])])
def test_an_ordered_receiver_waits_for_a_retry_and_another_does_not(keeps_order, sent, recorder):
    sender = recorder(keeps_order=keeps_order)
    sender.results["a"] = DeliveryResult.AGAIN
    enqueue("a", "b")

    deliveries.send_all_due()

    assert [text for _, text in sender.sent] == sent


def test_a_retry_has_the_same_key_and_is_given_up_at_last(recorder, later):
    sender = recorder()
    sender.results["a"] = DeliveryResult.AGAIN
    enqueue("a")

    for _ in range(4):
        deliveries.send_all_due()
        later(seconds=11)

    assert (len(sender.sent), len(set(sender.keys)), waiting()) == (3, 1, [])
    assert [is_repeated for *_, is_repeated in sender.settled] == [True, True, False]


def test_a_deleted_receiver_gets_nothing(recorder):
    sender = recorder()
    sender.gone.add(1)
    enqueue("a")

    deliveries.send_all_due()

    assert (sender.sent, waiting()) == ([], [])


def test_what_is_held_waits(recorder):
    sender = recorder()
    sender.hold = Hold(clock.now() + dt.timedelta(minutes=1))
    enqueue("a")

    deliveries.send_all_due()
    assert (sender.sent, waiting()) == ([], ["a"])

    sender.hold = None
    deliveries.send_all_due()
    assert sender.sent == [(1, "a")]


def test_an_unavailable_receiver_costs_no_attempt(recorder):
    sender = recorder()

    def refuse():
        raise ReceiverUnavailable("away")

    sender.results["a"] = refuse
    enqueue("a")

    deliveries.send_all_due()

    assert (waiting(), list(db.session.scalars(select(Delivery.attempts)))) == (["a"], [0])


def test_an_error_of_a_sender_postpones_one_delivery_only(recorder):
    sender = recorder()
    sender.results["a"] = lambda: 1 / 0
    enqueue("a", "b")

    deliveries.send_all_due()

    assert (sender.sent, waiting()) == ([(1, "b")], ["a"])


def test_late_deliveries_are_merged_into_one(recorder, later):
    sender = recorder(keeps_order=True, merge_after=dt.timedelta(minutes=10))
    enqueue("a", "b", "c")
    later(minutes=11)
    enqueue("d")

    deliveries.send_all_due()

    assert [text for _, text in sender.sent] == ["a+b+c", "d"]


def test_receivers_that_hang_delay_no_others(recorder):
    sender, released = recorder(), threading.Event()
    sender.results["slow"] = lambda: DeliveryResult.DELIVERED if released.wait(20) else DeliveryResult.AGAIN
    for receiver in range(10):
        enqueue("slow", receiver=receiver)
    enqueue(*map(str, range(20)), receiver=20)
    dispatcher = threading.Thread(target=_run, args=(deliveries_app(), 3))

    dispatcher.start()
    ends = time.monotonic() + 20
    while len(sender.sent) < 20 and time.monotonic() < ends:
        time.sleep(0.02)
    in_time = list(sender.sent)
    released.set()
    dispatcher.join()

    assert in_time == [(20, str(number)) for number in range(20)]
    assert (len(sender.sent), waiting()) == (30, [])


def test_receivers_that_were_slow_leave_threads_to_others(recorder, monkeypatch):
    monkeypatch.setattr(dispatching, "SLOW_SECONDS", 0.1)
    monkeypatch.setattr(dispatching, "TURN_SECONDS", 0.1)
    sender, others_are_sent = recorder(), threading.Event()
    sender.results["slow"] = lambda: time.sleep(0.2) or DeliveryResult.DELIVERED
    sender.results["hangs"] = lambda: (others_are_sent.wait(2) and DeliveryResult.DELIVERED) or DeliveryResult.AGAIN
    sender.results["fast"] = lambda: others_are_sent.set() or DeliveryResult.DELIVERED
    for receiver in range(10, 10 + dispatching.THREADS):
        enqueue("slow", "hangs", receiver=receiver)
    enqueue("fast", receiver=99)

    Dispatcher().run(1.5)

    assert others_are_sent.is_set()


def test_a_worker_that_was_taken_for_dead_records_nothing(recorder):
    sender = recorder()
    task_id = _task()
    lease = jobs.claim(task_id)

    def lose():
        with unit_of_work():
            db.session.get(jobs.Task, task_id).fence += 1
        return DeliveryResult.DELIVERED

    sender.results["a"] = lose
    enqueue("a")

    with pytest.raises(jobs.LeaseLost), jobs.leases.renewed(lease):
        deliveries.send_all_due()

    assert (sender.sent, waiting()) == ([(1, "a")], ["a"])


def _task():
    with unit_of_work():
        return deliveries.send_deliveries.defer().id


def deliveries_app():
    from flask import current_app

    return current_app.extensions["application"]


def _run(app, seconds):
    with app.app_context():
        Dispatcher().run(seconds)


def test_the_job_ends_when_its_worker_is_stopped(app, recorder):
    former = signal.getsignal(stopping.SIGNAL)
    stopping.handle_signal()
    try:
        os.kill(os.getpid(), stopping.SIGNAL)
        started = time.monotonic()
        Dispatcher().run(30)
    finally:
        stopping.handle_signal()
        signal.signal(stopping.SIGNAL, former)

    assert time.monotonic() - started < 5
