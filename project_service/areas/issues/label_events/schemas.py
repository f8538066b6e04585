"""Schemas of label events."""

from __future__ import annotations

from project_service.areas.issues.schemas import LabelBasicSchema
from project_service.domain.schemas import UserBasicSchema
from project_service.domain.tracker.issues import TARGET
from project_service.kit.http import fields
from project_service.kit.http.schemas import Embedded, Schema


class LabelEventSchema(Schema):
    """A label that an issue got or lost; ``label`` is prepared with the page, null for a label that is deleted."""

    id = fields.Integer()
    user = Embedded(UserBasicSchema, attribute="author", keep_none=True)
    created_at = fields.Moment()
    resource_type = fields.Constant(TARGET)
    resource_id = fields.Integer(attribute="issue_id")
    label = Embedded(LabelBasicSchema, keep_none=True)
    action = fields.String()
