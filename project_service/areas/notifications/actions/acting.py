"""What a link does, and in whose name (acknowledging reference, section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import or_, select

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.areas.notifications.actions.links import ACKNOWLEDGE, KINDS, RESOLVE, Link
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery, NotificationItem
from project_service.domain.accounts.bots import ALERT_BOT, NAMES, bot
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.alerts.alert_actions import Acknowledged, Acknowledgement, acknowledge
from project_service.domain.notifications.models import NotificationEvent
from project_service.kit.db.session import db

THROUGH = {ACKNOWLEDGE: "acknowledged through the channel **#{}**", RESOLVE: "resolved through the channel **#{}**"}


@dataclass(frozen=True, slots=True)
class LinkedAction:
    """A message whose alerts can be changed: by ``user``, by ``channel``, or by a user who signs in."""

    delivery: NotificationDelivery
    link: Link
    user: User | None = None
    channel: NotificationChannel | None = None

    @property
    def needs_sign_in(self) -> bool:
        """Whether the link alone does not suffice: the channel is shared and lets nobody act without a name."""
        return self.user is None and not (self.channel is not None and self.channel.anonymous_actions)

    @property
    def actor(self) -> str | None:
        """In whose name the link acts; ``None`` if it does not."""
        if self.user is not None:
            return f"@{self.user.username}"
        return None if self.needs_sign_in else NAMES[ALERT_BOT]


def find(link: Link | None) -> LinkedAction | None:
    """Return the action of a link; ``None`` if it is not valid any more."""
    delivery = None if link is None else db.session.get(NotificationDelivery, link.delivery_id)
    if link is None or delivery is None or delivery.project is None or delivery.project.deleting_since is not None:
        return None
    if link.user_id is not None:
        user = db.session.get(User, link.user_id)
        return LinkedAction(delivery, link, user=user) if user is not None and may_acknowledge(user, delivery) else None
    channel = db.session.get(NotificationChannel, link.channel_id)
    return None if channel is None else LinkedAction(delivery, link, channel=channel)


def may_acknowledge(user: User, delivery: NotificationDelivery) -> bool:
    """Whether a user may change the alerts of a message now."""
    is_active = user.state == ACTIVE and user.deleting_since is None
    return is_active and allowed(Caller.of(user), Ability.READ_ALERTS, delivery.project)


def perform(action: LinkedAction, signed_in: User | None = None) -> Acknowledged:
    """Acknowledge or resolve all alerts of a message, those that it does not list too."""
    what = action.link.action
    ids, resolves = alert_ids_of(action.delivery, what), what == RESOLVE
    if signed_in is not None or action.user is not None:
        author = signed_in or action.user
        return acknowledge(Acknowledgement(ids, author or bot(ALERT_BOT), resolves=resolves))
    name = "" if action.channel is None else action.channel.name
    return acknowledge(Acknowledgement(ids, bot(ALERT_BOT), THROUGH[what].format(name), resolves))


def alert_ids_of(delivery: NotificationDelivery, action: str) -> list[int]:
    """Return the alerts that a link in a message changes, also those of messages that were merged into it."""
    merged = select(NotificationDelivery.id).where(NotificationDelivery.merged_into_id == delivery.id)
    opened = (
        select(NotificationEvent.subject_id)
        .join(NotificationItem, NotificationItem.event_id == NotificationEvent.id)
        .where(
            or_(NotificationItem.delivery_id == delivery.id, NotificationItem.delivery_id.in_(merged)),
            NotificationEvent.kind.in_(KINDS[action]),
        )
    )
    return sorted({*db.session.scalars(opened.distinct()), *delivery.content.get("alert_ids", ())})
