"""Writing deliveries in the transaction of a change, and reading what waits."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, delete, exists, func, insert, select

from project_service.kit import clock, exact_json
from project_service.kit.db.session import db
from project_service.kit.deliveries.models import Delivery, DeliveryPayload

ROWS_PER_STATEMENT = 500
FAILED_RETENTION = dt.timedelta(days=14)
PAYLOAD_RETENTION = dt.timedelta(days=8)  # a day more than logs, which refer to payloads
Waiting = tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], DeliveryPayload | None]


def add_payload(body: str) -> DeliveryPayload:
    """Store a body that several deliveries share, in the current transaction."""
    return add_payloads([body])[0]


def add_payloads(bodies: Iterable[str]) -> list[DeliveryPayload]:
    """Store bodies that several deliveries share, in the current transaction and in one statement."""
    now, bodies = clock.now(), list(bodies)
    stored = insert(DeliveryPayload).returning(DeliveryPayload.id, DeliveryPayload.body)
    ids: dict[str, list[int]] = {}
    for number, body in db.session.execute(stored, [{"body": body, "created_at": now} for body in bodies]):
        ids.setdefault(body, []).append(number)  # equal bodies are interchangeable
    return [DeliveryPayload(id=ids[body].pop(), body=body, created_at=now) for body in bodies]


def enqueue(receiver: str, content: dict[str, Any], payload: DeliveryPayload | None = None) -> Delivery:
    """Write a delivery in the current transaction; it is sent after the commit."""
    delivery = Delivery(**_values(receiver, content, payload))
    db.session.add(delivery)
    db.session.flush()
    return delivery


def enqueue_all(waiting: Iterable[Waiting]) -> None:
    """Write deliveries, each a receiver and its content, in one statement for up to ``ROWS_PER_STATEMENT``."""
    rows = [_values(*delivery) for delivery in waiting]
    for start in range(0, len(rows), ROWS_PER_STATEMENT):
        db.session.execute(insert(Delivery).values(rows[start : start + ROWS_PER_STATEMENT]))


def _values(receiver: str, content: dict[str, Any], payload: DeliveryPayload | None = None) -> dict[str, Any]:
    return {
        "receiver": receiver,
        "encoded_content": exact_json.dumps(content).decode(),
        "payload_id": None if payload is None else payload.id,
        "idempotency_key": str(uuid.uuid4()),
        "created_at": clock.now(),
        "attempts": 0,
    }


def number_failed(kind: str) -> int:
    """Return how many deliveries of a kind were given up within ``FAILED_RETENTION``."""
    failed = select(func.count()).where(Delivery.failed_at.is_not(None), is_of_kind(kind))
    return db.session.scalar(failed) or 0


def is_of_kind(kind: str) -> ColumnElement[bool]:
    """Return the condition for deliveries of a kind."""
    return Delivery.receiver.startswith(f"{kind}:", autoescape=True)


def waiting_since() -> dt.datetime | None:
    """Return since when the oldest delivery waits whose first attempt has not been made."""
    return db.session.scalar(
        select(func.min(Delivery.created_at)).where(Delivery.failed_at.is_(None), Delivery.attempts == 0)
    )


def prune() -> None:
    """Delete what was given up long ago, and payloads that no delivery needs."""
    now = clock.now()
    db.session.execute(delete(Delivery).where(Delivery.failed_at < now - FAILED_RETENTION))
    is_needed = exists().where(Delivery.payload_id == DeliveryPayload.id)
    db.session.execute(
        delete(DeliveryPayload).where(DeliveryPayload.created_at < now - PAYLOAD_RETENTION, ~is_needed),
        execution_options={"synchronize_session": False},
    )
