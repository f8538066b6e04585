"""Removal of projects, groups and users in the background. They are hidden from the request on.

Children are deleted first, in batches, each in a short transaction of its own because of SQLite's write lock. The
tables are found by their foreign keys: an area that adds a table has nothing to register. A column
``storage_name`` names an object in the storage that is deleted with its row. Columns that end in ``author_id`` name the
author of a row; rows of a table whose ``info`` has ``DECISIONS`` are never removed with their author.
"""

from __future__ import annotations

from sqlalchemy import Column, ColumnElement, Table, delete, select, update

from project_service.domain.accounts.avatars import remove_avatars
from project_service.domain.accounts.bots import GHOST, bot
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace, UserNamespace, descendants_of
from project_service.domain.projects import Project, folder_of, projects_below
from project_service.domain.repositories import eviction, models, packs
from project_service.kit import jobs
from project_service.kit.db.base import Base, table_of
from project_service.kit.db.session import db
from project_service.kit.storage import storage

BATCH = 500
AUTHOR = "author_id"
DECISIONS = "decisions"  # rows that belong to the project, not to their author


@jobs.job("core.removal.remove_project")
def remove_project(project_id: int) -> None:
    """Remove a project with its rows, files and repositories."""
    with jobs.step():
        project = db.session.get(Project, project_id)
        if project is None or project.deleting_since is None:
            return
        repository_ids = models.ids_of(project_id)
    empty_project(project_id)
    for name in storage().names(folder_of(project_id)):  # what was being written when the project was deleted
        storage().delete(name)
    packs.remove_all(project_id)
    eviction.remove_caches(repository_ids)
    with jobs.step():
        db.session.execute(delete(Project).where(Project.id == project_id, Project.deleting_since.is_not(None)))


@jobs.job("core.removal.remove_namespace")
def remove_namespace(namespace_id: int) -> None:
    """Remove a group with its subgroups and their projects."""
    with jobs.step():
        namespace = db.session.get(Namespace, namespace_id)
        if namespace is None or namespace.deleting_since is None:
            return
        project_ids = list(db.session.scalars(projects_below(namespace)))
    jobs.for_each(project_ids, remove_project)
    with jobs.step():
        group_ids = list(db.session.scalars(descendants_of(namespace)))
    for group_id in group_ids:
        remove_avatars("group", group_id)
    with jobs.step():
        db.session.execute(delete(Namespace).where(Namespace.id == namespace_id))


@jobs.job("core.removal.remove_user")
def remove_user(user_id: int, hard_delete: bool = False) -> None:
    """Remove a user and the personal projects; contributions elsewhere get the ghost user as author, or are deleted."""
    with jobs.step():
        user = db.session.get(User, user_id)
        if user is None or user.deleting_since is None:
            return
        personal = db.session.scalar(select(UserNamespace.id).where(UserNamespace.owner_id == user_id))
    if personal is not None:
        remove_namespace(personal)
    remove_avatars("user", user_id)
    for table in _children_of("users"):
        _empty(table, table.c[_column(table, "users")], user_id)
    for column in _authors():
        if not hard_delete or column.table.info.get(DECISIONS):
            _hand_over(column, user_id)
        elif column.name == AUTHOR:
            _empty(column.table, column, user_id)
    with jobs.step():
        db.session.execute(delete(User).where(User.id == user_id))


def empty_project(project_id: int) -> None:
    """Remove the rows that refer to a project, in batches; the project itself stays."""
    for table in _children_of("projects"):
        _empty(table, table.c[_column(table, "projects")], project_id)


def empty_table(model: type[Base], project_id: int, *conditions: ColumnElement[bool]) -> None:
    """Remove the rows of one table that belong to a project, batch by batch."""
    table = table_of(model)
    _empty(table, table.c.project_id, project_id, *conditions)


def _authors() -> list[Column[int]]:
    # rows that stay when their author is deleted (SET NULL) are contributions
    return [
        column
        for table in reversed(Base.metadata.sorted_tables)
        for column in table.c
        if column.name.endswith(AUTHOR) and any(key.ondelete == "SET NULL" for key in column.foreign_keys)
    ]


def _hand_over(column: Column[int], user_id: int) -> None:
    table = column.table
    while True:
        with jobs.step():
            ids = list(db.session.scalars(select(table.c.id).where(column == user_id).limit(BATCH)))
            if not ids:
                return
            ghost = bot(GHOST)
            db.session.execute(update(table).where(table.c.id.in_(ids)).values({column: ghost.id}))


def _children_of(parent: str) -> list[Table]:
    return [
        table
        for table in reversed(Base.metadata.sorted_tables)
        if "id" in table.c
        and any(key.column.table.name == parent and key.ondelete == "CASCADE" for key in table.foreign_keys)
    ]


def _column(table: Table, parent: str) -> str:
    return next(
        key.parent.name for key in table.foreign_keys if key.column.table.name == parent and key.ondelete == "CASCADE"
    )


def _empty(table: Table, column: Column[int], owner_id: int, *conditions: ColumnElement[bool]) -> None:
    stored = "storage_name" in table.c
    while True:
        with jobs.step():
            columns = (table.c.id, table.c.storage_name) if stored else (table.c.id,)
            batch = db.session.execute(select(*columns).where(column == owner_id, *conditions).limit(BATCH)).all()
        # the object is deleted first: a remaining row still names its object, a remaining object would never be found
        for row in batch if stored else ():
            if row.storage_name:
                storage().delete(row.storage_name)
        if not batch:
            return
        with jobs.step():
            db.session.execute(delete(table).where(table.c.id.in_([row.id for row in batch])))
