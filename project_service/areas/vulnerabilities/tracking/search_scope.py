"""Tracked findings as a scope of the search page."""

from __future__ import annotations

from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import contains_eager, defer, joinedload

from project_service.access.across_projects import projects_with_findings
from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.areas.vulnerabilities.findings import queries
from project_service.areas.vulnerabilities.models import TEXTS, Finding, Pipeline, TrackedFinding, TrackedFindingState
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.kit.db.session import NO_LAZY_LOADING


def find(search: Search) -> Matches:
    """The findings of default branches whose name has the words."""
    tracked = TrackedFindingState.tracked_id
    statement = (
        select(TrackedFindingState)
        .join(TrackedFindingState.tracked)
        .join(Project, Project.id == TrackedFinding.project_id)
        .where(search.within(TrackedFinding.project_id), projects_with_findings(search.caller))
        .where(TrackedFindingState.ref == func.coalesce(Project.default_branch, queries.fallback_branch()))
    )
    statement = statement.options(
        contains_eager(TrackedFindingState.tracked),
        joinedload(TrackedFindingState.finding).options(
            defer(Finding.data), joinedload(Finding.pipeline).joinedload(Pipeline.project)
        ),
        NO_LAZY_LOADING,
    )
    return search_scopes.matching(search, TEXTS, statement, tracked, tracked)


def show(row: Any) -> Hit:
    """A finding on the page."""
    path = row.finding.pipeline.project.full_path
    about = f"{row.finding.severity.title}, {row.state}"
    return Hit(row.tracked.name, f"/{path}{page_paths.finding(row.finding_id)}", path, about)


search_scopes.add(SearchScope("findings", "Findings", 54, EVERYWHERE, find, show))
