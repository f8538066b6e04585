"""What changes alerts: payloads that come in, people who work on them, incidents made of them."""

from __future__ import annotations

import datetime as dt
import re
from contextlib import nullcontext
from typing import Any

from sqlalchemy import delete, func, select, text, update

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.alerts import incidents, mails, queries
from project_service.alerts.incidents import note
from project_service.alerts.models import Alert, AlertIntegration, AlertTodo, IncidentSetting, Status
from project_service.alerts.payloads import DEFAULT_SOURCE, PROMETHEUS_TOOL, Parsed
from project_service.core.bots import ALERT_BOT, bot
from project_service.core.projects import DISABLED, Project
from project_service.core.users import User, users
from project_service.kit import clock
from project_service.kit.database import db, insert, unique
from project_service.kit.errors import Invalid
from project_service.tracker.counters import next_iid
from project_service.tracker.environments import environment_called
from project_service.tracker.notes import Note

COUNTER = "alerts"
MENTION = re.compile(r"(?<![\w@])@([A-Za-z0-9_][A-Za-z0-9_.-]*)")
MOST_MENTIONED = 50


def ingest(integration: AlertIntegration, parsed: Parsed) -> dict[str, Any]:
    """Take in one alert: a new one, one more occurrence, or a recovery (alert ingestion reference, section 9)."""
    setting = queries.incident_setting_of(integration.project_id)
    if parsed.is_recovery:
        return _recover(integration, parsed, setting)
    return _fire(integration, parsed, setting)


def source_of(integration: AlertIntegration, parsed: Parsed) -> str:
    """Who reported, for notes."""
    if parsed.monitoring_tool == PROMETHEUS_TOOL:
        return integration.name or PROMETHEUS_TOOL
    return parsed.monitoring_tool or integration.name or DEFAULT_SOURCE


def change_status(author: User, alert: Alert, status: Status, *, ended_at: dt.datetime | None = None) -> None:
    """Move an alert; an alert is open again only while no other with its fingerprint is."""
    # held: a payload that comes in now changes it before or after, never in between
    db.session.refresh(alert, ["status", "ended_at"], with_for_update=True)
    if alert.status == status:
        return
    if alert.status == Status.RESOLVED and (twin := _open_twin(alert)) is not None:
        raise Invalid(
            status=f"cannot be changed: alert #{twin.iid} with the same fingerprint is already open. Resolve it first."
        )
    opened = unique(Invalid(status="cannot be changed: an alert with the same fingerprint was opened a moment ago."))
    with opened if alert.status == Status.RESOLVED else nullcontext():
        alert.status = status
        alert.ended_at = (ended_at or clock.now()) if status == Status.RESOLVED else None
    note(author, alert, f"changed the status to **{status.title}**")
    if status == Status.RESOLVED:
        finish_todo(author, alert)


def assign(author: User, alert: Alert, assignee: User | None) -> None:
    """Give an alert to somebody, or to nobody; who gets it is reminded."""
    before = alert.assignee
    if (before.id if before else None) == (assignee.id if assignee else None):
        return
    alert.assignee_id = assignee.id if assignee else None
    alert.assignee = assignee
    parts = [f"assigned to @{assignee.username}"] if assignee else []
    parts += [f"unassigned @{before.username}"] if before else []
    note(author, alert, " and ".join(parts))
    if assignee is not None:
        add_todo(assignee, alert)


def comment(author: User, alert: Alert, body: str) -> Note:
    """Comment on an alert; comments have events, and remind those whom they mention."""
    if not body.strip():
        raise Invalid(note="can't be blank")
    for user in _mentioned(alert, body):
        add_todo(user, alert)
    return incidents.comment(author, alert, body)


def add_todo(user: User, alert: Alert) -> None:
    """Remind somebody of an alert; once."""
    db.session.execute(
        insert(AlertTodo)
        .values(alert_id=alert.id, user_id=user.id, created_at=clock.now(), updated_at=clock.now())
        .on_conflict_do_nothing()
    )


def finish_todo(user: User, alert: Alert) -> None:
    """Somebody has seen to it."""
    db.session.execute(delete(AlertTodo).where(AlertTodo.alert_id == alert.id, AlertTodo.user_id == user.id))


def save_incident_setting(project: Project, **fields: bool) -> None:
    """Set what else happens with the alerts of a project."""
    now = clock.now()
    row = insert(IncidentSetting).values(project_id=project.id, created_at=now, updated_at=now, **fields)
    db.session.execute(row.on_conflict_do_update(index_elements=["project_id"], set_={**fields, "updated_at": now}))


