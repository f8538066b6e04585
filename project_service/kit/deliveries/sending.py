"""One batch of one receiver: load it, send it, settle it. Three steps, and no transaction is open on the network."""

from __future__ import annotations

import datetime as dt
import threading
import traceback
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog
from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import joinedload

from project_service.kit import clock, exact_json, jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries.models import Delivery
from project_service.kit.deliveries.senders import (
    SENDERS,
    DeliveryOutcome,
    DeliveryResult,
    Hold,
    Loaded,
    ReceiverUnavailable,
    Sender,
)

MAX_THREADS_PER_SHARE = 4
SHARE_PAUSE = dt.timedelta(seconds=0.3)
ERROR_PAUSES = tuple(dt.timedelta(minutes=2**number) for number in range(11))  # after an error of our own

log = structlog.get_logger(__name__)


class Held(Exception):
    """The receiver takes nothing before ``until``."""

    def __init__(self, until: dt.datetime):
        self.until = until


class ThreadShares:
    """Counts the threads that send for one owner, such as a project."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_use: dict[str, int] = {}

    @contextmanager
    def taken(self, share: str | None) -> Iterator[None]:
        """Occupy one thread of a share during the block.

        Raises:
            Held: all of them are in use.

        """
        if share is None:
            yield
            return
        with self._lock:
            if self._in_use.get(share, 0) >= MAX_THREADS_PER_SHARE:
                raise Held(clock.now() + SHARE_PAUSE)
            self._in_use[share] = self._in_use.get(share, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._in_use[share] -= 1
                if not self._in_use[share]:
                    del self._in_use[share]


def is_due(now: dt.datetime) -> ColumnElement[bool]:
    """Return the condition for waiting deliveries whose next attempt is due."""
    return or_(Delivery.due_at.is_(None), Delivery.due_at <= now)


def send_batch(receiver: str, shares: ThreadShares) -> bool:
    """Send the next deliveries of a receiver; false if none is due.

    Raises:
        Held: the receiver takes nothing now.
        ReceiverUnavailable: it could not be reached, and no delivery is to blame.
        LeaseLost: another worker sends by now.

    """
    sender = SENDERS[receiver.partition(":")[0]]
    if sender.merge_after is not None:
        _merge(sender, receiver, clock.now() - sender.merge_after)
    batch: Sequence[Delivery] = ()
    try:
        with unit_of_work(write=False):
            batch = _next_batch(sender, receiver)
            if not batch:
                return False
            loaded = sender.load(batch)
        db.session.remove()
        if isinstance(loaded, Hold):
            if loaded.merges:
                _merge(sender, receiver, clock.now())
            raise Held(loaded.until)
        with shares.taken(loaded.share):
            _send(sender, batch, loaded)
    except (Held, ReceiverUnavailable, jobs.LeaseLost, OperationalError):
        raise
    except Exception as error:  # noqa: BLE001  # an error with one receiver must not stop the others
        log.error("sending failed", receiver=receiver, error=str(error), traceback=traceback.format_exc())
        _postpone(sender, batch, f"{type(error).__name__}: {error}")
    return True


def _next_batch(sender: Sender, receiver: str) -> list[Delivery]:
    waiting = select(Delivery).where(Delivery.failed_at.is_(None), Delivery.receiver == receiver)
    waiting = waiting.options(joinedload(Delivery.payload)).order_by(Delivery.id)
    now = clock.now()
    if not sender.keeps_order:
        return list(db.session.scalars(waiting.where(is_due(now)).limit(sender.batch_size)))
    due: list[Delivery] = []
    for delivery in db.session.scalars(waiting.limit(sender.batch_size)):
        if delivery.due_at is not None and delivery.due_at > now:
            if not due:
                raise Held(delivery.due_at)
            break
        due.append(delivery)
    return due


def _send(sender: Sender, batch: Sequence[Delivery], loaded: Loaded) -> None:
    dropped = [delivery for delivery, message in zip(batch, loaded.messages, strict=True) if message is None]
    sendable = [
        (delivery, message) for delivery, message in zip(batch, loaded.messages, strict=True) if message is not None
    ]
    outcomes = [(delivery.id, DeliveryOutcome(DeliveryResult.DROPPED)) for delivery in dropped]
    try:
        if sendable:
            for (delivery, _), outcome in zip(
                sendable, sender.send([message for _, message in sendable]), strict=False
            ):
                outcomes.append((delivery.id, outcome))
    finally:
        if outcomes:
            with jobs.step():
                for delivery_id, outcome in outcomes:
                    _settle(sender, delivery_id, outcome)
    if not outcomes:
        raise ReceiverUnavailable("nothing was sent")


def _settle(sender: Sender, delivery_id: int, outcome: DeliveryOutcome) -> None:
    delivery = db.session.get(Delivery, delivery_id)
    if delivery is None:
        return
    delivery.attempts += 1
    delay = sender.retry_delay(delivery, outcome) if outcome.result is DeliveryResult.AGAIN else None
    next_attempt_at = None if delay is None else clock.now() + delay
    sender.settle(delivery, outcome, next_attempt_at)
    delivery.error = outcome.error
    if next_attempt_at is not None:
        delivery.due_at = next_attempt_at
    elif outcome.result in (DeliveryResult.AGAIN, DeliveryResult.FINAL) and sender.keeps_failed:
        delivery.failed_at = clock.now()
        log.warning("delivery given up", delivery=delivery.id, receiver=delivery.receiver, error=delivery.error)
    else:
        db.session.delete(delivery)


def _postpone(sender: Sender, batch: Sequence[Delivery], error: str) -> None:
    """Repeat deliveries later that raised an error here, the first of an ordered batch; give up at last."""
    with jobs.step():
        for delivery in batch[:1] if sender.keeps_order else batch:
            stored = db.session.get(Delivery, delivery.id)
            if stored is None:
                continue
            stored.attempts += 1
            stored.error = error
            if stored.attempts > len(ERROR_PAUSES):
                stored.failed_at = clock.now()
            else:
                stored.due_at = clock.now() + ERROR_PAUSES[stored.attempts - 1]


def _merge(sender: Sender, receiver: str, before: dt.datetime) -> None:
    """Replace all deliveries of a receiver from before a moment by one, in the place of the oldest."""
    late_ones = (
        select(Delivery)
        .where(Delivery.failed_at.is_(None), Delivery.receiver == receiver)
        .where(Delivery.created_at < before)
        .order_by(Delivery.id)
    )
    with unit_of_work(write=False):
        is_needed = len(list(db.session.scalars(late_ones.with_only_columns(Delivery.id).limit(2)))) > 1
    if not is_needed:
        return
    with jobs.step():
        late = list(db.session.scalars(late_ones))
        content = sender.merge(late)
        oldest = late[0]
        oldest.encoded_content = exact_json.dumps(content).decode()
        oldest.idempotency_key = str(uuid.uuid4())
        for delivery in late[1:]:
            db.session.delete(delivery)
