"""Ingestion of alerts: new ones, repetitions of open ones, recoveries (alert ingestion reference, section 9).

The alerts of a request are written in one transaction, with a number of statements that does not grow with them. That a
fingerprint has at most one open alert is ensured by a unique index: a request that loses a race adds an event to the
alert that the other one opened.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Select, bindparam, func, select, text, update
from sqlalchemy.orm.attributes import set_committed_value

from project_service.areas.alerts.effects import hooks, incidents, notifying, silencing
from project_service.areas.alerts.models import TARGET, Alert, AlertIntegration, Severity, Status
from project_service.areas.alerts.payloads.payloads import newest_of_each
from project_service.areas.alerts.receivers.endpoints import AlertReceiver
from project_service.areas.alerts.receivers.reports import AlertReport
from project_service.domain.accounts.bots import ALERT_BOT, bot
from project_service.domain.projects import DISABLED, Project
from project_service.domain.tracker.counters import next_iids
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.base import Base, Key
from project_service.kit.db.session import db, insert

COUNTER = "alerts"
LOGGED = "logged an alert from **{}**"
RECOVERED = "logged a recovery alert from **{}**"
RAISED = "raised the severity to **{}**"
RESOLVED = f"changed the status to **{Status.RESOLVED.title}**"
# The condition of the unique index, word for word: with a parameter in its place no database would use the index.
IS_OPEN = text("status <> 2")
# Core tables: rows of nearly every request are written without the ORM, which takes twice the time.
ALERTS, NOTES = Base.metadata.tables[Alert.__tablename__], Base.metadata.tables[Note.__tablename__]
alerts = ALERTS.c


@dataclass(frozen=True, slots=True)
class StoredAlert:
    """The alert that a report has opened, repeated or ended; of one that has ended, the id of its incident."""

    id: int
    iid: int
    title: str
    issue_id: int | None = None


def ingest(receiver: AlertReceiver, reports: list[AlertReport]) -> list[StoredAlert]:
    """Store reports in the current unit of work; return the alerts that they have opened, repeated or ended.

    Of several reports with one identity those of its newest state are stored.
    """
    if not reports:
        return []
    # new rows are locked in one order everywhere, and the bot is the first of them
    author_id = receiver.bot_id or bot(ALERT_BOT).id
    if len(reports) > 1:
        reports = newest_of_each(reports)
        # batches of one project wait for one another here: they would lock the same alerts in different orders
        next_iids(receiver.project_id, COUNTER, 0)
    return _Ingestion(receiver, author_id, reports).run()


class _Ingestion:
    """Writes the reports of one request, each identity in one state."""

    def __init__(self, receiver: AlertReceiver, author_id: int, reports: list[AlertReport]) -> None:
        self.receiver = receiver
        self.author_id = author_id
        self.reports = reports
        self.connection = db.session.connection()  # no rows of the session are involved
        self.firing = Counter(report.fingerprint for report in reports if report.fingerprint and not report.is_recovery)
        self.notes: list[dict[str, Any]] = []
        self.opened: dict[int, dict[str, Any]] = {}  # values of new alerts that are not resolved, by id
        self.environments: dict[str, Environment] = {}
        self.ended: list[Alert] = []  # loaded only if a hook or anybody listens
        self.former_statuses: dict[int, int] = {}  # of the alerts that have ended

    def run(self) -> list[StoredAlert]:
        """Write the alerts with their notes, then what the project wants done about them."""
        stored_by_fingerprint = self._count_events() if self.firing else {}
        ended = self._resolve()
        stored_by_fingerprint |= ended
        recovered = self._resolved_before(stored_by_fingerprint)
        stored_by_fingerprint |= recovered
        stored = self._open(stored_by_fingerprint)
        if self.notes:
            notes = self.notes if len(self.notes) > 1 else self.notes[0]
            self.connection.execute(_insert_notes(db.engine.dialect.name), notes)
        written = [(alert, report) for alert, report in stored if report.fingerprint not in recovered]
        self._follow_up(written, [alert.id for alert in ended.values() if alert.issue_id is not None])
        return [alert for alert, _ in stored]

    def _count_events(self) -> dict[str, StoredAlert]:
        """Add to the events of the open alerts that are reported again; those found, by fingerprint."""
        repeated: dict[str, StoredAlert] = {}
        severities: dict[str, int] = {}
        for count in sorted(set(self.firing.values())):
            fingerprints = [fingerprint for fingerprint, number in self.firing.items() if number == count]
            values = {"project": self.receiver.project_id, "fingerprints": fingerprints, "count": count}
            for row in self.connection.execute(COUNT_EVENTS, values):
                repeated[row.fingerprint] = StoredAlert(row.id, row.iid, row.title)
                severities[row.fingerprint] = row.severity
        self._raise_severities(repeated, severities)
        self._keep_unreadable_times(repeated)
        return repeated

    def _raise_severities(self, found: dict[str, StoredAlert], severities: dict[str, int]) -> None:
        """Raise the severity of open alerts whose tool reports one episode in rising severities."""
        raised: dict[int, Severity] = {}
        for report in self.reports:
            if report.raises_severity and (alert := found.get(report.fingerprint or "")) is not None:
                severity = report.parse().severity
                if severity < min(severities[report.fingerprint or ""], raised.get(alert.id, Severity.UNKNOWN)):
                    raised[alert.id] = severity
        if not raised:
            return
        rows = [{"alert": alert_id, "raised": int(severity)} for alert_id, severity in sorted(raised.items())]
        self.connection.execute(SET_SEVERITY, rows)
        for alert_id, severity in raised.items():
            self._note(alert_id, RAISED.format(severity.title))

    def _keep_unreadable_times(self, found: dict[str, StoredAlert]) -> None:
        """Store the newest values of repetitions that were ignored because they are no times."""
        unreadable = {
            found[report.fingerprint].id: report.unreadable_times
            for report in self.reports
            if report.unreadable_times and report.fingerprint in found
        }
        if unreadable:
            rows = [{"alert": alert_id, "times": times} for alert_id, times in sorted(unreadable.items())]
            self.connection.execute(SET_UNREADABLE_TIMES, rows)

    def _resolve(self) -> dict[str, StoredAlert]:
        """Resolve the open alerts that have recovered; those found, by fingerprint."""
        recoveries = {
            report.fingerprint: report for report in self.reports if report.is_recovery and report.fingerprint
        }
        if not recoveries:
            return {}
        now, ended, rows = clock.now(), {}, []
        for row in self._lock_open(list(recoveries)):
            parsed = recoveries[row.fingerprint].parse()
            times = {
                name: unreadable for name, unreadable in (row.unreadable_times or {}).items() if name != "end_time"
            }
            rows.append({"alert": row.id, "ended": parsed.ended_at, "times": times or None, "now": now})
            self.former_statuses[row.id] = row.status
            ended[row.fingerprint] = StoredAlert(row.id, row.iid, row.title, row.issue_id)
            self._note(row.id, RECOVERED.format(self.receiver.source_of(parsed)), RESOLVED)
        if rows:
            self.connection.execute(RESOLVE, rows)
        for alert, row in zip(self.ended, rows, strict=False):
            written = {"status": int(Status.RESOLVED), "ended_at": row["ended"], "updated_at": now}
            for name, value in (written | {"unreadable_times": row["times"]}).items():
                set_committed_value(alert, name, value)
        return ended

    def _lock_open(self, fingerprints: list[str]) -> Sequence[Any]:
        """Lock the open alerts with these fingerprints, whole ones if their end is announced."""
        parameters = {"project": self.receiver.project_id, "fingerprints": fingerprints}
        if not self._is_announced():
            return self.connection.execute(LOCK_OPEN, parameters).all()
        fresh = {"populate_existing": True}
        self.ended = list(db.session.scalars(LOCK_OPEN_ALERTS, parameters, execution_options=fresh))
        return self.ended

    def _resolved_before(self, known: dict[str, StoredAlert]) -> dict[str, StoredAlert]:
        """The newest alerts of recoveries that arrive again, by fingerprint: they are resolved already."""
        wanted = [report.fingerprint for report in self.reports if report.is_recovery and report.fingerprint]
        wanted = [fingerprint for fingerprint in wanted if fingerprint not in known]
        if not wanted:
            return {}
        rows = self.connection.execute(NEWEST, {"project": self.receiver.project_id, "fingerprints": wanted})
        return {row.fingerprint: StoredAlert(row.id, row.iid, row.title) for row in rows}

    def _open(self, known: dict[str, StoredAlert]) -> list[tuple[StoredAlert, AlertReport]]:
        """Insert the alerts that are not known, those of recoveries as resolved; the alert of every report.

        Where another request has opened the same alert a moment ago, its events are counted instead.
        """
        new: dict[str | int, AlertReport] = {}
        for report in self.reports:
            if report.fingerprint not in known and not (report.is_recovery and report.ignores_unmatched):
                new.setdefault(report.fingerprint or id(report), report)
        opened = self._insert(new) if new else {}
        pairs = ((report, report.fingerprint or "") for report in self.reports)
        matched = ((known.get(key) or opened.get(key or id(report)), report) for report, key in pairs)
        return [(alert, report) for alert, report in matched if alert is not None]

    def _insert(self, new: dict[str | int, AlertReport]) -> dict[str | int, StoredAlert]:
        first_iid = next_iids(self.receiver.project_id, COUNTER, len(new))
        self._load_environments({report.environment for report in new.values() if report.environment})
        environments = {name: environment.id for name, environment in self.environments.items()}
        parsed = [report.parse() for report in new.values()]
        rows = [
            {
                "project_id": self.receiver.project_id,
                "integration_id": self.receiver.id or None,
                "iid": iid,
                "title": parsed_report.title,
                "description": parsed_report.description,
                "severity": int(parsed_report.severity),
                "status": int(Status.TRIGGERED if parsed_report.ended_at is None else Status.RESOLVED),
                "service": parsed_report.service,
                "monitoring_tool": parsed_report.monitoring_tool,
                "hosts": parsed_report.hosts,
                "started_at": parsed_report.started_at,
                "ended_at": parsed_report.ended_at,
                "events": self.firing.get(parsed_report.fingerprint or "", 1),
                "fingerprint": parsed_report.fingerprint,
                "payload": parsed_report.payload,
                "environment_id": environments.get(parsed_report.environment or ""),
                "unreadable_times": report.unreadable_times or None,
            }
            for iid, (report, parsed_report) in enumerate(zip(new.values(), parsed, strict=True), start=first_iid)
        ]
        statement = _insert_alerts(db.engine.dialect.name)
        inserted = self.connection.execute(statement, rows if len(rows) > 1 else rows[0]).all()
        by_iid = {row.iid: row for row in inserted}
        by_fingerprint = {row.fingerprint: row for row in inserted}
        stored: dict[str | int, StoredAlert] = {}
        for iid, (key, parsed_report) in enumerate(zip(new, parsed, strict=True), start=first_iid):
            row = by_iid.get(iid) or by_fingerprint[parsed_report.fingerprint]
            stored[key] = StoredAlert(row.id, row.iid, row.title)
            if row.iid == iid:
                if parsed_report.ended_at is None:
                    self.opened[row.id] = rows[iid - first_iid] | row._asdict()
                source = self.receiver.source_of(parsed_report)
                ended = (RECOVERED.format(source), RESOLVED) if parsed_report.ended_at is not None else ()
                self._note(row.id, LOGGED.format(source), *ended)
        return stored

    def _load_environments(self, names: set[str]) -> None:
        if not names:
            return
        statement = select(Environment).where(
            Environment.project_id == self.receiver.project_id, Environment.name.in_(names)
        )
        self.environments = {environment.name: environment for environment in db.session.scalars(statement)}

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

    def _follow_up(self, stored: list[tuple[StoredAlert, AlertReport]], with_incident: list[int]) -> None:
        """Hooks, notifications and incidents, where the project wants them, and incidents of alerts that have ended."""
        receiver = self.receiver
        if receiver.has_silences and self.opened:
            silencing.silence_opened(receiver.project_id, list(self.opened))
        self._announce()
        if receiver.auto_close_incident and with_incident:
            for alert in db.session.scalars(_fresh(with_incident)):
                incidents.close_incident(bot(ALERT_BOT), alert)
        if not receiver.create_issue:
            return
        withheld = silencing.without_incidents(row.id for row, _ in stored) if receiver.has_silences else set[int]()
        by_id = {alert.id: alert for alert in db.session.scalars(_fresh([row.id for row, _ in stored]))}
        for row, report in stored:
            alert = by_id[row.id]
            if not report.is_recovery and row.id not in withheld and _needs_incident(alert):
                incidents.create_incident(bot(ALERT_BOT), alert)

    def _announce(self) -> None:
        """Announce the alerts that were opened or ended, if a hook or anybody listens."""
        if not (self.opened or self.ended) or not (self.listening or self.receiver.notifies):
            return
        opened = self._opened_alerts()
        if self.listening:
            alerts = sorted((*opened, *self.ended), key=lambda alert: alert.id)
            has_silences = self.receiver.has_silences
            hooks.announce_ingested(alerts, self.former_statuses, self.listening, has_silences=has_silences)
        if self.receiver.notifies:
            notifying.record_ingested(self.receiver.project_id, opened, self.ended)

    def _opened_alerts(self) -> list[Alert]:
        """Return the new alerts as they were written: they are not read again."""
        if not self.opened:
            return []
        receiver = self.receiver
        project = self.listening[0].listened_project if self.listening else None
        project = project or Project(id=receiver.project_id, full_path=receiver.full_path)  # what links need
        integration = AlertIntegration(id=receiver.id, name=receiver.name) if receiver.id else None
        environments = {environment.id: environment for environment in self.environments.values()}
        opened = []
        for alert_id in sorted(self.opened):
            alert = Alert(**self.opened[alert_id])
            environment = environments.get(alert.environment_id or 0)
            related = {"project": project, "integration": integration, "environment": environment, "issue": None}
            for name, row in related.items():
                set_committed_value(alert, name, row)
            opened.append(alert)
        return opened

    @functools.cached_property
    def listening(self) -> list[Any]:
        """The hooks that want the alerts of the project."""
        return hooks.listeners(self.receiver.project_id) if self.receiver.has_hooks else []

    def _is_announced(self) -> bool:
        return self.receiver.notifies or bool(self.listening)


def _fresh(ids: list[int]) -> Select[Alert]:
    """Alerts as they are stored now: they were written without the ORM."""
    return select(Alert).where(Alert.id.in_(ids)).order_by(Alert.id).execution_options(populate_existing=True)


def _needs_incident(alert: Alert) -> bool:
    return alert.issue_id is None and alert.project.issues_access_level != DISABLED


@functools.cache
def _insert_notes(_dialect: str) -> Any:
    """The statement that stores system notes."""
    return insert(NOTES)


@functools.cache
def _insert_alerts(_dialect: str) -> Any:
    """The statement that stores new alerts, or adds to the events of those that were opened a moment ago."""
    new = insert(ALERTS)
    return new.on_conflict_do_update(
        index_elements=["project_id", "fingerprint"],
        index_where=IS_OPEN,
        set_={"events": alerts.events + new.excluded.events, "updated_at": new.excluded.updated_at},
    ).returning(alerts.id, alerts.iid, alerts.title, alerts.fingerprint, alerts.created_at, alerts.updated_at)


# Statements of nearly every request are built once.
WITH_FINGERPRINTS = (
    alerts.project_id == bindparam("project"),
    alerts.fingerprint.in_(bindparam("fingerprints", expanding=True)),
)
LOCK_OPEN = (
    select(
        *(alerts.id, alerts.iid, alerts.title, alerts.fingerprint, alerts.issue_id, alerts.unreadable_times),
        alerts.status,
    )
    .where(*WITH_FINGERPRINTS, IS_OPEN)
    .order_by(alerts.fingerprint)
    .with_for_update()
)
LOCK_OPEN_ALERTS = (
    select(Alert)
    .options(*hooks.SHOWN)
    .where(*WITH_FINGERPRINTS, IS_OPEN)
    .order_by(alerts.fingerprint)
    .with_for_update(of=Alert)
)
NEWEST = select(alerts.id, alerts.iid, alerts.title, alerts.fingerprint).where(
    alerts.id.in_(select(func.max(alerts.id)).where(*WITH_FINGERPRINTS).group_by(alerts.fingerprint))
)
ONE_ALERT = update(ALERTS).where(alerts.id == bindparam("alert"))
RESOLVE = ONE_ALERT.values(
    status=int(Status.RESOLVED),
    ended_at=bindparam("ended", type_=alerts.ended_at.type),
    updated_at=bindparam("now", type_=alerts.updated_at.type),
    unreadable_times=bindparam("times", type_=alerts.unreadable_times.type),
)
SET_SEVERITY = ONE_ALERT.values(severity=bindparam("raised"))
SET_UNREADABLE_TIMES = ONE_ALERT.values(unreadable_times=bindparam("times", type_=alerts.unreadable_times.type))
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
    .returning(alerts.id, alerts.iid, alerts.title, alerts.fingerprint, alerts.severity)
)
