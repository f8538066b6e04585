"""Panels of open alerts on the home page, the page of a group and the wall; the health mark of alerts."""

from __future__ import annotations

from typing import Any

from flask import request
from sqlalchemy import func, select, text

from project_service.access.page_parts import health_marks, panels
from project_service.access.page_parts.home_scope import HomeScope
from project_service.access.rules import projects_with_alerts
from project_service.areas.alerts.models import Alert, Severity, listed_at
from project_service.domain.access_levels import Role
from project_service.domain.projects import Project
from project_service.kit.db.first_rows import first_of_each
from project_service.kit.db.session import db
from project_service.kit.http.pagination import MAX_COUNTED_ROWS

MAX_SHOWN = 10
IS_OPEN = text("status <> 2 AND status <> 3")  # as the index has it
NEWEST_FIRST = (listed_at.desc(), Alert.id.desc())


def fill_counts(scope: HomeScope) -> dict[str, Any]:
    """Count the open alerts of the projects by severity, up to ``MAX_COUNTED_ROWS`` in all."""
    opened = select(Alert.severity).where(Alert.project_id.in_(scope.projects(Role.DEVELOPER, "monitor")), IS_OPEN)
    limited = opened.limit(MAX_COUNTED_ROWS + 1).subquery()
    counted = select(limited.c.severity, func.count()).group_by(limited.c.severity)
    counts: dict[int, int] = dict(db.session.execute(counted).all())
    is_more = sum(counts.values()) > MAX_COUNTED_ROWS
    return {"counts": [(severity, counts.get(severity, 0)) for severity in Severity], "is_more": is_more}


def fill_newest(scope: HomeScope) -> dict[str, Any]:
    """Return the newest open alerts of the projects, each with its project; of one ``severity``, if it is asked for."""
    projects = scope.projects(Role.DEVELOPER, "monitor")
    wanted = next((severity for severity in Severity if severity.name.lower() == request.args.get("severity")), None)
    conditions = [IS_OPEN] if wanted is None else [IS_OPEN, Alert.severity == wanted]
    first = first_of_each(projects, Alert, Alert.project_id, conditions, NEWEST_FIRST, MAX_SHOWN)
    columns = Alert.iid, Alert.title, Alert.severity, Alert.status, Alert.hosts, listed_at.label("listed_at")
    alerts = select(*columns, Project.full_path).join(Project, Project.id == Alert.project_id)
    rows = db.session.execute(alerts.where(Alert.id.in_(first)).order_by(*NEWEST_FIRST).limit(MAX_SHOWN)).all()
    return {"alerts": rows, "severity": Severity, "wanted": wanted}


for _page in ("home", "wall"):
    panels.add(panels.Panel(_page, 10, f"alerts/{_page}_counts.html", fill_counts))
    panels.add(panels.Panel(_page, 20, f"alerts/{_page}.html", fill_newest))
health_marks.add(
    health_marks.HealthMark(
        noun="alert",
        tone="bad",
        order=10,
        path="/-/alert_management",
        counted=lambda: select(Alert.id).where(Alert.project_id == Project.id, IS_OPEN),
        readable=projects_with_alerts,
    )
)
