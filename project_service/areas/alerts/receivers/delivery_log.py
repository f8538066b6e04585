"""The log of requests to receivers, written behind the requests (alert ingestion reference, section 14).

Requests add to a buffer of their process, which a thread writes at once and then at most once in ``SECONDS_BETWEEN``.
At most as many requests of an integration are buffered as the log keeps, and repeated refusals are one row with a
count, so that a flood costs next to nothing. Refusals fill at most half of buffer and log: anyone can cause them, and
they must not displace what the monitoring tool has sent. Bodies are encrypted when they are stored; headers are not
kept.
"""

from __future__ import annotations

import atexit
import datetime as dt
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from flask import Flask, current_app
from sqlalchemy import ColumnElement, Delete, bindparam, delete, func, select, update
from sqlalchemy.exc import SQLAlchemyError

from project_service.areas.alerts.models import AlertIntegration, AlertRequest, Outcome
from project_service.domain.instance_settings import setting
from project_service.kit import clock
from project_service.kit.db.base import Base
from project_service.kit.db.session import db, insert, unit_of_work

EXTENSION = "alert_delivery_log"
LOG_SIZE, LOG_DAYS = "alert_request_log_size", "alert_request_log_days"
MAX_BODY_BYTES = 64 << 10
MAX_BUFFERED_REQUESTS = 100  # of one integration
MAX_BUFFERED_REFUSALS = MAX_BUFFERED_REQUESTS // 2 - 1  # of one integration; others are counted in one row
MAX_BUFFERED_BYTES = 8 << 20  # of bodies, of all integrations
MAX_REFUSED_ADDRESSES = 10  # of one integration and reason, between two writes
MERGED_WITHIN = dt.timedelta(minutes=1)
SECONDS_BETWEEN = 1.0
REQUESTS = Base.metadata.tables[AlertRequest.__tablename__]
SEVERAL = "several"
SEVERAL_REASONS = "many requests were refused for several reasons"

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class LoggedRequest:
    """A request that is not written yet."""

    integration_id: int
    outcome: Outcome
    status: int
    reason: str | None
    address: str | None
    size: int
    body: bytes
    alert_iids: list[int]
    received_at: dt.datetime = field(default_factory=clock.now)
    count: int = 1

    @property
    def key(self) -> tuple[Any, ...]:
        """What equal refusals have in common."""
        return self.integration_id, self.status, self.reason, self.address

    def as_row(self) -> dict[str, Any]:
        """The columns to insert."""
        text = self.body[:MAX_BODY_BYTES].decode(errors="replace")
        return {
            "integration_id": self.integration_id,
            "received_at": self.received_at,
            "outcome": str(self.outcome),
            "status": self.status,
            "reason": self.reason,
            "address": self.address,
            "size": self.size,
            "count": self.count,
            "alert_iids": self.alert_iids,
            "body": text,
            "is_cut": self.size > len(self.body) or self.size > MAX_BODY_BYTES,
        }


class DeliveryLog:
    """The buffer of one process, written by a thread with ``writes_behind``, as in web servers, and by ``flush()``."""

    def __init__(self, app: Flask) -> None:
        self._app = app
        self.writes_behind = False
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._wake = threading.Event()
        self._buffers: dict[int, deque[LoggedRequest]] = {}
        self._bytes = 0
        self._thread: threading.Thread | None = None

    def add(self, request: LoggedRequest) -> None:
        """Buffer a request; an equal refusal that is buffered already counts instead."""
        with self._lock:
            buffer = self._buffers.setdefault(request.integration_id, deque(maxlen=MAX_BUFFERED_REQUESTS))
            if request.outcome == Outcome.REFUSED:
                refusals = [buffered for buffered in buffer if buffered.outcome == Outcome.REFUSED]
                if len(refusals) >= MAX_BUFFERED_REFUSALS and all(buffered.key != request.key for buffered in refusals):
                    request.reason, request.address = SEVERAL_REASONS, SEVERAL
                similar = [buffered for buffered in refusals if buffered.key[:3] == request.key[:3]]
                if len(similar) >= MAX_REFUSED_ADDRESSES:
                    request.address = SEVERAL
                if (equal := next((buffered for buffered in similar if buffered.key == request.key), None)) is not None:
                    equal.count += 1
                    return
            if self._bytes + len(request.body) > MAX_BUFFERED_BYTES:
                request.body = b""
            self._bytes += len(request.body)
            buffer.append(request)
            if self.writes_behind and self._thread is None:
                self._thread = threading.Thread(target=self._write_behind, name="alert-delivery-log", daemon=True)
                self._thread.start()
                atexit.register(self.flush)
        self._wake.set()

    def flush(self) -> None:
        """Write what is buffered."""
        with self._writing:
            with self._lock:
                buffers, self._buffers, self._bytes = self._buffers, {}, 0
            requests = [request for buffer in buffers.values() for request in buffer]
            if requests:
                with self._app.app_context(), unit_of_work():
                    _write(requests)

    def _write_behind(self) -> None:
        while True:
            self._wake.wait()
            self._wake.clear()
            try:
                self.flush()
            except SQLAlchemyError as error:
                log.warning("requests to alert receivers could not be logged", error=str(error))
            time.sleep(SECONDS_BETWEEN)


