"""Schemas of personal settings."""

from __future__ import annotations

from typing import Any

from project_service.areas.notifications.personal.service import EVENTS, FURTHER, OWN_EVENTS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class NotificationSettingSchema(Schema):
    """A level, with its events if it is ``custom``; what a place has no value for is left out."""

    level = fields.String()
    events = fields.Hash()
    notification_email = fields.String()
    notification_channel_id = fields.Integer()


class QuietHoursSchema(Schema):
    """Hours in which personal messages wait."""

    enabled = fields.Boolean()
    time_zone = fields.String()
    days = fields.Array(fields.Integer(choices=range(1, 8)))
    starts = fields.String(data_key="from")
    ends = fields.String(data_key="to")
    except_critical = fields.Boolean()


def _update_schema(name: str, place: str, documentation: str) -> type[Schema]:
    names = (*EVENTS, *FURTHER[place], *OWN_EVENTS)
    declared: dict[str, Any] = {"level": fields.String(), "notification_email": fields.String()}
    declared |= {event: fields.Boolean() for event in names}
    schema: type[Schema] = type(name, (Schema,), {"__doc__": documentation, **declared})
    return schema


GlobalSettingUpdateSchema = _update_schema("GlobalSettingUpdateSchema", "global", "Changes everywhere.")
ProjectSettingUpdateSchema = _update_schema("ProjectSettingUpdateSchema", "project", "Changes for a project.")
GroupSettingUpdateSchema = _update_schema("GroupSettingUpdateSchema", "group", "Changes for a group.")
