"""The links: a signed token that names a message, what is done, and in whose name.

Opening a link changes nothing, since mail scanners open links; acknowledging reference, sections 1 and 2.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import NamedTuple

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.domain.accounts.users import User
from project_service.domain.notifications.models import ALERT_ACKNOWLEDGED, ALERT_REOPENED, ALERT_TRIGGERED
from project_service.kit.http.urls import absolute
from project_service.kit.security import key_ring

PATH = "/-/notifications/a/"
SALT = "notifications.acknowledge"
LIFETIME = dt.timedelta(days=7)
ACKNOWLEDGE, RESOLVE = "acknowledge", "resolve"
OPENINGS = (ALERT_TRIGGERED, ALERT_REOPENED)
KINDS = {ACKNOWLEDGE: OPENINGS, RESOLVE: (*OPENINGS, ALERT_ACKNOWLEDGED)}  # of events whose alerts are changed


@dataclass(frozen=True, slots=True)
class Link:
    """What a token says: a message, the person or the channel that it was sent to, and what is done."""

    delivery_id: int
    user_id: int | None = None
    channel_id: int | None = None
    action: str = ACKNOWLEDGE


class ActionUrls(NamedTuple):
    """The links of a message; ``None`` if there is no alert for them."""

    acknowledge: str | None
    resolve: str | None


def urls_for_user(delivery: NotificationDelivery, user: User) -> ActionUrls:
    """Return the links in a personal message."""
    return _urls(delivery, Link(delivery.id, user_id=user.id))


def urls_for_channel(delivery: NotificationDelivery, channel: NotificationChannel) -> ActionUrls:
    """Return the links in a message of a channel; those of a personal channel act as its owner."""
    owner_id = channel.user_id
    return _urls(delivery, Link(delivery.id, owner_id, None if owner_id is not None else channel.id))


def token_of(link: Link) -> str:
    """Return the token of a link."""
    token: str = _serializer().dumps([link.delivery_id, link.action, link.user_id, link.channel_id])
    return token


def read(token: str) -> Link | None:
    """Return what a token says; ``None`` if it is forged or has expired."""
    try:
        number, action, user_id, channel_id = _serializer().loads(token, max_age=int(LIFETIME.total_seconds()))
    except (SignatureExpired, BadSignature, ValueError, TypeError):
        return None
    return Link(number, user_id, channel_id, action) if action in KINDS else None


def address_of(link: Link) -> str:
    """Return the address of a link."""
    return absolute(f"{PATH}{token_of(link)}")


def _urls(delivery: NotificationDelivery, link: Link) -> ActionUrls:
    events = {item["event"] for item in delivery.content["items"]}
    urls = {name: address_of(replace(link, action=name)) for name, kinds in KINDS.items() if events.intersection(kinds)}
    return ActionUrls(urls.get(ACKNOWLEDGE), urls.get(RESOLVE))


def _serializer() -> URLSafeTimedSerializer:
    keyring = key_ring.keyring()
    return URLSafeTimedSerializer([*reversed(keyring.signing_key_fallbacks), keyring.signing_key], salt=SALT)
