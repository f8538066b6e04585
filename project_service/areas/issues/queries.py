"""Queries of issues."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dateutil.relativedelta import relativedelta
from sqlalchemy import ColumnElement, Select, and_, exists, false, func, not_, or_, select

from project_service.access.across_projects import issues_across
from project_service.access.identity import Caller
from project_service.access.rules import visible_issues, visible_notes
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User, ids_by_username, users
from project_service.domain.memberships import user_ids_with
from project_service.domain.namespaces import Group, NamespaceAncestor
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project
from project_service.domain.tracker import issues as tracker
from project_service.domain.tracker.issues import TEXTS, Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.milestones import ACTIVE, Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db import searching, text_search
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db
from project_service.kit.http.responses import say_newest_only

DAY = dt.timedelta(days=1)
ALL = "all"

_issues, _labels, _assignees = table_of(Issue).c, table_of(IssueLabel).c, table_of(IssueAssignee).c
_milestones = table_of(Milestone).c


def filtered_issues(caller: Caller, project: Project, **filters: Any) -> Select[Issue]:
    """The issues of a project that the caller may see, filtered and ordered."""
    filtered = IssueFilter.of(caller, project, **filters)
    return select(Issue).where(*filtered.conditions).order_by(*filtered.order)


@dataclass(frozen=True, slots=True)
class IssueFilter:
    """The conditions and the order of a list of issues, on columns of the table: for rows and for mapped objects."""

    conditions: Sequence[ColumnElement[bool]]
    order: Sequence[ColumnElement[Any]]

    @classmethod
    def of(cls, caller: Caller, project: Project | ProjectAccess, **filters: Any) -> IssueFilter:
        """The issues of a project that the caller may see and that have what is filters."""
        here = _issues.project_id == project.content_id
        return cls._ordered((here, visible_issues(caller, project), *_conditions(caller, filters)), filters)

    @classmethod
    def across(cls, caller: Caller, group: Group | None = None, **filters: Any) -> IssueFilter:
        """The issues of all projects, or of those in and below a group, that the caller may see."""
        filters["scope"] = (filters.get("scope") or ALL).replace("-", "_")
        projects: list[ColumnElement[bool]] = []
        if group is not None:
            below = select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == group.id)
            projects.append(Project.namespace_id.in_(below))
        if filters.pop("non_archived", True) is not False:
            projects.append(Project.archived.is_(False))
        searched = _searched_across(filters.get("search") or "")
        return cls._ordered((issues_across(caller, *projects), *searched, *_conditions(caller, filters)), filters)

    @classmethod
    def of_milestone(cls, caller: Caller, milestone: Milestone) -> IssueFilter:
        """The issues of a milestone that the caller may see; those of a group's one are of all projects below."""
        if isinstance(milestone.owner, Group):
            return cls.across(caller, milestone.owner, milestone_id=milestone.id, non_archived=False)
        return cls.of(caller, milestone.owner, milestone_id=milestone.id)

    @classmethod
    def _ordered(cls, conditions: Sequence[ColumnElement[bool]], filters: dict[str, Any]) -> IssueFilter:
        column = _issues[filters.get("order_by") or "created_at"]
        is_ascending = filters.get("sort") == "asc"
        order = (column.asc(), _issues.id.asc()) if is_ascending else (column.desc(), _issues.id.desc())
        if column is _issues.due_date:  # the databases differ in the position of NULL
            order = (order[0].nulls_last(), order[1])
        return cls(conditions, order)


def participants_of(caller: Caller, issue: Issue) -> Select[User]:
    """The author, assignees and authors of comments that the caller may read, of those who see the project."""
    notes = select(Note.author_id).where(Note.noteable_type == tracker.TARGET, Note.noteable_id == issue.id)
    notes = notes.where(Note.system.is_(False), visible_notes(caller, issue.project))
    assigned = select(_assignees.user_id).where(_assignees.issue_id == issue.id)
    author = select(_issues.author_id).where(_issues.id == issue.id)
    people = User.id.in_(author.union_all(assigned, notes))
    seeing = or_(User.admin.is_(True), User.id.in_(user_ids_with(Role.MINIMAL, issue.project)))
    if issue.project.visibility == Visibility.INTERNAL:
        seeing = or_(seeing, User.external.is_(False))
    statement = users().where(people).order_by(User.id)
    return statement if issue.project.visibility == Visibility.PUBLIC else statement.where(seeing)


