"""Projects as targets of to-do items: their imports and exports that failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement

from project_service.access.identity import Caller
from project_service.access.references import todo_targets
from project_service.access.references.todo_targets import ShownTarget, TodoTarget
from project_service.access.rules import visible_projects
from project_service.domain import todos
from project_service.domain.projects import Project, projects
from project_service.domain.schemas import ProjectIdentitySchema
from project_service.kit.db.session import db


def visible(caller: Caller) -> ColumnElement[bool]:
    """The condition that the caller may see a project."""
    return visible_projects(caller)


def load(ids: Collection[int]) -> dict[int, Project]:
    """Load projects."""
    return {project.id: project for project in db.session.scalars(projects().where(Project.id.in_(ids)))}


def show(project: Any) -> ShownTarget:
    """A project on the page."""
    return ShownTarget(project.name_with_namespace, "")


todo_targets.add(TodoTarget(todos.PROJECT, visible, load, show, ProjectIdentitySchema))
