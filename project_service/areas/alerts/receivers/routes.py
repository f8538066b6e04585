"""The receivers of alerts (alert ingestion reference, sections 1 to 4 and 8)."""

from __future__ import annotations

import re
from typing import Any

from flask import request

from project_service.access.webhooks import ReceiverBlueprint, WebhookRefused, sent_key
from project_service.areas.alerts import queries
from project_service.areas.alerts.models import Outcome
from project_service.areas.alerts.payloads import bodies
from project_service.areas.alerts.payloads.elements import BATCH_KEYS, is_batch
from project_service.areas.alerts.receivers import delivery_log, endpoints, receiving
from project_service.areas.alerts.receivers.endpoints import AlertReceiver, UnknownProject
from project_service.kit.security import tokens

IDENTIFIER = re.compile(r"[A-Za-z0-9]+")


def _read(body: bytes) -> dict[str, Any]:
    try:
        return bodies.read(body)
    except bodies.Unreadable as error:
        is_malformed = isinstance(error, bodies.MalformedPayload)
        raise WebhookRefused(400, str(error), precedes_lookup=is_malformed) from error


def _refused(receiver: AlertReceiver, refusal: WebhookRefused, body: bytes) -> None:
    delivery_log.record(
        receiver.id, Outcome.REFUSED, refusal.status, body=body, reason=refusal.reason, address=request.remote_addr
    )


receivers = ReceiverBlueprint("alert_receivers", __name__, _read, _refused)


def _find(project: str, slug: str, identifier: str) -> AlertReceiver | None:
    identifier = identifier.removesuffix(".json")
    if not IDENTIFIER.fullmatch(identifier):
        raise WebhookRefused(404)
    return _endpoint(project, identifier)


def _find_legacy(project: str) -> AlertReceiver | None:
    return _endpoint(project, queries.LEGACY)


def _endpoint(full_path: str, identifier: str) -> AlertReceiver | None:
    try:
        return endpoints.find_endpoint(full_path, identifier)
    except UnknownProject as error:
        raise WebhookRefused(404) from error


def _find_prometheus(project: str) -> AlertReceiver | None:
    """Of several integrations the one with the key of the request."""
    try:
        receivers = endpoints.prometheus_receivers(project)
    except UnknownProject as error:
        raise WebhookRefused(404) from error
    key = sent_key()
    receivers.sort(key=lambda receiver: not receiver.active)
    return next(
        (receiver for receiver in receivers if tokens.same(receiver.token, key)), receivers[0] if receivers else None
    )


def _check_batch(payload: dict[str, Any]) -> None:
    if not is_batch(payload):
        missing = ", ".join(sorted(BATCH_KEYS - payload.keys()))
        fault = f"without {missing}" if missing else 'its version is not "4", or its alerts are no list'
        raise WebhookRefused(422, f"not a webhook of Alertmanager: {fault}")


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
    if receiver.former_path is not None:
        endpoints.note_former_address(receiver)
    body = request.get_data(cache=True)
    received = receiving.receive(receiver, payload, body=body, address=request.remote_addr)
    return [{"iid": alert.iid, "title": alert.title} for alert in received.alerts]
