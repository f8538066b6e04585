"""Alerts as targets of to-do items."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import defer

from project_service.access.identity import Caller
from project_service.access.references import todo_targets
from project_service.access.references.todo_targets import ShownTarget, TodoTarget
from project_service.access.rules import projects_with_alerts
from project_service.areas.alerts.models import TARGET, Alert, Severity, Status
from project_service.domain import page_paths
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class TodoAlertSchema(Schema):
    """An alert inside a to-do item."""

    iid = fields.Integer()
    title = fields.String()


def visible(caller: Caller) -> ColumnElement[bool]:
    """The condition that the caller may see the alerts of a project."""
    return projects_with_alerts(caller)


def load(ids: Collection[int]) -> dict[int, Alert]:
    """Load alerts without their payloads, which may be large."""
    statement = select(Alert).where(Alert.id.in_(ids)).options(defer(Alert.payload), NO_LAZY_LOADING)
    return {alert.id: alert for alert in db.session.scalars(statement)}


def show(alert: Any) -> ShownTarget:
    """An alert on the page."""
    about = f"{Severity(alert.severity).title}, {Status(alert.status).title}"
    return ShownTarget(f"#{alert.iid} {alert.title}", page_paths.alert(alert.iid), about)


todo_targets.add(TodoTarget(TARGET, visible, load, show, TodoAlertSchema))