def _searched_across(search: str) -> Iterable[ColumnElement[bool]]:
    """Bound a search in all projects: by the index of texts, else to the newest issues, of which the answer tells."""
    if not search.strip():
        return
    words = [word.lower() for word in searching.terms(search)]
    if words and not text_search.needs_scan(TEXTS, words):
        yield text_search.contains(TEXTS, words)
        return
    newest = db.session.scalar(select(func.max(_issues.id))) or 0
    if newest > text_search.MAX_SCANNED_ROWS:
        say_newest_only(text_search.MAX_SCANNED_ROWS)
        yield _issues.id > newest - text_search.MAX_SCANNED_ROWS


def statistics_of(filtered: IssueFilter) -> dict[str, Any]:
    """The numbers of issues of a filter: all, closed and opened ones."""
    states = select(_issues.state, func.count()).where(*filtered.conditions).group_by(_issues.state)
    rows: dict[str, int] = dict(db.session.execute(states).all())
    counts = {state: rows.get(state, 0) for state in (tracker.CLOSED, tracker.OPENED)}
    return {"statistics": {"counts": {"all": sum(counts.values()), **counts}}}


def progress_of(caller: Caller, milestone: Milestone) -> tuple[int, int]:
    """The number of issues of a milestone that the caller may see, and of the closed ones among them."""
    counts = statistics_of(IssueFilter.of_milestone(caller, milestone))["statistics"]["counts"]
    return counts["all"], counts[tracker.CLOSED]


