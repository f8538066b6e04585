"""Schemas of error-tracking settings (error tracking reference, sections 1 and 4)."""

from __future__ import annotations

from project_service.areas.error_tracking.settings.client_keys import dsn_of
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


def _external_url(setting: ErrorTrackingSetting) -> str | None:
    return None if setting.integrated else setting.external_url


class ErrorTrackingSettingSchema(Schema):
    """The settings; the URL of the tracker has two names (error tracking reference, section 1)."""

    active = fields.Boolean(attribute="enabled")
    project_name = fields.String(attribute="shown_name")
    tracker_external_url = fields.Computed(_external_url)
    sentry_external_url = fields.Computed(_external_url)
    api_url = fields.Computed(lambda setting: None if setting.integrated else setting.api_url)
    integrated = fields.Boolean()


class ErrorTrackingSwitchSchema(Schema):
    """Switch the settings on or off."""

    active = fields.Boolean(required=True, allow_blank=False)
    integrated = fields.Boolean()


class ErrorTrackingCreateSchema(Schema):
    """Create the settings, or switch them."""

    active = fields.Boolean(required=True, allow_blank=False)
    integrated = fields.Boolean(required=True)


class ClientKeySchema(Schema):
    """A client key with the address that is given to SDKs."""

    id = fields.Integer()
    active = fields.Boolean()
    public_key = fields.String()
    sentry_dsn = fields.Computed(dsn_of)


class ErrorIgnoreRuleCreateSchema(Schema):
    """A rule for events that are not stored; ``*`` in a pattern stands for any characters."""

    title = fields.String()
    release = fields.String()
    environment = fields.String()
    file = fields.String()


class ErrorIgnoreRuleSchema(Schema):
    """A rule for events that are not stored, and how many it has dropped."""

    id = fields.Integer()
    title = fields.String()
    release = fields.String()
    environment = fields.String()
    file = fields.String()
    dropped_events = fields.Integer()
    last_dropped_at = fields.Moment()
    created_at = fields.Moment()
