"""The job that sends: it looks for receivers with due deliveries and gives each to a thread.

One task in the whole installation, started again by the scheduler within ``RESTART_SECONDS`` after it ended. Its lease
and fencing token (``kit.jobs``) make sure that a worker that was taken for dead writes no results.
"""

from __future__ import annotations

import contextvars
import datetime as dt
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import structlog
from flask import Flask, current_app
from sqlalchemy import Select, exists, func, or_, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import aliased

from project_service.kit import clock, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import outbox
from project_service.kit.deliveries.models import Delivery
from project_service.kit.deliveries.senders import SENDERS, SOURCES, ReceiverUnavailable
from project_service.kit.deliveries.sending import Held, ThreadShares, is_due, send_batch

THREADS = 24
MAX_SLOW_THREADS = 12  # of receivers whose last turn was slow, so that they leave threads to others
SLOW_SECONDS = 2.0
POLL_SECONDS = 0.4
RESTART_SECONDS = 5
RUN_SECONDS = 3600  # then the job ends, so that memory of a long-lived process is given back
TURN_SECONDS = 5.0  # of a receiver before its thread looks after others
RECHECK_SECONDS = 10  # a receiver that is held is asked again: it may have been enabled
FIRST_PAUSE_SECONDS = 2
MAX_PAUSE_SECONDS = 300

log = structlog.get_logger(__name__)


@jobs.periodic(every=dt.timedelta(days=1))
@jobs.job("kit.deliveries.prune_deliveries")
def prune_deliveries() -> None:
    """Delete what was given up long ago, and payloads that nothing needs."""
    outbox.prune()


@jobs.periodic(every=dt.timedelta(seconds=RESTART_SECONDS))
@jobs.job("kit.deliveries.send_deliveries", queue=jobs.DELIVERIES)
def send_deliveries() -> None:
    """Send deliveries until the lease is lost, the worker is stopped, or ``RUN_SECONDS`` have passed."""
    Dispatcher().run(RUN_SECONDS)


def send_all_due() -> None:
    """Send everything that is due in this thread, and return: for tests and commands."""
    dispatcher = Dispatcher()
    for source in SOURCES:
        while source():
            pass
    while receivers := dispatcher.ready():
        for receiver in receivers:
            dispatcher.work_on(receiver)


