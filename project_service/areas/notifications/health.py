"""Health of channels: rate, failures in a row, and who is notified of them (notifications reference, section 14)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import select

from project_service.areas.notifications.models import NotificationChannel
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.memberships import Membership, active_members_for_choice, alive, choice_in
from project_service.kit import clock, mail
from project_service.kit.db.session import db
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult

MINUTE_SECONDS = 60
TROUBLE_TIME = dt.timedelta(hours=1)
PROBE_INTERVAL = dt.timedelta(minutes=30)
DISABLED_AFTER = dt.timedelta(days=14)
MAX_ERROR = 500
MAX_PAUSE_SECONDS = 3600


def held_until(channel: NotificationChannel) -> dt.datetime | None:
    """Return until when a channel takes nothing: it fails, or has reached its rate."""
    now = clock.now()
    if channel.failing_since is not None and channel.probe_at is not None and channel.probe_at > now:
        return channel.probe_at
    tokens = _tokens(channel, now)
    if tokens >= 1:
        return None
    return now + dt.timedelta(seconds=(1 - tokens) * MINUTE_SECONDS / channel.rate_per_minute)


def note_result(channel: NotificationChannel, outcome: DeliveryOutcome, final_failures: int) -> None:
    """Count the result of an attempt."""
    now = clock.now()
    channel.tokens, channel.tokens_at = max(_tokens(channel, now) - 1, 0.0), now
    if outcome.result is DeliveryResult.DELIVERED:
        note_success(channel)
        return
    channel.last_error = (outcome.error or "")[:MAX_ERROR]
    channel.troubled_since = channel.troubled_since or now
    if outcome.result is DeliveryResult.FINAL:
        channel.final_failures += 1
    if channel.failing_since is not None:
        channel.probe_at = now + PROBE_INTERVAL
    elif channel.final_failures >= final_failures or now - channel.troubled_since >= TROUBLE_TIME:
        channel.failing_since, channel.probe_at = now, now + PROBE_INTERVAL
        _tell(channel, "fails", f"The last error was: {channel.last_error}")


def pause(channel: NotificationChannel, seconds: float) -> None:
    """Send nothing to a channel whose service has said that it takes nothing more for some seconds."""
    channel.tokens, channel.tokens_at = 0.0, clock.now() + dt.timedelta(seconds=min(seconds, MAX_PAUSE_SECONDS))


def note_success(channel: NotificationChannel) -> None:
    """Note that a message or a test was delivered."""
    was_failing = channel.failing_since is not None
    channel.last_delivered_at, channel.last_error = clock.now(), None
    channel.troubled_since = channel.failing_since = channel.probe_at = None
    channel.final_failures = 0
    if was_failing:
        _tell(channel, "works again", "Messages that waited are sent as one.")


def disable_failing() -> None:
    """Disable the channels that have failed for ``DISABLED_AFTER``."""
    failing = select(NotificationChannel).where(
        NotificationChannel.failing_since < clock.now() - DISABLED_AFTER, NotificationChannel.enabled
    )
    for channel in db.session.scalars(failing):
        channel.enabled = False
        _tell(channel, "was disabled", f"It has failed for 14 days, last with: {channel.last_error}")


def number_failing() -> int:
    """Return how many enabled channels fail."""
    failing = select(NotificationChannel.id).where(
        NotificationChannel.failing_since.is_not(None), NotificationChannel.enabled
    )
    return len(db.session.scalars(failing).all())


def _tokens(channel: NotificationChannel, now: dt.datetime) -> float:
    """Return how many messages the channel may send now; at most those of a minute."""
    if channel.tokens is None or channel.tokens_at is None:
        return float(channel.rate_per_minute)
    seconds = max((now - channel.tokens_at).total_seconds(), 0.0)
    return min(channel.tokens + seconds * channel.rate_per_minute / MINUTE_SECONDS, float(channel.rate_per_minute))


def _tell(channel: NotificationChannel, what: str, why: str) -> None:
    """Queue a mail to those who can fix a channel: maintainers, owners of the group, or the user."""
    if channel.user is not None:
        owner_name, recipients = "your account", [channel.user.email]
    elif channel.project is not None:
        owner_name = channel.project.full_path
        emails = active_members_for_choice().with_only_columns(User.email)
        recipients = list(db.session.scalars(emails, choice_in(channel.project, Role.MAINTAINER)))
    else:
        owner_name = "" if channel.group is None else channel.group.full_path
        owners = select(Membership.user_id).where(
            Membership.namespace_id == channel.group_id, Membership.access_level >= Role.OWNER, alive()
        )
        recipients = list(db.session.scalars(select(User.email).where(User.id.in_(owners), User.state == ACTIVE)))
    subject = f'The notification channel "{channel.name}" {what}'
    mail.queue(recipients, subject, f"{subject} ({owner_name}, {channel.target}).\n\n{why}\n")
