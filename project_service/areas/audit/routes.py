"""API of audit events, as GitLab shapes it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint
from project_service.access.guards import numeric
from project_service.areas.audit import queries, schemas
from project_service.domain.audit.models import AuditEvent
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.http.errors import BadParameters

api = ApiBlueprint("audit", __name__, description="Actions that matter for security or administration.")


@api.get("/audit_events")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.arguments(schemas.InstanceAuditEventFilterSchema)
@api.response(200, schemas.AuditEventSchema(many=True))
@api.paged
def list_audit_events(fields: dict[str, Any]) -> Select[AuditEvent]:
    """List the audit events of the instance, newest first."""
    if fields.get("entity_id") is not None and not fields.get("entity_type"):
        raise BadParameters("entity_type is missing")
    return queries.audit_events(**fields)


@api.get("/audit_events/<audit_event_id>")
@api.signed_in
@api.allow(Ability.ADMINISTER)
@api.response(200, schemas.AuditEventSchema)
def show_audit_event(audit_event_id: str) -> AuditEvent:
    """Show one audit event."""
    return queries.find_audit_event(numeric(audit_event_id))


@api.get("/projects/<project>/audit_events", endpoint="list_project_audit_events")
@api.get("/groups/<group>/audit_events", endpoint="list_group_audit_events")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT_AUDIT_EVENTS, group=Ability.READ_GROUP_AUDIT_EVENTS)
@api.arguments(schemas.AuditEventFilterSchema)
@api.response(200, schemas.AuditEventSchema(many=True))
@api.paged
def list_own_audit_events(subject: Project | Group, fields: dict[str, Any]) -> Select[AuditEvent]:
    """List the audit events of a project or group, newest first; those of projects do not belong to their group."""
    return queries.audit_events_of(subject, **fields)


@api.get("/projects/<project>/audit_events/<audit_event_id>", endpoint="show_project_audit_event")
@api.get("/groups/<group>/audit_events/<audit_event_id>", endpoint="show_group_audit_event")
@api.signed_in
@api.allow(project=Ability.READ_PROJECT_AUDIT_EVENTS, group=Ability.READ_GROUP_AUDIT_EVENTS)
@api.response(200, schemas.AuditEventSchema)
def show_own_audit_event(subject: Project | Group, audit_event_id: str) -> AuditEvent:
    """Show one audit event of a project or group."""
    return queries.find_audit_event(numeric(audit_event_id), subject)
