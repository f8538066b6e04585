"""Channels of the type webhook: our own JSON, signed like that of web hooks."""

from __future__ import annotations

import re
import uuid
from typing import Any

from project_service.areas.notifications.kinds.base import Answer, ChannelKind, HttpRequest, Outgoing, body_of
from project_service.areas.notifications.messages import ChannelMessage
from project_service.domain.instance_settings import COMPATIBLE
from project_service.kit import clock
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from project_service.kit.http import urls
from project_service.kit.security.outgoing_http.rules import Policy
from project_service.kit.security.standard_webhooks import is_signing_token, signature

MAX_HEADERS = 20
MAX_HEADER_LENGTH = 2048
HEADER_NAME = re.compile(r"[A-Za-z]+[0-9]*([._-][A-Za-z0-9]+)*")


class Webhook(ChannelKind):
    """Any program that accepts a POST."""

    type = "webhook"
    title = "Webhook"
    fields = ("enable_ssl_verification",)
    secrets = ("url", "signing_token", "custom_headers")
    needs_https = False

    def problems(self, settings: dict[str, Any], secrets: dict[str, Any], policy: Policy) -> dict[str, list[str]]:
        """Check the URL, the token and the headers."""
        problems = super().problems(settings, secrets, policy)
        if secrets.get("signing_token") and not is_signing_token(secrets["signing_token"]):
            problems["signing_token"] = ["is invalid"]
        headers = secrets.get("custom_headers") or {}
        are_valid = all(
            HEADER_NAME.fullmatch(name) and 0 < len(value) <= MAX_HEADER_LENGTH and value.isprintable()
            for name, value in headers.items()
        )
        if len(headers) > MAX_HEADERS or not are_valid:
            problems["custom_headers"] = ["is invalid"]
        return problems

    def request(self, outgoing: Outgoing) -> HttpRequest:
        """Return the message as JSON, with the headers of web hooks."""
        secrets = outgoing.channel.secrets
        body = body_of(payload(outgoing.message, outgoing.key))
        headers = {
            "User-Agent": f"GitLab/{COMPATIBLE}",
            "X-Gitlab-Event": "Notification Hook",
            "X-Gitlab-Instance": urls.base_url(),
            "X-Gitlab-Event-UUID": outgoing.key,
            "X-Gitlab-Webhook-UUID": str(uuid.uuid4()),
        }
        if token := secrets.get("signing_token"):
            timestamp = int(clock.now().timestamp())
            headers |= {
                "webhook-id": outgoing.key,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": signature(token, outgoing.key, timestamp, body),
            }
        own = {name.lower() for name in (*headers, "Content-Type", "Content-Length", "Host", "Idempotency-Key")}
        custom = secrets.get("custom_headers") or {}
        headers |= {name: value for name, value in custom.items() if name.lower() not in own}
        verifies = outgoing.channel.settings.get("enable_ssl_verification", True)
        return HttpRequest(secrets["url"], body, headers, verifies)

    def outcome(self, answer: Answer) -> DeliveryOutcome:
        """Any 2xx is success."""
        if answer.status is not None and 200 <= answer.status < 300:
            return DeliveryOutcome(DeliveryResult.DELIVERED, details=answer)
        return super().outcome(answer)

    delivered = ()


def payload(message: ChannelMessage, key: str) -> dict[str, Any]:
    """Return the JSON of a message."""
    return {
        "object_kind": "notification",
        "version": 1,
        "id": key,
        "kind": message.kind,
        "title": message.title,
        "project": message.project,
        "rule": message.rule,
        "counts": message.counts,
        "omitted": message.omitted,
        "url": message.url,
        "items": list(message.items),
    }
