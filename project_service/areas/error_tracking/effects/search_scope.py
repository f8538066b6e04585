"""Errors as a scope of the search page."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import contains_eager, joinedload

from project_service.access.across_projects import projects_with_errors
from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.areas.error_tracking.errors.models import TEXTS, ErrorStatus, TrackedError
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING


def find(search: Search) -> Matches:
    """The errors that this server collects and whose title or culprit has the words."""
    statement = select(TrackedError).join(TrackedError.project).where(search.within(TrackedError.project_id))
    loaded = contains_eager(TrackedError.project).options(joinedload(Project.namespace))
    statement = statement.where(projects_with_errors(search.caller)).options(loaded, NO_LAZY_LOADING)
    return search_scopes.matching(search, TEXTS, statement, TrackedError.id, TrackedError.id)


def show(error: Any) -> Hit:
    """An error on the page."""
    path, status = error.project.full_path, ErrorStatus(error.status).text
    return Hit(error.title, f"/{path}{page_paths.error(error.id)}", path, f"{status}, {error.culprit}")


search_scopes.add(SearchScope("errors", "Errors", 52, EVERYWHERE, find, show))
