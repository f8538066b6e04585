"""Queries of milestones."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import Milestone, milestones_of
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING


def milestones_matching(project: Project, **filters: Any) -> Select[Milestone]:
    """The milestones of a project, the earliest due date first."""
    statement = milestones_of(project).options(NO_LAZY_LOADING)
    if filters.get("state") in ("active", "closed"):
        statement = statement.where(Milestone.state == filters["state"])
    if filters.get("iids"):
        statement = statement.where(Milestone.iid.in_(filters["iids"]))
    if filters.get("title"):
        statement = statement.where(Milestone.title == filters["title"])
    if search := (filters.get("search") or "").strip():
        statement = statement.where(searching.contains(search, Milestone.title, Milestone.description))
    return statement.order_by(Milestone.due_date.asc().nulls_last(), Milestone.id.asc())
