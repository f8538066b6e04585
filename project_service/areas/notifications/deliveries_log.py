"""The log of messages, written before they are sent (notifications reference, section 4)."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select

from project_service.areas.notifications.messages import OTHER, ChannelMessage
from project_service.areas.notifications.models import (
    DELIVERED,
    DROPPED,
    FAILED,
    MERGED,
    PAGERDUTY,
    WAITING,
    NotificationChannel,
    NotificationDelivery,
)
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit import clock, deliveries
from project_service.kit.db.session import db

MAX_MESSAGES_PER_DAY = 1000
LIMIT_REACHED = f"more than {MAX_MESSAGES_PER_DAY} messages in a day (UTC)"
INCOMPLETE = "the message is incomplete and cannot be sent"
PERSON = "notification_user"
MESSAGE, LIMIT = "message", "limit"  # kinds
MAX_ERROR = 500


def write(
    message: ChannelMessage,
    *,
    project: Project | None,
    channel: NotificationChannel | None = None,
    user: User | None = None,
) -> NotificationDelivery:
    """Write a message to a channel or a person and queue it, in the current transaction."""
    delivery = NotificationDelivery(
        project=project,
        channel=channel,
        channel_name=None if channel is None else channel.name,
        user=user,
        recipient=channel.target if channel is not None else user.email if user is not None else "",
        kind=message.kind,
        title=message.title,
        content=message.as_json(),
        triggered_count=message.counts["triggered"],
        resolved_count=message.counts["resolved"],
        other_count=message.counts["other"],
        status=WAITING,
        attempts=0,
        created_at=clock.now(),
    )
    db.session.add(delivery)
    db.session.flush()
    receiver = channel.receiver if channel is not None else f"{PERSON}:{user.id}" if user is not None else None
    if receiver is None:
        drop(delivery, "the recipient was deleted")
    elif channel is not None and _is_above_limit(channel, message):
        drop(delivery, LIMIT_REACHED)
        if not _number_today(channel, LIMIT):
            write(_limit_message(message), project=project, channel=channel)
    else:
        deliveries.enqueue(receiver, {"delivery": delivery.id})
    return delivery


def _limit_message(message: ChannelMessage) -> ChannelMessage:
    """Return what a channel is sent in place of the first message above the limit of a day."""
    headline = f"The limit of {MAX_MESSAGES_PER_DAY} messages a day is reached"
    return ChannelMessage(
        headline=headline,
        project=message.project,
        url=message.project["web_url"],
        kind=LIMIT,
        lines=("Further messages are not sent to this channel until midnight UTC. The log of messages names them.",),
        state=OTHER,
        severity="info",
        mail_subject=headline,
        reason=message.reason,
        at=message.at,
    )


def drop(delivery: NotificationDelivery, reason: str) -> None:
    """Note that a message is not sent."""
    delivery.status, delivery.error, delivery.next_attempt_at = DROPPED, reason, None


def note_attempt(
    delivery: NotificationDelivery,
    *,
    delivered: bool,
    response_status: str | None,
    error: str | None,
    next_attempt_at: dt.datetime | None,
) -> None:
    """Note an attempt to send a message."""
    delivery.attempts += 1
    delivery.response_status = response_status
    delivery.error = None if error is None else error[:MAX_ERROR]
    delivery.next_attempt_at = next_attempt_at
    if delivered:
        delivery.status, delivery.delivered_at = DELIVERED, clock.now()
    else:
        delivery.status = WAITING if next_attempt_at is not None else FAILED


def merge_into(delivery: NotificationDelivery, others: list[NotificationDelivery]) -> None:
    """Note that late messages are sent as one."""
    for other in others:
        other.status, other.merged_into_id, other.next_attempt_at = MERGED, delivery.id, None


def _is_above_limit(channel: NotificationChannel, message: ChannelMessage) -> bool:
    """Whether a channel takes no more messages today; PagerDuty has no limit."""
    if channel.type == PAGERDUTY or message.kind == LIMIT:
        return False
    return _number_today(channel, MESSAGE) > MAX_MESSAGES_PER_DAY


def _number_today(channel: NotificationChannel, kind: str) -> int:
    midnight = clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    log = NotificationDelivery
    today = select(func.count()).where(log.channel_id == channel.id, log.created_at >= midnight, log.kind == kind)
    return db.session.scalar(today) or 0
