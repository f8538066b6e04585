"""The links: a signed token that names a message and in whose name its alerts are acknowledged.

Opening a link changes nothing, since mail scanners open links; acknowledging reference, sections 1 and 2.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from itsdangerous import BadSignature, SignatureExpired, URLSafeTimedSerializer

from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.domain.notifications.models import ALERT_REOPENED, ALERT_TRIGGERED
from project_service.domain.users import User
from project_service.kit.http.urls import absolute
from project_service.kit.security import key_ring

PATH = "/-/notifications/a/"
SALT = "notifications.acknowledge"
LIFETIME = dt.timedelta(days=7)
ACKNOWLEDGE = "acknowledge"
OPENINGS = (ALERT_TRIGGERED, ALERT_REOPENED)


@dataclass(frozen=True, slots=True)
class Link:
    """What a token says: a message, and the person or the channel that it was sent to."""

    delivery_id: int
    user_id: int | None = None
    channel_id: int | None = None


def url_for_user(delivery: NotificationDelivery, user: User) -> str | None:
    """Return the link in a personal message; ``None`` if it is about no alert that was opened."""
    return _url(delivery, Link(delivery.id, user_id=user.id))


def url_for_channel(delivery: NotificationDelivery, channel: NotificationChannel) -> str | None:
    """Return the link in a message of a channel; ``None`` if it is about no alert that was opened.

    That of a personal channel acts as its owner.
    """
    owner_id = channel.user_id
    return _url(delivery, Link(delivery.id, owner_id, None if owner_id is not None else channel.id))


def token_of(link: Link) -> str:
    """Return the token of a link."""
    token: str = _serializer().dumps([link.delivery_id, ACKNOWLEDGE, link.user_id, link.channel_id])
    return token


def read(token: str) -> Link | None:
    """Return what a token says; ``None`` if it is forged or has expired."""
    try:
        number, action, user_id, channel_id = _serializer().loads(token, max_age=int(LIFETIME.total_seconds()))
    except (SignatureExpired, BadSignature, ValueError, TypeError):
        return None
    return Link(number, user_id, channel_id) if action == ACKNOWLEDGE else None


def _url(delivery: NotificationDelivery, link: Link) -> str | None:
    is_about_openings = any(item["event"] in OPENINGS for item in delivery.content["items"])
    return absolute(f"{PATH}{token_of(link)}") if is_about_openings else None


def _serializer() -> URLSafeTimedSerializer:
    keyring = key_ring.keyring()
    return URLSafeTimedSerializer([*reversed(keyring.signing_key_fallbacks), keyring.signing_key], salt=SALT)
