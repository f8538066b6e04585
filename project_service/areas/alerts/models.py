"""Models of alerts and the integrations that receive them (alert management reference, section 1)."""

from __future__ import annotations

import datetime as dt
import enum
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, case, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.silences.models import Silence
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issues import Issue
from project_service.kit.db import text_search
from project_service.kit.db.base import Model, Timestamps, index_where_present, table_of
from project_service.kit.db.text_search import TextIndex
from project_service.kit.security.key_ring import Encrypted

TARGET = "AlertManagement::Alert"
HTTP = "http"
PROMETHEUS = "prometheus"
OPSGENIE = "opsgenie"
# The time an alert is listed by: its start or, if that lay in the future when it was received, the time of receipt.
# With the line breaks of PostgreSQL, so that a comparison of models and database finds no difference.
LISTED_AT = "(\nCASE\n WHEN started_at > created_at THEN created_at\n ELSE started_at\nEND)"


class Severity(enum.IntEnum):
    """Severity of an alert; the lowest number is the most severe."""

    CRITICAL = 0
    HIGH = 1
    MEDIUM = 2
    LOW = 3
    INFO = 4
    UNKNOWN = 5

    @property
    def title(self) -> str:
        """The name shown to users."""
        return self.name.capitalize()


class Status(enum.IntEnum):
    """Status of an alert."""

    TRIGGERED = 0
    ACKNOWLEDGED = 1
    RESOLVED = 2
    IGNORED = 3

    @property
    def title(self) -> str:
        """The name shown to users."""
        return self.name.capitalize()


ACKNOWLEDGING = (Status.TRIGGERED, Status.ACKNOWLEDGED)  # statuses that set or clear the time of acknowledgement


