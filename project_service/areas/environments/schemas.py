"""Schemas of environments."""

from __future__ import annotations

from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class EnvironmentSchema(Schema):
    """An environment."""

    id = fields.Integer()
    name = fields.String()
    slug = fields.String()
    external_url = fields.String()
    state = fields.String()
    created_at = fields.Moment()
    updated_at = fields.Moment()


class EnvironmentFilterSchema(Schema):
    """Filters of the list of environments."""

    exclusive = (("name", "search"),)

    name = fields.String()
    search = fields.String()
    states = fields.String(choices=("available", "stopped"))


class EnvironmentUpdateSchema(Schema):
    """Changes of an environment."""

    name = fields.String()
    external_url = fields.String()


class EnvironmentCreateSchema(Schema):
    """A new environment."""

    name = fields.String(required=True)
    external_url = fields.String()
