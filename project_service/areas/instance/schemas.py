"""Schemas of version, features and settings (supporting resources reference, sections 1, 8 and 9)."""

from __future__ import annotations

from typing import Any

from project_service.domain.instance_settings import SETTINGS, Setting
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema

NO_KAS = {"enabled": False, "externalUrl": None, "externalK8sProxyUrl": None, "version": None}


class MetadataSchema(Schema):
    """The version."""

    version = fields.String()
    revision = fields.String()
    kas = fields.Computed(lambda _: NO_KAS, type="object")
    enterprise = fields.Constant(False)


class GateSchema(Schema):
    """A condition under which a feature is on."""

    key = fields.String()
    value = fields.Anything()


class FeatureSchema(Schema):
    """A feature flag."""

    name = fields.String()
    state = fields.String()
    gates = fields.Array(Embedded(GateSchema))
    definition = fields.Constant(None)


class FeatureSetSchema(Schema):
    """Value of a feature, and whom it applies to."""

    exclusive = (("key", "feature_group"), ("key", "user"), ("key", "group"), ("key", "project"))

    value = fields.String(required=True)
    key = fields.String(choices=("percentage_of_time", "percentage_of_actors"))
    feature_group = fields.String()
    user = fields.String()
    group = fields.String()
    project = fields.String()
    force = fields.Boolean(default=False)


def _parameter(entry: Setting) -> fields.Parameter:
    if entry.kind is bool:
        return fields.Boolean()
    if entry.kind is int:
        return fields.Integer()
    if entry.kind is list:
        return fields.Array(fields.String(choices=entry.choices, allow_blank=False))
    return fields.String(choices=entry.choices)


_PARAMETERS: dict[str, Any] = {name: _parameter(entry) for name, entry in SETTINGS.items()}
_Settings: Any = Schema.from_dict({"id": fields.Constant(1), **_PARAMETERS}, name="SettingsSchema")


class SettingsSchema(_Settings):
    """All application settings."""


_Changes: Any = Schema.from_dict(_PARAMETERS, name="SettingsUpdateSchema")


class SettingsUpdateSchema(_Changes):
    """Application settings to change."""

    at_least_one = tuple(SETTINGS)
