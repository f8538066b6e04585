"""Silences of alerts: which ones match, when they begin and end (silences reference, section 3)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import joinedload

from project_service.areas.alerts.effects import hooks, notifying
from project_service.areas.alerts.models import Alert, Severity, Status
from project_service.areas.alerts.queries import OPEN
from project_service.domain.silences import holding
from project_service.domain.silences.matching import Facts, holds_all
from project_service.domain.silences.models import Silence, SilencedAlert
from project_service.kit.db.session import db

BATCH = 500
LOADED = (joinedload(Alert.environment), joinedload(Alert.integration))


def facts_of(alert: Alert) -> Facts:
    """Return what matchers compare."""
    return {
        "title": alert.title,
        "severity": Severity(alert.severity).name.lower(),
        "environment": None if alert.environment is None else alert.environment.name,
        "service": alert.service,
        "monitoring_tool": alert.monitoring_tool,
        "hosts": alert.hosts,
        "integration": None if alert.integration is None else alert.integration.name,
        "fingerprint": alert.fingerprint,
        "payload": alert.payload,
    }


def silence_opened(project_id: int, alert_ids: Iterable[int]) -> None:
    """Record which alerts that were just opened are silenced."""
    opened = select(Alert).where(Alert.id.in_(list(alert_ids))).options(*LOADED)
    alerts = db.session.scalars(opened.execution_options(populate_existing=True)).all()
    holding.record(
        holding.silences_matching(project_id, {alert.id: facts_of(alert) for alert in alerts}), held_back=False
    )


def on_silence_begun(silence: Silence) -> None:
    """Record which of the open alerts a silence matches that begins now."""
    last = 0
    while alerts := _open_alerts(silence, last):
        last = alerts[-1].id
        matched = {alert.id: [silence] for alert in alerts if holds_all(silence.matchers, facts_of(alert))}
        holding.record(matched, held_back=False)
        for alert in alerts:
            db.session.expunge(alert)


def on_silence_ended(silence: Silence, alert_ids: Sequence[int]) -> None:
    """Record again that alerts were triggered which a silence has held back, if they are still triggered."""
    still = select(Alert).where(Alert.id.in_(alert_ids), Alert.status == Status.TRIGGERED)
    alerts = db.session.scalars(still.options(*hooks.SHOWN).order_by(Alert.project_id, Alert.id)).all()
    for project_id, of_project in itertools.groupby(alerts, key=lambda alert: alert.project_id):
        notifying.record_open_after_silence(project_id, of_project, silence.id)


def without_incidents(alert_ids: Iterable[int]) -> set[int]:
    """Return which alerts are silenced by a silence that holds incidents back."""
    held = select(SilencedAlert.alert_id).join(Silence, Silence.id == SilencedAlert.silence_id)
    held = held.where(SilencedAlert.alert_id.in_(list(alert_ids)), Silence.hold_incidents.is_(True))
    return set(db.session.scalars(held.where(holding.is_active())))


def silenced() -> ColumnElement[bool]:
    """Return the condition that an alert is open and silenced now."""
    rows = exists().where(
        SilencedAlert.alert_id == Alert.id, SilencedAlert.silence_id == Silence.id, holding.is_active()
    )
    return Alert.status.in_(OPEN) & rows


def load_silences(alerts: Sequence[Alert]) -> None:
    """Set the silence of each alert that is open and silenced, for a response."""
    silences = holding.silences_of(alert.id for alert in alerts if alert.status in OPEN) if alerts else {}
    for alert in alerts:
        alert.silence = silences.get(alert.id)


def query_of(alert: Alert) -> dict[str, Any]:
    """Return what the form of a new silence is filled in with for an alert."""
    environment = {} if alert.environment is None else {"environment": alert.environment.name}
    return {"title": alert.title} | environment


def _open_alerts(silence: Silence, after: int) -> Sequence[Alert]:
    here = Alert.project_id.in_(holding.projects_of(silence))
    wanted = select(Alert).where(here, Alert.status.in_(OPEN), Alert.id > after)
    return db.session.scalars(wanted.options(*LOADED).order_by(Alert.id).limit(BATCH)).all()
