"""Rules of a new project: owners and maintainers get a mail about alerts (notifications reference, section 7)."""

from __future__ import annotations

from typing import Any

from sqlalchemy import insert

from project_service.domain.access_levels import Role
from project_service.domain.notifications.models import ALERT_RESOLVED, ALERT_TRIGGERED, NotificationRule
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db

NAMES = {ALERT_TRIGGERED: "E-mail for new alerts", ALERT_RESOLVED: "E-mail when an alert recovers"}


def add_starting_rules(project: Project) -> None:
    """Write the rules of a new project, in the transaction that creates it and in one statement."""
    now = clock.now()
    rows: list[dict[str, Any]] = [
        {
            "project_id": project.id,
            "name": name,
            "events": [kind],
            "targets": [{"type": "members", "access_level": int(Role.MAINTAINER)}],
            "created_at": now,
            "updated_at": now,
        }
        for kind, name in NAMES.items()
    ]
    db.session.execute(insert(NotificationRule), rows)
