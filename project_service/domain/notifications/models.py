"""Tables: events, rules, and personal settings (notifications reference, sections 2, 7 and 8)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps, index_where_present

ALERT, ERROR, FINDING, ISSUE = "alert", "error", "finding", "issue"
ALERT_TRIGGERED, ALERT_REOPENED = "alert_triggered", "alert_reopened"
ALERT_ACKNOWLEDGED, ALERT_RESOLVED, ALERT_IGNORED = "alert_acknowledged", "alert_resolved", "alert_ignored"
NEW_ERROR, ERROR_REGRESSION, NEW_FINDING = "new_error", "error_regression", "new_finding"
INCIDENT_OPENED, INCIDENT_CLOSED = "incident_opened", "incident_closed"
SUBJECTS = {
    ALERT_TRIGGERED: ALERT,
    ALERT_ACKNOWLEDGED: ALERT,
    ALERT_RESOLVED: ALERT,
    ALERT_IGNORED: ALERT,
    ALERT_REOPENED: ALERT,
    NEW_ERROR: ERROR,
    ERROR_REGRESSION: ERROR,
    NEW_FINDING: FINDING,
    INCIDENT_OPENED: ISSUE,
    INCIDENT_CLOSED: ISSUE,
}
KINDS = tuple(SUBJECTS)
OPENING = (ALERT_TRIGGERED, ALERT_REOPENED, NEW_ERROR, ERROR_REGRESSION, NEW_FINDING, INCIDENT_OPENED)
ENDING = (ALERT_RESOLVED, ALERT_IGNORED, INCIDENT_CLOSED)
SEVERITIES = ("critical", "high", "medium", "low", "info")
WATCH, CUSTOM, DISABLED, GLOBAL = "watch", "custom", "disabled", "global"
LEVELS = ("disabled", "participating", "watch", "global", "mention", "custom")
UNROUTED = text("routed_at IS NULL")


class NotificationEvent(Model):
    """Something that happened to an alert, an error, findings or an incident, written in its transaction.

    ``snapshot`` has what rules compare and what messages say, ``severity`` a word of ``SEVERITIES`` or ``unknown``.
    Routing fills in the rest: ``silence_ids`` are those that held it back, ``reasons`` say why rules did not match.
    """

    __tablename__ = "notification_events"
    __table_args__ = (
        Index("ix_notification_events_unrouted", "id", sqlite_where=UNROUTED, postgresql_where=UNROUTED),
        Index("ix_notification_events_subject", "subject_type", "subject_id", "id"),
        Index("ix_notification_events_project_id", "project_id", "id"),
        Index("ix_notification_events_created_at", "created_at"),
        index_where_present("ix_notification_events_author_id", "author_id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    kind: Mapped[str]
    subject_type: Mapped[str]
    subject_id: Mapped[int]
    severity: Mapped[str]
    environment: Mapped[str | None]
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    snapshot: Mapped[dict[str, Any]]
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    routed_at: Mapped[dt.datetime | None]
    silence_ids: Mapped[list[Any]] = mapped_column(default=list)
    reasons: Mapped[list[Any]] = mapped_column(default=list)


class NotificationRule(Timestamps, Model):
    """Which events are told to which targets, for a project or for all projects below a group."""

    __tablename__ = "notification_rules"
    __table_args__ = (
        CheckConstraint("(project_id IS NULL) <> (group_id IS NULL)", name="one_owner"),
        Index("uq_notification_rules_project_id", "project_id", text("lower(name)"), unique=True),
        Index("uq_notification_rules_group_id", "group_id", text("lower(name)"), unique=True),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace | None] = relationship()
    name: Mapped[str]
    enabled: Mapped[bool] = mapped_column(default=True, server_default=true())
    events: Mapped[list[str]]
    min_severity: Mapped[str | None]
    environment: Mapped[str | None]
    integration_ids: Mapped[list[Any]] = mapped_column(default=list)
    matchers: Mapped[list[Any]] = mapped_column(default=list)
    targets: Mapped[list[Any]]
    group_by: Mapped[list[str]] = mapped_column(default=list)
    group_wait: Mapped[int] = mapped_column(default=5)  # seconds
    group_interval: Mapped[int] = mapped_column(default=300)  # seconds
    repeat_interval: Mapped[int | None]  # seconds
    active_periods: Mapped[list[Any]] = mapped_column(default=list)


class NotificationSetting(Timestamps, Model):
    """The level of a user for a project, a group or, without either, everywhere."""

    __tablename__ = "notification_settings"
    __table_args__ = (
        CheckConstraint("project_id IS NULL OR group_id IS NULL", name="one_subject"),
        Index("uq_notification_settings_project_id", "project_id", "user_id", unique=True),
        Index("uq_notification_settings_group_id", "group_id", "user_id", unique=True),
        Index(
            "uq_notification_settings_global",
            "user_id",
            unique=True,
            sqlite_where=text("project_id IS NULL AND group_id IS NULL"),
            postgresql_where=text("project_id IS NULL AND group_id IS NULL"),
        ),
        Index("ix_notification_settings_user_id", "user_id", "id"),
        Index("ix_notification_settings_level", "level"),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user: Mapped[User] = relationship()
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace | None] = relationship()
    level: Mapped[str]
    events: Mapped[dict[str, Any]] = mapped_column(default=dict)
    notification_email: Mapped[str | None]
