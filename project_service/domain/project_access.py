"""A project as permission checks need it: a few columns and the role of a user, read with one statement.

Views that show the content of a project, and nothing of the project itself, get this in place of the ``Project``.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, and_, bindparam, func, select

from project_service.domain.access_levels import Role
from project_service.domain.memberships import highest_levels
from project_service.domain.namespaces import Namespace
from project_service.domain.projects import NO_PROJECT, Project
from project_service.kit import clock
from project_service.kit.db.base import Key, table_of
from project_service.kit.db.session import db
from project_service.kit.http.fields import whole_number

IDENTITY = ("id", "namespace_id", "full_path", "owner_id")


@dataclasses.dataclass(frozen=True, slots=True)
class ProjectAccess:
    """The columns of a project that decide who may do what in it, its path, and the role of a user in it."""

    id: int
    namespace_id: int
    full_path: str
    visibility: int
    archived: bool
    loading: bool
    issues_access_level: str
    repository_access_level: str
    merge_requests_access_level: str
    wiki_access_level: str
    builds_access_level: str
    snippets_access_level: str
    security_and_compliance_access_level: str
    releases_access_level: str
    monitor_access_level: str
    environments_access_level: str
    owner_id: int | None  # of its namespace
    role: Role

    @classmethod
    def of(cls, row: Sequence[Any]) -> ProjectAccess:
        """Return what a row of ``select_accesses`` says."""
        values = (*row[:-1], Role(row[-1]))
        return cls(*values)

    @property
    def settings(self) -> tuple[Any, ...]:
        """What decides who may do what, without what identifies the project: equal for most projects."""
        values: tuple[Any, ...] = _settings_of(self)
        return values

    @property
    def content_id(self) -> int:
        """The id for lists of the content of the project, as ``Project.content_id``."""
        return NO_PROJECT if self.loading else self.id


_projects, _namespaces = table_of(Project), table_of(Namespace)
_names = [field.name for field in dataclasses.fields(ProjectAccess)][:-2]
_settings_of = operator.attrgetter(
    *(field.name for field in dataclasses.fields(ProjectAccess) if field.name not in IDENTITY)
)


def columns(user_id: Any) -> tuple[ColumnElement[Any], ...]:
    """Return the columns of a statement that joins a project: those of ``ProjectAccess``, then a user's levels."""
    own = (_projects.c[name].label(f"project_{name}") for name in _names)
    return (*own, _namespaces.c.owner_id.label("project_owner_id"), *highest_levels(user_id))


def select_accesses(role: ColumnElement[Any]) -> Select[Any]:
    """Select projects, with a role in each, for ``ProjectAccess.of``."""
    here = _projects.join(_namespaces, _namespaces.c.id == _projects.c.namespace_id)
    return select(*(_projects.c[name] for name in _names), _namespaces.c.owner_id, role).select_from(here)


def joined_to(others: FromClause, *, by_id: bool) -> FromClause:
    """Join the project whose id, or whose full path in lower case, is ``wanted``; its columns are NULL without it."""
    project = others.outerjoin(_projects, and_(_is_wanted(by_id=by_id), _projects.c.deleting_since.is_(None)))
    return project.outerjoin(_namespaces, _namespaces.c.id == _projects.c.namespace_id)


def parameters(id_or_path: str) -> tuple[bool, dict[str, Any]]:
    """Return whether a text is an id, and the bind parameters of a statement with ``columns``."""
    number = whole_number(id_or_path)
    wanted = id_or_path.lower() if number is None else number
    return number is not None, {"wanted": wanted, "today": clock.today()}


def access_of(values: Sequence[Any], user_id: int | None) -> ProjectAccess | None:
    """Return what the values of ``columns`` say; ``None`` without a project."""
    own, owner_id, levels = values[: len(_names)], values[len(_names)], values[len(_names) + 1 :]
    if own[0] is None:
        return None
    is_owner = user_id is not None and owner_id == user_id
    role = Role.OWNER if is_owner else Role(max(level or 0 for level in levels))
    columns_and_role = (*own, owner_id, role)
    return ProjectAccess(*columns_and_role)


def find_access(user_id: int | None, id_or_path: str) -> ProjectAccess | None:
    """Return a project with the highest role of a user in it, not considering administrators."""
    by_id, wanted = parameters(id_or_path)
    row = db.session.execute(_select_project(by_id=by_id), wanted | {"user": user_id or 0}).first()
    return None if row is None else access_of(row, user_id)


@functools.cache
def _select_project(*, by_id: bool) -> Select[Any]:
    here = _projects.join(_namespaces, _namespaces.c.id == _projects.c.namespace_id)
    return (
        select(*columns(bindparam("user", type_=Key)))
        .select_from(here)
        .where(_is_wanted(by_id=by_id), _projects.c.deleting_since.is_(None))
    )


def _is_wanted(*, by_id: bool) -> ColumnElement[bool]:
    if by_id:
        return _projects.c.id == bindparam("wanted", type_=Key)
    return func.lower(_projects.c.full_path) == bindparam("wanted")
