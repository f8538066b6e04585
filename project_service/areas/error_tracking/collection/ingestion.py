"""Ingestion of events: one transaction stores an event and counts it (error collection reference, sections 11 to 15).

A primary key ensures that a digest has one error: a request that loses a race adds its event to the error that the
other one created. Counters are incremented in the database. Rows are locked in one order everywhere: error, event,
counters. Another order could deadlock with the removal of the error, which locks the error and then its events.
"""

from __future__ import annotations

import datetime as dt
import functools
import hmac
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Exists, bindparam, case, delete, exists, func, or_, select, update

from project_service.areas.error_tracking.collection import follow_ups, ignoring
from project_service.areas.error_tracking.collection.event_parsing import ParsedEvent
from project_service.areas.error_tracking.collection.receivers import EventReceiver
from project_service.areas.error_tracking.errors import comments
from project_service.areas.error_tracking.errors.models import (
    DAY_SECONDS,
    HOUR_SECONDS,
    DroppedEventCount,
    ErrorStatus,
    Facet,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorDigest,
    TrackedErrorEvent,
    TrackedErrorFacet,
    TrackedErrorUser,
)
from project_service.areas.error_tracking.releases import service as releases
from project_service.areas.error_tracking.releases.models import ErrorRelease
from project_service.kit.db.base import Base, Timestamp
from project_service.kit.db.session import db, insert

MAX_USERS_PER_ERROR = 10_000
MAX_FACETS_PER_ERROR = 200
PRUNE_BATCH = 50
MAX_ATTEMPTS = 5
IGNORED = "ignored_by_a_rule"

# Core tables and the session's connection: the ORM takes twice the time for what every event reads and writes.
ERRORS, EVENTS, COUNTS, DIGESTS, FACETS, USERS, RELEASES = (
    Base.metadata.tables[model.__tablename__]
    for model in (
        TrackedError,
        TrackedErrorEvent,
        TrackedErrorCount,
        TrackedErrorDigest,
        TrackedErrorFacet,
        TrackedErrorUser,
        ErrorRelease,
    )
)
E = ERRORS.c


@dataclass(frozen=True, slots=True)
class KnownError:
    """The error of a digest, and which of its rows there are for an event."""

    id: int
    has_environment: bool
    has_release: bool
    has_user: bool


@dataclass(frozen=True, slots=True)
class StoredOccurrence:
    """The error as it is after an event was added to it."""

    user_count: int
    environment_count: int
    release_count: int
    stored_events: int
    regressed: bool


def store(receiver: EventReceiver, event_id: str, event: ParsedEvent, user: str | None) -> None:
    """Store an event in the current unit of work; one whose id is stored already is not counted again.

    ``user`` is the digest of the user whom it affected. An event that a rule of the project ignores is only counted at
    the rule.
    """
    if receiver.has_ignore_rules and ignoring.is_ignored(receiver.project_id, event):
        count_dropped(receiver.project_id, event.received_at, IGNORED)
        return
    error, is_new = _find_or_create(receiver.project_id, event, user)
    if not _insert_event(receiver.project_id, error.id, event_id, event):
        if is_new:
            db.session.execute(delete(TrackedError).where(TrackedError.id == error.id))
        return
    stored = _count(error.id, event)
    _add_facets(receiver.project_id, error, stored, event)
    if user is not None and not error.has_user and stored.user_count < MAX_USERS_PER_ERROR:
        _add_user(error.id, user)
    if stored.stored_events >= receiver.events_per_error + PRUNE_BATCH:
        prune_events(error.id, receiver.events_per_error)
    if is_new:
        prune_errors(receiver.project_id, receiver.errors_per_project, except_id=error.id)
    if is_new or stored.regressed:
        follow_ups.follow_up(error.id, environment=event.environment, regressed=stored.regressed)


def user_digest(receiver: EventReceiver, event: ParsedEvent) -> str | None:
    """Return the keyed digest of the user whom an event affected."""
    if event.user is None or (key := receiver.user_digest_key) is None:
        return None
    kind, value = event.user
    return hmac.digest(key.encode(), f"{kind}:{value}".encode(), "sha256").hex()


