"""Merge two errors that are one: counts, events and digests move (source maps reference, section 17)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import delete, func, select, update

from project_service.areas.error_tracking.errors import comments, separation
from project_service.areas.error_tracking.errors.models import (
    TARGET,
    ErrorStatus,
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
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db, insert
from project_service.kit.http.errors import Invalid

OF_NEWEST = ("title", "type", "message", "culprit", "level", "logger", "platform")
MAX_MERGED_ERRORS = 50  # by one request


def merge_chosen(author: User, target: TrackedError, others: Sequence[TrackedError]) -> None:
    """Merge errors that a user chose into another one; each merge can be undone.

    Raises:
        Invalid: none or too many are chosen, or two of them have an issue.

    """
    chosen = [error for error in others if error.id != target.id]
    if not chosen:
        raise Invalid(error_ids="name no other error of this project")
    if len(chosen) > MAX_MERGED_ERRORS:
        raise Invalid(error_ids=f"are too many (maximum is {MAX_MERGED_ERRORS})")
    for error in chosen:
        if not merge(target.project_id, error.id, target.id, author):
            raise Invalid(error_ids="cannot be merged: both errors have an issue. Remove the link of one first")
    db.session.expire(target)


def merge(project_id: int, from_id: int, into_id: int, author: User | None = None) -> bool:
    """Merge an error into another one, whose status stays; return whether it was done.

    Errors that both have an issue are not merged. The address of the merged error leads to the other one. What a user
    merges (``author``) can be separated again.
    """
    ids = (from_id, into_id)
    locked = select(TrackedError).where(TrackedError.id.in_(ids), TrackedError.project_id == project_id)
    locked = locked.order_by(TrackedError.id).with_for_update().execution_options(populate_existing=True)
    errors = {error.id: error for error in db.session.scalars(locked)}
    if len(errors) < len(set(ids)) or from_id == into_id:
        return False
    source, target = errors[from_id], errors[into_id]
    if source.issue_id is not None and target.issue_id is not None:
        return False
    undo = None if author is None else separation.snapshot(source, target)
    title = source.title
    _move_rows(source, target)
    note_ids = comments.move(source.id, target.id)
    moved = todos.move(TARGET, source.id, target.id)
    _take_over(source, target)
    db.session.flush()
    _execute(update(MergedError).where(MergedError.error_id == from_id).values(error_id=into_id))
    db.session.execute(delete(TrackedError).where(TrackedError.id == from_id))
    merged = MergedError(id=from_id, project_id=project_id, error_id=into_id, title=title, merged_at=clock.now())
    merged.merged_by_id = None if author is None else author.id
    if undo is not None:  # else it stays NULL, which is not the null of JSON
        merged.undo = {**undo, "notes": note_ids, "todos": moved}
    db.session.add(merged)
    db.session.flush()
    return True


def _move_rows(source: TrackedError, target: TrackedError) -> None:
    for model in (TrackedErrorDigest, TrackedErrorEvent):
        _execute(update(model).where(model.error_id == source.id).values(error_id=target.id))
    count = TrackedErrorCount
    rows = select(func.coalesce(target.id, 0), count.seconds, count.start, count.count).where(
        count.error_id == source.id
    )
    added = insert(count).from_select(["error_id", "seconds", "start", "count"], rows)
    keys = ["error_id", "seconds", "start"]
    set_ = {"count": count.count + added.excluded.count}
    db.session.execute(added.on_conflict_do_update(index_elements=keys, set_=set_))
    facet, user = TrackedErrorFacet, TrackedErrorUser
    facets = select(func.coalesce(target.id, 0), facet.kind, facet.value, facet.project_id, facet.count).where(
        facet.error_id == source.id
    )
    added = insert(facet).from_select(["error_id", "kind", "value", "project_id", "count"], facets)
    keys, set_ = ["error_id", "kind", "value"], {"count": facet.count + added.excluded.count}
    db.session.execute(added.on_conflict_do_update(index_elements=keys, set_=set_))
    users = select(func.coalesce(target.id, 0), user.digest).where(user.error_id == source.id)
    db.session.execute(insert(user).from_select(["error_id", "digest"], users).on_conflict_do_nothing())


def _take_over(source: TrackedError, target: TrackedError) -> None:
    """Add up the counters of two errors; the names are those of the one that was seen last."""
    target.count += source.count
    target.stored_events += source.stored_events
    target.user_count = _number(select(func.count()).where(TrackedErrorUser.error_id == target.id))
    of_kind = select(func.count()).where(TrackedErrorFacet.error_id == target.id)
    target.environment_count = _number(of_kind.where(TrackedErrorFacet.kind == int(Facet.ENVIRONMENT)))
    target.release_count = _number(of_kind.where(TrackedErrorFacet.kind == int(Facet.RELEASE)))
    if source.last_seen >= target.last_seen:
        for name in OF_NEWEST:
            setattr(target, name, getattr(source, name))
    is_back = target.resolved_at is not None and source.last_seen > target.resolved_at and not target.resolved_after
    if target.status == ErrorStatus.RESOLVED and source.status == ErrorStatus.UNRESOLVED and is_back:
        target.status, target.regressed_at = ErrorStatus.UNRESOLVED, clock.now()
    target.first_seen = min(source.first_seen, target.first_seen)
    target.last_seen = max(source.last_seen, target.last_seen)
    if source.first_release_at and (not target.first_release_at or source.first_release_at < target.first_release_at):
        target.first_release, target.first_release_at = source.first_release, source.first_release_at
    if source.last_release_at and (not target.last_release_at or source.last_release_at >= target.last_release_at):
        target.last_release, target.last_release_at = source.last_release, source.last_release_at
    if source.issue_id is not None:
        issue_id, source.issue_id = source.issue_id, None
        db.session.flush()  # an issue has at most one error
        target.issue_id = issue_id


def _number(statement: Any) -> int:
    return db.session.scalar(statement) or 0


def _execute(statement: Any) -> None:
    db.session.execute(statement.execution_options(synchronize_session=False))
