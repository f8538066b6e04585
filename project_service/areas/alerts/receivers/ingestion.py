"""Ingestion of alerts: new ones, repetitions of open ones, recoveries (alert ingestion reference, section 9).

The alerts of a request are written in one transaction, with a number of statements that does not grow with them. That a
fingerprint has at most one open alert is ensured by a unique index: a request that loses a race adds an event to the
alert that the other one opened.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import functools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, false, func, select, text, true, update

from project_service.areas.alerts.alerts import incidents, mails
from project_service.areas.alerts.models import (
    HTTP,
    PROMETHEUS,
    TARGET,
    Alert,
    AlertIntegration,
    FormerAddress,
    IncidentSetting,
    Status,
)
from project_service.areas.alerts.receivers.grouping import Mapping
from project_service.areas.alerts.receivers.payloads import DEFAULT_SOURCE, PROMETHEUS_TOOL, AlertReport, ParsedAlert
from project_service.domain import path_registry
from project_service.domain.bots import ALERT_BOT, bot, id_of_bot
from project_service.domain.instance_settings import RECEIVERS_THROTTLE, value_of
from project_service.domain.projects import DISABLED, Project
from project_service.domain.tracker.counters import next_iids
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.base import Base, Key
from project_service.kit.db.session import db, insert

COUNTER = "alerts"
USES_NOTED_EVERY = dt.timedelta(minutes=1)
LOGGED = "logged an alert from **{}**"
RECOVERED = "logged a recovery alert from **{}**"
RESOLVED = f"changed the status to **{Status.RESOLVED.title}**"
# The condition of the unique index, word for word: with a parameter in its place no database would use the index.
IS_OPEN = text("status <> 2")
# Core tables: rows of nearly every request are written without the ORM, which takes twice the time.
ALERTS, NOTES = Base.metadata.tables[Alert.__tablename__], Base.metadata.tables[Note.__tablename__]
alerts, projects = ALERTS.c, Project.__table__.c
integrations, settings = AlertIntegration.__table__.c, IncidentSetting.__table__.c


@dataclass(frozen=True, slots=True)
class AlertReceiver:
    """An integration that receives alerts, with the settings of its project that apply to them."""

    project_id: int
    id: int
    type: str
    name: str
    active: bool
    token: str
    mapping: Mapping
    create_issue: bool
    send_email: bool
    auto_close_incident: bool
    throttled: bool | None
    bot_id: int | None
    send_recovery_email: bool
    former_path: str | None = None  # the request came to an address from before the project was renamed or moved

    @property
    def rate_limit_subject(self) -> str | int:
        """What its requests are counted under: all Prometheus integrations of a project share a URL."""
        return f"prometheus:{self.project_id}" if self.type == PROMETHEUS else self.id

    def source_of(self, parsed: ParsedAlert) -> str:
        """The name of the source of an alert, for notes."""
        if parsed.monitoring_tool == PROMETHEUS_TOOL:
            return self.name or PROMETHEUS_TOOL
        return parsed.monitoring_tool or self.name or DEFAULT_SOURCE


@dataclass(frozen=True, slots=True)
class StoredAlert:
    """The alert that a report has opened, repeated or ended."""

    id: int
    iid: int
    title: str


class UnknownProject(Exception):
    """There is no project with this path."""


def find_endpoint(full_path: str, identifier: str) -> AlertReceiver | None:
    """The HTTP endpoint of a project with this identifier; raises ``UnknownProject``."""
    return next(iter(_receivers(ENDPOINT, full_path, identifier=identifier)), None)


def prometheus_receivers(full_path: str) -> list[AlertReceiver]:
    """The active Prometheus integrations of a project, newest first; raises ``UnknownProject``."""
    return _receivers(ACTIVE_PROMETHEUS, full_path)


def receiver_of(integration: AlertIntegration) -> AlertReceiver:
    """The receiver of an integration, for test alerts."""
    [found] = _receivers(BY_ID, integration.project.full_path, integration=integration.id)
    return found


def note_former_address(receiver: AlertReceiver) -> None:
    """Record that an address from before the project moved is still used, at most once in ``USES_NOTED_EVERY``."""
    now, key = clock.now(), {"integration_id": receiver.id, "path": receiver.former_path}
    known = select(FormerAddress.last_used_at).filter_by(**key)
    last = db.session.scalar(known)
    if receiver.former_path is None or (last is not None and now - last < USES_NOTED_EVERY):
        return
    row = insert(FormerAddress).values(**key, last_used_at=now)
    db.session.execute(row.on_conflict_do_update(index_elements=list(key), set_={"last_used_at": now}))


def ingest(receiver: AlertReceiver, reports: list[AlertReport]) -> list[StoredAlert]:
    """Store reports in their order, in the current unit of work; return the alert of each."""
    if not reports:
        return []
    # new rows are locked in one order everywhere, and the bot is the first of them
    author_id = receiver.bot_id or bot(ALERT_BOT).id
    if len(reports) > 1:
        # batches of one project wait for one another here: they would lock the same alerts in different orders
        next_iids(receiver.project_id, COUNTER, 0)
    stored: list[StoredAlert] = []
    for step in _steps(reports):
        stored += _Step(receiver, author_id, step).run()
    return stored


def _steps(reports: Iterable[AlertReport]) -> list[list[AlertReport]]:
    """Split reports where one depends on one before: a recovery, and what follows it, under the same fingerprint."""
    steps: list[list[AlertReport]] = [[]]
    recoveries: dict[str, bool] = {}
    for report in reports:
        if report.fingerprint is not None:
            before = recoveries.get(report.fingerprint)
            if before or (before is False and report.is_recovery):
                steps.append([])
                recoveries.clear()
            recoveries[report.fingerprint] = report.is_recovery
        steps[-1].append(report)
    return steps


class _Step:
    """Writes reports of one receiver that do not depend on one another."""

    def __init__(self, receiver: AlertReceiver, author_id: int, reports: list[AlertReport]) -> None:
        self.receiver = receiver
        self.author_id = author_id
        self.reports = reports
        self.firing = Counter(one.fingerprint for one in reports if one.fingerprint and not one.is_recovery)
        self.notes: list[dict[str, Any]] = []
        self.opened: set[int] = set()  # ids of new alerts that are not resolved

    def run(self) -> list[StoredAlert]:
        """Write the alerts with their notes, then what the project wants done about them; the alert of each report."""
        known = self._count_events()
        ended = self._resolve()
        known |= {fingerprint: StoredAlert(alert.id, alert.iid, alert.title) for fingerprint, alert in ended.items()}
        opened = self._open([one for one in self.reports if one.fingerprint not in known])
        stored = [known.get(one.fingerprint or "") or opened[one.fingerprint or id(one)] for one in self.reports]
        if self.notes:
            db.session.execute(insert(NOTES), self.notes)
        self._keep_unreadable_times(stored)
        self._follow_up(stored, ended)
        return stored

    def _count_events(self) -> dict[str, StoredAlert]:
        """Add to the events of the open alerts that are reported again; those found, by fingerprint."""
        found: dict[str, StoredAlert] = {}
        for count in sorted(set(self.firing.values())):
            fingerprints = [one for one, number in self.firing.items() if number == count]
            values = {"project": self.receiver.project_id, "fingerprints": fingerprints, "count": count}
            rows = db.session.execute(COUNT_EVENTS, values)
            found |= {row.fingerprint: StoredAlert(row.id, row.iid, row.title) for row in rows}
        return found

    def _keep_unreadable_times(self, stored: list[StoredAlert]) -> None:
        """Store the values that were ignored because they are no times: of a repetition, the newest ones."""
        unreadable = {one.id: report.unreadable_times for one, report in zip(stored, self.reports, strict=True)}
        for alert_id in sorted(alert_id for alert_id, times in unreadable.items() if times):
            values = {"unreadable_times": unreadable[alert_id]}
            db.session.execute(update(ALERTS).where(alerts.id == alert_id).values(values))

    def _resolve(self) -> dict[str, Alert]:
        """Resolve the open alerts that have recovered; those found, by fingerprint."""
        recoveries = {one.fingerprint: one for one in self.reports if one.is_recovery and one.fingerprint}
        if not recoveries:
            return {}
        found = db.session.scalars(
            select(Alert)
            .where(Alert.project_id == self.receiver.project_id, IS_OPEN, Alert.fingerprint.in_(recoveries))
            .order_by(Alert.fingerprint)
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        ended = {alert.fingerprint: alert for alert in found if alert.fingerprint}
        for fingerprint, alert in ended.items():
            parsed = recoveries[fingerprint].parse()
            alert.status, alert.ended_at = Status.RESOLVED, parsed.ended_at
            self._note(alert.id, RECOVERED.format(self.receiver.source_of(parsed)), RESOLVED)
        db.session.flush()
        return ended

    def _open(self, reports: list[AlertReport]) -> dict[str | int, StoredAlert]:
        """Insert alerts, those of recoveries as resolved; by fingerprint, or by the ``id()`` of reports without one.

        Where another request has opened the same alert a moment ago, its events are counted instead.
        """
        new: dict[str | int, AlertReport] = {}
        for report in reports:
            new.setdefault(report.fingerprint or id(report), report)
        if not new:
            return {}
        first_iid = next_iids(self.receiver.project_id, COUNTER, len(new))
        environments = self._environments({one.environment for one in reports if one.environment})
        parsed = [report.parse() for report in new.values()]
        rows = [
            {
                "project_id": self.receiver.project_id,
                "iid": iid,
                "title": one.title,
                "description": one.description,
                "severity": int(one.severity),
                "status": int(Status.TRIGGERED if one.ended_at is None else Status.RESOLVED),
                "service": one.service,
                "monitoring_tool": one.monitoring_tool,
                "hosts": one.hosts,
                "started_at": one.started_at,
                "ended_at": one.ended_at,
                "events": self.firing.get(one.fingerprint or "", 1),
                "fingerprint": one.fingerprint,
                "payload": one.payload,
                "environment_id": environments.get(one.environment or ""),
                "unreadable_times": report.unreadable_times or None,
            }
            for iid, (report, one) in enumerate(zip(new.values(), parsed, strict=True), start=first_iid)
        ]
        inserted = db.session.execute(_insert_alerts(db.engine.dialect.name), rows).all()
        by_iid = {row.iid: row for row in inserted}
        by_fingerprint = {row.fingerprint: row for row in inserted}
        stored: dict[str | int, StoredAlert] = {}
        for iid, (key, one) in enumerate(zip(new, parsed, strict=True), start=first_iid):
            row = by_iid.get(iid) or by_fingerprint[one.fingerprint]
            stored[key] = StoredAlert(row.id, row.iid, row.title)
            if row.iid == iid:
                if one.ended_at is None:
                    self.opened.add(row.id)
                source = self.receiver.source_of(one)
                ended = (RECOVERED.format(source), RESOLVED) if one.ended_at is not None else ()
                self._note(row.id, LOGGED.format(source), *ended)
        return stored

    def _environments(self, names: set[str]) -> dict[str, int]:
        if not names:
            return {}
        found = select(Environment.name, Environment.id).where(
            Environment.project_id == self.receiver.project_id, Environment.name.in_(names)
        )
        rows: Any = db.session.execute(found).all()
        return dict(rows)

    def _note(self, alert_id: int, *bodies: str) -> None:
        self.notes += (
            {
                "project_id": self.receiver.project_id,
                "noteable_type": TARGET,
                "noteable_id": alert_id,
                "body": body,
                "system": True,
                "author_id": self.author_id,
            }
            for body in bodies
        )

    def _follow_up(self, stored: list[StoredAlert], ended: dict[str, Alert]) -> None:
        """Incidents and mails, where the project wants them, and the incidents of alerts that have ended."""
        receiver = self.receiver
        if receiver.auto_close_incident:
            for alert in ended.values():
                if alert.issue_id is not None:
                    incidents.close_incident(bot(ALERT_BOT), alert)
        if not receiver.create_issue and not receiver.send_email and not receiver.send_recovery_email:
            return
        ids = [one.id for one in stored]
        found = select(Alert).where(Alert.id.in_(ids)).execution_options(populate_existing=True)
        by_id = {alert.id: alert for alert in db.session.scalars(found)}
        for one, report in zip(stored, self.reports, strict=True):
            alert = by_id[one.id]
            if receiver.create_issue and not report.is_recovery and _needs_incident(alert):
                incidents.create_incident(bot(ALERT_BOT), alert)
            if self._wants_mail(one.id, report):
                mails.queue_alert(alert, with_incidents=receiver.create_issue)

    def _wants_mail(self, alert_id: int, report: AlertReport) -> bool:
        """Whether a mail is sent: once for a new alert, and for a recovery, each if the project wants it."""
        if report.is_recovery:
            return self.receiver.send_recovery_email
        if self.receiver.send_email and alert_id in self.opened:
            self.opened.discard(alert_id)
            return True
        return False


def _needs_incident(alert: Alert) -> bool:
    return alert.issue_id is None and alert.project.issues_access_level != DISABLED


@functools.cache
def _insert_alerts(_dialect: str) -> Any:
    """The statement that stores new alerts, or adds to the events of those that were opened a moment ago."""
    new = insert(ALERTS)
    return new.on_conflict_do_update(
        index_elements=["project_id", "fingerprint"],
        index_where=IS_OPEN,
        set_={"events": alerts.events + new.excluded.events, "updated_at": new.excluded.updated_at},
    ).returning(alerts.id, alerts.iid, alerts.title, alerts.fingerprint)


def _receivers(statement: Select[Any], full_path: str, **parameters: Any) -> list[AlertReceiver]:
    path, former_path = full_path.lower(), None
    rows = db.session.execute(statement, {"path": path, **parameters}).all()
    if not rows and (moved_to := path_registry.path_now_of(path)) is not None:
        former_path = path
        rows = db.session.execute(statement, {"path": moved_to, **parameters}).all()
    if not rows:
        raise UnknownProject
    found = (AlertReceiver(*row) for row in rows if row.type is not None)
    return [dataclasses.replace(one, former_path=former_path) if former_path else one for one in found]


def _receivers_where(condition: ColumnElement[bool]) -> Select[Any]:
    """A row for each integration of a project under a condition; one without an integration when it has none."""
    tables = (
        Project.__table__.outerjoin(AlertIntegration.__table__, (integrations.project_id == projects.id) & condition)
    ).outerjoin(IncidentSetting.__table__, settings.project_id == projects.id)
    return (
        select(
            projects.id,
            *(integrations[name] for name in ("id", "type", "name", "active", "token", "mapping")),
            func.coalesce(settings.create_issue, false()),
            func.coalesce(settings.send_email, false()),
            func.coalesce(settings.auto_close_incident, true()),
            value_of(f"{RECEIVERS_THROTTLE}_enabled").scalar_subquery(),
            id_of_bot(ALERT_BOT).scalar_subquery(),
            func.coalesce(settings.send_recovery_email, false()),
        )
        .select_from(tables)
        .where(projects.deleting_since.is_(None), func.lower(projects.full_path) == bindparam("path"))
        .order_by(integrations.id.desc())
    )


# Statements of nearly every request are built once.
ENDPOINT = _receivers_where((integrations.endpoint_identifier == bindparam("identifier")) & (integrations.type == HTTP))
ACTIVE_PROMETHEUS = _receivers_where((integrations.type == PROMETHEUS) & integrations.active.is_(true()))
BY_ID = _receivers_where(integrations.id == bindparam("integration"))
# The alerts are updated by their ids alone: given the project as well, SQLite would read all of its open alerts.
COUNT_EVENTS = (
    update(ALERTS)
    .values(events=alerts.events + bindparam("count", type_=Key))
    .where(
        IS_OPEN,
        alerts.id.in_(
            select(alerts.id)
            .where(
                alerts.project_id == bindparam("project"),
                IS_OPEN,
                alerts.fingerprint.in_(bindparam("fingerprints", expanding=True)),
            )
            .order_by(alerts.fingerprint)
            .with_for_update()
            .scalar_subquery()
        ),
    )
    .returning(alerts.id, alerts.iid, alerts.title, alerts.fingerprint)
)
