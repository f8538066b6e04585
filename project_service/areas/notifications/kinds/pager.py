"""Channels of PagerDuty: one event for each alert or incident, never grouped."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from project_service.areas.notifications.kinds.base import ChannelKind, HttpRequest, Outgoing, body_of, masked_text
from project_service.areas.notifications.messages import ACKNOWLEDGED, ENDED, OPEN, cut_characters
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.http import urls
from project_service.kit.security.outgoing_http.rules import Policy

URLS = {"us": "https://events.pagerduty.com/v2/enqueue", "eu": "https://events.eu.pagerduty.com/v2/enqueue"}
KEY_LENGTH = 32
SEVERITIES = {"critical": "critical", "high": "error", "info": "info"}  # others are ``warning``
MAX_SUMMARY, MAX_DEDUP_KEY = 1024, 255
MAX_BODY_BYTES = 512_000
ACTIONS = {OPEN: "trigger", ACKNOWLEDGED: "acknowledge"}


class PagerDuty(ChannelKind):
    """PagerDuty, through its Events API v2."""

    type = "pagerduty"
    title = "PagerDuty"
    fields = ("region",)
    secrets = ("routing_key",)
    required = ("routing_key",)
    delivered = (202,)
    default_rate = 60  # one event for each alert

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the key and the region."""
        key = secrets.get("routing_key") or ""
        problems = (
            {} if len(key) == KEY_LENGTH and key.isalnum() else {"routing_key": ["must have 32 letters and digits"]}
        )
        if settings.get("region") not in (None, *URLS):
            problems["region"] = ["is not included in the list"]
        return problems

    def target(self, settings: dict[str, Any], secrets: dict[str, Any]) -> str:
        """Return the region and the beginning of the key."""
        return f"{settings.get('region') or 'us'} {masked_text(secrets['routing_key'])}"

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return a trigger, an acknowledgement or a resolution."""
        message = outgoing.message
        action = ACTIONS.get(message.state, "resolve")
        body: dict[str, Any] = {
            "routing_key": outgoing.channel.secrets["routing_key"],
            "event_action": action,
            "dedup_key": dedup_key(outgoing),
        }
        if action == "trigger":
            body |= self._trigger(outgoing)
            if len(body_of(body)) > MAX_BODY_BYTES:
                body["payload"]["custom_details"] = {"error": "left out: too large"}
        return HttpRequest(URLS[outgoing.channel.settings.get("region") or "us"], body_of(body))

    def deliver_test(self, outgoing: Outgoing) -> DeliveryOutcome:
        """Open an incident and resolve it at once."""
        opened = self.deliver(replace(outgoing, message=replace(outgoing.message, state=OPEN)))
        if opened.result is not DeliveryResult.DELIVERED:
            return opened
        return self.deliver(replace(outgoing, message=replace(outgoing.message, state=ENDED)))

    def _trigger(self, outgoing: Outgoing) -> dict[str, Any]:
        message = outgoing.message
        attributes = message.items[0]["object_attributes"] if message.items else {}
        hosts = attributes.get("hosts") or []
        source = next(iter(hosts), None) or attributes.get("service") or message.project["path_with_namespace"]
        noun = "Incident" if attributes.get("state") else "Alert"
        payload = {
            "summary": cut_characters(message.short_title, MAX_SUMMARY),
            "source": source,
            "severity": SEVERITIES.get(message.severity, "warning"),
            "timestamp": message.timestamp.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "+0000",
            "component": attributes.get("service"),
            "group": message.environment,
            "class": attributes.get("monitoring_tool"),
            "custom_details": {name: value for name, value in attributes.items() if name != "url"},
        }
        return {
            "payload": {name: value for name, value in payload.items() if value is not None},
            "links": [{"href": message.url, "text": f"{noun} #{attributes.get('iid', '')}"}],
            "client": urls.host(),
            "client_url": urls.base_url(),
        }


def dedup_key(outgoing: Outgoing) -> str:
    """Return what PagerDuty recognises an alert by."""
    reference = (outgoing.message.reference or outgoing.key).replace("-", "/", 1)
    return cut_characters(f"{urls.host()}/{reference}", MAX_DEDUP_KEY)
