"""Schemas of silences (silences reference, section 1)."""

from __future__ import annotations

from typing import ClassVar

from project_service.areas.silences import service
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.silences.matching import OPERATORS
from project_service.domain.silences.models import STATES
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Nested, Schema


class SilenceMatcherSchema(Schema):
    """A condition that an alert must meet."""

    field = fields.String(required=True, allow_blank=False)
    operator = fields.String(required=True, allow_blank=False, choices=OPERATORS)
    value = fields.String(required=True)


class SilenceSchema(Schema):
    """A silence."""

    id = fields.Integer()
    scope = fields.String()
    matchers = fields.Computed(
        lambda silence: silence.matchers, type=None, metadata={"type": "array", "items": {"type": "object"}}
    )
    starts_at = fields.Moment()
    ends_at = fields.Moment()
    comment = fields.String()
    hold_incidents = fields.Boolean()
    ends_when_resolved = fields.Boolean()
    state = fields.String()
    warning = fields.Computed(service.warning_of)
    matched_count = fields.Integer()
    created_by = Embedded(UserBasicSchema, keep_none=True)
    created_at = fields.Moment()
    updated_at = fields.Moment()
    ended_by = Embedded(UserBasicSchema, keep_none=True)
    ended_at = fields.Moment()


class SilenceFilterSchema(Schema):
    """Which silences to list."""

    state = fields.String(choices=STATES)


class SilenceUpdateSchema(Schema):
    """Changes of a silence."""

    exclusive: ClassVar[tuple[tuple[str, ...], ...]] = (("ends_at", "duration"),)

    matchers = fields.Array(Nested(SilenceMatcherSchema), metadata={"description": "All must hold; none: all alerts."})
    starts_at = fields.DateTime()
    ends_at = fields.DateTime()
    duration = fields.Integer(metadata={"description": "Seconds, in place of ends_at."})
    comment = fields.String()
    hold_incidents = fields.Boolean(metadata={"description": "Open no incidents for alerts meanwhile."})
    ends_when_resolved = fields.Boolean(
        metadata={"description": "End 10 minutes after nothing that it matched is open."}
    )


class SilenceCreateSchema(SilenceUpdateSchema):
    """A new silence."""

    exactly_one = ("ends_at", "duration")
    exclusive = ()

    matchers = fields.Array(Nested(SilenceMatcherSchema), required=True)
    comment = fields.String(required=True)