def count_dropped(project_id: int, moment: dt.datetime, reason: str, quantity: int = 1) -> None:
    """Add to the events that were not stored, in the current unit of work."""
    start = period_start(moment, HOUR_SECONDS)
    row = insert(DroppedEventCount).values(project_id=project_id, start=start, reason=reason, count=quantity)
    db.session.execute(
        row.on_conflict_do_update(
            index_elements=["project_id", "start", "reason"],
            set_={"count": DroppedEventCount.count + row.excluded.count},
        )
    )


def period_start(moment: dt.datetime, seconds: int) -> int:
    """Return the epoch of the beginning of an hour or day."""
    return int(moment.timestamp()) // seconds * seconds


def prune_events(error_id: int, keep: int) -> int:
    """Remove stored events of an error except the first and the newest, ``keep`` in all; return how many went."""
    of_error = TrackedErrorEvent.error_id == error_id
    in_order = (TrackedErrorEvent.occurred_at, TrackedErrorEvent.id)
    first = select(TrackedErrorEvent.id).where(of_error).order_by(*in_order).limit(1).scalar_subquery()
    newest = (
        select(TrackedErrorEvent.id)
        .where(of_error)
        .order_by(*(column.desc() for column in in_order))
        .limit(max(keep - 1, 1))
    )
    gone = delete(TrackedErrorEvent).where(of_error, TrackedErrorEvent.id != first, TrackedErrorEvent.id.not_in(newest))
    removed = len(db.session.scalars(gone.returning(TrackedErrorEvent.id)).all())
    db.session.execute(
        update(TrackedError)
        .where(TrackedError.id == error_id)
        .values(stored_events=TrackedError.stored_events - removed)
        .execution_options(synchronize_session=False)
    )
    return removed


def prune_errors(project_id: int, keep: int, except_id: int) -> None:
    """Remove the errors beyond the limit of a project: resolved and ignored first, those seen longest ago first.

    The error that was just created (``except_id``) stays, however old its event is: what was accepted is stored.
    """
    batch = select(TrackedError.id).where(TrackedError.project_id == project_id)
    excess = (db.session.scalar(select(func.count()).select_from(batch.subquery())) or 0) - keep
    if excess <= 0:
        return
    is_open = case((TrackedError.status == ErrorStatus.UNRESOLVED, 1), else_=0)
    oldest = (
        batch.where(TrackedError.issue_id.is_(None), TrackedError.id != except_id)
        .order_by(is_open, TrackedError.last_seen, TrackedError.id)
        .limit(min(excess, PRUNE_BATCH))
    )
    # those that others change at the moment are left to the next event of a new error
    ids = list(db.session.scalars(oldest.with_for_update(skip_locked=True)))
    comments.forget(ids)
    db.session.execute(
        delete(TrackedError).where(TrackedError.id.in_(ids)).execution_options(synchronize_session=False)
    )


def _find_or_create(project_id: int, event: ParsedEvent, user: str | None) -> tuple[KnownError, bool]:
    """Return the error of an event, and whether it was created for it."""
    for _ in range(MAX_ATTEMPTS):
        if (error := _find(project_id, event, user)) is not None:
            return error, False
        if (created := _create(project_id, event)) is not None:
            return created, True
        # another request has created the error a moment ago
    raise RuntimeError("the error of a digest is created and removed again and again")


def _find(project_id: int, event: ParsedEvent, user: str | None) -> KnownError | None:
    row = (
        db.session.connection()
        .execute(
            _find_statement(db.engine.dialect.name),
            {
                "project": project_id,
                "digest": event.digest,
                "environment": event.environment,
                "release": event.release or "",
                "user": user or "",
            },
        )
        .first()
    )
    return None if row is None else KnownError(row[0], bool(row[1]), bool(row[2]), bool(row[3]))


