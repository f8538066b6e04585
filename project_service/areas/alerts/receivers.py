"""The receivers of alerts (alert ingestion reference, sections 1 to 4 and 8)."""

from __future__ import annotations

import re
from typing import Any

from project_service.access.webhooks import ReceiverBlueprint, Refused, given_key
from project_service.areas.alerts import ingestion, payloads, queries
from project_service.areas.alerts.ingestion import Receiver, UnknownProject
from project_service.kit.security import secrets

IDENTIFIER = re.compile(r"[A-Za-z0-9]+")


def _read(body: bytes) -> dict[str, Any]:
    try:
        return payloads.read(body)
    except payloads.Unreadable as error:
        raise Refused(400, at_once=isinstance(error, payloads.Malformed)) from error


receivers = ReceiverBlueprint("alert_receivers", __name__, _read)


def _find(project: str, slug: str, identifier: str) -> Receiver | None:
    identifier = identifier.removesuffix(".json")
    if not IDENTIFIER.fullmatch(identifier):
        raise Refused(404)
    return _endpoint(project, identifier)


def _find_legacy(project: str) -> Receiver | None:
    return _endpoint(project, queries.LEGACY)


def _endpoint(full_path: str, identifier: str) -> Receiver | None:
    try:
        return ingestion.endpoint(full_path, identifier)
    except UnknownProject as error:
        raise Refused(404) from error


def _find_prometheus(project: str) -> Receiver | None:
    """With several, the one whose key was given."""
    try:
        found = ingestion.prometheus_receivers(project)
    except UnknownProject as error:
        raise Refused(404) from error
    return next((one for one in found if secrets.same(one.token, given_key())), found[0] if found else None)


def _check_batch(payload: dict[str, Any]) -> None:
    if not payloads.is_batch(payload):
        raise Refused(422)


@receivers.receive("/<path:project>/alerts/notify/<slug>/<identifier>", find=_find)
def receive_alert(receiver: Receiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Take in what an HTTP endpoint was sent: one alert, or a webhook of Alertmanager."""
    return _ingest(receiver, payload)


@receivers.receive("/<path:project>/alerts/notify.json", "/<path:project>/alerts/notify", find=_find_legacy)
def receive_legacy_alert(receiver: Receiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """The same at the address from before there were names."""
    return _ingest(receiver, payload)


@receivers.receive(
    "/<path:project>/prometheus/alerts/notify.json",
    "/<path:project>/prometheus/alerts/notify",
    find=_find_prometheus,
    absent=401,
    check=_check_batch,
)
def receive_prometheus_alerts(receiver: Receiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Take in a webhook of Alertmanager."""
    return _ingest(receiver, payload)


receivers.leave_out("/<path:project>/alerts/notify/<path:rest>")


def _ingest(receiver: Receiver, payload: dict[str, Any]) -> list[dict[str, Any]]:
    if payloads.is_batch(payload):
        told = payloads.parse_batch(payload)
    else:
        told = [payloads.parse_plain(payload, receiver.mapping)]
    return [{"iid": taken.iid, "title": taken.title} for taken in ingestion.take_in_at_once((receiver, told))]
