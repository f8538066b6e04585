"""Lists of to-do items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, or_, select
from sqlalchemy.orm import contains_eager, joinedload

from project_service.access.identity import Caller
from project_service.access.references.todo_targets import TARGETS, ShownTarget, TodoTarget
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import Project, projects_below
from project_service.domain.todos import Todo
from project_service.kit.db.session import NO_LAZY_LOADING, db

PENDING, DONE = "pending", "done"


def todos_of(caller: Caller, *, state: str = PENDING, **filters: Any) -> Select[Todo]:
    """The to-do items of the caller whose targets they may see, the newest first."""
    statement = select(Todo).join(Todo.project).where(*_conditions(caller, state, filters))
    loaded = (
        contains_eager(Todo.project).joinedload(Project.namespace).joinedload(Namespace.owner),
        joinedload(Todo.author),
        joinedload(Todo.note),
    )
    return statement.order_by(Todo.id.desc()).options(*loaded, NO_LAZY_LOADING)


def ids_of(caller: Caller, **filters: Any) -> Sequence[int]:
    """The ids of the items to be done that filters select."""
    statement = select(Todo.id).join(Todo.project).where(*_conditions(caller, PENDING, filters))
    return db.session.scalars(statement).all()


def _conditions(caller: Caller, state: str, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    yield Todo.user_id == caller.user_id
    yield Todo.done_at.is_(None) if state == PENDING else Todo.done_at.is_not(None)
    yield Project.deleting_since.is_(None)
    visible = [and_(Todo.target_type == target.name, target.visible(caller)) for target in TARGETS.values()]
    yield or_(false(), *visible)
    if filters.get("action"):
        yield Todo.action == filters["action"]
    if filters.get("author_id") is not None:
        yield Todo.author_id == filters["author_id"]
    if filters.get("project_id") is not None:
        yield Todo.project_id == filters["project_id"]
    if filters.get("group_id") is not None:
        group = db.session.get(Namespace, filters["group_id"])
        yield Todo.project_id.in_(projects_below(group)) if group is not None else false()
    if filters.get("type"):
        yield Todo.target_type == filters["type"]


@dataclass(frozen=True, slots=True)
class TodoRow:
    """A to-do item with its target, as schemas and templates read it."""

    todo: Todo
    kind: TodoTarget
    target: Any

    @property
    def shown(self) -> ShownTarget:
        """The target for pages."""
        return self.kind.show(self.target)

    @property
    def path(self) -> str:
        """The path of the page that the item leads to: a comment, or the page of the target."""
        address = f"/{self.todo.project.full_path}{self.todo.page or self.shown.page}"
        return f"{address}?note={self.todo.note_id}#note_{self.todo.note_id}" if self.todo.note_id else address

    @property
    def body(self) -> str:
        """The comment that mentions the user, or the title of the target."""
        return self.shown.title if self.todo.note is None else self.todo.note.body


def with_targets(todos: Sequence[Todo]) -> list[TodoRow]:
    """Load the targets of the items of a page, with one statement for each kind."""
    by_type: dict[str, dict[int, Any]] = {}
    for name in {todo.target_type for todo in todos}:
        by_type[name] = TARGETS[name].load({todo.target_id for todo in todos if todo.target_type == name})
    rows = ((todo, by_type[todo.target_type].get(todo.target_id)) for todo in todos)
    return [TodoRow(todo, TARGETS[todo.target_type], target) for todo, target in rows if target is not None]
