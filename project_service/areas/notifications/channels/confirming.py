"""Addresses of people who are not members confirm that they want mails (notifications reference, section 5)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select

from project_service.areas.notifications.models import EMAIL, NotificationChannel
from project_service.areas.notifications.owners import Owner
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import ACTIVE, User, users
from project_service.domain.memberships import role_in
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimit
from project_service.kit import clock, mail
from project_service.kit.db.session import db
from project_service.kit.http import urls
from project_service.kit.security import signed_links
from project_service.kit.security.tokens import digest

CONFIRM, STOP = "confirm a channel", "stop a channel"
CONFIRM_LIFETIME = dt.timedelta(days=7)
STOP_LIFETIME = dt.timedelta(days=366)
MAILS = RateLimit("notification_channel:confirm", 3, 86_400)


def is_known(owner: Owner, channel: NotificationChannel) -> bool:
    """Whether a channel needs no confirmation: it has no address, or that of an active member."""
    if channel.type != EMAIL:
        return True
    address = channel.settings["address"].lower()
    user = db.session.scalar(users().where(func.lower(User.email) == address, User.state == ACTIVE))
    if user is None:
        return False
    return user.id == owner.id if isinstance(owner, User) else role_in(user.id, owner) > Role.NONE


def ask(channel: NotificationChannel) -> None:
    """Queue the mail that asks for a confirmation, three a day and address."""
    address = channel.settings["address"]
    MAILS.check(digest(address.lower()))
    owner_name = _place(channel)
    link = urls.absolute(f"/-/notifications/confirm/{signed_links.sign_values(CONFIRM, [channel.id, address])}")
    body = (
        f'Notifications of {owner_name} are to be sent to this address (channel "{channel.name}").\n\n'
        f"Confirm within 7 days if you want them: {link}\n\nWithout a confirmation nothing is sent.\n"
    )
    mail.queue([address], f"Confirm notifications of {owner_name}", body)


def stop_link(channel_id: int, address: str) -> str:
    """Return the address of the page that stops the mails of a channel."""
    return urls.absolute(f"/-/notifications/stop/{signed_links.sign_values(STOP, [channel_id, address])}")


def find(purpose: str, token: str) -> NotificationChannel | None:
    """Return the channel of a link, if its address is still the same."""
    values = signed_links.read_values(purpose, token, CONFIRM_LIFETIME if purpose == CONFIRM else STOP_LIFETIME)
    if values is None:
        return None
    channel_id, address = values
    channel = db.session.scalar(select(NotificationChannel).where(NotificationChannel.id == channel_id))
    return channel if channel is not None and channel.settings.get("address") == address else None


def confirm(channel: NotificationChannel) -> None:
    """Note that the address wants mails."""
    channel.confirmed_at = channel.confirmed_at or clock.now()


def stop(channel: NotificationChannel) -> None:
    """Disable a channel on behalf of its address."""
    channel.enabled = False


def _place(channel: NotificationChannel) -> str:
    if channel.project_id is not None:
        return db.session.get_one(Project, channel.project_id).full_path
    if channel.group_id is not None and channel.group is not None:
        return channel.group.full_path
    return "an account"
