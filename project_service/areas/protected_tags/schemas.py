"""Schemas of protected tags (protected tags reference, sections 1 and 5)."""

from __future__ import annotations

from project_service.domain.access_levels import Role
from project_service.domain.repositories.protected_names import LEVELS
from project_service.kit.http import fields
from project_service.kit.http.schemas import Inside, Schema


class LevelSchema(Schema):
    """A level that may create matching tags."""

    access_level = fields.Computed(int, type="integer")
    access_level_description = fields.Computed(lambda level: LEVELS.get(level, Role(level).title))


class ProtectedTagSchema(Schema):
    """A protected tag."""

    name = fields.String()
    create_access_levels = fields.Array(Inside(LevelSchema))


class ProtectedTagCreateSchema(Schema):
    """A tag name or wildcard to protect."""

    name = fields.String(required=True)
    create_access_level = fields.Integer(default=int(Role.MAINTAINER), choices=tuple(int(level) for level in LEVELS))
