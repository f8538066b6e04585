"""Confirmation of a subscription of Amazon SNS by its receiver (alert ingestion reference, section 13).

Only the host of the region of the topic is requested: any sender with the key of the integration chooses the address.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from project_service.domain import instance_settings
from project_service.domain.rate_limits import RateLimit
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.security.outgoing_http import client, rules

TOPIC = re.compile(
    r"arn:aws(?P<partition>-cn|-us-gov)?:sns:(?P<region>[a-z]{2}(?:-[a-z]+)+-\d+):\d{12}:[A-Za-z0-9_.-]+"
)
TIMEOUT_SECONDS = 10.0
CONFIRMATIONS = RateLimit("alert_subscription:confirm", 5)  # per minute, of one integration by one user
FOREIGN = "This is not the address of Amazon SNS in the region of the topic."


def confirmation_url(message: dict[str, Any]) -> str | None:
    """Return the address that confirms a subscription; ``None`` if it is not that of the topic's region."""
    address, topic = message.get("SubscribeURL"), TOPIC.fullmatch(str(message.get("TopicArn")))
    if message.get("Type") != "SubscriptionConfirmation" or topic is None or not isinstance(address, str):
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    host = f"sns.{topic['region']}.amazonaws.com{'.cn' if topic['partition'] == '-cn' else ''}"
    confirms = parse_qs(parts.query).get("Action") == ["ConfirmSubscription"]
    return address if (parts.scheme, parts.netloc, parts.path) == ("https", host, "/") and confirms else None


def confirm(message: dict[str, Any]) -> None:
    """Request the confirmation; ``Invalid`` has the reason why it failed."""
    address = confirmation_url(message)
    if address is None:
        raise Invalid(base=FOREIGN)
    http = client.Client(instance_settings.outgoing_policy(), total_timeout=TIMEOUT_SECONDS, max_redirects=0)
    db.session.commit()  # no lock is held while waiting for the server
    try:
        with http.request("GET", address) as response:
            status = response.status
    except (client.RequestFailed, rules.Blocked) as error:
        raise Invalid(base=f"The subscription could not be confirmed: {error}") from error
    if status != 200:
        raise Invalid(base=f"The subscription could not be confirmed: Amazon SNS answered {status}.")