def _create(project_id: int, event: ParsedEvent) -> KnownError | None:
    """Create the error of a digest; ``None`` if another request was first."""
    values = {name: getattr(event, name) for name in ("title", "type", "message", "culprit", "level")}
    values |= {"logger": event.logger, "platform": event.platform, "project_id": project_id}
    row = insert(TrackedError).values(
        **values,
        status=int(ErrorStatus.UNRESOLVED),
        **dict.fromkeys(("count", "user_count", "environment_count", "release_count", "stored_events"), 0),
        first_seen=event.occurred_at,
        last_seen=event.occurred_at,
        created_at=event.received_at,
    )
    error_id = db.session.scalars(row.returning(TrackedError.id)).one()
    digest = insert(TrackedErrorDigest).values(project_id=project_id, digest=event.digest, error_id=error_id)
    created = digest.on_conflict_do_nothing().returning(TrackedErrorDigest.error_id)
    if db.session.scalar(created) is None:
        db.session.execute(delete(TrackedError).where(TrackedError.id == error_id))
        return None
    return KnownError(error_id, has_environment=False, has_release=False, has_user=False)


def _insert_event(project_id: int, error_id: int, event_id: str, event: ParsedEvent) -> bool:
    """Insert the row of an event; false if its id is stored already."""
    values = {
        "project_id": project_id,
        "error_id": error_id,
        "event_id": event_id,
        "occurred_at": event.occurred_at,
        "received_at": event.received_at,
        "stack": None if event.stack is None else event.stack.digest,
        "summary": event.summary,
        "details": event.details,
    }
    statement = _insert_event_statement(db.engine.dialect.name)
    return db.session.connection().execute(statement, values).first() is not None


def _count(error_id: int, event: ParsedEvent) -> StoredOccurrence:
    """Add an occurrence to an error and to its hour and day."""
    values = {
        "error": error_id,
        "occurred": event.occurred_at,
        "received": event.received_at,
        "new_release": event.release,
        **{f"new_{name}": getattr(event, name) for name in OF_NEWEST},
    }
    connection = db.session.connection()
    row = connection.execute(COUNT, values).one()
    periods = [
        {"error_id": error_id, "seconds": seconds, "start": period_start(event.occurred_at, seconds), "count": 1}
        for seconds in (HOUR_SECONDS, DAY_SECONDS)
    ]
    connection.execute(_count_periods_statement(db.engine.dialect.name), periods)
    return StoredOccurrence(
        user_count=row.user_count,
        environment_count=row.environment_count,
        release_count=row.release_count,
        stored_events=row.stored_events,
        regressed=row.regressed_at == event.received_at,
    )


def _add_facets(project_id: int, known: KnownError, stored: StoredOccurrence, event: ParsedEvent) -> None:
    rows: list[tuple[Facet, str]] = []
    if not known.has_environment and stored.environment_count < MAX_FACETS_PER_ERROR:
        rows.append((Facet.ENVIRONMENT, event.environment))
    if event.release and known.has_release:
        db.session.connection().execute(COUNT_RELEASE, {"error": known.id, "release": event.release})
    elif event.release and stored.release_count < MAX_FACETS_PER_ERROR:
        rows.append((Facet.RELEASE, event.release))
    for kind, value in rows:
        facet = {"project_id": project_id, "error_id": known.id, "kind": int(kind), "value": value, "count": 1}
        row = insert(TrackedErrorFacet).values(facet)
        added = row.on_conflict_do_nothing().returning(TrackedErrorFacet.error_id)
        if db.session.scalar(added) is not None:
            counter = TrackedError.environment_count if kind is Facet.ENVIRONMENT else TrackedError.release_count
            _increase(known.id, counter)
            if kind is Facet.RELEASE:
                releases.ensure_release(project_id, value)


def _add_user(error_id: int, digest: str) -> None:
    row = insert(TrackedErrorUser).values(error_id=error_id, digest=digest)
    added = row.on_conflict_do_nothing().returning(TrackedErrorUser.error_id)
    if db.session.scalar(added) is not None:
        _increase(error_id, TrackedError.user_count)


