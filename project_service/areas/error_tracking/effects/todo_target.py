"""Errors as targets of to-do items."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, select

from project_service.access.across_projects import projects_with_errors
from project_service.access.identity import Caller
from project_service.access.references import todo_targets
from project_service.access.references.todo_targets import ShownTarget, TodoTarget
from project_service.areas.error_tracking.errors.models import TARGET, ErrorStatus, TrackedError
from project_service.domain import page_paths
from project_service.kit.db.session import NO_LAZY_LOADING, db
from project_service.kit.http import fields
from project_service.kit.http.schemas import Schema


class TodoErrorSchema(Schema):
    """An error inside a to-do item."""

    id = fields.Computed(lambda error: str(error.id))
    title = fields.String()


def visible(caller: Caller) -> ColumnElement[bool]:
    """The condition that the caller may see the errors of a project."""
    return projects_with_errors(caller)


def load(ids: Collection[int]) -> dict[int, TrackedError]:
    """Load errors."""
    statement = select(TrackedError).where(TrackedError.id.in_(ids)).options(NO_LAZY_LOADING)
    return {error.id: error for error in db.session.scalars(statement)}


def show(error: Any) -> ShownTarget:
    """An error on the page."""
    about = f"{error.level.title()}, {ErrorStatus(error.status).text}"
    return ShownTarget(error.title, page_paths.error(error.id), about)


todo_targets.add(TodoTarget(TARGET, visible, load, show, TodoErrorSchema))
