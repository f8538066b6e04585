"""Schemas of audit events."""

from __future__ import annotations

from project_service.domain.audit.recording import ENTITY_TYPES
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class AuditEventSchema(Schema):
    """An audit event, as GitLab shows it."""

    id = fields.Integer()
    author_id = fields.Integer()
    entity_id = fields.Integer()
    entity_type = fields.String()
    details = fields.Anything()
    created_at = fields.Moment()


class AuditEventFilterSchema(Schema):
    """Limits in time."""

    created_after = fields.DateTime()
    created_before = fields.DateTime()


class InstanceAuditEventFilterSchema(AuditEventFilterSchema):
    """Limits in time, and the entity; an id needs a type."""

    entity_type = fields.String(choices=ENTITY_TYPES)
    entity_id = fields.Integer()
