"""Alerts as a scope of the search page."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import contains_eager, defer, joinedload

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.access.rules import projects_with_alerts
from project_service.areas.alerts.models import TEXTS, Alert, Severity, Status
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING


def find(search: Search) -> Matches:
    """The alerts whose title, description, service, tool or hosts have the words."""
    statement = select(Alert).join(Alert.project).where(search.within(Alert.project_id))
    loaded = contains_eager(Alert.project).options(joinedload(Project.namespace))
    statement = statement.where(projects_with_alerts(search.caller)).options(
        loaded, defer(Alert.payload), NO_LAZY_LOADING
    )
    return search_scopes.matching(search, TEXTS, statement, Alert.id, Alert.id)


def show(alert: Any) -> Hit:
    """An alert on the page."""
    path = alert.project.full_path
    about = [Severity(alert.severity).title, Status(alert.status).title, *alert.hosts]
    return Hit(f"#{alert.iid} {alert.title}", f"/{path}{page_paths.alert(alert.iid)}", path, ", ".join(about))


search_scopes.add(SearchScope("alerts", "Alerts", 50, EVERYWHERE, find, show))
