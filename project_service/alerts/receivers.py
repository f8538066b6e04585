"""The receivers of alerts (alert ingestion reference, sections 1 to 4 and 8)."""

from __future__ import annotations

import re
from typing import Any

from project_service.access.receivers import ReceiverBlueprint, Refused, given_key
from project_service.alerts import payloads, queries, service
from project_service.alerts.models import AlertIntegration
from project_service.core.projects import Project, project_by

IDENTIFIER = re.compile(r"[A-Za-z0-9]+")


def _read(body: bytes) -> dict[str, Any]:
    try:
        return payloads.read(body)
    except payloads.Unreadable as error:
        raise Refused(400) from error


receivers = ReceiverBlueprint("alert_receivers", __name__, _read)


def _project(full_path: str) -> Project:
    project = project_by(full_path) if "/" in full_path else None
    if project is None:
        raise Refused(404)
    return project


def _find(project: str, slug: str, identifier: str) -> AlertIntegration | None:
    identifier = identifier.removesuffix(".json")
    if not IDENTIFIER.fullmatch(identifier):
        raise Refused(404)
    return queries.receiver_of(_project(project), identifier)


def _find_legacy(project: str) -> AlertIntegration | None:
    return queries.receiver_of(_project(project), queries.LEGACY)


def _find_prometheus(project: str) -> AlertIntegration | None:
    return queries.prometheus_receiver_of(_project(project), given_key())


def _check_batch(payload: dict[str, Any]) -> None:
    if not payloads.is_batch(payload):
        raise Refused(422)


@receivers.receive("/<path:project>/alerts/notify/<slug>/<identifier>", find=_find)
def receive_alert(integration: AlertIntegration, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Take in what an HTTP endpoint was sent: one alert, or a webhook of Alertmanager."""
    return _ingest(integration, payload)


@receivers.receive("/<path:project>/alerts/notify.json", "/<path:project>/alerts/notify", find=_find_legacy)
def receive_legacy_alert(integration: AlertIntegration, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The same at the address from before there were names."""
    return _ingest(integration, payload)


@receivers.receive(
    "/<path:project>/prometheus/alerts/notify.json",
    "/<path:project>/prometheus/alerts/notify",
    find=_find_prometheus,
    absent=401,
    check=_check_batch,
)
def receive_prometheus_alerts(integration: AlertIntegration, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Take in a webhook of Alertmanager."""
    return _ingest(integration, payload)


def _ingest(integration: AlertIntegration, payload: dict[str, Any]) -> list[dict[str, Any]]:
    if payloads.is_batch(payload):
        return [service.ingest(integration, parsed) for parsed in payloads.parse_batch(payload)]
    return [service.ingest(integration, payloads.parse_plain(payload, integration.mapping))]
