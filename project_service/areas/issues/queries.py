"""Queries of issues."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from dateutil.relativedelta import relativedelta
from sqlalchemy import ColumnElement, Select, and_, exists, false, func, not_, select
from sqlalchemy.orm import joinedload, selectinload

from project_service.access.abilities import may_see_issue, visible_issues
from project_service.access.identity import Caller
from project_service.domain.projects import Project
from project_service.domain.tracker import issues as tracker
from project_service.domain.tracker.issues import Issue, IssueAssignee, IssueLabel
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.users import ids_by_username
from project_service.kit import clock
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http.errors import RecordNotFound

DAY = dt.timedelta(days=1)


def issues_matching(caller: Caller, project: Project, **wanted: Any) -> Select[Issue]:
    """The issues of a project that the caller may see, filtered and ordered, with what pages show of them."""
    return filtered_issues(caller, project, **wanted).options(
        joinedload(Issue.author),
        selectinload(Issue.assignees),
        selectinload(Issue.label_rows),
        selectinload(Issue.closed_by),
        selectinload(Issue.milestone),
        NO_LAZY_LOADING,
    )


def filtered_issues(caller: Caller, project: Project, **wanted: Any) -> Select[Issue]:
    """The same, without related rows."""
    here = tracker.issues_of(project).where(visible_issues(caller, project), *_conditions(caller, wanted))
    column = getattr(Issue, wanted.get("order_by") or "created_at")
    is_ascending = wanted.get("sort") == "asc"
    order = (column.asc(), Issue.id.asc()) if is_ascending else (column.desc(), Issue.id.desc())
    if column is Issue.due_date:  # the databases differ in the position of NULL
        order = (order[0].nulls_last(), order[1])
    return here.order_by(*order)


def progress_of(caller: Caller, milestone: Milestone) -> tuple[int, int]:
    """The number of issues of a milestone that the caller may see, and of the closed ones among them."""
    seen = filtered_issues(caller, milestone.project, milestone_id=milestone.id).order_by(None)
    states = seen.with_only_columns(Issue.state, func.count()).group_by(Issue.state)
    counts: dict[str, int] = dict(db.session.execute(states).all())
    return sum(counts.values()), counts.get(tracker.CLOSED, 0)


def find_issue(caller: Caller, project: Project, iid: int) -> Issue:
    """One issue; ``RecordNotFound`` if it does not exist or the caller may not see it."""
    issue = tracker.find_issue(project, iid)
    if not may_see_issue(caller, issue):
        raise RecordNotFound
    return issue


def _conditions(caller: Caller, wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("state") in (tracker.OPENED, tracker.CLOSED):
        yield Issue.state == wanted["state"]
    if wanted.get("iids"):
        yield Issue.iid.in_(wanted["iids"])
    if wanted.get("confidential") is not None:
        yield Issue.confidential.is_(wanted["confidential"])
    if wanted.get("issue_type"):
        yield Issue.issue_type == wanted["issue_type"]
    if search := (wanted.get("search") or "").strip():
        columns = [getattr(Issue, name) for name in wanted.get("within") or ("title", "description")]
        yield searching.contains(search, *columns)
    if wanted.get("due_date"):
        yield _due(wanted["due_date"])
    yield from _by_users(caller, wanted)
    yield from _by_properties(wanted)
    for name, value in (wanted.get("excluded") or {}).items():
        if value not in (None, [], ""):
            yield from _excluded(caller, name, value)
    for name, column in (("created", Issue.created_at), ("updated", Issue.updated_at)):
        if wanted.get(f"{name}_after"):
            yield column >= wanted[f"{name}_after"]
        if wanted.get(f"{name}_before"):
            yield column <= wanted[f"{name}_before"]


def _excluded(caller: Caller, name: str, value: Any) -> Iterable[ColumnElement[bool]]:
    """The conditions of ``not``: issues with one of the labels, the milestone, the author and so on are excluded."""
    if name == "my_reaction_emoji":
        return
    if name == "labels":
        yield from (not_(_has_label(label)) for label in value)
    elif name == "iids":
        yield Issue.iid.not_in(value)
    else:
        conditions = (*_by_users(caller, {name: value}), *_by_properties({name: value}))
        # an issue without an author or milestone does not have the excluded one
        yield not_(func.coalesce(and_(*conditions), false()))


def _by_users(caller: Caller, wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("scope") == "created_by_me":
        yield Issue.author_id == caller.user_id
    if wanted.get("scope") == "assigned_to_me":
        yield Issue.id.in_(_assigned_to(IssueAssignee.user_id == caller.user_id))
    if wanted.get("author_id") is not None:
        yield Issue.author_id == wanted["author_id"]
    if wanted.get("author_username"):
        yield Issue.author_id.in_(ids_by_username(wanted["author_username"]))
    assignee = wanted.get("assignee_id")
    if assignee in ("None", "Any"):
        yield exists().where(IssueAssignee.issue_id == Issue.id).is_(assignee == "Any")
    elif assignee is not None:
        yield Issue.id.in_(_assigned_to(IssueAssignee.user_id == int(assignee)))
    if wanted.get("assignee_username"):
        yield Issue.id.in_(_assigned_to(IssueAssignee.user_id.in_(ids_by_username(*wanted["assignee_username"]))))


def _by_properties(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    milestone = wanted.get("milestone")
    if milestone == "None":
        yield Issue.milestone_id.is_(None)
    elif milestone == "Any":
        yield Issue.milestone_id.is_not(None)
    elif milestone:
        called = select(Milestone.id).where(Milestone.project_id == Issue.project_id, Milestone.title == milestone)
        yield Issue.milestone_id.in_(called)
    if wanted.get("milestone_id") is not None:
        yield Issue.milestone_id == wanted["milestone_id"]
    if wanted.get("my_reaction_emoji") not in (None, "", "None"):
        yield false()  # reactions are not supported: no issue has any
    weight = wanted.get("weight")
    if weight in ("None", "Any"):
        yield Issue.weight.is_(None) if weight == "None" else Issue.weight.is_not(None)
    elif weight is not None:
        yield Issue.weight == int(weight)
    labels = wanted.get("labels") or []
    if labels == ["None"]:
        yield _has_labels().is_(False)
    elif labels == ["Any"]:
        yield _has_labels()
    else:
        for label in labels:
            yield _has_label(label)


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
        return Issue.due_date.is_(None) if days == "0" else Issue.due_date.is_not(None)
    return Issue.due_date.between(*around[days])


def _assigned_to(condition: ColumnElement[bool]) -> Select[int]:
    return select(IssueAssignee.issue_id).where(condition)


def _has_labels() -> ColumnElement[bool]:
    return exists().where(IssueLabel.issue_id == Issue.id)


def _has_label(title: str) -> ColumnElement[bool]:
    return exists().where(IssueLabel.issue_id == Issue.id, IssueLabel.title == title)