class AlertIntegration(Timestamps, Model):
    """A receiver of alerts of one project: its URL, its key and how its payloads are read.

    The key is encrypted at rest. ``mapping`` holds, by alert field, the path in the payload, its type and label.
    ``preset`` names the monitoring tool whose preset applies where nothing is mapped. ``severity_mapping`` has the name
    of a severity by the word that means it, ``resolved_values`` the values that mean "resolved"; ``None`` stands for
    those of the preset, or for the default. ``time_zone`` is that of times without one, by default UTC.
    An Opsgenie integration receives nothing: it is a link (``target_url``) in place of the list of alerts.
    """

    __tablename__ = "alert_integrations"
    __table_args__ = (
        UniqueConstraint("project_id", "endpoint_identifier"),
        Index("ix_alert_integrations_project_id", "project_id", "id"),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    type: Mapped[str] = mapped_column(default=HTTP)
    name: Mapped[str]
    active: Mapped[bool] = mapped_column(default=False)
    endpoint_identifier: Mapped[str]
    token: Mapped[str] = mapped_column(Encrypted)
    payload_example: Mapped[str | None]
    mapping: Mapped[dict[str, Any]] = mapped_column(default=dict)
    target_url: Mapped[str | None]
    preset: Mapped[str | None]
    severity_mapping: Mapped[dict[str, Any] | None]
    resolved_values: Mapped[list[str] | None]
    time_zone: Mapped[str | None]


class Outcome(enum.StrEnum):
    """What became of a request to a receiver."""

    ACCEPTED = "accepted"
    IGNORED = "ignored"
    TEST = "test"
    SUBSCRIPTION = "subscription"
    REFUSED = "refused"


class AlertRequest(Model):
    """A request that an integration has received, with its body encrypted; only the last ones are kept.

    ``reason`` says why it was refused or ignored, or what was left out. ``count``: how often the same refused request
    came from the same address within a minute. ``is_cut``: the body was longer than what is stored of it.
    """

    __tablename__ = "alert_requests"
    __table_args__ = (
        Index("ix_alert_requests_integration_id", "integration_id", "id"),
        Index("ix_alert_requests_listed", "integration_id", "received_at", "id"),
        Index("ix_alert_requests_received_at", "received_at"),
    )

    integration_id: Mapped[int] = mapped_column(ForeignKey("alert_integrations.id", ondelete="CASCADE"))
    integration: Mapped[AlertIntegration] = relationship()
    received_at: Mapped[dt.datetime]
    outcome: Mapped[str]
    status: Mapped[int]
    reason: Mapped[str | None]
    address: Mapped[str | None]
    size: Mapped[int]  # bytes of the body
    count: Mapped[int] = mapped_column(default=1)
    alert_iids: Mapped[list[Any]] = mapped_column(default=list)
    body: Mapped[str | None] = mapped_column(Encrypted)
    is_cut: Mapped[bool] = mapped_column(default=False)


class FormerAddress(Model):
    """An address that a receiver had before its project was renamed or moved, and when it was last used."""

    __tablename__ = "alert_former_addresses"
    __table_args__ = (UniqueConstraint("integration_id", "path"),)

    integration_id: Mapped[int] = mapped_column(ForeignKey("alert_integrations.id", ondelete="CASCADE"))
    path: Mapped[str]  # of the project, in lower case
    last_used_at: Mapped[dt.datetime]


class Alert(Timestamps, Model):
    """An alert: one episode of a problem, whose identity is the fingerprint.

    A unique index ensures that at most one open alert of a project has a fingerprint. The episodes of an identity are
    the alerts of the project with its fingerprint, in the order of their ids.
    """

    __tablename__ = "alerts"
    __table_args__ = (
        UniqueConstraint("project_id", "iid"),
        Index(
            "uq_alerts_open_fingerprint",
            "project_id",
            "fingerprint",
            unique=True,
            sqlite_where=text("status <> 2"),
            postgresql_where=text("status <> 2"),
        ),
        Index("ix_alerts_listed", "project_id", text(LISTED_AT), "id"),
        Index(
            "ix_alerts_listed_open",
            "project_id",
            text(LISTED_AT),
            "id",
            sqlite_where=text("status <> 2 AND status <> 3"),
            postgresql_where=text("status <> 2 AND status <> 3"),
        ),
        Index("ix_alerts_status", "project_id", "status", text(LISTED_AT), "id"),
        Index("ix_alerts_severity", "project_id", "severity", "id"),
        Index("ix_alerts_events", "project_id", "events", "id"),
        # most alerts have no incident, environment or assignee: these indexes cost them nothing
        index_where_present("ix_alerts_issue_id", "issue_id"),
        index_where_present("ix_alerts_environment_id_started_at", "environment_id", "started_at", "id"),
        index_where_present("ix_alerts_assignee_id", "assignee_id", "id"),
        index_where_present("ix_alerts_integration_id", "integration_id", "id"),
        Index(
            "ix_alerts_fingerprint",
            "project_id",
            "fingerprint",
            "id",
            sqlite_where=text("fingerprint IS NOT NULL"),
            postgresql_where=text("fingerprint IS NOT NULL"),
        ),
    )

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    iid: Mapped[int]
    title: Mapped[str]
    description: Mapped[str | None]
    severity: Mapped[int] = mapped_column(default=Severity.CRITICAL)
    status: Mapped[int] = mapped_column(default=Status.TRIGGERED)
    service: Mapped[str | None]
    monitoring_tool: Mapped[str | None]
    hosts: Mapped[list[str]] = mapped_column(default=list)
    started_at: Mapped[dt.datetime]
    ended_at: Mapped[dt.datetime | None]
    acknowledged_at: Mapped[dt.datetime | None]  # when somebody set the status, until it is triggered again
    events: Mapped[int] = mapped_column(default=1)
    fingerprint: Mapped[str | None]
    payload: Mapped[dict[str, Any]] = mapped_column(default=dict)
    unreadable_times: Mapped[dict[str, Any] | None]  # by field: path and value, ignored because it is no time
    environment_id: Mapped[int | None] = mapped_column(ForeignKey("environments.id", ondelete="SET NULL"))
    environment: Mapped[Environment | None] = relationship()
    issue_id: Mapped[int | None] = mapped_column(ForeignKey("issues.id", ondelete="SET NULL"))
    issue: Mapped[Issue | None] = relationship()
    assignee_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    assignee: Mapped[User | None] = relationship()
    integration_id: Mapped[int | None] = mapped_column(ForeignKey("alert_integrations.id", ondelete="SET NULL"))
    integration: Mapped[AlertIntegration | None] = relationship()
    # not a column; set by queries for a response
    silence: Silence | None = None

    @property
    def is_silence_loaded(self) -> bool:
        """Whether ``silence`` was set; without that it is the default."""
        return "silence" in vars(self)


TEXTS = text_search.add(TextIndex(table_of(Alert), ("title", "description", "service", "monitoring_tool", "hosts")))

# the expression of the indexes, for orders
listed_at = case((Alert.started_at > Alert.created_at, Alert.created_at), else_=Alert.started_at)


class IncidentSetting(Timestamps, Model):
    """Incident settings of a project (alert management reference, section 9)."""

    __tablename__ = "incident_settings"

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"), unique=True)
    create_issue: Mapped[bool] = mapped_column(default=False)
    auto_close_incident: Mapped[bool] = mapped_column(default=True)
    issue_template_key: Mapped[str | None]
    issue_template: Mapped[str | None]
