"""Projects as a scope of the search."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import contains_eager

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import GROUP, INSTANCE, Hit, Matches, Search, SearchScope
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import TEXTS, Project, projects
from project_service.domain.schemas import ProjectBasicSchema
from project_service.kit.db.session import NO_LAZY_LOADING


def find(search: Search) -> Matches:
    """The projects whose name, path or description has the words."""
    loaded = contains_eager(Project.namespace).joinedload(Namespace.owner)
    statement = projects().where(search.within(Project.id)).options(loaded, NO_LAZY_LOADING)
    return search_scopes.matching(search, TEXTS, statement, Project.created_at, Project.id)


def show(project: Any) -> Hit:
    """A project on the page."""
    return Hit(project.name_with_namespace, f"/{project.full_path}", about=project.description or "")


search_scopes.add(SearchScope("projects", "Projects", 10, (INSTANCE, GROUP), find, show, ProjectBasicSchema))
