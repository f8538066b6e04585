"""Tables: channels, groups of items, announcements, messages (notifications reference, section 2)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import CheckConstraint, Float, ForeignKey, Index, UniqueConstraint, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.notifications.models import NotificationEvent, NotificationRule
from project_service.domain.projects import Project
from project_service.kit import clock, exact_json
from project_service.kit.db.base import Model, Timestamps, index_where_present
from project_service.kit.security.key_ring import Encrypted

EMAIL, WEBHOOK, SLACK, TEAMS = "email", "webhook", "slack", "teams"
DISCORD, NTFY, TELEGRAM, PAGERDUTY = "discord", "ntfy", "telegram", "pagerduty"
TYPES = (EMAIL, WEBHOOK, SLACK, TEAMS, DISCORD, NTFY, TELEGRAM, PAGERDUTY)
PERSONAL_TYPES = (EMAIL, SLACK, DISCORD, NTFY, TELEGRAM, WEBHOOK)
WAITING, SENDING, DELIVERED, FAILED, DROPPED, MERGED = "waiting", "sending", "delivered", "failed", "dropped", "merged"
STATUSES = (WAITING, SENDING, DELIVERED, FAILED, DROPPED, MERGED)
IS_UNSENT = text("delivery_id IS NULL")


class NotificationChannel(Timestamps, Model):
    """Where messages of a project, a group or a user are sent. ``secrets`` are encrypted, ``target`` is masked.

    ``troubled_since`` is when the current series of failures began, ``failing_since`` when it was long enough to tell.
    ``tokens`` are what is left of ``rate_per_minute`` at ``tokens_at``.
    """

    __tablename__ = "notification_channels"
    __table_args__ = (
        CheckConstraint(
            "(project_id IS NOT NULL AND group_id IS NULL AND user_id IS NULL)"
            " OR (project_id IS NULL AND group_id IS NOT NULL AND user_id IS NULL)"
            " OR (project_id IS NULL AND group_id IS NULL AND user_id IS NOT NULL)",
            name="one_owner",
        ),
        Index("uq_notification_channels_project_id", "project_id", text("lower(name)"), unique=True),
        Index("uq_notification_channels_group_id", "group_id", text("lower(name)"), unique=True),
        Index("uq_notification_channels_user_id", "user_id", text("lower(name)"), unique=True),
        index_where_present("ix_notification_channels_failing_since", "failing_since"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace | None] = relationship()
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user: Mapped[User | None] = relationship()
    type: Mapped[str]
    name: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True, server_default=true())
    settings: Mapped[dict[str, Any]] = mapped_column(default=dict)
    encoded_secrets: Mapped[str | None] = mapped_column("secrets", Encrypted)
    target: Mapped[str]
    anonymous_actions: Mapped[bool] = mapped_column(default=False, server_default=false())
    rate_per_minute: Mapped[int] = mapped_column(default=20)
    confirmed_at: Mapped[dt.datetime | None]
    final_failures: Mapped[int] = mapped_column(default=0)
    troubled_since: Mapped[dt.datetime | None]
    failing_since: Mapped[dt.datetime | None]
    probe_at: Mapped[dt.datetime | None]  # while it fails, nothing is sent before
    last_error: Mapped[str | None]
    last_delivered_at: Mapped[dt.datetime | None]
    tokens: Mapped[float | None] = mapped_column(Float)
    tokens_at: Mapped[dt.datetime | None]

    # not a column; set by queries for a response: whether the caller may see the settings
    shows_settings: bool = False

    @property
    def scope(self) -> str:
        """``project``, ``group`` or ``user``."""
        return "project" if self.project_id is not None else "group" if self.group_id is not None else "user"

    @property
    def state(self) -> str:
        """``ok``, ``unconfirmed``, ``failing`` or ``disabled``."""
        if not self.enabled:
            return "disabled"
        if self.confirmed_at is None:
            return "unconfirmed"
        return "failing" if self.failing_since is not None else "ok"

    @property
    def secrets(self) -> dict[str, Any]:
        """What must not be shown: URLs, tokens, headers."""
        values: dict[str, Any] = exact_json.loads(self.encoded_secrets) if self.encoded_secrets else {}
        return values

    @secrets.setter
    def secrets(self, values: dict[str, Any]) -> None:
        self.encoded_secrets = exact_json.dumps(values).decode() if values else None

    @property
    def receiver(self) -> str:
        """The name of this channel for the delivery engine."""
        return f"{'notification_pager' if self.type == PAGERDUTY else 'notification_channel'}:{self.id}"


class NotificationGroup(Model):
    """What waits for one target of one rule: the next message is due at ``due_at``.

    ``origin`` is ``rule:<id>`` or ``personal``, ``target`` is ``channel:<id>`` or ``user:<id>``, ``group_key`` the
    values that the rule groups by.
    """

    __tablename__ = "notification_groups"
    __table_args__ = (
        UniqueConstraint("project_id", "origin", "target", "group_key"),
        Index("ix_notification_groups_due_at", "due_at"),
        index_where_present("ix_notification_groups_rule_id", "rule_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    rule_id: Mapped[int | None] = mapped_column(ForeignKey("notification_rules.id", ondelete="CASCADE"))
    rule: Mapped[NotificationRule | None] = relationship()
    origin: Mapped[str]
    target: Mapped[str]
    group_key: Mapped[str] = mapped_column(default="")
    interval_seconds: Mapped[int]
    due_at: Mapped[dt.datetime]
    last_sent_at: Mapped[dt.datetime | None]
    # what began and ended during the quiet hours of a person; the message at their end counts it
    ended_count: Mapped[int] = mapped_column(default=0, server_default="0")


class NotificationDelivery(Model):
    """A message to a channel or a person: what is sent, and what became of it. Kept for 30 days."""

    __tablename__ = "notification_deliveries"
    __table_args__ = (
        Index("ix_notification_deliveries_project_id", "project_id", "id"),
        Index("ix_notification_deliveries_channel_id", "channel_id", "id"),
        index_where_present("ix_notification_deliveries_user_id", "user_id", "id"),
        index_where_present("ix_notification_deliveries_merged_into_id", "merged_into_id"),
        Index("ix_notification_deliveries_created_at", "created_at"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    channel_id: Mapped[int | None] = mapped_column(ForeignKey("notification_channels.id", ondelete="SET NULL"))
    channel: Mapped[NotificationChannel | None] = relationship()
    user_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user: Mapped[User | None] = relationship()
    recipient: Mapped[str]  # a masked target or an address
    channel_name: Mapped[str | None]
    kind: Mapped[str] = mapped_column(default="message")
    title: Mapped[str]
    content: Mapped[dict[str, Any]]
    triggered_count: Mapped[int] = mapped_column(default=0)
    resolved_count: Mapped[int] = mapped_column(default=0)
    other_count: Mapped[int] = mapped_column(default=0)
    status: Mapped[str] = mapped_column(default=WAITING)
    attempts: Mapped[int] = mapped_column(default=0)
    next_attempt_at: Mapped[dt.datetime | None]
    response_status: Mapped[str | None]
    error: Mapped[str | None]
    merged_into_id: Mapped[int | None] = mapped_column(ForeignKey("notification_deliveries.id", ondelete="SET NULL"))
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    delivered_at: Mapped[dt.datetime | None]


class NotificationItem(Model):
    """An event for one target: waiting in a group, or with ``delivery_id`` part of a message."""

    __tablename__ = "notification_items"
    __table_args__ = (
        UniqueConstraint("event_id", "target"),
        Index("ix_notification_items_waiting", "group_id", "id", sqlite_where=IS_UNSENT, postgresql_where=IS_UNSENT),
        Index("ix_notification_items_group_id", "group_id"),
        index_where_present("ix_notification_items_delivery_id", "delivery_id", "id"),
        index_where_present("ix_notification_items_reminder_id", "reminder_id", "id"),
    )

    group_id: Mapped[int | None] = mapped_column(ForeignKey("notification_groups.id", ondelete="SET NULL"))
    event_id: Mapped[int] = mapped_column(ForeignKey("notification_events.id", ondelete="CASCADE"))
    event: Mapped[NotificationEvent] = relationship()
    target: Mapped[str]
    rule_id: Mapped[int | None]
    delivery_id: Mapped[int | None] = mapped_column(ForeignKey("notification_deliveries.id", ondelete="CASCADE"))
    delivery: Mapped[NotificationDelivery | None] = relationship(foreign_keys=[delivery_id])
    reminder_id: Mapped[int | None] = mapped_column(ForeignKey("notification_deliveries.id", ondelete="SET NULL"))
    reminder: Mapped[NotificationDelivery | None] = relationship(foreign_keys=[reminder_id])  # the last one
    reminder_count: Mapped[int] = mapped_column(default=0, server_default="0")


class NotificationAnnouncement(Model):
    """That a target was notified of the opening of an alert or incident: without it, the end is not announced."""

    __tablename__ = "notification_announcements"
    __table_args__ = (
        UniqueConstraint("subject_type", "subject_id", "target"),
        Index("ix_notification_announcements_project_id", "project_id"),
        Index("ix_notification_announcements_announced_at", "announced_at"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    subject_type: Mapped[str]
    subject_id: Mapped[int]
    target: Mapped[str]
    announced_at: Mapped[dt.datetime] = mapped_column(default=clock.now)


class NotificationReminder(Model):
    """When a target is next told again of what a rule has told it of in a project and is still open."""

    __tablename__ = "notification_reminders"
    __table_args__ = (
        UniqueConstraint("rule_id", "project_id", "target"),
        Index("ix_notification_reminders_project_id", "project_id"),
        Index("ix_notification_reminders_due_at", "due_at"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    rule_id: Mapped[int] = mapped_column(ForeignKey("notification_rules.id", ondelete="CASCADE"))
    rule: Mapped[NotificationRule] = relationship()
    target: Mapped[str]
    due_at: Mapped[dt.datetime]


class QuietHours(Timestamps, Model):
    """The hours of a user in which personal messages wait (notifications reference, section 8)."""

    __tablename__ = "notification_quiet_hours"

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    user: Mapped[User] = relationship()
    enabled: Mapped[bool] = mapped_column(default=False)
    time_zone: Mapped[str] = mapped_column(default="UTC")
    days: Mapped[list[Any]]
    starts: Mapped[str]  # HH:MM
    ends: Mapped[str]
    except_critical: Mapped[bool] = mapped_column(default=True)
