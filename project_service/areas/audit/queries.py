"""Queries of audit events."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, select, tuple_

from project_service.domain.audit.models import AuditEvent
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound

ProjectOrGroup = Project | Group


def audit_events(**filters: Any) -> Select[AuditEvent]:
    """The events that match the filters, newest first.

    Filters: ``entity_type``, ``entity_id``, ``author_id``, ``event_name``, ``created_after``, ``created_before`` (both
    inclusive).
    """
    statement = select(AuditEvent)
    for name in ("entity_type", "entity_id", "author_id", "event_name"):
        if filters.get(name) is not None:
            statement = statement.where(getattr(AuditEvent, name) == filters[name])
    if filters.get("created_after") is not None:
        statement = statement.where(AuditEvent.created_at >= filters["created_after"])
    if filters.get("created_before") is not None:
        statement = statement.where(AuditEvent.created_at <= filters["created_before"])
    return statement.order_by(AuditEvent.created_at.desc(), AuditEvent.id.desc())


def audit_events_of(subject: ProjectOrGroup, **filters: Any) -> Select[AuditEvent]:
    """The events of one project or group."""
    return audit_events(**filters | entity_of(subject))


def events_before(event: AuditEvent | None, **filters: Any) -> Select[AuditEvent]:
    """The events that match the filters and follow an event in their order, newest first."""
    statement = audit_events(**filters)
    if event is None:
        return statement
    return statement.where(tuple_(AuditEvent.created_at, AuditEvent.id) < tuple_(event.created_at, event.id))


def find_audit_event(event_id: int, subject: ProjectOrGroup | None = None) -> AuditEvent:
    """One event by id, within a project or group if there is one."""
    event = db.session.get(AuditEvent, event_id)
    required = {} if subject is None else entity_of(subject)
    if event is None or any(getattr(event, name) != value for name, value in required.items()):
        raise NotFound("Audit Event")
    return event


def entity_of(subject: ProjectOrGroup) -> dict[str, Any]:
    """The filters for the events of one project or group."""
    return {"entity_type": "Project" if isinstance(subject, Project) else "Group", "entity_id": subject.id}
