"""Schemas of alerts; the names are those of GitLab's GraphQL (alert management reference, section 12)."""

from __future__ import annotations

from typing import Any

from project_service.areas.alerts.alerts.listing import SORTS
from project_service.areas.alerts.models import Alert, Severity, Status
from project_service.areas.alerts.payloads import payloads
from project_service.areas.alerts.queries import OPEN
from project_service.areas.alerts.receivers import grouping
from project_service.domain import page_paths
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.issues import Issue
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

SEVERITIES = {severity.name.lower(): severity for severity in Severity}
STATUSES = {status.name.lower(): status for status in Status}


def alert_url(alert: Alert) -> str:
    """Return the URL of the page of an alert."""
    return urls.absolute(f"/{alert.project.full_path}{page_paths.alert(alert.iid)}")


def _issue_url(issue: Issue) -> str:
    return urls.absolute(f"/{issue.project.full_path}{page_paths.issue(issue.iid)}")


def _assignees(alert: Alert) -> list[Any]:
    return [UserBasicSchema.dump_value(alert.assignee)] if alert.assignee is not None else []


def _silence_id(alert: Alert) -> int | None:
    return alert.silence.id if alert.silence is not None and alert.status in OPEN else None


class AlertEnvironmentSchema(Schema):
    """The environment of an alert."""

    id = fields.Integer()
    name = fields.String()


class AlertIssueSchema(Schema):
    """The incident of an alert."""

    id = fields.Integer()
    iid = fields.Integer()
    title = fields.String()
    state = fields.String()
    web_url = fields.Computed(_issue_url)


class AlertSchema(Schema):
    """An alert in a list."""

    id = fields.Integer()
    iid = fields.Integer()
    project_id = fields.Integer()
    title = fields.String()
    description = fields.String()
    severity = fields.Computed(lambda alert: Severity(alert.severity).name.lower())
    status = fields.Computed(lambda alert: Status(alert.status).name.lower())
    service = fields.String()
    monitoring_tool = fields.String()
    hosts = fields.Array(fields.String())
    environment = Embedded(AlertEnvironmentSchema, keep_none=True)
    integration_id = fields.Integer()
    started_at = fields.Moment()
    ended_at = fields.Moment()
    event_count = fields.Computed(lambda alert: alert.events, type="integer")
    fingerprint = fields.String()
    issue = Embedded(AlertIssueSchema, keep_none=True)
    silence_id = fields.Computed(_silence_id, type="integer")
    assignees = fields.Computed(_assignees, type=None, metadata={"type": "array", "items": {"type": "object"}})
    created_at = fields.Moment()
    updated_at = fields.Moment()
    details_url = fields.Computed(alert_url)
    web_url = fields.Computed(alert_url)


class AlertDetailsSchema(AlertSchema):
    """An alert with its payload: ``details`` has a value for each dotted key, arrays are one value."""

    runbook = fields.Computed(lambda alert: payloads.runbook_of(alert.payload))
    details = fields.Computed(lambda alert: dict(grouping.flatten(alert.payload)) if alert.payload else {}, "object")


class AlertFilterSchema(Schema):
    """Filters and order of the list of alerts."""

    status = fields.Array(fields.String(choices=tuple(STATUSES)))
    severity = fields.Array(fields.String(choices=tuple(SEVERITIES)))
    search = fields.String(
        metadata={
            "description": "Words that texts of an alert contain. The header `X-Newest-Only` of the answer says "
            "how many of the newest alerts were looked at, if older ones were left out."
        }
    )
    integration_id = fields.Integer()
    host = fields.String(metadata={"description": "One of the hosts, in any case."})
    environment = fields.String(metadata={"description": "The name of the environment."})
    assignee_username = fields.String()
    silenced = fields.Boolean(metadata={"description": "Only open alerts that are silenced now, or all others."})
    started_after = fields.DateTime()
    started_before = fields.DateTime()
    updated_after = fields.DateTime()
    updated_before = fields.DateTime()
    order_by = fields.String(default="started_at", choices=tuple(SORTS))
    sort = fields.String(default="desc", choices=("asc", "desc"))


class AlertUpdateSchema(Schema):
    """Changes of an alert."""

    at_least_one = ("status", "assignee_ids")

    status = fields.String(choices=tuple(STATUSES), allow_blank=False)
    assignee_ids = fields.Array(
        fields.Integer(), metadata={"description": "Only the first is assigned; none or 0 unassigns."}
    )


class AlertNoteCreateSchema(Schema):
    """A new comment on an alert."""

    body = fields.String(required=True)
