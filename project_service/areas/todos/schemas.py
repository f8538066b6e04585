"""Schemas of to-do items (todos reference, section 1)."""

from __future__ import annotations

from typing import Any

from project_service.areas.todos.queries import DONE, PENDING, TodoRow
from project_service.domain.schemas import ProjectIdentitySchema, UserBasicSchema
from project_service.kit.http import fields, urls
from project_service.kit.http.schemas import Embedded, Schema

# what GitLab knows; most of it never occurs here
ACTIONS = (
    *("assigned", "mentioned", "build_failed", "marked", "approval_required", "unmergeable", "directly_addressed"),
    *("merge_train_removed", "review_requested", "member_access_requested", "review_submitted"),
)
TYPES = (
    *("Issue", "MergeRequest", "Commit", "Epic", "DesignManagement::Design", "AlertManagement::Alert", "Project"),
    "ErrorTracking::Error",
    *("Namespace", "Vulnerability", "WikiPage::Meta"),
)


def _target(row: TodoRow) -> dict[str, Any]:
    target: dict[str, Any] = row.kind.schema.dump_value(row.target)
    return target


class TodoSchema(Schema):
    """A to-do item."""

    id = fields.Integer(attribute="todo.id")
    project = Embedded(ProjectIdentitySchema, attribute="todo.project")
    author = Embedded(UserBasicSchema, attribute="todo.author", keep_none=True)
    action_name = fields.String(attribute="todo.action")
    target_type = fields.String(attribute="todo.target_type")
    target = fields.Computed(_target, type="object")
    target_url = fields.Computed(lambda row: urls.absolute(row.path))
    body = fields.String()
    state = fields.Computed(lambda row: PENDING if row.todo.done_at is None else DONE)
    created_at = fields.Moment(attribute="todo.created_at")
    updated_at = fields.Moment(attribute="todo.updated_at")


class TodoSelectionSchema(Schema):
    """Which to-do items are meant."""

    action = fields.String(choices=ACTIONS)
    author_id = fields.Integer()
    project_id = fields.Integer()
    group_id = fields.Integer()
    state = fields.String(choices=(PENDING, DONE))
    type = fields.String(choices=TYPES)


class TodoFilterSchema(TodoSelectionSchema):
    """Which to-do items to list."""

    state = fields.String(default=PENDING, choices=(PENDING, DONE))
