"""The list of alerts: filters, orders and counts (alert management reference, section 10)."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, TextClause, cast, func, select, text, true
from sqlalchemy.orm import aliased, defer, selectinload

from project_service.areas.alerts.models import Alert, Severity, Status, listed_at
from project_service.areas.alerts.queries import OPEN
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import Environment
from project_service.domain.users import ids_by_username
from project_service.kit import exact_json
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.pagination import MAX_COUNTED_ROWS

BETWEEN = "\n"
ALL = tuple(Status)
TABS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "open": ("Open", OPEN),
    "triggered": ("Triggered", (Status.TRIGGERED,)),
    "acknowledged": ("Acknowledged", (Status.ACKNOWLEDGED,)),
    "resolved": ("Resolved", (Status.RESOLVED,)),
    "ignored": ("Ignored", (Status.IGNORED,)),
    "all": ("All", ALL),
}
# The columns of the indexes; ``iid`` is in the order of creation. Columns that change with every occurrence have none,
# since each occurrence would have to update it.
SORTS: dict[str, tuple[Any, ...]] = {
    "started_at": (listed_at, Alert.id),
    "created_at": (Alert.iid,),
    "updated_at": (Alert.updated_at, Alert.id),
    "ended_at": (Alert.ended_at, Alert.id),
    "event_count": (Alert.events, Alert.id),
    "severity": (Alert.severity, Alert.id),
    "status": (Alert.status, listed_at, Alert.id),
}
SORT_NAMES = {
    "started_at": "Start time",
    "created_at": "Creation",
    "updated_at": "Last change",
    "ended_at": "End time",
    "event_count": "Events",
    "severity": "Severity",
    "status": "Status",
}
# stored numbers are lowest for the most severe and for the first status, so that "desc" means ascending numbers
REVERSED = ("severity", "status")
ENVIRONMENT = (selectinload(Alert.environment).options(NO_LAZY_LOADING),)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertFilter:
    """Which alerts of a project to list; empty fields do not filter."""

    search: str = ""
    severities: tuple[Severity, ...] = ()
    integration_id: int | None = None
    host: str = ""
    environment: str = ""
    assignee_username: str = ""
    started_after: dt.datetime | None = None
    started_before: dt.datetime | None = None
    updated_after: dt.datetime | None = None
    updated_before: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertOrder:
    """The order of a list of alerts: a name of ``SORTS``, and ``asc`` or ``desc``."""

    name: str = "started_at"
    direction: str = "desc"


def alerts_matching(
    project: Project,
    wanted: AlertFilter,
    order: AlertOrder = AlertOrder(),
    statuses: tuple[Status, ...] = ALL,
) -> Select[Alert]:
    """Select the alerts of some statuses, filtered and ordered, with what lists show of them."""
    statement = select(Alert).where(
        Alert.project_id == project.id, _within(statuses, order.name), *_conditions(project, wanted)
    )
    descending = (order.direction != "asc") != (order.name in REVERSED)
    columns = [column.desc() if descending else column.asc() for column in SORTS[order.name]]
    if order.name == "ended_at":  # the databases differ in the position of NULL
        columns[0] = columns[0].nulls_last()
    loaded = selectinload(Alert.issue), selectinload(Alert.assignee), defer(Alert.payload)
    return statement.order_by(*columns).options(*loaded, NO_LAZY_LOADING)


def counts_of(project: Project, wanted: AlertFilter) -> dict[str, int]:
    """Count the alerts of each tab under the same filter, up to ``MAX_COUNTED_ROWS`` each."""
    conditions = (Alert.project_id == project.id, *_conditions(project, wanted))
    by_status = _counted_at_once(conditions) if len(conditions) > 1 else None
    if by_status is None:
        by_status = _counted_apart(conditions)
    return {tab: min(sum(by_status[one] for one in statuses), MAX_COUNTED_ROWS) for tab, (_, statuses) in TABS.items()}


def _counted_at_once(conditions: tuple[ColumnElement[bool], ...]) -> dict[Status, int] | None:
    """Count the alerts of each status in one scan; ``None`` if there are too many."""
    # in storage order: otherwise SQLite reads them by index, at random
    ordered = select(Alert.status).where(*conditions).order_by(Alert.iid.desc())
    found = ordered.limit(MAX_COUNTED_ROWS).subquery()
    rows = db.session.execute(select(found.c.status, func.count()).group_by(found.c.status))
    by_status = dict.fromkeys(ALL, 0) | {Status(status): count for status, count in rows}
    return by_status if sum(by_status.values()) < MAX_COUNTED_ROWS else None


def _counted_apart(conditions: tuple[ColumnElement[bool], ...]) -> dict[Status, int]:
    """Count the alerts of each status separately, each up to ``MAX_COUNTED_ROWS``."""
    counts = (
        select(func.count())
        .select_from(select(1).where(Alert.status == status, *conditions).limit(MAX_COUNTED_ROWS).subquery())
        .scalar_subquery()
        for status in ALL
    )
    return dict(zip(ALL, db.session.execute(select(*counts)).one(), strict=True))


def _within(statuses: tuple[Status, ...], order: str) -> ColumnElement[bool] | TextClause:
    """Return the condition of a tab, written so that the database uses the index of the order."""
    if order == "status" and statuses in [tab for _, tab in TABS.values()]:
        return Alert.status.between(min(statuses), max(statuses))
    if set(statuses) == set(ALL):
        return true()
    return text("status <> 2 AND status <> 3") if statuses == OPEN else Alert.status.in_(statuses)


def _conditions(project: Project, wanted: AlertFilter) -> Iterator[ColumnElement[bool]]:
    if search := wanted.search.strip().lower():
        yield _containing(search)
    if wanted.severities:
        yield Alert.severity.in_(wanted.severities)
    if wanted.integration_id is not None:
        yield Alert.integration_id == wanted.integration_id
    if wanted.host:
        # one of the stored list, which is text in JSON
        element = exact_json.dumps(wanted.host).decode()
        yield searching.folded(cast(Alert.hosts, Text)).contains(element.lower(), autoescape=True)
    if wanted.environment:
        named = select(Environment.id).where(Environment.project_id == project.id)
        yield Alert.environment_id.in_(named.where(Environment.name == wanted.environment))
    if username := wanted.assignee_username.strip():
        # two equal conditions: with only one of them, one of the databases reads all open alerts
        theirs = aliased(Alert)
        yield Alert.id.in_(select(theirs.id).where(theirs.assignee_id.in_(ids_by_username(username))))
        yield Alert.assignee_id.in_(ids_by_username(username))
    for column, after, before in (
        (Alert.started_at, wanted.started_after, wanted.started_before),
        (Alert.updated_at, wanted.updated_after, wanted.updated_before),
    ):
        if after is not None:
            yield column >= after
        if before is not None:
            yield column <= before


def _containing(search: str) -> ColumnElement[bool]:
    columns = (Alert.title, Alert.description, Alert.monitoring_tool, Alert.service)
    # one case folding for all columns, since it is the slowest part; the separator occurs in no search
    together = reduce(operator.add, (func.coalesce(column, "") + BETWEEN for column in columns))
    # SQLite's own function knows the letters of ASCII only, and is much faster than one that knows all
    fold = func.lower if search.isascii() else searching.folded
    return fold(together).contains(search, autoescape=True)
