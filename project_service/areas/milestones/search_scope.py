"""Milestones as a scope of the search."""

from __future__ import annotations

from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.orm import contains_eager, joinedload

from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.access.rules import projects_with
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.tracker.milestones import ACTIVE, TEXTS, Milestone
from project_service.domain.tracker.schemas import MilestoneSchema
from project_service.kit.db.session import NO_LAZY_LOADING


def find(search: Search) -> Matches:
    """The milestones whose title or description has the words."""
    statement = select(Milestone).join(Milestone.project).where(search.within(Milestone.project_id))
    has_feature = or_(*(projects_with(search.caller, name) for name in ("issues", "merge_requests")))
    loaded = contains_eager(Milestone.project).options(joinedload(Project.namespace))
    statement = statement.where(has_feature).options(loaded, NO_LAZY_LOADING)
    return search_scopes.matching(search, TEXTS, statement, Milestone.id, Milestone.id)


def show(milestone: Any) -> Hit:
    """A milestone on the page."""
    path = milestone.project.full_path
    about = "open" if milestone.state == ACTIVE else "closed"
    return Hit(milestone.title, f"/{path}{page_paths.milestone(milestone.iid)}", path, about)


search_scopes.add(SearchScope("milestones", "Milestones", 70, EVERYWHERE, find, show, MilestoneSchema))
