"""Ingestion of the alerts that the service itself reports, without an integration."""

from __future__ import annotations

from project_service.areas.alerts.models import Severity
from project_service.areas.alerts.payloads.words import PLAIN_SEVERITIES
from project_service.areas.alerts.receivers import endpoints, ingestion
from project_service.areas.alerts.receivers.reports import AlertReport, ParsedAlert, limited
from project_service.domain.alerts.own_alerts import OwnAlert


def on_report(alert: OwnAlert) -> int | None:
    """Store an alert in the current unit of work; return its number, ``None`` if nothing was stored."""
    receiver = endpoints.receiver_of_service(alert.project_id)
    if receiver is None:
        return None
    stored = ingestion.ingest(receiver, [_report_of(alert)])
    return stored[0].iid if stored else None


def _report_of(alert: OwnAlert) -> AlertReport:
    parsed = ParsedAlert(
        title=limited(alert.title, "title") or alert.monitoring_tool,
        payload=alert.payload,
        started_at=alert.started_at,
        severity=PLAIN_SEVERITIES.get(alert.severity, Severity.CRITICAL),
        description=limited(alert.description, "description"),
        monitoring_tool=alert.monitoring_tool,
        fingerprint=alert.fingerprint,
        environment=alert.environment,
        ended_at=alert.ended_at,
    )
    return AlertReport(
        fingerprint=alert.fingerprint,
        is_recovery=alert.ended_at is not None,
        environment=alert.environment,
        parse=lambda: parsed,
        unreadable_times={},
        started_at=alert.started_at,
        ignores_unmatched=True,
    )
