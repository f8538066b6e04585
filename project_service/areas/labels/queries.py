"""Queries of labels and of their use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, func, select

from project_service.access.abilities import Ability, allowed, visible_issues
from project_service.access.identity import Caller
from project_service.domain.projects import Project
from project_service.domain.tracker import issues
from project_service.domain.tracker.issues import Issue, IssueLabel, issues_of
from project_service.domain.tracker.labels import Label, labels_of
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel, merge_requests_of
from project_service.kit.db import searching
from project_service.kit.db.session import db


def labels_matching(project: Project, **filters: Any) -> Select[Label]:
    """The labels of a project, by title."""
    statement = labels_of(project)
    if search := (filters.get("search") or "").strip():
        statement = statement.where(searching.contains(search, Label.title, Label.description))
    return statement


def add_priorities(labels_of_page: Sequence[Label]) -> None:
    """Set ``priority`` on each label of a page: the number of the imported archive, if any."""
    brought = select(Label.id, Label.extra["priorities"]).where(Label.id.in_([label.id for label in labels_of_page]))
    priorities = {number: _first(value) for number, value in db.session.execute(brought)}
    for label in labels_of_page:
        label.priority = priorities.get(label.id)


def add_counts(caller: Caller, project: Project, labels_of_page: Sequence[Label]) -> None:
    """Set ``counts`` on each label of a page: issues and merge requests that have it and that the caller may see."""
    titles = [label.title for label in labels_of_page]
    used: dict[tuple[str, str], int] = {}
    if allowed(caller, Ability.READ_ISSUES, project):
        counted = issues_of(project).join(IssueLabel, IssueLabel.issue_id == Issue.id)
        counted = counted.where(visible_issues(caller, project), IssueLabel.title.in_(titles))
        grouped = counted.with_only_columns(Issue.state, IssueLabel.title, func.count())
        rows = db.session.execute(grouped.group_by(Issue.state, IssueLabel.title))
        used |= {(f"{state}_issues", title): number for state, title, number in rows}
    if allowed(caller, Ability.READ_MERGE_REQUESTS, project):
        marked = merge_requests_of(project).join(
            MergeRequestLabel, MergeRequestLabel.merge_request_id == MergeRequest.id
        )
        marked = marked.where(MergeRequest.state == issues.OPENED, MergeRequestLabel.title.in_(titles))
        by_title = marked.with_only_columns(MergeRequestLabel.title, func.count()).group_by(MergeRequestLabel.title)
        used |= {("merge_requests", title): number for title, number in db.session.execute(by_title)}
    for label in labels_of_page:
        label.counts = {
            "open_issues": used.get(("opened_issues", label.title), 0),
            "closed_issues": used.get(("closed_issues", label.title), 0),
            "open_merge_requests": used.get(("merge_requests", label.title), 0),
        }


def _first(priorities: Any) -> int | None:
    if not isinstance(priorities, list) or not priorities or not isinstance(priorities[0], dict):
        return None
    number = priorities[0].get("priority")
    return number if isinstance(number, int) and not isinstance(number, bool) else None
