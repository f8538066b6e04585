"""To-do items of users: why someone should look at an issue, an alert or a project (todos reference, section 2)."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Collection, Iterable
from typing import TypedDict

from sqlalchemy import ColumnElement, ForeignKey, Index, Update, delete, select, text, update
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.base import Model, Timestamps, index_where_present
from project_service.kit.db.session import db, insert, one
from project_service.kit.http.errors import RecordNotFound

PENDING = text("done_at IS NULL")
PROJECT = "Project"  # the target type of failed imports and exports


class TodoAction(enum.StrEnum):
    """Why a to-do item came about."""

    ASSIGNED = "assigned"
    MENTIONED = "mentioned"
    BUILD_FAILED = "build_failed"
    MARKED = "marked"


class Todo(Timestamps, Model):
    """A to-do item of a user. A user has at most one of a target that is to be done; a new reason renews it.

    ``note`` is the comment that mentioned the user, ``page`` the path of a page below that of the project, for what has
    no page of its own. ``author`` is who gave the reason.
    """

    __tablename__ = "todos"
    __table_args__ = (
        Index(
            "uq_todos_pending",
            *("user_id", "target_type", "target_id"),
            unique=True,
            sqlite_where=PENDING,
            postgresql_where=PENDING,
        ),
        Index("ix_todos_user_id_done_at", "user_id", "done_at", "id"),
        Index("ix_todos_user_id", "user_id", "id"),
        Index("ix_todos_target", "target_type", "target_id"),
        Index("ix_todos_project_id", "project_id"),
        index_where_present("ix_todos_author_id", "author_id"),
        index_where_present("ix_todos_note_id", "note_id"),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user: Mapped[User] = relationship(foreign_keys=[user_id])
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project] = relationship()
    author_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    author: Mapped[User | None] = relationship(foreign_keys=[author_id])
    action: Mapped[str]
    target_type: Mapped[str]
    target_id: Mapped[int]
    note_id: Mapped[int | None] = mapped_column(ForeignKey("notes.id", ondelete="SET NULL"))
    note: Mapped[Note | None] = relationship()
    page: Mapped[str | None]
    done_at: Mapped[dt.datetime | None]


class MovedTodos(TypedDict):
    """The ids of to-do items that were moved to another target, and of those among them that thereby became done."""

    moved: list[int]
    finished: list[int]


def add(
    user_ids: Iterable[int],
    action: TodoAction,
    project_id: int,
    target_type: str,
    target_ids: Iterable[int],
    *,
    author: User | None = None,
    note: Note | None = None,
    page: str | None = None,
) -> None:
    """Add to-do items of some users about some targets; what is to be done already gets the new reason."""
    now = clock.now()
    reason = {
        "action": action,
        "author_id": author.id if author is not None else None,
        "note_id": note.id if note is not None else None,
        "page": page,
        "updated_at": now,
    }
    same = {"project_id": project_id, "target_type": target_type, "created_at": now, **reason}
    rows = [{"user_id": user, "target_id": target, **same} for user in sorted(set(user_ids)) for target in target_ids]
    if rows:
        row = insert(Todo).on_conflict_do_update(
            index_elements=["user_id", "target_type", "target_id"], index_where=PENDING, set_=reason
        )
        db.session.execute(row, rows)


def finish(user_id: int, target_type: str, target_ids: Collection[int]) -> None:
    """Mark the to-do items of a user about some targets as done."""
    db.session.execute(_finishing(user_id).where(Todo.target_type == target_type, Todo.target_id.in_(target_ids)))


def finish_these(user_id: int, ids: Collection[int]) -> None:
    """Mark the to-do items of a user with these ids as done."""
    db.session.execute(_finishing(user_id).where(Todo.id.in_(ids)))


def restore(todo: Todo) -> None:
    """Make a to-do item one to be done, unless its target has another one."""
    if pending_of(todo.user_id, todo.target_type, todo.target_id) is None:
        todo.done_at = None
        todo.updated_at = clock.now()
        db.session.flush()


def forget(target_type: str, target_id: int) -> None:
    """Remove the to-do items of all users about a target that is being deleted."""
    db.session.execute(delete(Todo).where(Todo.target_type == target_type, Todo.target_id == target_id))


def move(target_type: str, from_id: int, into_id: int) -> MovedTodos:
    """Put the to-do items about a target under another one; a user's second one that is to be done becomes done."""
    about = Todo.target_type == target_type
    users = select(Todo.user_id).where(about, Todo.target_id == into_id, Todo.done_at.is_(None))
    double = about & (Todo.target_id == from_id) & Todo.done_at.is_(None) & Todo.user_id.in_(users)
    finished = list(db.session.scalars(select(Todo.id).where(double).order_by(Todo.id)))
    _update(Todo.id.in_(finished), done_at=clock.now())
    moved = list(db.session.scalars(select(Todo.id).where(about, Todo.target_id == from_id).order_by(Todo.id)))
    _update(Todo.id.in_(moved), target_id=into_id)
    return {"moved": moved, "finished": finished}


def move_back(target_type: str, todos: MovedTodos, target_id: int) -> None:
    """Put to-do items that were moved under their former target again, and let those be done that had to be then."""
    _update((Todo.target_type == target_type) & Todo.id.in_(todos["moved"]), target_id=target_id)
    _update((Todo.target_id == target_id) & Todo.id.in_(todos["finished"]), done_at=None)


def pending_of(user_id: int, target_type: str, target_id: int) -> Todo | None:
    """The to-do item of a user about a target, unless it is done."""
    own = select(Todo).where(Todo.user_id == user_id, Todo.done_at.is_(None))
    return db.session.scalar(own.where(Todo.target_type == target_type, Todo.target_id == target_id))


def find_todo(user_id: int, todo_id: int) -> Todo:
    """One to-do item of a user by its id."""
    return one(select(Todo).where(Todo.id == todo_id, Todo.user_id == user_id), RecordNotFound())


def _update(condition: ColumnElement[bool], **values: object) -> None:
    statement = update(Todo).where(condition).values(**values, updated_at=Todo.updated_at)
    db.session.execute(statement.execution_options(synchronize_session=False))


def _finishing(user_id: int) -> Update:
    return update(Todo).where(Todo.user_id == user_id, Todo.done_at.is_(None)).values(done_at=clock.now())
