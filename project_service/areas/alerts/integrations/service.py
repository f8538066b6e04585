"""Rules for changes of integrations (alert integrations reference, sections 2, 5, 6 and 8)."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from sqlalchemy import select

from project_service.access import audit
from project_service.areas.alerts import queries
from project_service.areas.alerts.models import HTTP, OPSGENIE, PROMETHEUS, AlertIntegration
from project_service.areas.alerts.payloads import bodies, payload_mapping
from project_service.areas.alerts.payloads.elements import is_batch
from project_service.areas.alerts.payloads.payloads import ParsedRequest, parse
from project_service.areas.alerts.receivers import endpoints, receiving
from project_service.areas.alerts.receivers.reports import ReadingRules
from project_service.domain import instance_settings
from project_service.domain.audit.recording import AuditTarget
from project_service.domain.projects import Project
from project_service.kit.db.locking import delete_locked
from project_service.kit.db.session import add_unique, db
from project_service.kit.http import urls
from project_service.kit.http.errors import Invalid
from project_service.kit.security.outgoing_http import rules
from project_service.kit.time_words import zone_named

MAX_NAME_CHARACTERS = 255
MAX_SLUG_CHARACTERS = 63
DEFAULT_SLUG = "http-endpoint"
BAD_ZONE = "is not the name of a time zone, such as Europe/Berlin"
TYPES = {HTTP: "HTTP Endpoint", PROMETHEUS: "Prometheus", OPSGENIE: "Opsgenie"}
# default names; an HTTP endpoint has none, since projects have several
NAMES = {name: TYPES[name] for name in (PROMETHEUS, OPSGENIE)}
OTHERS_ACTIVE = "cannot be switched on beside Opsgenie: it takes the place of all other integrations"
OPSGENIE_ALONE = "cannot be switched on while other integrations are active"
NO_BATCH = "is no body of an Alertmanager webhook, which is what Prometheus sends"
INVALID = "Integration payload is invalid."
INACTIVE = "The integration is currently inactive. Enable the integration to send the test alert."
MISFIT = "cannot be mapped to this: the sample has no such field, or one of another type"
TAKEN = "belongs to another endpoint of this project"
CHANGED = "was changed: parse it and map its fields again"


class IntegrationColumns(TypedDict, total=False):
    """Columns of an integration that may be given."""

    type: str
    name: str
    active: bool
    target_url: str | None
    preset: str | None
    payload_example: str | None
    mapping: dict[str, Any]
    severity_mapping: dict[str, str] | None
    resolved_values: list[str] | None
    time_zone: str | None


def create_integration(
    project: Project, *, short_address: bool = False, **fields: Unpack[IntegrationColumns]
) -> AlertIntegration:
    """Add an integration with a generated identifier and key.

    An HTTP endpoint may have the ``short_address``, the one from before endpoints had names.
    """
    is_short = short_address and fields.get("type") == HTTP
    if is_short and queries.has_short_address(project):
        raise Invalid(short_address=TAKEN)
    if len(fields["name"]) <= MAX_NAME_CHARACTERS:
        fields["name"] = distinct_name(project, fields["type"], fields["name"])
    integration = AlertIntegration(
        project_id=project.id,
        project=project,
        endpoint_identifier=queries.LEGACY if is_short else secrets.token_hex(8),
        token=secrets.token_hex(16),
        **({"mapping": {}} | fields),
    )
    with db.session.no_autoflush:
        check(integration)
    add_unique(integration, Invalid(short_address=TAKEN))
    _record(integration, "created")
    return integration


def distinct_name(project: Project, type_of_integration: str, name: str) -> str:
    """Return a name that no other integration of this type has: with a number, if need be."""
    own = select(AlertIntegration.name).where(
        AlertIntegration.project_id == project.id, AlertIntegration.type == type_of_integration
    )
    taken = set(db.session.scalars(own))
    names = (
        name,
        *(f"{name[: MAX_NAME_CHARACTERS - len(str(number)) - 1]} {number}" for number in range(2, len(taken) + 3)),
    )
    return next(candidate for candidate in names if candidate not in taken)


def update_integration(integration: AlertIntegration, **fields: Unpack[IntegrationColumns]) -> AlertIntegration:
    """Change an integration; its type, URL and key stay."""
    with db.session.no_autoflush:
        name = fields.get("name", integration.name)
        if name != integration.name and len(name) <= MAX_NAME_CHARACTERS:
            fields["name"] = distinct_name(integration.project, integration.type, name)
        changed = sorted(name for name, value in fields.items() if getattr(integration, name) != value)
        for name, value in fields.items():
            setattr(integration, name, value)
        check(integration)
    if changed:
        _record(integration, "updated", change=", ".join(changed))
    return integration


def reset_key(integration: AlertIntegration) -> None:
    """Generate a new key; the old one is refused by the next request."""
    integration.token = secrets.token_hex(16)
    _record(integration, "key_reset")


def delete_integration(integration: AlertIntegration) -> None:
    """Remove an integration; its alerts stay."""
    _record(integration, "destroyed")
    delete_locked(integration)


def _record(integration: AlertIntegration, action: str, **details: Any) -> None:
    target = AuditTarget("AlertManagement::HttpIntegration", integration.id, integration.name)
    text = f"Alert integration {integration.name}: {action.replace('_', ' ')}"
    audit.record(f"integration_{action}", integration.project, text, target=target, **details)


def map_sample(text: str, chosen: dict[str, str]) -> dict[str, Any]:
    """Return the sample and mapping to store; ``Invalid`` if the sample cannot be read or lacks a chosen field."""
    try:
        sample = payload_mapping.read_sample(text) if text.strip() else {}
    except payload_mapping.Unusable as error:
        raise Invalid(payload_example=str(error)) from error
    paths = payload_mapping.in_element(sample, chosen)
    mapping = payload_mapping.mapping_of(payload_mapping.mappable(sample), paths)
    if missing := chosen.keys() - mapping.keys():
        raise Invalid(**{f"map_{target}": MISFIT for target in missing})
    return {"payload_example": text if text.strip() else None, "mapping": mapping}


@dataclass(frozen=True, slots=True)
class SentTest:
    """What became of a test payload: its alerts by ``iid``, the times in it that could not be read, and remarks."""

    iids: list[int]
    unreadable_times: dict[str, dict[str, str]]
    note: str = ""


def send_test(integration: AlertIntegration, text: str) -> SentTest:
    """Ingest a payload as if it had been sent to the receiver.

    The key is not shown to the user who tests. Incidents and mails follow as for any alert.
    """
    if integration.type == OPSGENIE:
        raise Invalid(base="Opsgenie receives no alerts here.")
    if not text.strip():
        raise Invalid(payload="can't be blank")
    try:
        payload = bodies.read(text.encode("utf-8", "replace"))
    except bodies.Unreadable as error:
        raise Invalid(base=f"{INVALID} It is {error}.") from error
    if not integration.active:
        raise Invalid(base=INACTIVE)
    if integration.type == PROMETHEUS and not is_batch(payload):
        raise Invalid(base=f"{INVALID} It {NO_BATCH}.")
    receiver = endpoints.receiver_of(integration)
    received = receiving.receive(receiver, payload, body=text.encode("utf-8", "replace"), address=None)
    reports = received.parsed.reports
    unreadable = {
        field: unreadable_time for report in reports for field, unreadable_time in report.unreadable_times.items()
    }
    note = "; ".join(received.parsed.notes)
    return SentTest([alert.iid for alert in received.alerts], unreadable, note)


def parsed_for(integration_type: str, payload: dict[str, Any], rules: ReadingRules) -> ParsedRequest | None:
    """Parse a payload; ``None`` if an integration of this type does not accept it."""
    return None if integration_type == PROMETHEUS and not is_batch(payload) else parse(payload, rules)


def address_of(integration: AlertIntegration, full_path: str | None = None) -> str | None:
    """Return the URL to which a monitoring tool sends its alerts; an Opsgenie integration has none.

    ``full_path``: a former path of the project.
    """
    project = urls.absolute(f"/{full_path or integration.project.full_path}")
    if integration.type == OPSGENIE:
        return None
    if integration.type == PROMETHEUS:
        return f"{project}/prometheus/alerts/notify.json"
    if integration.endpoint_identifier == queries.LEGACY:
        return f"{project}/alerts/notify.json"
    return f"{project}/alerts/notify/{slug_of(integration.name)}/{integration.endpoint_identifier}.json"


def slug_of(name: str) -> str:
    """Return the name as part of a URL: each character that is not a letter or digit becomes a dash."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())[:MAX_SLUG_CHARACTERS].strip("-") or DEFAULT_SLUG


