"""Payloads of alerts for web hooks (webhooks reference, section 13.8)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from project_service.areas.alerts.models import TARGET, Alert, Severity, Status
from project_service.domain import page_paths
from project_service.domain.accounts.users import User
from project_service.domain.hooks import hook_events, note_payloads
from project_service.domain.hooks.hook_payloads import project_of, user_of
from project_service.domain.projects import Project
from project_service.domain.silences import holding
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http import urls

FLAG = "alert_events"
OPEN, UPDATE, RESOLVE, REOPEN = "open", "update", "resolve", "reopen"
ENDED = (Status.RESOLVED, Status.IGNORED)
SHOWN = tuple(joinedload(shown) for shown in (Alert.project, Alert.environment, Alert.issue, Alert.integration))


def address_of(alert: Alert) -> str:
    """Return the URL of the page of an alert."""
    return urls.absolute(f"/{alert.project.full_path}{page_paths.alert(alert.iid)}")


def attributes_of(alert: Alert) -> dict[str, Any]:
    """Return the attributes of an alert."""
    return {
        "title": alert.title,
        "url": address_of(alert),
        "severity": Severity(alert.severity).name.lower(),
        "events": alert.events,
        "status": Status(alert.status).name.lower(),
        "started_at": clock.isoformat(alert.started_at),
        "id": alert.id,
        "iid": alert.iid,
        "project_id": alert.project_id,
        "description": alert.description,
        "ended_at": None if alert.ended_at is None else clock.isoformat(alert.ended_at),
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": alert.hosts,
        "fingerprint": alert.fingerprint,
        "environment": None if alert.environment is None else alert.environment.name,
        "assignee_ids": [] if alert.assignee_id is None else [alert.assignee_id],
        "issue_iid": None if alert.issue is None else alert.issue.iid,
        "created_at": clock.isoformat(alert.created_at),
        "updated_at": clock.isoformat(alert.updated_at),
    }


def announce(alert: Alert, user: User | None, action: str, changes: dict[str, Any], **details: Any) -> None:
    """Announce a change of an alert."""

    def payload() -> dict[str, Any]:
        db.session.flush()
        if not alert.is_silence_loaded:
            load_silences([alert])
        return _payload(alert, user, action, changes)

    hook_events.announce(FLAG, alert.project, payload, **details)


def announce_status(alert: Alert, user: User | None, before: Status) -> None:
    """Announce that the status of an alert has changed."""
    now = Status(alert.status)
    changes = {"status": {"previous": Status(before).name.lower(), "current": now.name.lower()}}
    action = RESOLVE if now == Status.RESOLVED else REOPEN if before in ENDED and now not in ENDED else UPDATE
    announce(alert, user, action, changes)


def listeners(project_id: int) -> list[Any]:
    """Return the hooks that want events of alerts of a project."""
    return hook_events.listeners(project_id, FLAG)


def announce_ingested(alerts: Sequence[Alert], ended: dict[int, int], hooks: list[Any], *, has_silences: bool) -> None:
    """Announce alerts that a receiver has opened, and those that it has ended, with their former status, to hooks."""
    if has_silences:
        load_silences(alerts)
    payloads = [partial(_ingested, alert, ended.get(alert.id)) for alert in alerts]
    project = next((alert.project for alert in alerts), None)
    if project is not None:
        hook_events.announce_all(FLAG, project, payloads, hooks)


def load_silences(alerts: Sequence[Alert]) -> None:
    """Set the silence of each alert, whatever its status."""
    silences = holding.silences_of(alert.id for alert in alerts)
    for alert in alerts:
        alert.silence = silences.get(alert.id)


def _ingested(alert: Alert, former_status: int | None) -> dict[str, Any]:
    if former_status is None:
        return _payload(alert, None, OPEN, {})
    names = (Status(status).name.lower() for status in (former_status, alert.status))
    return _payload(alert, None, RESOLVE, {"status": dict(zip(("previous", "current"), names, strict=True))})


def _payload(alert: Alert, user: User | None, action: str, changes: dict[str, Any]) -> dict[str, Any]:
    return {
        "object_kind": "alert",
        "event_type": "alert",
        "user": None if user is None else user_of(user),
        "project": project_of(alert.project),
        "object_attributes": attributes_of(alert) | {"action": action, "silenced": alert.silence is not None},
        "changes": changes,
    }


def _sample(project: Project) -> dict[str, Any]:
    newest = db.session.scalar(select(Alert).where(Alert.project_id == project.id).order_by(Alert.id.desc()).limit(1))
    if newest is not None:
        return _payload(newest, None, OPEN, {})
    now = clock.now()
    alert = Alert(id=1, iid=1, project_id=project.id, title="Sample alert", severity=Severity.CRITICAL, events=1)
    alert.status, alert.started_at, alert.created_at, alert.updated_at = Status.TRIGGERED, now, now, now
    alert.hosts = []
    with db.session.no_autoflush:
        alert.project = project
        payload = _payload(alert, None, OPEN, {})
        db.session.expunge(alert)
    return payload


def _describe(alert_id: int) -> tuple[str, dict[str, Any], str] | None:
    alert = db.session.get(Alert, alert_id)
    return None if alert is None else ("alert", attributes_of(alert), address_of(alert))


hook_events.add_sample(FLAG, _sample)
note_payloads.add_noteable(TARGET, _describe)
