"""Queries of merge requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, false, func, or_, select
from sqlalchemy.orm import contains_eager, joinedload, selectinload

from project_service.access.across_projects import merge_requests_of_projects
from project_service.access.identity import Caller
from project_service.access.rules import visible_projects
from project_service.domain.accounts.users import ids_by_username
from project_service.domain.projects import Project
from project_service.domain.tracker.merge_requests import TARGET as MERGE_REQUEST
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel, merge_requests_of
from project_service.domain.tracker.milestones import WITH_OWNER, Milestone
from project_service.domain.tracker.notes import Note
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db

# what archives say of the commits of a merge request
COMMITS = ("merge_commit_sha", "squash_commit_sha", "diff_head_sha")


def merge_requests_matching(caller: Caller, project: Project, **filters: Any) -> Select[MergeRequest]:
    """The merge requests of a project, filtered and ordered."""
    return _ordered(merge_requests_of(project).where(*_conditions(caller, filters)), filters)


def merge_requests_of_milestone(caller: Caller, milestone: Milestone) -> Select[MergeRequest]:
    """The merge requests of a milestone of a group that the caller may see, newest first."""
    joined = select(MergeRequest).join(MergeRequest.project).where(MergeRequest.milestone_id == milestone.id)
    present = Project.deleting_since.is_(None), Project.loading.is_(False)
    visible = joined.where(visible_projects(caller), merge_requests_of_projects(caller), *present)
    return _ordered(visible.options(contains_eager(MergeRequest.project)), {})


def _ordered(statement: Select[MergeRequest], filters: dict[str, Any]) -> Select[MergeRequest]:
    statement = statement.options(
        joinedload(MergeRequest.author),
        selectinload(MergeRequest.label_rows),
        selectinload(MergeRequest.milestone).options(*WITH_OWNER),
        NO_LAZY_LOADING,
    )
    column = getattr(MergeRequest, filters.get("order_by") or "created_at")
    if filters.get("sort") == "asc":
        return statement.order_by(column.asc(), MergeRequest.id.asc())
    return statement.order_by(column.desc(), MergeRequest.id.desc())


def add_notes_counts(merge_requests: Sequence[MergeRequest]) -> None:
    """Set ``notes_count`` on each merge request of a page: comments of users, in one statement for all."""
    counted = (
        select(Note.noteable_id, func.count())
        .where(
            Note.noteable_type == MERGE_REQUEST,
            Note.noteable_id.in_([merge_request.id for merge_request in merge_requests]),
            Note.system.is_(False),
        )
        .group_by(Note.noteable_id)
    )
    counts: dict[int | None, int] = dict(db.session.execute(counted).all())
    for merge_request in merge_requests:
        merge_request.notes_count = counts.get(merge_request.id, 0)


def _conditions(caller: Caller, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("state") not in (None, "all"):
        yield MergeRequest.state == filters["state"]
    if filters.get("sha"):
        yield or_(*(MergeRequest.extra[name].as_string() == filters["sha"] for name in COMMITS))
    if filters.get("iids"):
        yield MergeRequest.iid.in_(filters["iids"])
    for name in ("source_branch", "target_branch"):
        if filters.get(name):
            yield getattr(MergeRequest, name) == filters[name]
    if search := (filters.get("search") or "").strip():
        columns = [getattr(MergeRequest, name) for name in filters.get("within") or ("title", "description")]
        yield searching.contains(search, *columns)
    for name, column in (("created", MergeRequest.created_at), ("updated", MergeRequest.updated_at)):
        if filters.get(f"{name}_after"):
            yield column >= filters[f"{name}_after"]
        if filters.get(f"{name}_before"):
            yield column <= filters[f"{name}_before"]
    yield from _by_users(caller, filters)
    yield from _by_properties(filters)


def _by_users(caller: Caller, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("scope") == "created_by_me":
        yield MergeRequest.author_id == caller.user_id
    if filters.get("scope") == "assigned_to_me":
        yield false()  # merge requests have no assignees
    if filters.get("author_id") is not None:
        yield MergeRequest.author_id == filters["author_id"]
    if filters.get("author_username"):
        yield MergeRequest.author_id.in_(ids_by_username(filters["author_username"]))


def _by_properties(filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    milestone = filters.get("milestone")
    if milestone == "None":
        yield MergeRequest.milestone_id.is_(None)
    elif milestone == "Any":
        yield MergeRequest.milestone_id.is_not(None)
    elif milestone:
        # of the project or a group above: a merge request has no others
        yield MergeRequest.milestone_id.in_(select(Milestone.id).where(Milestone.title == milestone))
    if filters.get("milestone_id") is not None:
        yield MergeRequest.milestone_id == filters["milestone_id"]
    marked = exists().where(MergeRequestLabel.merge_request_id == MergeRequest.id)
    labels = filters.get("labels") or []
    if labels in (["None"], ["Any"]):
        yield marked if labels == ["Any"] else ~marked
    else:
        for title in labels:
            yield marked.where(MergeRequestLabel.title == title)
