"""The receivers of alerts (alert ingestion reference, sections 1 to 4 and 8)."""

from __future__ import annotations

import re
from typing import Any

from project_service.access.webhooks import ReceiverBlueprint, WebhookRefused, given_key
from project_service.areas.alerts import queries
from project_service.areas.alerts.receivers import ingestion, payloads
from project_service.areas.alerts.receivers.ingestion import AlertReceiver, UnknownProject
from project_service.kit.security import tokens

IDENTIFIER = re.compile(r"[A-Za-z0-9]+")


def _read(body: bytes) -> dict[str, Any]:
    try:
        return payloads.read(body)
    except payloads.Unreadable as error:
        raise WebhookRefused(400, precedes_lookup=isinstance(error, payloads.MalformedPayload)) from error


receivers = ReceiverBlueprint("alert_receivers", __name__, _read)


def _find(project: str, slug: str, identifier: str) -> AlertReceiver | None:
    identifier = identifier.removesuffix(".json")
    if not IDENTIFIER.fullmatch(identifier):
        raise WebhookRefused(404)
    return _endpoint(project, identifier)


def _find_legacy(project: str) -> AlertReceiver | None:
    return _endpoint(project, queries.LEGACY)


def _endpoint(full_path: str, identifier: str) -> AlertReceiver | None:
    try:
        return ingestion.find_endpoint(full_path, identifier)
    except UnknownProject as error:
        raise WebhookRefused(404) from error


def _find_prometheus(project: str) -> AlertReceiver | None:
    """Of several integrations the one with the key of the request."""
    try:
        found = ingestion.prometheus_receivers(project)
    except UnknownProject as error:
        raise WebhookRefused(404) from error
    key = given_key()
    return next((one for one in found if tokens.same(one.token, key)), found[0] if found else None)


def _check_batch(payload: dict[str, Any]) -> None:
    if not payloads.is_batch(payload):
        raise WebhookRefused(422)


@receivers.receive("/<path:project>/alerts/notify/<slug>/<identifier>", find=_find)
def receive_alert(receiver: AlertReceiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Ingest the payload of an HTTP endpoint: one alert, or a webhook of Alertmanager."""
    return _ingest(receiver, payload)


@receivers.receive("/<path:project>/alerts/notify.json", "/<path:project>/alerts/notify", find=_find_legacy)
def receive_legacy_alert(receiver: AlertReceiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Ingest the payload of the HTTP endpoint without a name."""
    return _ingest(receiver, payload)


@receivers.receive(
    "/<path:project>/prometheus/alerts/notify.json",
    "/<path:project>/prometheus/alerts/notify",
    find=_find_prometheus,
    absent=401,
    check=_check_batch,
)
def receive_prometheus_alerts(receiver: AlertReceiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Ingest a webhook of Alertmanager."""
    return _ingest(receiver, payload)


receivers.answer_not_found("/<path:project>/alerts/notify/<path:rest>")


def _ingest(receiver: AlertReceiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    if payloads.is_batch(payload):
        reports = payloads.parse_batch(payload)
    else:
        reports = [payloads.parse_plain(payload, receiver.mapping)]
    if receiver.former_path is not None:
        ingestion.note_former_address(receiver)
    return [{"iid": alert.iid, "title": alert.title} for alert in ingestion.ingest(receiver, reports)]
