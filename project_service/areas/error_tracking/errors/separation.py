"""Undo a merge of errors: what the merged one had then is given back; what came since stays where it was counted."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Select, and_, delete, func, null, select, tuple_, update
from sqlalchemy.orm import joinedload, undefer

from project_service.areas.error_tracking.errors import comments
from project_service.areas.error_tracking.errors.models import (
    TARGET,
    Facet,
    MergedError,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorDigest,
    TrackedErrorEvent,
    TrackedErrorFacet,
    TrackedErrorUser,
)
from project_service.domain import todos
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import NO_LAZY_LOADING, db, insert
from project_service.kit.http.errors import Conflict, NotFound

NOT_RESTORED = ("id", "project_id", "issue_id", "assignee_id", "stored_events")
AT_FIRST = ("first_seen", "first_release", "first_release_at")
AT_LAST = ("title", "type", "message", "culprit", "level", "logger", "platform", "last_seen")
OF_LAST_RELEASE = ("last_release", "last_release_at")
ENDS_OF_TIMES = ("_at", "_seen", "_after")
MAX_LISTED = 50


def snapshot(source: TrackedError, target: TrackedError) -> dict[str, Any]:
    """Return what is needed to separate an error from the one that it is about to be merged into."""
    count, facet, user = TrackedErrorCount, TrackedErrorFacet, TrackedErrorUser
    facets = select(facet.kind, facet.value, facet.count)
    users = select(user.digest)
    source_facets = _rows(facets.where(facet.error_id == source.id))
    present_facets = {(kind, value) for kind, value, _ in _rows(facets.where(facet.error_id == target.id))}
    source_users = list(db.session.scalars(users.where(user.error_id == source.id)))
    present_users = set(db.session.scalars(users.where(user.error_id == target.id, user.digest.in_(source_users))))
    return {
        "into": target.id,
        "source": _values_of(source, _names()),
        "target": _values_of(target, (*AT_FIRST, *AT_LAST, *OF_LAST_RELEASE)),
        "issue_id": source.issue_id,
        "assignee_id": source.assignee_id,
        "merges": list(db.session.scalars(select(MergedError.id).where(MergedError.error_id == source.id))),
        "digests": list(db.session.scalars(_ids(TrackedErrorDigest.digest, TrackedErrorDigest.error_id, source.id))),
        "events": list(db.session.scalars(_ids(TrackedErrorEvent.id, TrackedErrorEvent.error_id, source.id))),
        "counts": _rows(select(count.seconds, count.start, count.count).where(count.error_id == source.id)),
        "facets": source_facets,
        "new_facets": [[kind, value] for kind, value, _ in source_facets if (kind, value) not in present_facets],
        "users": source_users,
        "new_users": [digest for digest in source_users if digest not in present_users],
    }


def merges_of(error: TrackedError) -> Select[MergedError]:
    """The errors that users merged into an error, the newest first; only the first can be separated."""
    mine = select(MergedError).where(MergedError.error_id == error.id, MergedError.undo.is_not(null()))
    loaded = joinedload(MergedError.merged_by), NO_LAZY_LOADING
    return mine.order_by(MergedError.merged_at.desc(), MergedError.id.desc()).options(*loaded)


def separate(target: TrackedError, merged_id: int) -> TrackedError:
    """Undo the newest merge of a user into an error; return the error that is there again.

    Raises:
        NotFound: no error with this id was merged into it.
        Conflict: it is not the newest merge, or the other error has been changed since by another merge.

    """
    lock_row(target)
    merges = list(db.session.scalars(merges_of(target).limit(MAX_LISTED).options(undefer(MergedError.undo))))
    merged = next((row for row in merges if row.id == merged_id), None)
    if merged is None or merged.undo is None:
        raise NotFound("Merge")
    undo = merged.undo
    if merged is not merges[0] or undo["into"] != target.id:
        raise Conflict("409 Conflict - undo the merges that came later first")
    values = _read_values(undo["source"])
    source = TrackedError(id=merged.id, project_id=target.project_id, assignee_id=undo["assignee_id"], **values)
    db.session.delete(merged)
    db.session.add(source)
    db.session.flush()
    _move_rows(source, target, undo)
    _give_back(source, target, undo)
    db.session.flush()
    return source


def _move_rows(source: TrackedError, target: TrackedError, undo: dict[str, Any]) -> None:
    digest, event, count = TrackedErrorDigest, TrackedErrorEvent, TrackedErrorCount
    mine = update(digest).where(digest.error_id == target.id, digest.digest.in_(undo["digests"]))
    _execute(mine.values(error_id=source.id))
    events = update(event).where(event.error_id == target.id, event.id.in_(undo["events"]))
    moved = db.session.scalars(events.values(error_id=source.id).returning(event.id)).all()
    source.stored_events, target.stored_events = len(moved), target.stored_events - len(moved)
    names = ("seconds", "start", "count")
    rows = [{"error_id": source.id, **dict(zip(names, row, strict=True))} for row in undo["counts"]]
    if rows:
        db.session.execute(insert(count), rows)
        former = count.__table__.alias("former")
        same = and_(former.c.error_id == source.id, former.c.seconds == count.seconds, former.c.start == count.start)
        counted = select(former.c.count).where(same).scalar_subquery()
        shared = and_(count.error_id == target.id, select(former.c.count).where(same).exists())
        _execute(update(count).where(shared).values(count=count.count - counted))
        _execute(delete(count).where(count.error_id == target.id, count.count <= 0))
    _move_facets_and_users(source, target, undo)
    comments.move_back(undo.get("notes", []), source.id)
    if "todos" in undo:
        todos.move_back(TARGET, undo["todos"], source.id)
    _execute(update(MergedError).where(MergedError.id.in_(undo["merges"])).values(error_id=source.id))


def _move_facets_and_users(source: TrackedError, target: TrackedError, undo: dict[str, Any]) -> None:
    facet, user = TrackedErrorFacet, TrackedErrorUser
    about = {"error_id": source.id, "project_id": target.project_id}
    if undo["facets"]:
        rows = [{**about, "kind": kind, "value": value, "count": sum(count)} for kind, value, *count in undo["facets"]]
        db.session.execute(insert(facet), rows)
        for row in rows:
            shared = and_(facet.error_id == target.id, facet.kind == row["kind"], facet.value == row["value"])
            _execute(update(facet).where(shared).values(count=facet.count - row["count"]))
    if undo["users"]:
        db.session.execute(insert(user), [{"error_id": source.id, "digest": digest} for digest in undo["users"]])
    names = (
        event.summary for event in db.session.scalars(_ids(TrackedErrorEvent, TrackedErrorEvent.error_id, target.id))
    )
    present = {(int(kind), summary.get(kind.name.lower())) for summary in names for kind in Facet}
    gone = [tuple(row) for row in undo["new_facets"] if tuple(row) not in present]
    _execute(delete(facet).where(facet.error_id == target.id, tuple_(facet.kind, facet.value).in_(gone)))
    _execute(delete(user).where(user.error_id == target.id, user.digest.in_(undo["new_users"])))


def _give_back(source: TrackedError, target: TrackedError, undo: dict[str, Any]) -> None:
    """Restore the numbers and names of both errors; the other one keeps what events since the merge brought."""
    former = _read_values(undo["target"])
    target.count -= source.count
    target.user_count = _number(TrackedErrorUser.error_id == target.id)
    of_kind = TrackedErrorFacet.error_id == target.id
    target.environment_count = _number(of_kind, TrackedErrorFacet.kind == int(Facet.ENVIRONMENT))
    target.release_count = _number(of_kind, TrackedErrorFacet.kind == int(Facet.RELEASE))
    names = list(AT_FIRST)
    if target.last_seen <= max(source.last_seen, former["last_seen"]):
        names += AT_LAST
    at_merge = [moment for moment in (source.last_release_at, former["last_release_at"]) if moment is not None]
    if target.last_release_at is not None and target.last_release_at <= max(at_merge):
        names += OF_LAST_RELEASE
    for name in names:
        setattr(target, name, former[name])
    if undo["issue_id"] is not None and target.issue_id == undo["issue_id"]:
        target.issue_id = None
        db.session.flush()  # an issue has at most one error
        source.issue_id = undo["issue_id"]


def _names() -> tuple[str, ...]:
    return tuple(column.key for column in TrackedError.__table__.columns if column.key not in NOT_RESTORED)


def _values_of(error: TrackedError, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(error, name) for name in names}
    return {name: value.isoformat() if isinstance(value, dt.datetime) else value for name, value in values.items()}


def _read_values(values: dict[str, Any]) -> dict[str, Any]:
    """Return stored values with their times; names of columns that end so are times."""
    return {
        name: dt.datetime.fromisoformat(value) if value is not None and name.endswith(ENDS_OF_TIMES) else value
        for name, value in values.items()
    }


def _ids(wanted: Any, owner: Any, error_id: int) -> Select[Any]:
    return select(wanted).where(owner == error_id)


def _rows(statement: Any) -> list[list[Any]]:
    return [list(row) for row in db.session.execute(statement)]


def _number(*conditions: Any) -> int:
    return db.session.scalar(select(func.count()).where(*conditions)) or 0


def _execute(statement: Any) -> None:
    db.session.execute(statement.execution_options(synchronize_session=False))
