"""Events wait for their source maps before they are grouped (source maps reference, section 16).

An event is answered when it is stored: in ``error_waiting_events`` if there are files for its stack, which no event had
before. A job resolves the stack, then groups and counts all events that wait for it. Other events never wait.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator

import structlog
from sqlalchemy import ColumnElement, func, select, tuple_, update
from sqlalchemy.orm import undefer

from project_service.areas.error_tracking.collection import ingestion, receivers
from project_service.areas.error_tracking.collection.event_parsing import ParsedEvent
from project_service.areas.error_tracking.collection.receivers import EventReceiver
from project_service.areas.error_tracking.collection.stacks.javascript_stacks import StackKey
from project_service.areas.error_tracking.releases import arrivals
from project_service.areas.error_tracking.releases.models import MISSING, PENDING, ResolvedStack, WaitingEvent
from project_service.areas.error_tracking.source_maps import problems, resolution, stack_details
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, insert

MAX_WAITING_EVENTS = 1000  # of a project
MAX_WAIT = dt.timedelta(minutes=5)
BATCH_SIZE = 100
COLUMNS = ("occurred_at", "received_at")
NOT_IN_FIELDS = (*COLUMNS, "user", "stack")
FIELDS = tuple(field.name for field in dataclasses.fields(ParsedEvent) if field.name not in NOT_IN_FIELDS)

log = structlog.get_logger(__name__)


def receive(receiver: EventReceiver, event_id: str, event: ParsedEvent) -> None:
    """Store an event in the current unit of work: grouped, or waiting until its frames are resolved."""
    user = ingestion.user_digest(receiver, event)
    if event.stack is not None:
        result = arrivals.find_or_note(receiver.project_id, event.stack)
        if result.is_new and result.state == PENDING:
            resolve_and_group.defer(receiver.project_id, event.stack.digest)
        if result.state == PENDING and _may_wait(receiver.project_id, event):
            _add(receiver.project_id, event_id, event, user)
            return
        event = arrivals.with_frames(event, result)
    ingestion.store(receiver, event_id, event, user)


@jobs.job("error_tracking.collection.resolve_and_group")
def resolve_and_group(project_id: int, stack: str) -> None:
    """Resolve the frames of a new stack, and group the events that wait for it."""
    resolution.resolve(project_id, stack)
    mine = WaitingEvent.project_id == project_id, WaitingEvent.stack == stack
    jobs.for_each(_ids(*mine), _group)


@jobs.periodic(every=dt.timedelta(minutes=1))
@jobs.job("error_tracking.collection.group_overdue")
def group_overdue() -> None:
    """Group events that have waited too long as they were sent; they are moved if their stack is resolved later."""
    is_overdue = WaitingEvent.received_at < clock.now() - MAX_WAIT
    with jobs.step():
        stacks = select(WaitingEvent.project_id, WaitingEvent.stack).where(is_overdue).distinct()
        keys = [tuple(row) for row in db.session.execute(stacks.limit(BATCH_SIZE))]
        mine = update(ResolvedStack).where(
            tuple_(ResolvedStack.project_id, ResolvedStack.digest).in_(keys), ResolvedStack.state == PENDING
        )
        db.session.execute(mine.values(state=MISSING, problems=[problems.overdue()]))
    if keys:
        log.warning("events that waited for source maps are grouped as they were sent", stacks=len(keys))
        jobs.for_each(_ids(is_overdue), _group)


def _may_wait(project_id: int, event: ParsedEvent) -> bool:
    """Whether the frames decide the error of an event, and not too many events of the project wait."""
    if not stack_details.decide_group(event.details):
        return False
    some = select(WaitingEvent.id).where(WaitingEvent.project_id == project_id).limit(MAX_WAITING_EVENTS)
    return (db.session.scalar(select(func.count()).select_from(some.subquery())) or 0) < MAX_WAITING_EVENTS


def _add(project_id: int, event_id: str, event: ParsedEvent, user: str | None) -> None:
    row = insert(WaitingEvent).values(
        project_id=project_id,
        event_id=event_id,
        stack=None if event.stack is None else event.stack.digest,
        user_digest=user,
        fields={name: getattr(event, name) for name in FIELDS},
        **{name: getattr(event, name) for name in COLUMNS},
    )
    db.session.execute(row.on_conflict_do_nothing())  # the same event is not counted twice


def _ids(*conditions: ColumnElement[bool]) -> Iterator[int]:
    """Return the ids of waiting events in the order of their arrival."""
    last_id = 0
    while True:
        with jobs.step():
            mine = select(WaitingEvent.id).where(*conditions, WaitingEvent.id > last_id)
            ids = list(db.session.scalars(mine.order_by(WaitingEvent.id).limit(BATCH_SIZE)))
        yield from ids
        if len(ids) < BATCH_SIZE:
            return
        last_id = ids[-1]


def _group(waiting_id: int) -> None:
    """Group and count an event with what is known of its stack now."""
    with jobs.step():
        mine = select(WaitingEvent).where(WaitingEvent.id == waiting_id).options(undefer(WaitingEvent.fields))
        row = db.session.scalar(mine.with_for_update(skip_locked=True))
        if row is None:
            return  # another job groups it
        event = _event_of(row)
        result = arrivals.find_result(row.project_id, row.stack)
        receiver = receivers.settings_of_project(row.project_id)
        db.session.delete(row)
        db.session.flush()
        event = event if result is None else arrivals.with_frames(event, result)
        ingestion.store(receiver, row.event_id, event, row.user_digest)


def _event_of(row: WaitingEvent) -> ParsedEvent:
    fields = row.fields
    debug_ids = fields["details"].get("debug_ids", {})
    stack = StackKey(row.stack, debug_ids, fields["release"], fields["summary"]["dist"])
    times = {name: getattr(row, name) for name in COLUMNS}
    return ParsedEvent(**fields, **times, user=None, stack=stack)
