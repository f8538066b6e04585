"""One project as the API shows it, read as columns: with its namespace, the caller's roles, open issues and shares.

``ProjectSchema`` shows nearly all columns of a project and nothing else of the mapped object, which takes longer to
create than everything else in the request.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from sqlalchemy import bindparam, func, select

from project_service.access.identity import Caller
from project_service.access.rules import has
from project_service.areas.projects.queries import Access, permissions
from project_service.domain.accounts.users import User
from project_service.domain.memberships import Membership, Share, alive
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.project_access import ProjectAccess
from project_service.domain.projects import Project, full_name
from project_service.domain.tracker.issues import OPENED, Issue
from project_service.kit import clock
from project_service.kit.db.base import Key, table_of
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound

PROJECT_COLUMNS = tuple(column.name for column in table_of(Project).columns)
NAMESPACE_COLUMNS = ("id", "name", "path", "kind", "full_path", "full_name", "parent_id", "avatar_url")
OWNER_COLUMNS = ("id", "name", "username", "state", "avatar_url", "email")

_projects, _namespaces, _users = table_of(Project), table_of(Namespace), table_of(User)
_memberships, _ancestors = table_of(Membership).c, table_of(NamespaceAncestor).c
_issues, _shares, _groups = table_of(Issue).c, table_of(Share), table_of(Namespace).alias("groups")
_highest = (
    select(func.max(_memberships.access_level))
    .where(_memberships.user_id == bindparam("user", type_=Key), alive(_memberships, bindparam("today")))
    .correlate(_projects)
)
_direct_level = _highest.where(_memberships.project_id == _projects.c.id)
_inherited_level = _highest.join(
    _ancestors.ancestor_id.table, _ancestors.ancestor_id == _memberships.namespace_id
).where(_ancestors.namespace_id == _projects.c.namespace_id)
_open_issues = (
    select(func.count())
    .where(_issues.project_id == _projects.c.id, _issues.state == OPENED, _issues.confidential.is_(False))
    .correlate(_projects)
)
_select_project = (
    select(
        *(_projects.c[name].label(f"project_{name}") for name in PROJECT_COLUMNS),
        *(_namespaces.c[name].label(f"namespace_{name}") for name in NAMESPACE_COLUMNS),
        *(_users.c[name].label(f"owner_{name}") for name in OWNER_COLUMNS),
        _direct_level.scalar_subquery(),
        _inherited_level.scalar_subquery(),
        _open_issues.scalar_subquery(),
    )
    .select_from(
        _projects.join(_namespaces, _namespaces.c.id == _projects.c.namespace_id).outerjoin(
            _users, _users.c.id == _namespaces.c.owner_id
        )
    )
    .where(_projects.c.id == bindparam("project"))
)
_select_shares = (
    select(_shares.c.group_id, _shares.c.access_level, _shares.c.expires_at, _groups.c.name, _groups.c.full_path)
    .join(_groups, _groups.c.id == _shares.c.group_id)
    .where(_shares.c.project_id == bindparam("project"))
    .order_by(_shares.c.id)
)


def shown_project(caller: Caller, access: ProjectAccess) -> SimpleNamespace:
    """Return the attributes that the schemas of a project show."""
    of_caller = {"project": access.id, "user": caller.user_id or 0, "today": clock.today()}
    row = db.session.execute(_select_project, of_caller).first()
    if row is None:
        raise NotFound("Project")
    *columns, direct, inherited, open_issues = row
    in_namespace, in_owner = len(PROJECT_COLUMNS), len(PROJECT_COLUMNS) + len(NAMESPACE_COLUMNS)
    project = _named(PROJECT_COLUMNS, columns[:in_namespace])
    project.namespace = _named(NAMESPACE_COLUMNS, columns[in_namespace:in_owner])
    owner = _named(OWNER_COLUMNS, columns[in_owner:])
    project.namespace.owner = None if owner.id is None else owner
    project.name_with_namespace = full_name(project)
    owns_namespace = access.owner_id is not None and access.owner_id == caller.user_id
    shared = Access(access.role) if access.role and not owns_namespace else None
    project.permissions = permissions(_access(direct), _access(inherited), shared)
    shows_issues = has("issues")(caller, access)
    project.open_issues_count = (0 if access.loading else open_issues) if shows_issues else None
    project.shares = [_share(*share) for share in db.session.execute(_select_shares, {"project": access.id})]
    return project


def _named(names: Sequence[str], values: Sequence[Any]) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names, values, strict=True)))


def _access(level: int | None) -> Access | None:
    return None if level is None else Access(level)


def _share(group_id: int, access_level: int, expires_at: Any, name: str, full_path: str) -> SimpleNamespace:
    group = SimpleNamespace(name=name, full_path=full_path)
    return SimpleNamespace(group_id=group_id, access_level=access_level, expires_at=expires_at, group=group)