def check(integration: AlertIntegration) -> None:
    """Raise ``Invalid`` with the problems of an integration."""
    problems: dict[str, list[str]] = {}
    if not (integration.name or "").strip():
        problems["name"] = ["can't be blank"]
    elif len(integration.name) > MAX_NAME_CHARACTERS:
        problems["name"] = [f"is too long (maximum is {MAX_NAME_CHARACTERS} characters)"]
    if integration.type == OPSGENIE and (text := _link_problem(integration)):
        problems["target_url"] = [text]
    if integration.time_zone and zone_named(integration.time_zone) is None:
        problems["time_zone"] = [BAD_ZONE]
    if integration.active and (text := _clash(integration)):
        problems["active"] = [text]
    if problems:
        raise Invalid(**problems)


def _link_problem(integration: AlertIntegration) -> str | None:
    address = integration.target_url or ""
    if not address:
        return "can't be blank" if integration.active else None
    try:
        rules.check_link(address, instance_settings.outgoing_policy())
    except rules.Blocked as error:
        return f"is blocked: {error}"
    return None


def _clash(integration: AlertIntegration) -> str | None:
    others = select(AlertIntegration.type).where(
        AlertIntegration.project_id == integration.project_id,
        AlertIntegration.active.is_(True),
        AlertIntegration.id != (integration.id or 0),
    )
    types = set(db.session.scalars(others))
    if integration.type == OPSGENIE:
        return OPSGENIE_ALONE if types else None
    return OTHERS_ACTIVE if OPSGENIE in types else None