def _mentioned(alert: Alert, body: str) -> list[User]:
    """Those who are mentioned in a text and may see the alert."""
    names = {name.rstrip(".-").lower() for name in MENTION.findall(body)}
    found = db.session.scalars(users().where(func.lower(User.username).in_(sorted(names)[:MOST_MENTIONED])))
    return [user for user in found if allowed(Caller.of(user), Ability.READ_ALERTS, alert.project)]


def _fire(integration: AlertIntegration, parsed: Parsed, setting: IncidentSetting) -> dict[str, Any]:
    alert_id, iid, events, title = _count_occurrence(integration, parsed) or _insert(
        integration, parsed, Status.TRIGGERED
    )
    is_new = events == 1
    if is_new or setting.create_issue or setting.send_email:
        alert = db.session.get_one(Alert, alert_id, populate_existing=True)
        if is_new:
            note(bot(ALERT_BOT), alert, f"logged an alert from **{source_of(integration, parsed)}**")
        if setting.create_issue and alert.issue_id is None and alert.project.issues_access_level != DISABLED:
            incidents.create_incident(bot(ALERT_BOT), alert)
        if setting.send_email and alert.status == Status.TRIGGERED:
            mails.queue_alert(alert, with_incidents=setting.create_issue)
    return {"iid": iid, "title": title}


def _recover(integration: AlertIntegration, parsed: Parsed, setting: IncidentSetting) -> dict[str, Any]:
    alert, author = _open_alert(integration.project_id, parsed.fingerprint), bot(ALERT_BOT)
    source = source_of(integration, parsed)
    if alert is None:
        # nothing was open: kept as an alert that is over, never as an open one
        alert_id, *_ = _insert(integration, parsed, Status.RESOLVED)
        alert = db.session.get_one(Alert, alert_id)
        note(author, alert, f"logged an alert from **{source}**")
        note(author, alert, f"logged a recovery alert from **{source}**")
        note(author, alert, f"changed the status to **{Status.RESOLVED.title}**")
    else:
        note(author, alert, f"logged a recovery alert from **{source}**")
        change_status(author, alert, Status.RESOLVED, ended_at=parsed.ended_at)
        if setting.auto_close_incident:
            incidents.close_incident(author, alert)
    if setting.send_email:
        mails.queue_alert(alert, with_incidents=setting.create_issue)
    return {"iid": alert.iid, "title": alert.title}


def _count_occurrence(integration: AlertIntegration, parsed: Parsed) -> tuple[int, int, int, str] | None:
    if parsed.fingerprint is None:
        return None
    counted = db.session.execute(
        update(Alert)
        .where(
            Alert.project_id == integration.project_id,
            Alert.fingerprint == parsed.fingerprint,
            Alert.status != Status.RESOLVED,
        )
        .values(events=Alert.events + 1, updated_at=clock.now())
        .returning(Alert.id, Alert.iid, Alert.events, Alert.title)
    ).first()
    return (counted[0], counted[1], counted[2], counted[3]) if counted else None


def _insert(integration: AlertIntegration, parsed: Parsed, status: Status) -> tuple[int, int, int, str]:
    now = clock.now()
    environment_id = environment_called(integration.project_id, parsed.environment) if parsed.environment else None
    row = insert(Alert).values(
        project_id=integration.project_id,
        iid=next_iid(integration.project_id, COUNTER),
        title=parsed.title,
        description=parsed.description,
        severity=parsed.severity,
        status=status,
        service=parsed.service,
        monitoring_tool=parsed.monitoring_tool,
        hosts=parsed.hosts,
        started_at=parsed.started_at,
        ended_at=parsed.ended_at if status == Status.RESOLVED else None,
        events=1,
        fingerprint=parsed.fingerprint,
        payload=parsed.payload,
        environment_id=environment_id,
        created_at=now,
        updated_at=now,
    )
    # another request may have opened the same alert a moment ago: then this is one more occurrence of it
    stored = row.on_conflict_do_update(
        index_elements=["project_id", "fingerprint"],
        index_where=text("status <> 2"),
        set_={"events": Alert.events + 1, "updated_at": now},
    ).returning(Alert.id, Alert.iid, Alert.events, Alert.title)
    found = db.session.execute(stored).one()
    return found[0], found[1], found[2], found[3]


def _open_alert(project_id: int, fingerprint: str | None) -> Alert | None:
    if fingerprint is None:
        return None
    return db.session.scalar(
        select(Alert)
        .where(Alert.project_id == project_id, Alert.fingerprint == fingerprint, Alert.status != Status.RESOLVED)
        .with_for_update()
        .execution_options(populate_existing=True)
    )


def _open_twin(alert: Alert) -> Alert | None:
    if alert.fingerprint is None:
        return None
    same = select(Alert).where(
        Alert.project_id == alert.project_id, Alert.fingerprint == alert.fingerprint, Alert.id != alert.id
    )
    return db.session.scalar(same.where(Alert.status != Status.RESOLVED))
