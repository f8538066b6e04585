"""Lists of issues of the API and the pages, read as columns.

Loading objects of the ORM with their users and labels takes longer than everything else in the request for a list of
issues. Single issues are objects; the filters and the schema are the same for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Row, bindparam, func, select
from sqlalchemy.orm import joinedload

from project_service.access.api import WithSchema
from project_service.areas.issues.queries import IssueFilter
from project_service.areas.issues.schemas import DetailedIssueSchema
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.labels import labels_by_title
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db import large_texts
from project_service.kit.db.base import table_of
from project_service.kit.db.large_texts import MAX_LISTED_CHARACTERS
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.pagination import SelectedRows

DESCRIPTION = "description"
ISSUE_COLUMNS = (
    *(column.name for column in table_of(Issue).columns if column.name not in ("extra", DESCRIPTION)),
    DESCRIPTION,
)
USER_COLUMNS = ("id", "name", "username", "state", "avatar_url", "email")

_issues, _users, _milestones = table_of(Issue).c, table_of(User).c, table_of(Milestone).c
_groups = table_of(Namespace).c
_author, _closed_by = table_of(User).alias(), table_of(User).alias()
_select_issues = (
    select(
        *(_issues[name] for name in ISSUE_COLUMNS[:-1]),
        func.substr(_issues.description, 1, MAX_LISTED_CHARACTERS + 1).label(DESCRIPTION),
        *(_author.c[name].label(f"author_{name}") for name in USER_COLUMNS),
        *(_closed_by.c[name].label(f"closed_by_{name}") for name in USER_COLUMNS),
    )
    .outerjoin_from(_issues.id.table, _author, _author.c.id == _issues.author_id)
    .outerjoin(_closed_by, _closed_by.c.id == _issues.closed_by_id)
)
_issue_ids: Any = bindparam("issue_ids", expanding=True)
_labels, _assignees = table_of(IssueLabel).c, table_of(IssueAssignee).c
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
_select_milestones = (
    select(*(column for column in _milestones if column.name != "extra"), _groups.full_path.label("group_path"))
    .outerjoin_from(_milestones.id.table, _groups.id.table, _groups.id == _milestones.group_id)
    .where(_milestones.id.in_(bindparam("milestone_ids", expanding=True)))
)


class ListedIssue(SimpleNamespace):
    """An issue of a list. A long description is loaded whenever it is read."""

    id: int

    def __getattr__(self, name: str) -> Any:
        """Load the description if it is not there."""
        if name != DESCRIPTION:
            raise AttributeError(name)
        return db.session.scalar(select(Issue.description).where(Issue.id == self.id))


class ListedMilestone(SimpleNamespace):
    """A milestone of listed issues, with the project or the group that it belongs to."""

    def __init__(self, row: Any, projects: Mapping[int, Project | ProjectAccess]) -> None:
        super().__init__(**row._mapping, project=projects.get(row.project_id))
        self.owner = SimpleNamespace(full_path=row.group_path) if self.project is None else self.project


def add_label_objects(issues: list[Any]) -> None:
    """Set ``label_objects`` of the issues of a page: what the titles of their labels mean in their projects."""
    projects = {issue.project_id: issue.project for issue in issues}
    labels = labels_by_title(projects.values(), {title for issue in issues for title in issue.labels})
    for issue in issues:
        named = [labels.get((issue.project_id, title)) for title in issue.labels]
        issue.label_objects = [label for label in named if label is not None]


@dataclass(frozen=True, slots=True)
class IssueListing:
    """The issues that a filter selects, with the attributes that ``IssueSchema`` shows.

    ``project``: the one that all of them belong to; without it the projects of a page are loaded.
    """

    filtered: IssueFilter
    project: Project | ProjectAccess | None = None

    @property
    def total(self) -> int:
        """The number of issues, counted up to one more than ``MAX_COUNTED_ROWS``."""
        return SelectedRows(select(_issues.id).where(*self.filtered.conditions)).total

    def rows(self, offset: int, limit: int) -> list[Any]:
        """Return some of the issues, with three statements, one more for their milestones, and one for projects."""
        page = _select_issues.where(*self.filtered.conditions).order_by(*self.filtered.order)
        rows = db.session.execute(page.limit(limit).offset(offset))
        users: dict[int, SimpleNamespace] = {}
        issues = [self._issue(row, users) for row in rows]
        if not issues:
            return issues
        projects = self._projects({issue.project_id for issue in issues})
        ids = {"issue_ids": [issue.id for issue in issues]}
        labels = dict(_grouped(db.session.execute(_select_labels, ids)))
        assignees = dict(_grouped(db.session.execute(_select_assignees, ids)))
        milestones = _milestones_by_id({issue.milestone_id for issue in issues} - {None}, projects)
        for issue in issues:
            issue.project = projects[issue.project_id]
            issue.labels = [row.title for row in labels.get(issue.id, ())]
            issue.assignees = [_user(row[1:], users) for row in assignees.get(issue.id, ())]
            issue.first_assignee = issue.assignees[0] if issue.assignees else None
            issue.milestone = milestones.get(issue.milestone_id)
        return issues

    def _issue(self, row: Any, users: dict[int, SimpleNamespace]) -> SimpleNamespace:
        author_at, closed_by_at = len(ISSUE_COLUMNS), len(ISSUE_COLUMNS) + len(USER_COLUMNS)
        issue = ListedIssue(**dict(zip(ISSUE_COLUMNS, row, strict=False)))
        if issue.description is not None and len(issue.description) > MAX_LISTED_CHARACTERS:
            del issue.description
            large_texts.deferred_texts().append((issue, DESCRIPTION))
        issue.author = _user(row[author_at:closed_by_at], users)
        issue.closed_by = _user(row[closed_by_at:], users)
        return issue

    def _projects(self, ids: set[int]) -> dict[int, Project | ProjectAccess]:
        if self.project is not None:
            return dict.fromkeys(ids, self.project)
        statement = select(Project).where(Project.id.in_(ids)).options(joinedload(Project.namespace), NO_LAZY_LOADING)
        return {project.id: project for project in db.session.scalars(statement)}


def listed(
    filtered: IssueFilter, project: Project | ProjectAccess | None = None, *, details: bool | None
) -> IssueListing | WithSchema:
    """The issues of a filter as the API lists them; with ``details`` their labels are objects."""
    listing = IssueListing(filtered, project)
    return WithSchema(DetailedIssueSchema, listing, add_label_objects) if details else listing


def _milestones_by_id(ids: set[int], projects: Mapping[int, Project | ProjectAccess]) -> dict[int, SimpleNamespace]:
    rows = db.session.execute(_select_milestones, {"milestone_ids": list(ids)}) if ids else ()
    return {row.id: ListedMilestone(row, projects) for row in rows}


def _user(columns: Sequence[Any], users: dict[int, SimpleNamespace]) -> SimpleNamespace | None:
    """Return a user, the same object wherever a page names them."""
    user = users.get(columns[0])
    if user is None and columns[0] is not None:
        user = users[columns[0]] = SimpleNamespace(**dict(zip(USER_COLUMNS, columns, strict=True)))
    return user


def _grouped(rows: Iterable[Row[Any]]) -> Iterator[tuple[int, list[Row[Any]]]]:
    """Group rows that are ordered by their first column, the id of an issue."""
    for issue_id, group in groupby(rows, key=itemgetter(0)):
        yield issue_id, list(group)
