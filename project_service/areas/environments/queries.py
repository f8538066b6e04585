"""Queries of environments."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select

from project_service.domain.projects import Project
from project_service.domain.tracker.environments import Environment, environments_of
from project_service.kit.db import searching


def environments_matching(project: Project, **filters: Any) -> Select[Environment]:
    """The environments of a project: by exact name, or by words in the name."""
    statement = environments_of(project)
    if filters.get("name"):
        statement = statement.where(Environment.name == filters["name"])
    if search := (filters.get("search") or "").strip():
        statement = statement.where(searching.contains(search, Environment.name))
    if filters.get("states"):
        statement = statement.where(Environment.state == filters["states"])
    return statement
