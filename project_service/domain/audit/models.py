"""The table of audit events."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Model


class AuditEvent(Model):
    """An action on an entity: a project, a group, a user or the whole instance.

    The row has no foreign keys: it stays when its author or its entity is deleted. A trigger of the database refuses
    updates. ``details`` never contains secrets.
    """

    __tablename__ = "audit_events"
    __table_args__ = (
        Index("ix_audit_events_created_at", "created_at", "id"),
        Index("ix_audit_events_entity_type", "entity_type", "created_at", "id"),
        Index("ix_audit_events_entity_id", "entity_type", "entity_id", "created_at", "id"),
        Index("ix_audit_events_author_id", "author_id", "created_at", "id"),
        Index("ix_audit_events_event_name", "event_name", "created_at", "id"),
    )

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now)
    event_name: Mapped[str]
    author_id: Mapped[int]  # -1: an anonymous client, or the service itself
    entity_type: Mapped[str]
    entity_id: Mapped[int]
    details: Mapped[dict[str, Any]]
