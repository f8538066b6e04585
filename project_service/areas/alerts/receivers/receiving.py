"""A payload on its way to alerts: parsed by the rules of its integration, stored, and logged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from project_service.areas.alerts.models import Outcome
from project_service.areas.alerts.payloads.payloads import ParsedRequest, parse
from project_service.areas.alerts.receivers import delivery_log, ingestion, watchdogs
from project_service.areas.alerts.receivers.endpoints import AlertReceiver
from project_service.areas.alerts.receivers.ingestion import StoredAlert
from project_service.kit.db.session import after_commit

MAX_LOGGED_ALERTS = 100  # numbers of alerts in the log of one request


@dataclass(frozen=True, slots=True)
class Received:
    """What became of a payload."""

    alerts: list[StoredAlert]
    parsed: ParsedRequest


def receive(receiver: AlertReceiver, payload: dict[str, Any], *, body: bytes, address: str | None) -> Received:
    """Store the alerts of a payload in the current unit of work, and log the request when that is committed."""
    parsed = parse(payload, receiver.rules)
    is_call = receiver.has_watchdogs and watchdogs.record_calls(receiver, parsed)
    stored = ingestion.ingest(receiver, parsed.reports)
    has_effect = bool(stored) or is_call or parsed.outcome != Outcome.ACCEPTED
    notes = parsed.notes if has_effect else [*parsed.notes, _nothing_in(parsed)]
    outcome = parsed.outcome if has_effect else Outcome.IGNORED
    after_commit(
        lambda: delivery_log.record(
            receiver.id,
            outcome,
            200,
            body=body,
            reason="; ".join(dict.fromkeys(notes)) or None,
            address=address,
            alert_iids=list(dict.fromkeys(alert.iid for alert in stored))[:MAX_LOGGED_ALERTS],
        )
    )
    return Received(stored, parsed)


def _nothing_in(parsed: ParsedRequest) -> str:
    return "a recovery of an alert that never was open" if parsed.reports else "no alert with a title and a start"
