"""Merge requests as a scope of the search."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import contains_eager, joinedload, selectinload

from project_service.access.across_projects import merge_requests_of_projects
from project_service.access.references import search_scopes
from project_service.access.references.search_scopes import EVERYWHERE, Hit, Matches, Search, SearchScope
from project_service.areas.merge_requests import queries
from project_service.areas.merge_requests.schemas import MergeRequestSchema
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.tracker.merge_requests import MergeRequest
from project_service.domain.tracker.milestones import WITH_OWNER
from project_service.kit.db.base import table_of
from project_service.kit.db.session import NO_LAZY_LOADING
from project_service.kit.db.text_search import TextIndex

TEXTS = TextIndex(table_of(MergeRequest), ("title", "description"))  # not registered: imports alone make any
STATES = ("opened", "closed", "merged")


def find(search: Search) -> Matches:
    """The merge requests whose title or description has the words."""
    statement = select(MergeRequest).join(MergeRequest.project).where(search.within(MergeRequest.project_id))
    statement = statement.where(merge_requests_of_projects(search.caller)).options(
        contains_eager(MergeRequest.project).options(joinedload(Project.namespace)),
        joinedload(MergeRequest.author),
        selectinload(MergeRequest.label_rows),
        selectinload(MergeRequest.milestone).options(*WITH_OWNER),
        NO_LAZY_LOADING,
    )
    if search.state in STATES:
        statement = statement.where(MergeRequest.state == search.state)
    return search_scopes.matching(search, TEXTS, statement, MergeRequest.id, MergeRequest.id)


def show(merge_request: Any) -> Hit:
    """A merge request on the page."""
    path = merge_request.project.full_path
    address = f"/{path}{page_paths.merge_request(merge_request.iid)}"
    return Hit(f"!{merge_request.iid} {merge_request.title}", address, path, merge_request.state)


search_scopes.add(
    SearchScope(
        "merge_requests",
        "Merge requests",
        60,
        EVERYWHERE,
        find,
        show,
        MergeRequestSchema,
        lambda _search, rows: queries.add_notes_counts(rows),
    )
)