def init_app(app: Flask) -> None:
    """Give an application a log."""
    app.extensions[EXTENSION] = DeliveryLog(app)


def write_behind(app: Flask) -> None:
    """Let a thread write the log of a server, started with its first request: a server forks before that."""
    app.extensions[EXTENSION].writes_behind = True


def record(
    integration_id: int,
    outcome: Outcome,
    status: int,
    *,
    body: bytes,
    reason: str | None = None,
    address: str | None = None,
    alert_iids: list[int] | None = None,
) -> None:
    """Add a request to the log of its integration."""
    stored_body = body if len(body) <= MAX_BODY_BYTES else body[:MAX_BODY_BYTES]
    request = LoggedRequest(integration_id, outcome, status, reason, address, len(body), stored_body, alert_iids or [])
    current_app.extensions[EXTENSION].add(request)


def flush() -> None:
    """Write what this process has buffered, before the log is shown."""
    current_app.extensions[EXTENSION].flush()


def _write(requests: list[LoggedRequest]) -> None:
    ids = sorted({request.integration_id for request in requests})
    existing = set(db.session.scalars(select(AlertIntegration.id).where(AlertIntegration.id.in_(ids))))
    requests = [request for request in requests if request.integration_id in existing]
    if not requests:
        return
    new = _merged(requests)
    if new:
        db.session.execute(insert(REQUESTS), [request.as_row() for request in new])
    size = setting(LOG_SIZE)
    if any(request.outcome == Outcome.REFUSED for request in new):
        db.session.execute(
            PRUNE_REFUSED,
            [{"integration": integration_id, "newest": (size + 1) // 2} for integration_id in sorted(existing)],
        )
    db.session.execute(PRUNE, [{"integration": integration_id, "newest": size} for integration_id in sorted(existing)])


def _merged(requests: list[LoggedRequest]) -> list[LoggedRequest]:
    """Count refusals that equal one stored a moment ago there; return the requests to insert."""
    refused = {request.key: request for request in requests if request.outcome == Outcome.REFUSED}
    if not refused:
        return requests
    columns = REQUESTS.c
    recent = select(columns.id, columns.integration_id, columns.status, columns.reason, columns.address).where(
        columns.integration_id.in_(sorted({request.integration_id for request in refused.values()})),
        columns.outcome == str(Outcome.REFUSED),
        columns.received_at > clock.now() - MERGED_WITHIN,
    )
    stored = {tuple(row[1:]): row.id for row in db.session.execute(recent)}
    counted = [{"row": stored[key], "more": refusal.count} for key, refusal in refused.items() if key in stored]
    if counted:
        db.session.execute(COUNT, counted)
    return [request for request in requests if request.outcome != Outcome.REFUSED or request.key not in stored]


def prune_older_than(days: int) -> int:
    """Remove requests that are older; return their number."""
    old = delete(AlertRequest).where(AlertRequest.received_at < clock.now() - dt.timedelta(days=days))
    result: Any = db.session.execute(old)
    return int(result.rowcount)


COUNT = update(REQUESTS).where(REQUESTS.c.id == bindparam("row")).values(count=REQUESTS.c.count + bindparam("more"))
_OTHER = REQUESTS.alias()


def _prune_beyond_newest(*conditions: ColumnElement[bool], others: Iterable[ColumnElement[bool]] = ()) -> Delete:
    """Return the statement that deletes requests of an integration but the ``newest`` under the conditions."""
    oldest = (
        select(_OTHER.c.id)
        .where(_OTHER.c.integration_id == bindparam("integration"), *others)
        .order_by(_OTHER.c.id.desc())
        .limit(1)
        .offset(bindparam("newest"))
        .scalar_subquery()
    )
    return delete(REQUESTS).where(
        REQUESTS.c.integration_id == bindparam("integration"), *conditions, REQUESTS.c.id <= oldest
    )


REFUSED = str(Outcome.REFUSED)
PRUNE = _prune_beyond_newest()
PRUNE_REFUSED = _prune_beyond_newest(REQUESTS.c.outcome == REFUSED, others=[_OTHER.c.outcome == REFUSED])
refused_count = func.coalesce(func.sum(AlertRequest.count), 0)
