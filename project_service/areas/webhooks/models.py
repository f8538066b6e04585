"""Tables: web hooks, and the log of their deliveries (webhooks reference, sections 1 and 6)."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Float, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project
from project_service.kit import clock, exact_json
from project_service.kit.db.base import Model, Timestamps, index_where_present
from project_service.kit.deliveries import DeliveryPayload
from project_service.kit.security.key_ring import Encrypted

FAILURES_OF_TEMPORARY_DISABLING = 4
FAILURES_OF_DISABLING = 40
EXECUTABLE, TEMPORARILY_DISABLED, DISABLED = "executable", "temporarily_disabled", "disabled"
EVENTS = (
    "push_events",
    "issues_events",
    "confidential_issues_events",
    "note_events",
    "confidential_note_events",
    "tag_push_events",
    "merge_requests_events",
    "milestone_events",
    "vulnerability_events",
    "alert_events",
    "error_events",
    "releases_events",
    "job_events",
    "pipeline_events",
    "wiki_page_events",
    "deployment_events",
    "feature_flag_events",
    "emoji_events",
    "resource_access_token_events",
    "repository_update_events",
)
GROUP_EVENTS = ("subgroup_events", "member_events", "project_events")


class WebHook(Timestamps, Model):
    """A web hook of a project, of a group or, without either, of the instance (a system hook)."""

    __tablename__ = "web_hooks"
    __table_args__ = (
        Index("ix_web_hooks_project_id", "project_id", "id"),
        Index("ix_web_hooks_group_id", "group_id", "id"),
    )

    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    group_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace | None] = relationship()
    url: Mapped[str] = mapped_column(Encrypted)  # with placeholders; it may have a password
    name: Mapped[str | None]
    description: Mapped[str | None]
    events: Mapped[dict[str, Any]] = mapped_column(default=dict)  # only what is not the default
    enable_ssl_verification: Mapped[bool] = mapped_column(default=True)
    push_events_branch_filter: Mapped[str | None]
    branch_filter_strategy: Mapped[str] = mapped_column(default="wildcard")
    custom_webhook_template: Mapped[str | None]
    token: Mapped[str | None] = mapped_column(Encrypted)
    signing_token: Mapped[str | None] = mapped_column(Encrypted)
    encoded_url_variables: Mapped[str | None] = mapped_column("url_variables", Encrypted)
    encoded_custom_headers: Mapped[str | None] = mapped_column("custom_headers", Encrypted)
    recent_failures: Mapped[int] = mapped_column(default=0)
    disabled_until: Mapped[dt.datetime | None]
    last_error: Mapped[str | None]
    dropped_events: Mapped[int] = mapped_column(default=0)  # while disabled
    # not a column; the project whose events it wants, set by queries
    listened_project: Project | None = None

    @property
    def is_system(self) -> bool:
        """Whether this is a hook of the instance."""
        return self.project_id is None and self.group_id is None

    @property
    def receiver(self) -> str:
        """The name of this hook for the delivery engine."""
        return f"web_hook:{self.id}"

    @property
    def url_variables(self) -> dict[str, str]:
        """Values of the placeholders of the URL."""
        return _decoded(self.encoded_url_variables)

    @url_variables.setter
    def url_variables(self, values: dict[str, str]) -> None:
        self.encoded_url_variables = exact_json.dumps(values).decode() if values else None

    @property
    def custom_headers(self) -> dict[str, str]:
        """Headers that are sent with each request."""
        return _decoded(self.encoded_custom_headers)

    @custom_headers.setter
    def custom_headers(self, values: dict[str, str]) -> None:
        self.encoded_custom_headers = exact_json.dumps(values).decode() if values else None

    @property
    def filled_url(self) -> str:
        """The URL with the values of its variables."""
        url = self.url
        for key, value in self.url_variables.items():
            url = url.replace(f"{{{key}}}", value)
        return url

    @property
    def alert_status(self) -> str:
        """``executable``, ``temporarily_disabled`` or ``disabled`` (webhooks reference, section 12)."""
        if self.is_system:
            return EXECUTABLE
        if self.recent_failures >= FAILURES_OF_DISABLING:
            return DISABLED
        is_waiting = self.disabled_until is not None and self.disabled_until > clock.now()
        return TEMPORARILY_DISABLED if is_waiting else EXECUTABLE

    def enables(self, event: str) -> bool:
        """Whether the flag of an event is set."""
        return bool(self.events.get(event, self.default_of(event)))

    def default_of(self, event: str) -> bool | None:
        """The value of a flag that was never set."""
        if event == "confidential_note_events":
            return None
        return event == ("repository_update_events" if self.is_system else "push_events")


class WebHookLog(Model):
    """One attempt to deliver an event to a hook."""

    __tablename__ = "web_hook_logs"
    __table_args__ = (
        Index("ix_web_hook_logs_hook_id", "hook_id", "id"),
        Index("ix_web_hook_logs_created_at", "created_at"),
        index_where_present("ix_web_hook_logs_payload_id", "payload_id"),
    )

    hook_id: Mapped[int] = mapped_column(ForeignKey("web_hooks.id", ondelete="CASCADE"))
    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    trigger: Mapped[str]
    url: Mapped[str]
    url_digest: Mapped[str]  # of the filled-in URL: an attempt is repeated only to the same
    request_headers: Mapped[dict[str, Any]]
    payload_id: Mapped[int | None] = mapped_column(ForeignKey("delivery_payloads.id", ondelete="SET NULL"))
    payload: Mapped[DeliveryPayload | None] = relationship()
    idempotency_key: Mapped[str]
    event_header: Mapped[str]
    response_headers: Mapped[dict[str, Any]]
    response_body: Mapped[str]
    execution_duration: Mapped[float] = mapped_column(Float)  # seconds
    response_status: Mapped[str]
    error: Mapped[str | None]
    attempt: Mapped[int]


def _decoded(text: str | None) -> dict[str, str]:
    values: dict[str, str] = exact_json.loads(text) if text else {}
    return values
