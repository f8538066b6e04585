"""Schemas of alert integrations; the names are those of GitLab's GraphQL (alert integrations reference, section 9)."""

from __future__ import annotations

from typing import Any

from project_service.areas.alerts.alerts.schemas import SEVERITIES
from project_service.areas.alerts.integrations import service
from project_service.areas.alerts.models import AlertIntegration
from project_service.areas.alerts.payloads.payload_mapping import TARGETS
from project_service.areas.alerts.receivers.presets import PRESETS
from project_service.kit import exact_json
from project_service.kit.http import fields
from project_service.kit.http.schemas import Nested, Schema

WORDS = "Words of the tool and the severities they mean; null for those of the preset."


class JsonText(fields.String):
    """A JSON object, also as text."""

    def read(self, value: Any) -> str:
        return exact_json.dumps(value).decode() if isinstance(value, dict) else super().read(value)


class ValuePath(fields.Parameter):
    """The path of a value in a payload: keys of objects and positions in arrays."""

    def __init__(self, **options: Any) -> None:
        segment = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
        super().__init__(metadata={"type": "array", "items": segment}, **options)

    def read(self, value: Any) -> list[str | int]:
        steps = value if isinstance(value, list) else []
        if not steps or not all(isinstance(step, str | int) and not isinstance(step, bool) for step in steps):
            raise ValueError(value)
        return steps


class AlertMappingSchema(Schema):
    """A field of alerts and the path of its value; type and label are found in the sample."""

    field_name = fields.String(required=True, allow_blank=False, choices=tuple(TARGETS))
    path = ValuePath(required=True, allow_blank=False)
    label = fields.String(dump_only=True)
    type = fields.String(dump_only=True)


def _mappings(integration: AlertIntegration) -> list[dict[str, Any]]:
    return [{"field_name": name} | entry for name, entry in integration.mapping.items()]


class AlertIntegrationSchema(Schema):
    """An integration without its key."""

    id = fields.Integer()
    type = fields.String()
    name = fields.String()
    active = fields.Boolean()
    url = fields.Computed(service.address_of)
    target_url = fields.String()
    preset = fields.String()
    payload_example = fields.String()
    payload_attribute_mappings = fields.Computed(
        _mappings, type=None, metadata={"type": "array", "items": {"type": "object"}}
    )
    severity_mapping = fields.Computed(lambda integration: integration.severity_mapping, type="object")
    resolved_values = fields.Array(fields.String())
    time_zone = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()


class AlertIntegrationWithKeySchema(AlertIntegrationSchema):
    """An integration with its key, when that was created."""

    token = fields.String()


class AlertIntegrationFieldsSchema(Schema):
    """Fields shared by creating and changing an integration."""

    active = fields.Boolean()
    target_url = fields.String(metadata={"description": "Only of Opsgenie: where the list of alerts leads to."})
    preset = fields.String(choices=tuple(PRESETS), metadata={"description": "The tool whose messages are read."})
    payload_example = JsonText(metadata={"description": "A sample of what the tool sends: a JSON object."})
    payload_attribute_mappings = fields.Array(
        Nested(AlertMappingSchema), metadata={"description": "Each path has to lead to a value of the sample."}
    )
    severity_mapping = fields.Hash(
        metadata={"description": WORDS, "additionalProperties": {"type": "string", "enum": list(SEVERITIES)}}
    )
    resolved_values = fields.Array(
        fields.String(), metadata={"description": "Values that mean resolved; null for those of the preset."}
    )
    time_zone = fields.String(metadata={"description": "That of times without one, such as Europe/Berlin."})


class AlertIntegrationCreateSchema(AlertIntegrationFieldsSchema):
    """A new integration."""

    type = fields.String(
        choices=tuple(service.TYPES), metadata={"description": "By default that of the preset, or http."}
    )
    name = fields.String(metadata={"description": "By default the name of the tool; an HTTP endpoint needs one."})


class AlertIntegrationUpdateSchema(AlertIntegrationFieldsSchema):
    """Changes of an integration."""

    at_least_one = (
        *("name", "active", "target_url", "preset", "payload_example", "payload_attribute_mappings"),
        *("severity_mapping", "resolved_values", "time_zone"),
    )

    name = fields.String(allow_blank=False)


class AlertTestSchema(Schema):
    """A payload to send as a test."""

    payload = JsonText(metadata={"description": "A JSON object; by default the sample of the integration."})


class SentAlertTestSchema(Schema):
    """What became of a test."""

    alert_iids = fields.Array(fields.Integer(), attribute="iids")
    unreadable_times = fields.Computed(lambda sent: sent.unreadable_times, type="object")
    note = fields.String()
