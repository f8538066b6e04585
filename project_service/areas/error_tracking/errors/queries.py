"""Queries of the errors and events that this server stores."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, func, or_, select
from sqlalchemy.orm import joinedload, undefer

from project_service.areas.error_tracking.errors.models import (
    ErrorStatus,
    Facet,
    MergedError,
    TrackedError,
    TrackedErrorCount,
    TrackedErrorEvent,
    TrackedErrorFacet,
)
from project_service.areas.error_tracking.errors.views import LAST_DAY, ErrorView, Frequency, Period
from project_service.areas.error_tracking.releases.models import WaitingEvent
from project_service.domain.access_levels import Role
from project_service.domain.memberships import MAX_CHOICES, active_members_for_choice, choice_in
from project_service.domain.projects import Project
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

MAX_ENVIRONMENTS = 50
MAX_RELEASES = 200
MAX_NUMBERED_ERRORS = 100
LATEST, OLDEST = "latest", "oldest"
ORDERS = {"last_seen": TrackedError.last_seen, "first_seen": TrackedError.first_seen, "count": TrackedError.count}


def errors_of(project: Project) -> Select[TrackedError]:
    """The errors of a project, without an order."""
    loaded = joinedload(TrackedError.issue), joinedload(TrackedError.project), joinedload(TrackedError.assignee)
    return select(TrackedError).where(TrackedError.project_id == project.id).options(*loaded, NO_LAZY_LOADING)


def errors_matching(project: Project, **wanted: Any) -> Select[TrackedError]:
    """Select the errors of a project, filtered and ordered; filters that are absent or ``None`` do not count.

    ``status`` are names, ``search`` is a part of title, message or culprit, ``since`` a moment after which it was seen.
    """
    statement = errors_of(project).where(*_conditions(project, wanted))
    column = ORDERS[wanted.get("order_by") or "last_seen"]
    order = (column, TrackedError.id)
    is_ascending = wanted.get("sort") == "asc"
    return statement.order_by(*(column.asc() if is_ascending else column.desc() for column in order))


def find_error(project: Project, error_id: str) -> TrackedError:
    """One error of a project, also by the id of one that was merged into it; raises ``NotFound``."""
    number = whole_number(error_id)
    error = None
    if number is not None:
        error = db.session.scalar(errors_of(project).where(TrackedError.id == number))
    if number is not None and error is None:
        merged = select(MergedError.error_id).where(MergedError.id == number, MergedError.project_id == project.id)
        error = db.session.scalar(errors_of(project).where(TrackedError.id.in_(merged)))
    if error is None:
        raise NotFound("Error")
    return error


def errors_numbered(project: Project, ids: Sequence[str]) -> list[TrackedError]:
    """Return the errors of a project with these ids, at most one hundred; unknown ones are left out."""
    numbers = [number for text in ids[:MAX_NUMBERED_ERRORS] if (number := whole_number(text)) is not None]
    errors = errors_of(project).where(TrackedError.id.in_(numbers)).order_by(TrackedError.id)
    return list(db.session.scalars(errors))


def assignable_users(project: Project, most: int = MAX_CHOICES) -> Sequence[Row[int, str, str]]:
    """The people to whom errors of a project can be assigned: id, name and username."""
    return db.session.execute(active_members_for_choice(), choice_in(project, Role.DEVELOPER, most)).all()


def waiting_events(project: Project) -> int:
    """Return how many accepted events wait for their source maps before they are grouped."""
    mine = select(func.count()).select_from(WaitingEvent).where(WaitingEvent.project_id == project.id)
    return db.session.scalar(mine) or 0


def has_errors(project: Project) -> bool:
    """Whether any error of the project is stored."""
    some = select(TrackedError.id).where(TrackedError.project_id == project.id).limit(1)
    return db.session.scalar(some) is not None


def views_of(errors: Sequence[TrackedError], period: Period = LAST_DAY) -> list[ErrorView]:
    """Return errors as they are shown, with their occurrences in a period."""
    ids = [error.id for error in errors]
    counted = counts_of(ids, period)
    environments = _environments_of(ids)
    return [
        ErrorView(
            id=str(error.id),
            project=error.project,
            title=error.title,
            type=error.type,
            message=error.message,
            culprit=error.culprit,
            level=error.level,
            logger=error.logger,
            platform=error.platform,
            status=ErrorStatus(error.status).text,
            count=error.count,
            user_count=error.user_count,
            first_seen=error.first_seen,
            last_seen=error.last_seen,
            frequency=period.frequency(counted.get(error.id, {})),
            first_release=error.first_release,
            last_release=error.last_release,
            environments=environments.get(error.id, []),
            resolved_at=error.resolved_at,
            regressed_at=error.regressed_at,
            resolved_in_next_release=error.status == ErrorStatus.RESOLVED and error.resolved_after is not None,
            issue=error.issue,
            assignee=error.assignee,
            integrated=True,
        )
        for error in errors
    ]


def counts_of(error_ids: Collection[int], period: Period) -> dict[int, dict[int, int]]:
    """Return the occurrences of errors in a period, by the beginning of each hour or day."""
    count = TrackedErrorCount
    rows = db.session.execute(
        select(count.error_id, count.start, count.count).where(
            count.error_id.in_(error_ids), count.seconds == period.seconds, count.start >= period.starts[0]
        )
    )
    counts: dict[int, dict[int, int]] = {}
    for error_id, start, number in rows:
        counts.setdefault(error_id, {})[start] = number
    return counts


def frequency_of(error_id: int, period: Period) -> Frequency:
    """Return the occurrences of an error in a period."""
    return period.frequency(counts_of([error_id], period).get(error_id, {}))


def environments_in(project: Project) -> list[str]:
    """Return the names of the environments in which errors of a project occurred, at most ``MAX_ENVIRONMENTS``."""
    facet = TrackedErrorFacet
    mine = (facet.project_id == project.id, facet.kind == int(Facet.ENVIRONMENT))
    # each step jumps to the next name in the index: an error after the other would take as long as there are errors
    first = select(func.min(facet.value).label("value"), func.coalesce(1, 0).label("number")).where(*mine)
    names = first.cte("names", recursive=True)
    following = select(func.min(facet.value)).where(*mine, facet.value > names.c.value).scalar_subquery()
    names = names.union_all(
        select(following, names.c.number + 1).where(names.c.value.is_not(None), names.c.number < MAX_ENVIRONMENTS)
    )
    return list(db.session.scalars(select(names.c.value).where(names.c.value.is_not(None))))


def releases_of(error: TrackedError) -> list[str]:
    """Return the releases in which an error occurred, by name."""
    facet = TrackedErrorFacet
    mine = select(facet.value).where(facet.error_id == error.id, facet.kind == int(Facet.RELEASE))
    return list(db.session.scalars(mine.order_by(facet.value.desc()).limit(MAX_RELEASES)))


def events_of(error: TrackedError) -> Select[TrackedErrorEvent]:
    """The stored events of an error, newest first."""
    event = TrackedErrorEvent
    return select(event).where(event.error_id == error.id).order_by(event.occurred_at.desc(), event.id.desc())


def find_event(error: TrackedError, event_id: str) -> TrackedErrorEvent:
    """One stored event of an error with its details, by its id, ``latest`` or ``oldest``; raises ``NotFound``."""
    event = TrackedErrorEvent
    statement = events_of(error)
    if event_id == OLDEST:
        statement = select(event).where(event.error_id == error.id).order_by(event.occurred_at, event.id)
    elif event_id != LATEST:
        statement = statement.where(
            event.project_id == error.project_id, event.event_id == event_id.replace("-", "").lower()
        )
    return one(statement.options(undefer(event.details)).limit(1), NotFound("Event"))


def event_or_newest(error: TrackedError, event_id: str) -> TrackedErrorEvent | None:
    """One stored event of an error; the newest if there is none with this id, ``None`` if none is stored."""
    for wanted in (event_id, LATEST):
        try:
            return find_event(error, wanted)
        except NotFound:
            continue
    return None


def neighbours_of(event: TrackedErrorEvent) -> tuple[str | None, str | None]:
    """Return the ids of the stored events of the same error before and after an event."""
    model = TrackedErrorEvent
    mine = select(model.event_id).where(model.error_id == event.error_id)
    position = (model.occurred_at, model.id)
    older = or_(model.occurred_at < event.occurred_at, (model.occurred_at == event.occurred_at) & (model.id < event.id))
    newer = or_(model.occurred_at > event.occurred_at, (model.occurred_at == event.occurred_at) & (model.id > event.id))
    return (
        db.session.scalar(mine.where(older).order_by(*(column.desc() for column in position)).limit(1)),
        db.session.scalar(mine.where(newer).order_by(*position).limit(1)),
    )


def _conditions(project: Project, wanted: dict[str, Any]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    statuses = [int(ErrorStatus.of(name)) for name in wanted.get("status") or ()]
    if len(statuses) == 1:  # written so that the index of the status and the order is used
        conditions.append(TrackedError.status == statuses[0])
    elif statuses:
        conditions.append(TrackedError.status.in_(statuses))
    if search := " ".join((wanted.get("search") or "").split()):
        columns = (TrackedError.title, TrackedError.message, TrackedError.culprit)
        conditions.append(searching.has_part(search, *columns))
    if wanted.get("level"):
        conditions.append(TrackedError.level == wanted["level"])
    since: dt.datetime | None = wanted.get("since")
    if since is not None:
        conditions.append(TrackedError.last_seen >= since)
    for name, kind in (("environment", Facet.ENVIRONMENT), ("release", Facet.RELEASE)):
        if wanted.get(name):
            conditions.append(TrackedError.id.in_(_ids_with(project, kind, wanted[name])))
    return conditions


def _ids_with(project: Project, kind: Facet, value: str) -> Select[int]:
    facet = TrackedErrorFacet
    return select(facet.error_id).where(facet.project_id == project.id, facet.kind == int(kind), facet.value == value)


def _environments_of(error_ids: Collection[int]) -> dict[int, list[str]]:
    facet = TrackedErrorFacet
    rows = db.session.execute(
        select(facet.error_id, facet.value)
        .where(facet.error_id.in_(error_ids), facet.kind == int(Facet.ENVIRONMENT))
        .order_by(facet.error_id, facet.value)
    )
    environments: dict[int, list[str]] = {}
    for error_id, name in rows:
        names = environments.setdefault(error_id, [])
        if len(names) < MAX_ENVIRONMENTS:
            names.append(name)
    return environments
