"""Counts of open issues for lists of projects."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select

from project_service.access.identity import Caller
from project_service.access.rules import projects_with
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import OPENED, Issue
from project_service.kit.db.session import db


def add_open_issues(caller: Caller, projects: Sequence[Project]) -> None:
    """Set ``open_issues_count`` on each project whose issues the caller may read, with one statement.

    Confidential issues are never counted; the count is 0 while an archive is being imported.
    """
    counted = (
        select(func.count())
        .where(Issue.project_id == Project.id, Issue.state == OPENED, Issue.confidential.is_(False))
        .correlate(Project)
        .scalar_subquery()
    )
    statement = select(Project.id, counted).where(
        Project.id.in_([project.id for project in projects]), projects_with(caller, "issues")
    )
    counts: dict[int, int] = dict(db.session.execute(statement).all())
    for project in projects:
        project.open_issues_count = 0 if project.loading else counts.get(project.id)
