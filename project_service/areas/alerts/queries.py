"""Queries of alerts and integrations."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import Any

from sqlalchemy import ColumnElement, Select, TextClause, func, select, text, true, union_all
from sqlalchemy.orm import aliased, contains_eager, defer, selectinload

from project_service.areas.alerts.models import (
    TARGET,
    Alert,
    AlertIntegration,
    AlertTodo,
    FormerAddress,
    IncidentSetting,
    Status,
    listed_at,
)
from project_service.domain.access_levels import Role
from project_service.domain.memberships import members_for_choice
from project_service.domain.projects import Project, RedirectRoute
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note, Subject, add_finder
from project_service.domain.users import ACTIVE, User, ids_by_username
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound
from project_service.kit.http.pagination import MAX_COUNTED_ROWS

BETWEEN = "\n"
LEGACY = "legacy"
OPEN = (Status.TRIGGERED, Status.ACKNOWLEDGED)
LISTED = tuple(Status)
TABS: dict[str, tuple[str, tuple[Status, ...]]] = {
    "open": ("Open", OPEN),
    "triggered": ("Triggered", (Status.TRIGGERED,)),
    "acknowledged": ("Acknowledged", (Status.ACKNOWLEDGED,)),
    "resolved": ("Resolved", (Status.RESOLVED,)),
    "ignored": ("Ignored", (Status.IGNORED,)),
    "all": ("All", LISTED),
}
# The columns of the indexes; ``iid`` is in the order of creation. Columns that change with every occurrence have none,
# since each occurrence would have to update it.
SORTS: dict[str, tuple[Any, ...]] = {
    "started_at": (listed_at, Alert.id),
    "created_at": (Alert.iid,),
    "updated_at": (Alert.updated_at, Alert.id),
    "ended_at": (Alert.ended_at, Alert.id),
    "events": (Alert.events, Alert.id),
    "severity": (Alert.severity, Alert.id),
    "status": (Alert.status, listed_at, Alert.id),
}
SORT_NAMES = {
    "started_at": "Start time",
    "created_at": "Creation",
    "updated_at": "Last change",
    "ended_at": "End time",
    "events": "Events",
    "severity": "Severity",
    "status": "Status",
}
# stored numbers are lowest for the most severe and for the first status, so that "desc" means ascending numbers
REVERSED = ("severity", "status")


def alerts_matching(project: Project, **wanted: Any) -> Select[Alert]:
    """Select the alerts of a tab of the list, filtered and ordered."""
    statuses = TABS[wanted.get("tab") or "open"][1]
    name = wanted.get("order_by") or "started_at"
    statement = select(Alert).where(Alert.project_id == project.id, _within(statuses, name), *_conditions(wanted))
    descending = (wanted.get("sort") != "asc") != (name in REVERSED)
    order = [column.desc() if descending else column.asc() for column in SORTS[name]]
    if name == "ended_at":  # the databases differ in the position of NULL
        order[0] = order[0].nulls_last()
    loaded = selectinload(Alert.issue), selectinload(Alert.assignee), defer(Alert.payload)
    return statement.order_by(*order).options(*loaded, NO_LAZY_LOADING)


def counts_of(project: Project, **wanted: Any) -> dict[str, int]:
    """Count the alerts of each tab under the same search and filter, up to ``MAX_COUNTED_ROWS`` each."""
    conditions = (Alert.project_id == project.id, *_conditions(wanted))
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
    by_status = dict.fromkeys(LISTED, 0) | {Status(status): count for status, count in rows}
    return by_status if sum(by_status.values()) < MAX_COUNTED_ROWS else None


def _counted_apart(conditions: tuple[ColumnElement[bool], ...]) -> dict[Status, int]:
    """Count the alerts of each status separately, each up to ``MAX_COUNTED_ROWS``."""
    counts = (
        select(func.count())
        .select_from(select(1).where(Alert.status == status, *conditions).limit(MAX_COUNTED_ROWS).subquery())
        .scalar_subquery()
        for status in LISTED
    )
    return dict(zip(LISTED, db.session.execute(select(*counts)).one(), strict=True))


def _within(statuses: tuple[Status, ...], order: str) -> ColumnElement[bool] | TextClause:
    """Return the condition of a tab, written so that the database uses the index of the order."""
    if order == "status":
        return Alert.status.between(min(statuses), max(statuses))
    if statuses == LISTED:
        return true()
    return text("status <> 2 AND status <> 3") if statuses == OPEN else Alert.status.in_(statuses)


def has_alerts(project: Project) -> bool:
    """Whether the project has any alert."""
    return db.session.scalar(select(Alert.id).where(Alert.project_id == project.id).limit(1)) is not None


def find_alert(project: Project, iid: int) -> Alert:
    """One alert by its ``iid``."""
    return one(select(Alert).where(Alert.project_id == project.id, Alert.iid == iid), RecordNotFound())


def alerts_numbered(project: Project, iids: Sequence[int]) -> Select[Alert]:
    """The alerts of a project with these numbers."""
    found = select(Alert).where(Alert.project_id == project.id, Alert.iid.in_(iids))
    return found.order_by(Alert.iid).options(NO_LAZY_LOADING)


def add_open_alerts(environments: Sequence[Environment], most: int) -> None:
    """Set ``open_alerts`` and ``open_alerts_count`` on each environment of a page, with two statements for all.

    They are the newest alerts; the count goes up to ``MAX_COUNTED_ROWS``.
    """
    ids = [environment.id for environment in environments]
    newest = union_all(*(select(_newest_open(number).limit(most).subquery().c.id) for number in ids))
    found: dict[int | None, list[Alert]] = {}
    alerts = select(Alert).where(Alert.id.in_(newest)).order_by(Alert.started_at.desc(), Alert.id.desc())
    for alert in db.session.scalars(alerts.options(NO_LAZY_LOADING)):
        found.setdefault(alert.environment_id, []).append(alert)
    opened = select(1).where(Alert.environment_id == Environment.id, Alert.status.in_(OPEN)).correlate(Environment)
    counted = select(func.count()).select_from(opened.limit(MAX_COUNTED_ROWS).subquery()).scalar_subquery()
    counts: dict[int, int] = dict(
        db.session.execute(select(Environment.id, counted).where(Environment.id.in_(ids))).all()
    )
    for environment in environments:
        environment.open_alerts = found.get(environment.id, [])
        environment.open_alerts_count = counts.get(environment.id, 0)


def _newest_open(environment_id: int) -> Select[int]:
    statement = select(Alert.id).where(Alert.environment_id == environment_id, Alert.status.in_(OPEN))
    return statement.order_by(Alert.started_at.desc(), Alert.id.desc())


def alerts_of_issue(issue: Issue) -> Select[Alert]:
    """The alerts of an incident."""
    return select(Alert).where(Alert.issue_id == issue.id).order_by(Alert.id)


def integrations_of(project: Project) -> Select[AlertIntegration]:
    """The integrations of a project, newest first."""
    statement = select(AlertIntegration).where(AlertIntegration.project_id == project.id)
    return statement.order_by(AlertIntegration.id.desc())


def find_integration(project: Project, integration_id: int) -> AlertIntegration:
    """One integration of a project by its id."""
    return one(integrations_of(project).where(AlertIntegration.id == integration_id), RecordNotFound())


def has_short_address(project: Project) -> bool:
    """Whether the project has an endpoint with the legacy URL."""
    here = select(AlertIntegration.id).where(AlertIntegration.project_id == project.id)
    return db.session.scalar(here.where(AlertIntegration.endpoint_identifier == LEGACY)) is not None


def has_environment(project: Project, name: str) -> bool:
    """Whether the project has an environment of exactly this name."""
    found = select(Environment.id).where(Environment.project_id == project.id, Environment.name == name)
    return db.session.scalar(found.limit(1)) is not None


def incident_setting_of(project_id: int) -> IncidentSetting:
    """The incident settings of a project, or the defaults."""
    stored = db.session.scalar(select(IncidentSetting).where(IncidentSetting.project_id == project_id))
    return stored or IncidentSetting(
        project_id=project_id,
        create_issue=False,
        send_email=False,
        send_recovery_email=False,
        auto_close_incident=True,
    )


def assignable_users(project: Project) -> Select[int, str, str]:
    """The people to whom alerts of a project can be assigned: id, name and username."""
    return members_for_choice(project, least=Role.DEVELOPER).where(User.state == ACTIVE)


def todo_of(alert: Alert, user_id: int) -> AlertTodo | None:
    """The to-do item of a user about an alert, unless it is done."""
    pending = AlertTodo.done_at.is_(None)
    return db.session.scalar(
        select(AlertTodo).where(AlertTodo.alert_id == alert.id, AlertTodo.user_id == user_id, pending)
    )


def todos_of(seen: ColumnElement[bool], user_id: int, *, done: bool) -> Select[AlertTodo]:
    """The to-do items of a user about alerts of projects under a condition, newest first."""
    state = AlertTodo.done_at.is_not(None) if done else AlertTodo.done_at.is_(None)
    statement = select(AlertTodo).join(AlertTodo.alert).join(Alert.project)
    statement = statement.where(AlertTodo.user_id == user_id, state, Project.deleting_since.is_(None), seen)
    order = (AlertTodo.done_at.desc(), AlertTodo.id.desc()) if done else (AlertTodo.id.desc(),)
    loaded = contains_eager(AlertTodo.alert).options(defer(Alert.payload), contains_eager(Alert.project))
    return statement.order_by(*order).options(loaded, NO_LAZY_LOADING)


def find_todo(user_id: int, todo_id: int) -> AlertTodo:
    """One to-do item of a user by its id."""
    return one(select(AlertTodo).where(AlertTodo.id == todo_id, AlertTodo.user_id == user_id), RecordNotFound())


def former_addresses(project: Project, integrations: Sequence[AlertIntegration]) -> dict[str, list[FormerAddress]]:
    """The former paths of a project, each with what integrations received there."""
    paths = select(RedirectRoute.path).where(RedirectRoute.project_id == project.id).order_by(RedirectRoute.path)
    found: dict[str, list[FormerAddress]] = {path: [] for path in db.session.scalars(paths)}
    uses = select(FormerAddress).where(FormerAddress.integration_id.in_([one.id for one in integrations]))
    for use in db.session.scalars(uses.order_by(FormerAddress.integration_id).options(NO_LAZY_LOADING)):
        if use.path in found:
            found[use.path].append(use)
    return found


def notes_of(alert: Alert) -> Select[Note]:
    """The notes of an alert, oldest first."""
    statement = select(Note).where(Note.noteable_type == TARGET, Note.noteable_id == alert.id)
    return statement.order_by(Note.created_at, Note.id).options(selectinload(Note.author), NO_LAZY_LOADING)


def _conditions(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if search := (wanted.get("search") or "").strip().lower():
        columns = (Alert.title, Alert.description, Alert.monitoring_tool, Alert.service)
        # one case folding for all columns, since it is the slowest part; the separator occurs in no search
        together = reduce(operator.add, (func.coalesce(column, "") + BETWEEN for column in columns))
        # SQLite's own function knows the letters of ASCII only, and is much faster than one that knows all
        fold = func.lower if search.isascii() else searching.folded
        yield fold(together).contains(search, autoescape=True)
    if username := (wanted.get("assignee_username") or "").strip():
        # two equal conditions: with only one of them, one of the databases reads all open alerts
        theirs = aliased(Alert)
        yield Alert.id.in_(select(theirs.id).where(theirs.assignee_id.in_(ids_by_username(username))))
        yield Alert.assignee_id.in_(ids_by_username(username))


def subjects(ids: Collection[int]) -> dict[int, Subject]:
    """Load alerts as subjects of feeds, without their payloads, which may be large."""
    found = db.session.execute(select(Alert.id, Alert.iid, Alert.title).where(Alert.id.in_(ids)))
    return {number: Subject(title, "alert", f"/-/alert_management/{iid}/details") for number, iid, title in found}


add_finder(TARGET, subjects)