class Dispatcher:
    """Gives receivers to threads, never one to two at once."""

    def __init__(self) -> None:
        self._app: Flask = current_app.extensions["application"]
        self._shares = ThreadShares()
        self._lock = threading.Lock()
        self._busy: set[str] = set()
        self._held: dict[str, float] = {}  # until when on the monotonic clock
        self._pauses: dict[str, float] = {}  # seconds, of receivers that are unavailable
        self._slow: set[str] = set()
        self._turns: dict[str, float] = {}  # when the last turn began, of receivers that still have due deliveries
        self._lost = threading.Event()

    def run(self, seconds: float) -> None:
        """Send with many threads for some time.

        Raises:
            LeaseLost: another worker has claimed the task.

        """
        ends = time.monotonic() + seconds
        with ThreadPoolExecutor(THREADS + len(SOURCES), thread_name_prefix="delivery") as pool:
            for source in SOURCES:
                pool.submit(contextvars.copy_context().run, self._work_for_source, source, ends)
            try:
                self._dispatch(pool, ends)
            finally:
                self._lost.set()  # ends the threads of sources

    def _dispatch(self, pool: ThreadPoolExecutor, ends: float) -> None:
        while time.monotonic() < ends and not jobs.stop_is_requested():
            try:
                receivers = self.ready()
            except OperationalError as error:
                log.warning("database unavailable", error=str(error.orig))
                receivers = []
            for receiver in receivers:
                if not self._start(receiver):
                    continue
                pool.submit(contextvars.copy_context().run, self._work_in_thread, receiver)
            if self._lost.wait(POLL_SECONDS):
                raise jobs.LeaseLost

    def ready(self) -> list[str]:
        """Return the receivers with due deliveries that no thread works for and that are not held, in turn."""
        with unit_of_work(write=False):
            jobs.check_lease()
            receivers = list(db.session.scalars(_receivers_with_due()))
        db.session.remove()
        now = time.monotonic()
        with self._lock:
            self._held = {receiver: until for receiver, until in self._held.items() if until > now}
            self._turns = {name: self._turns[name] for name in receivers if name in self._turns}
            waiting = [name for name in receivers if name not in self._busy and name not in self._held]
            return sorted(waiting, key=lambda name: self._turns.get(name, 0.0))

    def _start(self, receiver: str) -> bool:
        """Count a thread for a receiver; false if there is none for it."""
        with self._lock:
            slow = len(self._busy & self._slow)
            if len(self._busy) >= THREADS or (receiver in self._slow and slow >= MAX_SLOW_THREADS):
                return False
            self._busy.add(receiver)
            self._turns[receiver] = time.monotonic()
            return True

    def work_on(self, receiver: str) -> None:
        """Send to one receiver for ``TURN_SECONDS`` or until nothing is due."""
        ends = time.monotonic() + TURN_SECONDS
        try:
            while (start := time.monotonic()) < ends and send_batch(receiver, self._shares):
                if jobs.stop_is_requested():
                    return
                self._pauses.pop(receiver, None)
                self._note_speed(receiver, time.monotonic() - start)
        except Held as held:
            self._hold(receiver, (held.until - clock.now()).total_seconds())
        except (ReceiverUnavailable, OperationalError) as error:
            pause = min(self._pauses.get(receiver, FIRST_PAUSE_SECONDS / 2) * 2, MAX_PAUSE_SECONDS)
            self._pauses[receiver] = pause
            log.warning("receiver unavailable", receiver=receiver, error=str(error), pause_seconds=pause)
            self._hold(receiver, pause, recheck=False)
        finally:
            db.session.remove()

    def _note_speed(self, receiver: str, seconds: float) -> None:
        with self._lock:
            (self._slow.add if seconds > SLOW_SECONDS else self._slow.discard)(receiver)

    def _hold(self, receiver: str, seconds: float, *, recheck: bool = True) -> None:
        seconds = min(seconds, RECHECK_SECONDS) if recheck else seconds
        with self._lock:
            self._held[receiver] = time.monotonic() + max(seconds, 0.05)

    def _work_for_source(self, source: Callable[[], bool], ends: float) -> None:
        """Call a source until the job ends; an error is logged, and it is called again after a pause."""
        pause = POLL_SECONDS
        while not self._lost.wait(pause) and time.monotonic() < ends:
            pause = POLL_SECONDS
            try:
                with self._app.app_context():
                    while source() and time.monotonic() < ends:
                        pass
            except jobs.LeaseLost:
                self._lost.set()
            except Exception as error:  # noqa: BLE001  # what was not done is done by the next call
                log.error("source of deliveries failed", error=str(error), traceback=traceback.format_exc())
                pause = RECHECK_SECONDS

    def _work_in_thread(self, receiver: str) -> None:
        try:
            with self._app.app_context():
                self.work_on(receiver)
        except jobs.LeaseLost:
            self._lost.set()
        except Exception as error:  # the receiver is tried again after a pause
            log.exception("thread of deliveries failed", receiver=receiver, error=str(error))
            self._hold(receiver, RECHECK_SECONDS)
        finally:
            with self._lock:
                self._busy.discard(receiver)


def _receivers_with_due() -> Select[str]:
    """Select receivers by jumping from one to the next in the index, however many deliveries each of them has."""
    first = select(func.min(Delivery.receiver).label("receiver")).where(Delivery.failed_at.is_(None))
    receivers = first.cte("receivers", recursive=True)
    following = aliased(Delivery)
    next_receiver = (
        select(func.min(following.receiver))
        .where(following.failed_at.is_(None), following.receiver > receivers.c.receiver)
        .scalar_subquery()
    )
    receivers = receivers.union_all(select(next_receiver).where(receivers.c.receiver.is_not(None)))
    has_due = exists().where(
        Delivery.failed_at.is_(None), Delivery.receiver == receivers.c.receiver, is_due(clock.now())
    )
    kinds = [receivers.c.receiver.startswith(f"{kind}:", autoescape=True) for kind in SENDERS]
    return select(receivers.c.receiver).where(receivers.c.receiver.is_not(None), or_(*kinds), has_due)
