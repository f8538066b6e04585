"""Schemas of channels and messages, as clients see them."""

from __future__ import annotations

from typing import Any

from project_service.areas.notifications.models import PERSONAL_TYPES, STATUSES, TYPES
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema


class NotificationChannelSchema(Schema):
    """A channel, without its secrets."""

    id = fields.Integer()
    scope = fields.String()
    name = fields.String()
    type = fields.String()
    enabled = fields.Boolean()
    state = fields.String()
    target = fields.String()
    settings = fields.Computed(
        lambda channel: channel.settings if channel.shows_settings else {},
        type="object",
        metadata={"description": "Empty for those who may not change the channel: addresses and topics are secrets."},
    )
    anonymous_actions = fields.Boolean()
    rate_per_minute = fields.Integer()
    failing_since = fields.Moment()
    last_delivered_at = fields.Moment()
    last_error = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()


class HeaderSchema(Schema):
    """A header of requests."""

    key = fields.String(required=True, allow_blank=False)
    value = fields.String(required=True, allow_blank=False)


class NotificationChannelUpdateSchema(Schema):
    """Changes of a channel; those of another type are ignored."""

    name = fields.String()
    enabled = fields.Boolean()
    anonymous_actions = fields.Boolean()
    rate_per_minute = fields.Integer()
    address = fields.String()
    url = fields.String()
    signing_token = fields.String()
    custom_headers = fields.Array(Nested(HeaderSchema))
    enable_ssl_verification = fields.Boolean()
    username = fields.String()
    icon_url = fields.String()
    channel = fields.String()
    body_style = fields.String(choices=("message", "card"))
    thread_id = fields.String()
    server = fields.String()
    topic = fields.String()
    token = fields.String()
    chat_id = fields.String()
    message_thread_id = fields.String()
    routing_key = fields.String()
    region = fields.String(choices=("us", "eu"))


class NotificationChannelCreateSchema(NotificationChannelUpdateSchema):
    """A new channel of a project or group."""

    name = fields.String(required=True, allow_blank=False)
    type = fields.String(required=True, choices=TYPES)


class PersonalChannelCreateSchema(NotificationChannelUpdateSchema):
    """A new channel of a user."""

    name = fields.String(required=True, allow_blank=False)
    type = fields.String(required=True, choices=PERSONAL_TYPES)


class TestedChannelSchema(Schema):
    """The answer to a test."""

    status = fields.String()
    response_status = fields.String()
    duration = fields.Computed(lambda tested: tested["duration"], type="number")


class NotificationDeliveryFilterSchema(Schema):
    """Filters of the log of messages."""

    channel_id = fields.Integer()
    status = fields.String(choices=STATUSES)
    alert_iid = fields.Integer()
    created_after = fields.DateTime()


class FullNotificationDeliverySchema(Schema):
    """A message."""

    id = fields.Integer()
    channel_id = fields.Integer()
    channel_name = fields.String()
    recipient: Any = fields.String()
    kind = fields.String()
    title = fields.String()
    triggered_count = fields.Integer()
    resolved_count = fields.Integer()
    other_count = fields.Integer()
    status = fields.String()
    attempts = fields.Integer()
    next_attempt_at = fields.Moment()
    response_status = fields.String()
    error = fields.String()
    merged_into_id = fields.Integer()
    created_at = fields.Moment()
    delivered_at = fields.Moment()


class NotificationDeliverySchema(FullNotificationDeliverySchema):
    """A message for those who may not change channels: without its recipient."""

    recipient = fields.Computed(lambda _delivery: None, type="string")
