"""Issues as targets of to-do items."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import joinedload, selectinload

from project_service.access.across_projects import issues_of_projects
from project_service.access.identity import Caller
from project_service.access.references import todo_targets
from project_service.access.references.todo_targets import ShownTarget, TodoTarget
from project_service.areas.issues.schemas import IssueSchema
from project_service.domain import page_paths
from project_service.domain.projects import Project
from project_service.domain.todos import Todo
from project_service.domain.tracker.issues import CLOSED, TARGET, Issue
from project_service.domain.tracker.milestones import WITH_OWNER
from project_service.kit.db.session import NO_LAZY_LOADING, db


def visible(caller: Caller) -> ColumnElement[bool]:
    """The condition that the caller may see an issue."""
    return select(1).where(Issue.id == Todo.target_id, issues_of_projects(caller)).correlate(Todo, Project).exists()


def load(ids: Collection[int]) -> dict[int, Issue]:
    """Load issues with all that the API shows of them."""
    statement = select(Issue).where(Issue.id.in_(ids))
    loaded = (
        selectinload(Issue.project).joinedload(Project.namespace),
        joinedload(Issue.author),
        joinedload(Issue.closed_by),
        selectinload(Issue.milestone).options(*WITH_OWNER),
        selectinload(Issue.assignees),
        selectinload(Issue.label_rows),
        NO_LAZY_LOADING,
    )
    return {issue.id: issue for issue in db.session.scalars(statement.options(*loaded))}


def show(issue: Any) -> ShownTarget:
    """An issue on the page."""
    about = f"{'closed' if issue.state == CLOSED else 'open'} {issue.issue_type}"
    return ShownTarget(f"#{issue.iid} {issue.title}", page_paths.issue(issue.iid), about)


todo_targets.add(TodoTarget(TARGET, visible, load, show, IssueSchema))
