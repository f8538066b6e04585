"""The list of alerts: filters, orders and counts (alert management reference, section 10)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, Text, TextClause, and_, cast, func, or_, select, text, true
from sqlalchemy.orm import aliased, defer, selectinload

from project_service.areas.alerts.effects import silencing
from project_service.areas.alerts.models import TEXTS, Alert, AlertIntegration, Severity, Status, listed_at
from project_service.areas.alerts.queries import OPEN
from project_service.domain.accounts.users import ids_by_username
from project_service.domain.projects import Project
from project_service.domain.tracker.environments import Environment
from project_service.kit import exact_json
from project_service.kit.db import searching, text_search
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.pagination import MAX_COUNTED_ROWS, SelectedRows

MAX_COUNTED_MATCHES = 1000
MAX_SCANNED_ALERTS = 20_000  # the newest, by a search that no index serves
ALL = tuple(Status)
TABS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "open": ("Open", OPEN),
    "triggered": ("Triggered", (Status.TRIGGERED,)),
    "acknowledged": ("Acknowledged", (Status.ACKNOWLEDGED,)),
    "resolved": ("Resolved", (Status.RESOLVED,)),
    "ignored": ("Ignored", (Status.IGNORED,)),
    "all": ("All", ALL),
}
# The columns of the indexes; ``iid`` is in the order of creation. Those of the last change and of the end have none.
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
    silenced: bool | None = None
    started_after: dt.datetime | None = None
    started_before: dt.datetime | None = None
    updated_after: dt.datetime | None = None
    updated_before: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class AlertOrder:
    """The order of a list of alerts: a name of ``SORTS``, and ``asc`` or ``desc``."""

    name: str = "started_at"
    direction: str = "desc"


@dataclass(frozen=True, slots=True)
class AlertSelection:
    """The alerts of a project that match a filter.

    ``newest_only``: how many of the newest alerts were looked at, if older ones were left out. ``has_many_matches``: a
    search has found more than are counted.
    """

    conditions: tuple[ColumnElement[bool], ...]
    newest_only: int | None = None
    is_search: bool = False
    has_many_matches: bool = False

    @property
    def most_counted(self) -> int:
        """Up to how many alerts are counted of each tab: fewer in a search, which compares texts of frequent words."""
        return min(MAX_COUNTED_MATCHES, MAX_COUNTED_ROWS) if self.is_search else MAX_COUNTED_ROWS

    def ordered(self, order: AlertOrder = AlertOrder(), statuses: tuple[Status, ...] = ALL) -> Select[Alert]:
        """Select those of some statuses in an order, with what lists show of them."""
        statement = select(Alert).where(_within(statuses, order.name), *self.conditions)
        descending = (order.direction != "asc") != (order.name in REVERSED)
        columns = [column.desc() if descending else column.asc() for column in SORTS[order.name]]
        if order.name == "ended_at":  # the databases differ in the position of NULL
            columns[0] = columns[0].nulls_last()
        source = selectinload(Alert.integration).load_only(AlertIntegration.name)
        loaded = selectinload(Alert.issue), selectinload(Alert.assignee), source, defer(Alert.payload)
        return statement.order_by(*columns).options(*loaded, NO_LAZY_LOADING)

    def states(self, statuses: tuple[Status, ...] = ALL) -> Select[int, int, str | None, int | None]:
        """Select id, status, fingerprint and assignee of those of some statuses, newest first."""
        columns = select(Alert.id, Alert.status, Alert.fingerprint, Alert.assignee_id)
        return columns.where(_within(statuses, ""), *self.conditions).order_by(Alert.id.desc())

    def count_after(self, iid: int, statuses: tuple[Status, ...], most: int) -> int:
        """Count those of some statuses that were received after an alert, up to a number."""
        newer = select(Alert.id).where(Alert.iid > iid, _within(statuses, ""), *self.conditions).limit(most)
        return db.session.scalar(select(func.count()).select_from(newer.subquery())) or 0

    def counts(self) -> dict[str, int]:
        """Count those of each tab, up to ``most_counted`` each."""
        most = self.most_counted
        is_filtered = self.is_search or len(self.conditions) > 1
        by_status = _counted_at_once(self.conditions, most) if is_filtered else None
        if by_status is None:
            by_status = _counted_apart(self.conditions, most)
        return {tab: min(sum(by_status[status] for status in statuses), most) for tab, (_, statuses) in TABS.items()}


@dataclass(frozen=True, slots=True)
class MatchingAlerts(SelectedRows):
    """The alerts that a search has found, which are counted up to ``MAX_COUNTED_MATCHES``.

    ``are_many``: that there are more is known already.
    """

    are_many: bool = False

    @property
    def total(self) -> int:
        """The number of alerts; above the limit what stands for "not counted" in headers."""
        if self.are_many:
            return MAX_COUNTED_ROWS + 1
        statement = self.statement.with_only_columns(Alert.id).order_by(None).limit(MAX_COUNTED_MATCHES + 1)
        count = db.session.scalar(select(func.count()).select_from(statement.subquery())) or 0
        return count if count <= MAX_COUNTED_MATCHES else MAX_COUNTED_ROWS + 1


def alerts_matching(project: Project, wanted: AlertFilter) -> AlertSelection:
    """Select the alerts of a project that match a filter.

    What a search finds is looked up once, as far as it is counted: its statements then have the ids. Left to choose, a
    database that expects many matches reads all alerts in the order of the list for a few of them.
    """
    conditions: list[ColumnElement[bool]] = [Alert.project_id == project.id, *_conditions(project, wanted)]
    words = text_search.words_of(wanted.search)
    searched = [*words, *([wanted.host] if wanted.host else [])]
    newest_only = None
    if searched and text_search.needs_scan(TEXTS, searched) and (newest := _newest_iid(project)) > MAX_SCANNED_ALERTS:
        newest_only = MAX_SCANNED_ALERTS
        conditions.append(Alert.iid > newest - newest_only)
    if words:
        conditions.append(_containing(project, words))
    if wanted.host:
        conditions.append(_has_host(wanted.host))
    if not searched:
        return AlertSelection(tuple(conditions))
    alert_ids = db.session.scalars(select(Alert.id).where(*conditions).limit(MAX_COUNTED_MATCHES + 1)).all()
    has_many = len(alert_ids) > MAX_COUNTED_MATCHES
    selected = conditions if has_many else [Alert.id.in_(alert_ids)]
    return AlertSelection(tuple(selected), newest_only, is_search=True, has_many_matches=has_many)


def _newest_iid(project: Project) -> int:
    return db.session.scalar(select(func.max(Alert.iid)).where(Alert.project_id == project.id)) or 0


def _has_host(host: str) -> ColumnElement[bool]:
    """Return the condition that a host is in the stored list, which is text in JSON; the index of texts has it, too."""
    element = exact_json.dumps(host).decode().lower()
    in_list = searching.folded(cast(Alert.hosts, Text)).contains(element, autoescape=True)
    return and_(text_search.contains(TEXTS, [element]), in_list)


def _counted_at_once(conditions: tuple[ColumnElement[bool], ...], most: int) -> dict[Status, int] | None:
    """Count the alerts of each status in one scan; ``None`` if there are too many."""
    # in storage order: otherwise SQLite reads them by index, at random
    ordered = select(Alert.status).where(*conditions).order_by(Alert.iid.desc())
    statuses = ordered.limit(most).subquery()
    rows = db.session.execute(select(statuses.c.status, func.count()).group_by(statuses.c.status))
    by_status = dict.fromkeys(ALL, 0) | {Status(status): count for status, count in rows}
    return by_status if sum(by_status.values()) < most else None


def _counted_apart(conditions: tuple[ColumnElement[bool], ...], most: int) -> dict[Status, int]:
    """Count the alerts of each status separately, up to a number each."""
    counts = (
        select(func.count())
        .select_from(select(1).where(Alert.status == status, *conditions).limit(most).subquery())
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
    if wanted.severities:
        yield Alert.severity.in_(wanted.severities)
    if wanted.integration_id is not None:
        yield Alert.integration_id == wanted.integration_id
    if wanted.environment:
        named = select(Environment.id).where(Environment.project_id == project.id)
        yield Alert.environment_id.in_(named.where(Environment.name == wanted.environment))
    if username := wanted.assignee_username.strip():
        # two equal conditions: with only one of them, one of the databases reads all open alerts
        theirs = aliased(Alert)
        yield Alert.id.in_(select(theirs.id).where(theirs.assignee_id.in_(ids_by_username(username))))
        yield Alert.assignee_id.in_(ids_by_username(username))
    if wanted.silenced is not None:
        yield silencing.silenced() if wanted.silenced else ~silencing.silenced()
    for column, after, before in (
        (Alert.started_at, wanted.started_after, wanted.started_before),
        (Alert.updated_at, wanted.updated_after, wanted.updated_before),
    ):
        if after is not None:
            yield column >= after
        if before is not None:
            yield column <= before


def _containing(project: Project, words: list[str]) -> ColumnElement[bool]:
    """Return the condition that an alert or the name of its integration contains each word."""
    named = select(AlertIntegration.id, AlertIntegration.name).where(AlertIntegration.project_id == project.id)
    names = {number: name.lower() for number, name in db.session.execute(named)}
    by_word = {word: [number for number, name in names.items() if word in name] for word in words}
    in_texts = [word for word in words if not by_word[word]]
    return and_(
        *([text_search.contains(TEXTS, in_texts)] if in_texts else []),
        *(
            or_(Alert.integration_id.in_(numbers), text_search.contains(TEXTS, [word]))
            for word, numbers in by_word.items()
            if numbers
        ),
    )