def _increase(error_id: int, counter: Any) -> None:
    statement = update(TrackedError).where(TrackedError.id == error_id).values({counter: counter + 1})
    db.session.execute(statement.execution_options(synchronize_session=False))


def _find_statement(dialect: str) -> Any:
    return FIND_AND_LOCK if dialect == "postgresql" else FIND


@functools.cache
def _insert_event_statement(_dialect: str) -> Any:
    return insert(EVENTS).on_conflict_do_nothing().returning(EVENTS.c.id)


@functools.cache
def _count_periods_statement(_dialect: str) -> Any:
    row = insert(COUNTS)
    return row.on_conflict_do_update(
        index_elements=["error_id", "seconds", "start"],
        set_={"count": COUNTS.c.count + row.excluded.count},
    )


def _facet_exists(kind: Facet, name: str) -> Exists:
    facet = FACETS.c
    conditions = (facet.error_id == DIGESTS.c.error_id, facet.kind == int(kind), facet.value == bindparam(name))
    return exists().where(*conditions)


# Statements of every event are built once.
FIND = select(
    DIGESTS.c.error_id,
    _facet_exists(Facet.ENVIRONMENT, "environment"),
    _facet_exists(Facet.RELEASE, "release"),
    exists().where(USERS.c.error_id == DIGESTS.c.error_id, USERS.c.digest == bindparam("user")),
).where(DIGESTS.c.project_id == bindparam("project"), DIGESTS.c.digest == bindparam("digest"))
FIND_AND_LOCK = FIND.join(ERRORS, ERRORS.c.id == DIGESTS.c.error_id).with_for_update(of=ERRORS, key_share=True)
COUNT_RELEASE = (
    update(FACETS)
    .where(FACETS.c.error_id == bindparam("error"), FACETS.c.kind == int(Facet.RELEASE))
    .where(FACETS.c.value == bindparam("release"))
    .values(count=FACETS.c.count + 1)
)
OF_NEWEST = ("title", "type", "message", "culprit", "level", "logger", "platform")
_occurred = bindparam("occurred", type_=Timestamp())
_release = bindparam("new_release", type_=E.last_release.type)
_is_newest = _occurred >= E.last_seen
_is_older_release = exists().where(
    RELEASES.c.project_id == E.project_id, RELEASES.c.version == _release, RELEASES.c.created_at <= E.resolved_after
)
# a release that is not known yet is newer than all others
_is_newer_release = case((E.resolved_after.is_(None), True), else_=_release.is_not(None) & ~_is_older_release)
_is_back = (E.status == int(ErrorStatus.RESOLVED)) & (_occurred > E.resolved_at) & _is_newer_release
_has_first_release = _release.is_not(None) & or_(E.first_release_at.is_(None), _occurred < E.first_release_at)
_has_last_release = _release.is_not(None) & or_(E.last_release_at.is_(None), _occurred >= E.last_release_at)
COUNT = (
    update(ERRORS)
    .where(E.id == bindparam("error"))
    .values(
        count=E.count + 1,
        stored_events=E.stored_events + 1,
        first_seen=case((_occurred < E.first_seen, _occurred), else_=E.first_seen),
        last_seen=case((_is_newest, _occurred), else_=E.last_seen),
        **{name: case((_is_newest, bindparam(f"new_{name}", type_=E[name].type)), else_=E[name]) for name in OF_NEWEST},
        first_release=case((_has_first_release, _release), else_=E.first_release),
        first_release_at=case((_has_first_release, _occurred), else_=E.first_release_at),
        last_release=case((_has_last_release, _release), else_=E.last_release),
        last_release_at=case((_has_last_release, _occurred), else_=E.last_release_at),
        status=case((_is_back, int(ErrorStatus.UNRESOLVED)), else_=E.status),
        regressed_at=case((_is_back, bindparam("received", type_=Timestamp())), else_=E.regressed_at),
    )
    .returning(E.user_count, E.environment_count, E.release_count, E.stored_events, E.regressed_at)
)
