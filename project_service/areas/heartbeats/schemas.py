"""Schemas of heartbeats (heartbeats reference, section 1)."""

from __future__ import annotations

from project_service.domain.heartbeats.models import KINDS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema

SEVERITIES = ("critical", "high", "medium", "low", "info", "unknown")


class HeartbeatSchema(Schema):
    """A heartbeat, as developers see it: without the URL to call."""

    id = fields.Integer()
    name = fields.String()
    kind = fields.String()
    period = fields.Integer(attribute="period_seconds")
    schedule = fields.String()
    time_zone = fields.String()
    matcher_title = fields.String()
    grace = fields.Integer(attribute="grace_seconds")
    severity = fields.String()
    environment = fields.String()
    runbook = fields.String()
    state = fields.String()
    last_ping_at = fields.Moment()
    due_at = fields.Moment()
    last_status = fields.String()
    alert_iid = fields.Integer()
    created_at = fields.Moment()
    updated_at = fields.Moment()


class HeartbeatWithUrlSchema(HeartbeatSchema):
    """A heartbeat, as maintainers see it."""

    ping_url = fields.String()


class HeartbeatUpdateSchema(Schema):
    """Changes of a heartbeat."""

    name = fields.String()
    kind = fields.String(choices=KINDS, allow_blank=False)
    period = fields.Integer(metadata={"description": "Seconds between two calls."})
    schedule = fields.String(metadata={"description": "A cron expression of five fields."})
    time_zone = fields.String(metadata={"description": "That of the schedule, such as Europe/Berlin."})
    matcher_title = fields.String(metadata={"description": "The title of the alerts that count as calls."})
    grace = fields.Integer(metadata={"description": "Seconds that a call may be late."})
    severity = fields.String(choices=SEVERITIES, allow_blank=False, metadata={"description": "That of the alert."})
    environment = fields.String(metadata={"description": "That of the alert, by name."})
    runbook = fields.String(metadata={"description": "A URL that the alert shows."})


class HeartbeatCreateSchema(HeartbeatUpdateSchema):
    """A new heartbeat."""

    name = fields.String(required=True)


class HeartbeatPingSchema(Schema):
    """A call of a heartbeat."""

    id = fields.Integer()
    status = fields.String()
    exit_status = fields.Integer()
    duration = fields.Computed(lambda ping: ping.duration, type="number")
    method = fields.String()
    remote_address = fields.String()
    user_agent = fields.String()
    body = fields.String()
    created_at = fields.Moment()
