"""The lists of issues of the API, read as columns.

Loading objects of the ORM with their users and labels takes longer than everything else in the request for a list of
issues. Pages and single issues use the objects; the filters and the schema are the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Row, Select, bindparam, func, select
from sqlalchemy.orm import aliased

from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.users import User
from project_service.kit.db.base import table_of
from project_service.kit.db.large_texts import MAX_LISTED_CHARACTERS
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.pagination import SelectedRows

DESCRIPTION = "description"
ISSUE_COLUMNS = (
    *(column.name for column in table_of(Issue).columns if column.name not in ("extra", DESCRIPTION)),
    DESCRIPTION,
)
USER_COLUMNS = ("id", "name", "username", "state", "avatar_url")

_author, _closed_by = aliased(User), aliased(User)
_shown_columns = (
    *(getattr(Issue, name) for name in ISSUE_COLUMNS[:-1]),
    func.substr(Issue.description, 1, MAX_LISTED_CHARACTERS + 1).label(DESCRIPTION),
    *(getattr(_author, name) for name in USER_COLUMNS),
    *(getattr(_closed_by, name) for name in USER_COLUMNS),
)
_issue_ids: Any = bindparam("issue_ids", expanding=True)
_labels, _assignees, _users = table_of(IssueLabel).c, table_of(IssueAssignee).c, table_of(User).c
_select_labels = (
    select(_labels.issue_id, _labels.title)
    .where(_labels.issue_id.in_(_issue_ids))
    .order_by(_labels.issue_id, _labels.title)
)
_select_assignees = (
    select(_assignees.issue_id, *(_users[name] for name in USER_COLUMNS))
    .join(_users.id.table, _users.id == _assignees.user_id)
    .where(_assignees.issue_id.in_(_issue_ids))
    .order_by(_assignees.issue_id, _assignees.user_id)
)


class ListedIssue(SimpleNamespace):
    """An issue of a list. A long description is loaded whenever it is read."""

    id: int

    def __getattr__(self, name: str) -> Any:
        """Load the description if it is not there."""
        if name != DESCRIPTION:
            raise AttributeError(name)
        return db.session.scalar(select(Issue.description).where(Issue.id == self.id))


@dataclass(frozen=True, slots=True)
class IssueListing:
    """The issues that an ordered statement selects from one project, with the attributes that ``IssueSchema`` shows."""

    statement: Select[Issue]
    project: Project

    @property
    def total(self) -> int:
        """The number of issues, counted up to one more than ``MAX_COUNTED_ROWS``."""
        return SelectedRows(self.statement).total

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the issues, with three statements, or four where one has a milestone."""
        page = (
            self.statement.outerjoin(_author, _author.id == Issue.author_id)
            .outerjoin(_closed_by, _closed_by.id == Issue.closed_by_id)
            .with_only_columns(*_shown_columns)
            .limit(limit)
            .offset(offset)
        )
        issues = [self._issue(row) for row in db.session.execute(page)]
        if not issues:
            return issues
        ids = {"issue_ids": [issue.id for issue in issues]}
        labels = dict(_grouped(db.session.execute(_select_labels, ids)))
        assignees = dict(_grouped(db.session.execute(_select_assignees, ids)))
        milestones = _milestones({issue.milestone_id for issue in issues} - {None})
        for issue in issues:
            issue.labels = [row.title for row in labels.get(issue.id, ())]
            issue.assignees = [_user(row[1:]) for row in assignees.get(issue.id, ())]
            issue.first_assignee = issue.assignees[0] if issue.assignees else None
            issue.milestone = milestones.get(issue.milestone_id)
        return issues

    def _issue(self, row: Row[Any]) -> SimpleNamespace:
        author_at, closed_by_at = len(ISSUE_COLUMNS), len(ISSUE_COLUMNS) + len(USER_COLUMNS)
        issue = ListedIssue(**dict(zip(ISSUE_COLUMNS, row, strict=False)))
        if issue.description is not None and len(issue.description) > MAX_LISTED_CHARACTERS:
            del issue.description
        issue.project = self.project
        issue.author = _user(row[author_at:closed_by_at])
        issue.closed_by = _user(row[closed_by_at:])
        return issue


def _user(columns: Sequence[Any]) -> SimpleNamespace | None:
    return None if columns[0] is None else SimpleNamespace(**dict(zip(USER_COLUMNS, columns, strict=True)))


def _grouped(rows: Iterable[Row[Any]]) -> Iterator[tuple[int, list[Row[Any]]]]:
    """Group rows that are ordered by their first column, the id of an issue."""
    for issue_id, group in groupby(rows, key=itemgetter(0)):
        yield issue_id, list(group)


def _milestones(ids: set[int]) -> dict[int, Milestone]:
    if not ids:
        return {}
    milestones = db.session.scalars(select(Milestone).where(Milestone.id.in_(ids)).options(NO_LAZY_LOADING))
    return {milestone.id: milestone for milestone in milestones}
