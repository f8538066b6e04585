"""Senders of messages to channels and people (notifications reference, section 14)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.notifications import deliveries_log, health, merging
from project_service.areas.notifications.actions import links, unsubscribing
from project_service.areas.notifications.channels import confirming
from project_service.areas.notifications.kinds import KINDS, Answer, ChannelData, ChannelKind, Outgoing
from project_service.areas.notifications.kinds.email import Email
from project_service.areas.notifications.kinds.phones import migrated_to
from project_service.areas.notifications.messages import ChannelMessage, IncompleteMessage
from project_service.areas.notifications.models import EMAIL, NotificationChannel, NotificationDelivery
from project_service.areas.notifications.personal import addresses
from project_service.domain import instance_settings
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.notifications.models import ALERT, ERROR, FINDING
from project_service.domain.projects import Project
from project_service.kit import clock, deliveries
from project_service.kit.db.session import db
from project_service.kit.deliveries import Delivery, DeliveryOutcome, DeliveryResult, Hold, Loaded

RETRY_DELAYS = tuple(dt.timedelta(seconds=seconds) for seconds in (10, 60, 300, 900))
LATER_DELAY = dt.timedelta(minutes=30)
MAX_AGE = dt.timedelta(hours=6)
MAX_RETRY_AFTER = dt.timedelta(hours=1)
MERGE_AFTER = dt.timedelta(minutes=10)
GONE = "the channel was deleted, disabled or is not confirmed"
NO_ACCESS = "the recipient is not active or has no access any more"
ABILITIES = {ALERT: Ability.READ_ALERTS, ERROR: Ability.READ_ERRORS, FINDING: Ability.READ_VULNERABILITIES}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A message with the kind of channel that sends it."""

    kind: ChannelKind
    outgoing: Outgoing


class ChannelSender(deliveries.Sender):
    """Sends the messages of a channel in their order, also across retries; late ones are merged."""

    kind = "notification_channel"
    keeps_order = True
    merge_after: ClassVar[dt.timedelta | None] = MERGE_AFTER

    def load(self, batch: Sequence[Delivery]) -> Loaded | Hold:
        """Return what is to be sent; nothing for a channel that is gone or disabled."""
        [delivery] = batch
        logged = logged_of(delivery)
        channel = db.session.get(NotificationChannel, delivery.receiver_id)
        if logged is None or channel is None or channel.state in ("disabled", "unconfirmed") or _is_in_removal(logged):
            return Loaded([None])
        if (until := health.held_until(channel)) is not None:
            return Hold(until, merges=self.merge_after is not None and channel.failing_since is None)
        if (message := _message_of(logged)) is None:
            return Loaded([None])
        outgoing = outgoing_of(message, channel, delivery.idempotency_key)
        urls = links.urls_for_channel(logged, channel)
        outgoing = replace(outgoing, acknowledge_url=urls.acknowledge, resolve_url=urls.resolve)
        share = f"project:{logged.project_id}" if logged.project_id is not None else f"user:{channel.user_id}"
        return Loaded([Prepared(KINDS[channel.type], outgoing)], share)

    def send(self, messages: Sequence[Prepared]) -> Iterator[DeliveryOutcome]:
        """Send one message."""
        for prepared in messages:
            yield prepared.kind.deliver(prepared.outgoing)

    def settle(self, delivery: Delivery, outcome: DeliveryOutcome, next_attempt_at: dt.datetime | None) -> None:
        """Write the log, and what the result says about the channel."""
        logged = logged_of(delivery)
        channel = db.session.get(NotificationChannel, delivery.receiver_id)
        if logged is not None:
            is_dropped = outcome.result is DeliveryResult.DROPPED
            _note(logged, outcome, next_attempt_at, self.drop_reason(logged) if is_dropped else "")
        if channel is None or outcome.result is DeliveryResult.DROPPED:
            return
        answer: Answer = outcome.details
        if channel.type == "telegram" and (chat_id := migrated_to(answer)) is not None:
            channel.settings = channel.settings | {"chat_id": chat_id}
            channel.target = chat_id
            return
        kind = KINDS[channel.type]
        health.note_result(channel, outcome, kind.final_failures)
        if (pause := kind.pause_after(answer)) is not None:
            health.pause(channel, pause)

    def drop_reason(self, _logged: NotificationDelivery) -> str:
        """Return why a message was not sent."""
        return GONE

    def retry_delay(self, delivery: Delivery, outcome: DeliveryOutcome) -> dt.timedelta | None:
        """Return the pause before the next attempt (notifications reference, section 14)."""
        if isinstance(outcome.details, Answer) and migrated_to(outcome.details) is not None:
            return dt.timedelta()
        if clock.now() - delivery.created_at >= MAX_AGE:
            return None
        number = delivery.attempts
        delay = RETRY_DELAYS[number - 1] if number <= len(RETRY_DELAYS) else LATER_DELAY
        asked = dt.timedelta(seconds=outcome.retry_after_seconds or 0)
        return max(delay, min(asked, MAX_RETRY_AFTER))

    def merge(self, late: Sequence[Delivery]) -> dict[str, Any]:
        """Return the content of the one message that replaces late ones."""
        merged = merging.merge([logged for delivery in late if (logged := logged_of(delivery)) is not None])
        return {"delivery": None if merged is None else merged.id}


