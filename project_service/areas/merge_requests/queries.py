"""Queries of merge requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, false, func, or_, select
from sqlalchemy.orm import joinedload, selectinload

from project_service.access.identity import Caller
from project_service.domain.projects import Project
from project_service.domain.tracker.merge_requests import TARGET as MERGE_REQUEST
from project_service.domain.tracker.merge_requests import MergeRequest, MergeRequestLabel, merge_requests_of
from project_service.domain.tracker.milestones import Milestone
from project_service.domain.tracker.notes import Note
from project_service.domain.users import ids_by_username
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db

# what archives say of the commits of a merge request
COMMITS = ("merge_commit_sha", "squash_commit_sha", "diff_head_sha")


def merge_requests_matching(caller: Caller, project: Project, **wanted: Any) -> Select[MergeRequest]:
    """The merge requests of a project, filtered and ordered."""
    statement = merge_requests_of(project).where(*_conditions(caller, wanted))
    statement = statement.options(
        joinedload(MergeRequest.author),
        selectinload(MergeRequest.label_rows),
        selectinload(MergeRequest.milestone),
        NO_LAZY_LOADING,
    )
    column = getattr(MergeRequest, wanted.get("order_by") or "created_at")
    if wanted.get("sort") == "asc":
        return statement.order_by(column.asc(), MergeRequest.id.asc())
    return statement.order_by(column.desc(), MergeRequest.id.desc())


def add_notes_counts(found: Sequence[MergeRequest]) -> None:
    """Set ``notes_count`` on each merge request of a page: comments of users, in one statement for all."""
    counted = (
        select(Note.noteable_id, func.count())
        .where(
            Note.noteable_type == MERGE_REQUEST,
            Note.noteable_id.in_([merge_request.id for merge_request in found]),
            Note.system.is_(False),
        )
        .group_by(Note.noteable_id)
    )
    counts: dict[int | None, int] = dict(db.session.execute(counted).all())
    for merge_request in found:
        merge_request.notes_count = counts.get(merge_request.id, 0)


def _conditions(caller: Caller, wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("state") not in (None, "all"):
        yield MergeRequest.state == wanted["state"]
    if wanted.get("sha"):
        yield or_(*(MergeRequest.extra[name].as_string() == wanted["sha"] for name in COMMITS))
    if wanted.get("iids"):
        yield MergeRequest.iid.in_(wanted["iids"])
    for name in ("source_branch", "target_branch"):
        if wanted.get(name):
            yield getattr(MergeRequest, name) == wanted[name]
    if search := (wanted.get("search") or "").strip():
        columns = [getattr(MergeRequest, name) for name in wanted.get("within") or ("title", "description")]
        yield searching.contains(search, *columns)
    for name, column in (("created", MergeRequest.created_at), ("updated", MergeRequest.updated_at)):
        if wanted.get(f"{name}_after"):
            yield column >= wanted[f"{name}_after"]
        if wanted.get(f"{name}_before"):
            yield column <= wanted[f"{name}_before"]
    yield from _by_users(caller, wanted)
    yield from _by_properties(wanted)


def _by_users(caller: Caller, wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if wanted.get("scope") == "created_by_me":
        yield MergeRequest.author_id == caller.user_id
    if wanted.get("scope") == "assigned_to_me":
        yield false()  # merge requests have no assignees
    if wanted.get("author_id") is not None:
        yield MergeRequest.author_id == wanted["author_id"]
    if wanted.get("author_username"):
        yield MergeRequest.author_id.in_(ids_by_username(wanted["author_username"]))


def _by_properties(wanted: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    milestone = wanted.get("milestone")
    if milestone == "None":
        yield MergeRequest.milestone_id.is_(None)
    elif milestone == "Any":
        yield MergeRequest.milestone_id.is_not(None)
    elif milestone:
        called = select(Milestone.id).where(
            Milestone.project_id == MergeRequest.project_id, Milestone.title == milestone
        )
        yield MergeRequest.milestone_id.in_(called)
    if wanted.get("milestone_id") is not None:
        yield MergeRequest.milestone_id == wanted["milestone_id"]
    marked = exists().where(MergeRequestLabel.merge_request_id == MergeRequest.id)
    labels = wanted.get("labels") or []
    if labels in (["None"], ["Any"]):
        yield marked if labels == ["Any"] else ~marked
    else:
        for title in labels:
            yield marked.where(MergeRequestLabel.title == title)