def _conditions(caller: Caller, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("state") in (tracker.OPENED, tracker.CLOSED):
        yield _issues.state == filters["state"]
    if filters.get("iids"):
        yield _issues.iid.in_(filters["iids"])
    if filters.get("confidential") is not None:
        yield _issues.confidential.is_(filters["confidential"])
    if filters.get("issue_type"):
        yield _issues.issue_type == filters["issue_type"]
    yield from _by_texts(filters)
    if filters.get("due_date"):
        yield _due(filters["due_date"])
    yield from _by_users(caller, filters)
    yield from _by_properties(filters)
    for name, value in (filters.get("excluded") or {}).items():
        if value not in (None, [], ""):
            yield from _excluded(caller, name, value)
    for name, column in (("created", _issues.created_at), ("updated", _issues.updated_at)):
        if filters.get(f"{name}_after"):
            yield column >= filters[f"{name}_after"]
        if filters.get(f"{name}_before"):
            yield column <= filters[f"{name}_before"]


def _by_texts(filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if search := (filters.get("search") or "").strip():
        columns = [_issues[name] for name in filters.get("within") or ("title", "description")]
        yield searching.contains(search, *columns)
    if words := text_search.words_of(filters.get("text") or ""):
        yield text_search.contains(tracker.TEXTS, words)


def _excluded(caller: Caller, name: str, value: Any) -> Iterable[ColumnElement[bool]]:
    """The conditions of ``not``: issues with one of the labels, the milestone, the author and so on are excluded."""
    if name == "my_reaction_emoji":
        return
    if name == "labels":
        yield from (not_(_has_label(label)) for label in value)
    elif name == "iids":
        yield _issues.iid.not_in(value)
    else:
        conditions = (*_by_users(caller, {name: value}), *_by_properties({name: value}))
        # an issue without an author or milestone does not have the excluded one
        yield not_(func.coalesce(and_(*conditions), false()))


def _by_users(caller: Caller, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("scope") == "created_by_me":
        yield _issues.author_id == caller.user_id
    if filters.get("scope") == "assigned_to_me":
        yield _issues.id.in_(_assigned_to(_assignees.user_id == caller.user_id))
    if filters.get("author_id") is not None:
        yield _issues.author_id == filters["author_id"]
    if filters.get("author_username"):
        yield _issues.author_id.in_(ids_by_username(filters["author_username"]))
    assignee = filters.get("assignee_id")
    if assignee in ("None", "Any"):
        yield exists().where(_assignees.issue_id == _issues.id).is_(assignee == "Any")
    elif assignee is not None:
        yield _issues.id.in_(_assigned_to(_assignees.user_id == int(assignee)))
    if filters.get("assignee_username"):
        yield _issues.id.in_(_assigned_to(_assignees.user_id.in_(ids_by_username(*filters["assignee_username"]))))


def _by_properties(filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    milestone = filters.get("milestone")
    if milestone == "None":
        yield _issues.milestone_id.is_(None)
    elif milestone == "Any":
        yield _issues.milestone_id.is_not(None)
    elif milestone:
        # of the project or a group above: an issue has no others
        yield _issues.milestone_id.in_(select(_milestones.id).where(_milestones.title == milestone))
    if filters.get("milestone_id") is not None:
        yield _issues.milestone_id == filters["milestone_id"]
    if filters.get("timebox"):
        yield _in_timebox(filters["timebox"])
    if filters.get("my_reaction_emoji") not in (None, "", "None"):
        yield false()  # reactions are not supported: no issue has any
    weight = filters.get("weight")
    if weight in ("None", "Any"):
        yield _issues.weight.is_(None) if weight == "None" else _issues.weight.is_not(None)
    elif weight is not None:
        yield _issues.weight == int(weight)
    labels = filters.get("labels") or []
    if labels == ["None"]:
        yield _has_labels().is_(False)
    elif labels == ["Any"]:
        yield _has_labels()
    else:
        for label in labels:
            yield _has_label(label)


def _in_timebox(timebox: str) -> ColumnElement[bool]:
    """The condition for no milestone, any, a started one, or the upcoming one of a project or group: the next due."""
    if timebox in ("None", "Any"):
        return _issues.milestone_id.is_(None) if timebox == "None" else _issues.milestone_id.is_not(None)
    today = clock.today()
    active = exists().where(_milestones.id == _issues.milestone_id, _milestones.state == ACTIVE)
    if timebox == "Started":
        return active.where(_milestones.start_date <= today)
    sooner = table_of(Milestone).alias().c
    has_sooner = exists().where(
        or_(sooner.project_id == _milestones.project_id, sooner.group_id == _milestones.group_id),
        sooner.state == ACTIVE,
        sooner.due_date > today,
        or_(
            sooner.due_date < _milestones.due_date,
            and_(sooner.due_date == _milestones.due_date, sooner.id < _milestones.id),
        ),
    )
    return active.where(_milestones.due_date > today, ~has_sooner)


def _due(days: str) -> ColumnElement[bool]:
    """The condition for a value of ``due_date``: none, any, or a range of days around today."""
    today = clock.today()
    monday, first = today - dt.timedelta(days=today.weekday()), today.replace(day=1)
    month = relativedelta(months=1)
    around = {
        "today": (today, today),
        "tomorrow": (today + DAY, today + DAY),
        "overdue": (dt.date.min, today - DAY),
        "week": (monday, monday + 6 * DAY),
        "month": (first, first + month - DAY),
        "next_month_and_previous_two_weeks": (today - 14 * DAY, first + 2 * month - DAY),
    }
    if days not in around:
        return _issues.due_date.is_(None) if days == "0" else _issues.due_date.is_not(None)
    return _issues.due_date.between(*around[days])


def _assigned_to(condition: ColumnElement[bool]) -> Select[int]:
    return select(_assignees.issue_id).where(condition)


def _has_labels() -> ColumnElement[bool]:
    return exists().where(_labels.issue_id == _issues.id)


def _has_label(title: str) -> ColumnElement[bool]:
    return exists().where(_labels.issue_id == _issues.id, _labels.title == title)