class PagerSender(ChannelSender):
    """Sends events to PagerDuty: they are about one alert each, of which only the last one that waits is sent."""

    kind = "notification_pager"
    merge_after = None

    def load(self, batch: Sequence[Delivery]) -> Loaded | Hold:
        """Return the event, unless a newer one of its alert waits."""
        [delivery] = batch
        logged = logged_of(delivery)
        if logged is not None and merging.reason_to_skip(logged) is not None:
            return Loaded([None])
        return super().load(batch)

    def drop_reason(self, logged: NotificationDelivery) -> str:
        """Return why an event was not sent."""
        return merging.reason_to_skip(logged) or super().drop_reason(logged)


class PersonSender(ChannelSender):
    """Sends messages to people, by e-mail."""

    kind = deliveries_log.PERSON

    def load(self, batch: Sequence[Delivery]) -> Loaded | Hold:
        """Return the mail; nothing for a person who may not read what it is about any more."""
        [delivery] = batch
        logged = logged_of(delivery)
        user = db.session.get(User, delivery.receiver_id)
        if logged is None or user is None or _is_in_removal(logged) or not _may_read(user, logged):
            return Loaded([None])
        address = addresses.address_of(user, logged.project)
        data = ChannelData(0, user.username, {"address": address}, {})
        if (message := _message_of(logged)) is None:
            return Loaded([None])
        urls = links.urls_for_user(logged, user)
        outgoing = Outgoing(message, data, delivery.idempotency_key, instance_settings.outgoing_policy(), *urls)
        outgoing = replace(outgoing, unsubscribe_url=unsubscribing.link_for(user, logged.project))
        return Loaded([Prepared(Email(), outgoing)], f"user:{user.id}")

    def settle(self, delivery: Delivery, outcome: DeliveryOutcome, next_attempt_at: dt.datetime | None) -> None:
        """Write the log."""
        logged = logged_of(delivery)
        if logged is not None:
            _note(logged, outcome, next_attempt_at, NO_ACCESS)


def outgoing_of(message: ChannelMessage, channel: NotificationChannel, key: str) -> Outgoing:
    """Return a message on its way to a channel."""
    data = ChannelData(channel.id, channel.name, dict(channel.settings), channel.secrets)
    if channel.type != EMAIL:
        return Outgoing(message, data, key, instance_settings.outgoing_policy())
    whose = (channel.id, channel.settings.get("address", ""))
    stop_url, unsubscribe_url = confirming.stop_link(*whose), unsubscribing.link_for_channel(*whose)
    policy = instance_settings.outgoing_policy()
    return Outgoing(message, data, key, policy, stop_url=stop_url, unsubscribe_url=unsubscribe_url)


def logged_of(delivery: Delivery) -> NotificationDelivery | None:
    """Return the log of a delivery."""
    number = delivery.content["delivery"]
    return None if number is None else db.session.get(NotificationDelivery, number)


def _message_of(logged: NotificationDelivery) -> ChannelMessage | None:
    """Return what is to be sent; ``None`` if its content is incomplete."""
    try:
        return ChannelMessage.from_json(logged.content)
    except IncompleteMessage:
        return None


def _note(
    logged: NotificationDelivery, outcome: DeliveryOutcome, next_attempt_at: dt.datetime | None, dropped: str
) -> None:
    if outcome.result is DeliveryResult.DROPPED:
        deliveries_log.drop(logged, dropped if _message_of(logged) is not None else deliveries_log.INCOMPLETE)
        return
    answer: Answer = outcome.details
    deliveries_log.note_attempt(
        logged,
        delivered=outcome.result is DeliveryResult.DELIVERED,
        response_status=None if answer.status is None else str(answer.status),
        error=outcome.error,
        next_attempt_at=next_attempt_at,
    )


def _may_read(user: User, logged: NotificationDelivery) -> bool:
    """Whether a person may still read everything that a message is about."""
    if user.state != ACTIVE or user.deleting_since is not None:
        return False
    project: Project | None = logged.project
    if project is None:
        return True
    kinds = {item["event"] for item in logged.content["items"]}
    needed = {ABILITIES.get(_subject_of(kind), Ability.READ_ISSUES) for kind in kinds}
    return all(allowed(Caller.of(user), ability, project) for ability in needed)


def _subject_of(kind: str) -> str:
    return {"new_error": ERROR, "error_regression": ERROR, "new_finding": FINDING}.get(kind, kind.partition("_")[0])


def _is_in_removal(logged: NotificationDelivery) -> bool:
    return logged.project is not None and logged.project.deleting_since is not None


for sender in (ChannelSender(), PagerSender(), PersonSender()):
    deliveries.register(sender)
