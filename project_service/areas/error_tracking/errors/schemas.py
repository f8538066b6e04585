"""Schemas of errors and their events (error collection reference, section 17)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from project_service.areas.error_tracking.collection.event_parsing import LEVELS
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedErrorEvent
from project_service.areas.error_tracking.events import event_views
from project_service.domain.schemas import UserBasicSchema
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema

STATUSES = tuple(status.text for status in ErrorStatus)


class ErrorFilterSchema(Schema):
    """Which errors of a project, and in which order; with Sentry ``cursor`` takes the place of ``page``."""

    status = fields.Array(fields.String(choices=STATUSES))
    search = fields.String()
    environment = fields.String()
    release = fields.String()
    level = fields.String(choices=LEVELS)
    order_by = fields.String(default="last_seen", choices=("last_seen", "first_seen", "count"))
    sort = fields.String(default="desc", choices=("asc", "desc"))
    cursor = fields.String()


class ErrorUpdateSchema(Schema):
    """Change the status of an error, or assign it; the id 0 assigns it to nobody."""

    alternatives: ClassVar[Mapping[str, str]] = {"status": "assignee_id"}

    status = fields.String(required=True, choices=STATUSES)
    in_next_release = fields.Boolean(default=False)
    assignee_id = fields.Integer()


class ErrorEventFilterSchema(Schema):
    """Which events of an error: by words or ``key:value`` of tags, environment and release."""

    search = fields.String()
    environment = fields.String()
    release = fields.String()


class ErrorNoteSchema(Schema):
    """The text of a comment."""

    body = fields.String(required=True)


class ErrorMergeSchema(Schema):
    """The errors to merge into another one."""

    error_ids = fields.Array(fields.String(), required=True, allow_blank=False)


class MergedErrorSchema(Schema):
    """An error that was merged into another one."""

    id = fields.Computed(lambda merged: str(merged.id))
    title = fields.String()
    merged_at = fields.Moment()
    merged_by = Embedded(UserBasicSchema, keep_none=True)


class ErrorIssueSchema(Schema):
    """The issue to link; without one an issue is created."""

    issue_iid = fields.Integer()


class TrackedErrorSchema(Schema):
    """An error. ``frequency`` has pairs of an hour (seconds since 1970) and its occurrences, for the last 24 hours."""

    id = fields.String()
    project_id = fields.Integer()
    title = fields.String()
    type = fields.String()
    message = fields.String()
    culprit = fields.String()
    level = fields.String()
    logger = fields.String()
    platform = fields.String()
    status = fields.String()
    count = fields.Integer()
    user_count = fields.Integer()
    first_seen = fields.Moment()
    last_seen = fields.Moment()
    frequency = fields.Computed(
        lambda error: error.frequency, type="array", metadata={"items": {"type": "array", "items": {"type": "integer"}}}
    )
    first_release = fields.String()
    last_release = fields.String()
    environments = fields.Computed(
        lambda error: list(error.environments), type="array", metadata={"items": {"type": "string"}}
    )
    resolved_at = fields.Moment()
    resolved_in_next_release = fields.Boolean()
    regressed_at = fields.Moment()
    assignee = Embedded(UserBasicSchema, keep_none=True)
    issue_iid = fields.Integer()
    integrated = fields.Boolean()
    web_url = fields.String()
    external_url = fields.String()


class ChangedErrorSchema(TrackedErrorSchema):
    """An error, and the number of the issue that was closed with it."""

    closed_issue_iid = fields.Integer()


def _of_summary(name: str) -> Callable[[Any], Any]:
    return lambda event: event.summary.get(name)


def _of_details(name: str, empty: Any) -> Callable[[Any], Any]:
    return lambda event: event.details.get(name) or empty


class ErrorEventSchema(Schema):
    """An event without its details."""

    id = fields.String(attribute="event_id")
    error_id = fields.Computed(lambda event: str(event.error_id))
    title = fields.Computed(_of_summary("title"))
    message = fields.Computed(_of_summary("message"))
    culprit = fields.Computed(_of_summary("culprit"))
    level = fields.Computed(_of_summary("level"))
    logger = fields.Computed(_of_summary("logger"))
    platform = fields.Computed(_of_summary("platform"))
    environment = fields.Computed(_of_summary("environment"))
    release = fields.Computed(_of_summary("release"))
    dist = fields.Computed(_of_summary("dist"))
    transaction = fields.Computed(_of_summary("transaction"))
    server_name = fields.Computed(_of_summary("server_name"))
    occurred_at = fields.Moment()
    received_at = fields.Moment()
    user = fields.Computed(_of_summary("user"), type="object")
    tags = fields.Computed(_of_summary("tags"), type="array", metadata={"items": {"type": "object"}})


def _exceptions(event: TrackedErrorEvent) -> list[dict[str, Any]]:
    return event_views.exceptions_of(event)


class ErrorEventDetailsSchema(ErrorEventSchema):
    """An event with its details. Exceptions and their frames are in the order they were sent: oldest first."""

    exceptions = fields.Computed(_exceptions, type="array", metadata={"items": {"type": "object"}})
    breadcrumbs = fields.Computed(_of_details("breadcrumbs", []), type="array", metadata={"items": {"type": "object"}})
    request = fields.Computed(_of_details("request", None), type="object")
    contexts = fields.Computed(_of_details("contexts", {}), type="object")
    extra = fields.Computed(_of_details("extra", {}), type="object")
    modules = fields.Computed(_of_details("modules", {}), type="object")
    sdk = fields.Computed(_of_details("sdk", {}), type="object")
    fingerprint = fields.Computed(_of_details("fingerprint", []), type="array", metadata={"items": {"type": "string"}})
    truncated = fields.Computed(_of_details("truncated", False), type="boolean")
    source_map_problems = fields.Computed(
        _of_details("source_map_problems", []), type="array", metadata={"items": {"type": "object"}}
    )
    debug_ids = fields.Computed(_of_details("debug_ids", {}), type="object")
