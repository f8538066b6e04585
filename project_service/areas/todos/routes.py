"""The API of to-do items (todos reference, section 1)."""

from __future__ import annotations

from typing import Any

from flask import Response

from project_service.access.abilities import Ability
from project_service.access.api import ApiBlueprint, WithSchema
from project_service.access.guards import numeric
from project_service.access.identity import caller, current_user
from project_service.areas.todos import queries
from project_service.areas.todos.schemas import TodoFilterSchema, TodoSchema, TodoSelectionSchema
from project_service.domain import todos
from project_service.domain.todos import TodoAction
from project_service.domain.tracker import issues
from project_service.domain.tracker.issues import Issue
from project_service.kit.db.session import db
from project_service.kit.http.errors import RecordNotFound

api = ApiBlueprint("todos", __name__, description="To-do items of the current user.")


@api.get("/todos")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(TodoFilterSchema)
@api.response(200, TodoSchema(many=True))
@api.paged
def list_todos(fields: dict[str, Any]) -> WithSchema:
    """List your to-do items."""
    return WithSchema(TodoSchema, queries.todos_of(caller(), **fields), queries.with_targets)


@api.post("/todos/<todo>/mark_as_done")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.response(201, TodoSchema)
def finish_todo(todo: str) -> queries.TodoRow:
    """Mark a to-do item as done."""
    user_id = caller().user_id or 0
    row = todos.find_todo(user_id, numeric(todo))
    todos.finish_these(user_id, [row.id])
    db.session.refresh(row)
    rows = queries.with_targets([row])
    if not rows:
        raise RecordNotFound
    return rows[0]


@api.post("/projects/<project>/issues/<iid>/todo")
@api.signed_in
@api.allow(Ability.READ_ISSUE)
@api.response(201, TodoSchema)
@api.other_response(304, "Nothing to change")
def create_issue_todo(issue: Issue) -> queries.TodoRow | Response:
    """Add an issue to your to-do items; 304 if it is there."""
    user_id = caller().user_id or 0
    if todos.pending_of(user_id, issues.TARGET, issue.id) is not None:
        return Response(status=304)
    todos.add([user_id], TodoAction.MARKED, issue.project_id, issues.TARGET, [issue.id], author=current_user())
    return queries.with_targets(list(db.session.scalars(queries.todos_of(caller()).limit(1))))[0]


@api.post("/todos/mark_as_done")
@api.signed_in
@api.allow(Ability.SIGNED_IN)
@api.arguments(TodoSelectionSchema)
@api.response(204)
def finish_todos(fields: dict[str, Any]) -> None:
    """Mark all to-do items, or those of a filter, as done."""
    fields.pop("state", None)
    todos.finish_these(caller().user_id or 0, queries.ids_of(caller(), **fields))
