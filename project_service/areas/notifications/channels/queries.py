"""Reads of channels and of the log of messages."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, select

from project_service.areas.notifications.models import (
    NotificationChannel,
    NotificationDelivery,
    NotificationItem,
)
from project_service.areas.notifications.owners import Owner, column_of, owned_by
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import NamespaceAncestor, descendants_of
from project_service.domain.notifications.models import ALERT, NotificationEvent
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import NotFound


def channels_of(owner: Owner) -> Select[NotificationChannel]:
    """Select the channels that belong to an owner."""
    own = select(NotificationChannel).where(owned_by(NotificationChannel, owner))
    return own.options(NO_LAZY_LOADING).order_by(NotificationChannel.id)


def usable_channels(owner: Owner) -> Select[NotificationChannel]:
    """Select the channels of an owner and, of a project or group, those of the groups above it."""
    listed = select(NotificationChannel).where(_usable_by(owner))
    return listed.options(NO_LAZY_LOADING).order_by(NotificationChannel.id)


def _usable_by(owner: Owner) -> ColumnElement[bool]:
    if isinstance(owner, User):
        return owned_by(NotificationChannel, owner)
    namespace_id = owner.namespace_id if isinstance(owner, Project) else owner.id
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
    own, ids = owned_by(NotificationChannel, owner), select(NotificationChannel.id)
    # PostgreSQL would read them all for a condition with OR
    return NotificationChannel.id.in_(ids.where(own).union_all(ids.where(NotificationChannel.group_id.in_(above))))


def failing_channels(owner: Owner) -> Select[NotificationChannel]:
    """Select the channels that an owner may use and that fail."""
    failing = NotificationChannel.failing_since.is_not(None) & NotificationChannel.enabled
    return usable_channels(owner).where(failing)


def find_channel(owner: Owner, channel_id: int) -> NotificationChannel:
    """Return one channel that belongs to an owner."""
    statement = select(NotificationChannel).where(owned_by(NotificationChannel, owner))
    return one(statement.where(NotificationChannel.id == channel_id), NotFound("Notification Channel"))


def find_usable_channel(owner: Owner, channel_id: int) -> NotificationChannel:
    """Return one channel that an owner may use."""
    statement = usable_channels(owner).where(NotificationChannel.id == channel_id)
    return one(statement, NotFound("Notification Channel"))


def show_settings(channels: Sequence[NotificationChannel], owner: Owner, *, shown: bool) -> None:
    """Have the settings of channels shown that belong to an owner, to those who may change them."""
    for channel in channels:
        channel.shows_settings = shown and getattr(channel, column_of(owner)) == owner.id


def number_of_channels(owner: Owner) -> int:
    """Return how many channels an owner has."""
    return db.session.scalar(select(func.count()).select_from(channels_of(owner).order_by(None).subquery())) or 0


def deliveries_of(
    owner: Owner,
    *,
    channel_id: int | None = None,
    status: str | None = None,
    alert_iid: int | None = None,
    created_after: dt.datetime | None = None,
    **_paging: Any,
) -> Select[NotificationDelivery]:
    """Select messages of a project, of the projects below a group, or to a user, newest first."""
    log = NotificationDelivery
    if isinstance(owner, Project):
        listed = select(log).where(log.project_id == owner.id)
    elif isinstance(owner, User):
        listed = select(log).where(log.user_id == owner.id)
    else:
        below = select(Project.id).where(Project.namespace_id.in_(descendants_of(owner)))
        listed = select(log).where(log.project_id.in_(below))
    if channel_id is not None:
        listed = listed.where(log.channel_id == channel_id)
    if status is not None:
        listed = listed.where(log.status == status)
    if created_after is not None:
        listed = listed.where(log.created_at > created_after)
    if alert_iid is not None:
        listed = listed.where(_is_about(alert_iid))
    return listed.options(NO_LAZY_LOADING).order_by(log.id.desc())


def _is_about(alert_iid: int) -> ColumnElement[bool]:
    """Return the condition for messages about an alert of their project."""
    items, events = NotificationItem, NotificationEvent
    number = events.snapshot["iid"].as_integer()
    return exists().where(
        items.delivery_id == NotificationDelivery.id,
        items.event_id == events.id,
        events.subject_type == ALERT,
        number == alert_iid,
    )


def find_delivery(owner: Owner, delivery_id: int) -> NotificationDelivery:
    """Return one message."""
    log = NotificationDelivery
    own = select(log).where(log.id == delivery_id)
    if isinstance(owner, Project):
        own = own.where(log.project_id == owner.id)
    elif isinstance(owner, User):
        own = own.where(log.user_id == owner.id)
    else:
        below = select(Project.id).where(Project.namespace_id.in_(descendants_of(owner)))
        own = own.where(log.project_id.in_(below))
    return one(own, NotFound("Notification Delivery"))
