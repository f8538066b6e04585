"""Queries of projects."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import contains_eager

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import Caller
from project_service.access.page_parts.open_issue_counts import add_open_issues
from project_service.access.roles import load_roles
from project_service.access.rules import visible_projects
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.accounts.users import User
from project_service.domain.memberships import (
    Membership,
    Share,
    add_shares,
    alive,
    authorized_namespaces,
    authorized_projects,
    group_grants,
    levels_by_place,
    project_grants,
)
from project_service.domain.namespaces import (
    Group,
    Namespace,
    UserNamespace,
    descendants_of,
    groups,
    namespace_of,
)
from project_service.domain.projects import DISABLED, Project, projects
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db


def projects_matching(caller: Caller, **filters: Any) -> Select[Project]:
    """The projects that the caller may see, filtered and ordered."""
    statement = projects().where(visible_projects(caller), *_conditions(caller, filters))
    loaded = contains_eager(Project.namespace).joinedload(Namespace.owner)
    return _ordered(statement, filters).options(loaded, NO_LAZY_LOADING)


def projects_of_user(caller: Caller, user: User, **filters: Any) -> Select[Project]:
    """The personal projects of a user that the caller may see."""
    return projects_matching(caller, **filters).where(Project.namespace_id == user.namespace_id)


def projects_of_group(caller: Caller, group: Namespace, **filters: Any) -> Select[Project]:
    """The projects of a group, with those shared with it, that the caller may see."""
    inside: ColumnElement[bool] = Project.namespace_id == group.id
    if filters.get("include_subgroups"):
        inside = Project.namespace_id.in_(descendants_of(group))
    if filters.get("with_shared"):
        # PostgreSQL has no index for an OR of two columns and would scan all projects
        shared = select(Share.project_id).where(Share.group_id == group.id, Share.project_id.is_not(None))
        inside = Project.id.in_(select(Project.id).where(inside).union_all(shared))
    return projects_matching(caller, **filters).where(inside)


def projects_shared_with(caller: Caller, group: Namespace, **filters: Any) -> Select[Project]:
    """The projects that are shared with a group and that the caller may see."""
    shared = select(Share.project_id).where(Share.group_id == group.id, Share.project_id.is_not(None), alive(Share))
    return projects_matching(caller, **filters).where(Project.id.in_(shared))


@dataclass(frozen=True, slots=True)
class Access:
    """A role in the form the API shows."""

    access_level: int


@dataclass(frozen=True, slots=True)
class Permissions:
    """The roles of the caller in a project."""

    project_access: Access | None
    group_access: Access | None


def add_permissions(caller: Caller, projects_of_page: Sequence[Project]) -> None:
    """Set ``permissions`` on each project of a page, with three statements for all of them."""
    ids = [project.id for project in projects_of_page]
    (memberships, _), (inherited, _) = project_grants(), group_grants()
    namespace_ids = {project.namespace_id for project in projects_of_page}
    direct = _levels(levels_by_place([memberships], caller.user_id, ids))
    above = _levels(levels_by_place([inherited], caller.user_id, namespace_ids))
    shared = _shared_levels(caller.user_id or 0, projects_of_page)
    for project in projects_of_page:
        project.permissions = permissions(
            direct.get(project.id), above.get(project.namespace_id), shared.get(project.id)
        )


def permissions(direct: Access | None, above: Access | None, shared: Access | None) -> Permissions:
    """The roles of the caller; a share that gives a higher one than the memberships counts as access by a group."""
    highest = max((access.access_level for access in (direct, above) if access is not None), default=0)
    return Permissions(direct, shared if shared is not None and shared.access_level > highest else above)


def _shared_levels(user_id: int, projects_of_page: Sequence[Project]) -> dict[int, Access]:
    """The highest levels that shares of projects, or of the groups above them, give a user."""
    (_, in_projects), (_, in_groups) = project_grants(), group_grants()
    columns = in_groups.selected_columns
    by_project = in_groups.join(Project, Project.namespace_id == columns.place_id).with_only_columns(
        Project.id.label("place_id"), columns.membership_id, columns.user_id, columns.access_level
    )
    return _levels(levels_by_place([in_projects, by_project], user_id, [project.id for project in projects_of_page]))


def add_details(caller: Caller, projects_of_page: Sequence[Project]) -> None:
    """Set shares and open issues on each project of a page."""
    add_shares(projects_of_page)
    add_open_issues(caller, projects_of_page)


def share_of(project: Project, group_id: int) -> Share | None:
    """The share of a project with a group."""
    return db.session.scalar(select(Share).where(Share.project_id == project.id, Share.group_id == group_id))


def name_taken(project: Project) -> bool:
    """Whether another project of the namespace has the name."""
    same = projects().where(Project.namespace_id == project.namespace_id, Project.name == project.name)
    return db.session.scalar(same.where(Project.id != (project.id or 0)).limit(1)) is not None


def is_direct_member(project: Project, user: User) -> bool:
    """Whether a user is a member of the project itself."""
    membership = select(Membership.id).where(Membership.project_id == project.id, Membership.user_id == user.id)
    return db.session.scalar(membership.limit(1)) is not None


def count_personal(user: User) -> int:
    """The number of projects in the personal namespace of a user."""
    personal = select(UserNamespace.id).where(UserNamespace.owner_id == user.id)
    counted = select(func.count()).where(Project.namespace_id.in_(personal), Project.deleting_since.is_(None))
    return db.session.scalar(counted) or 0


def _levels(statement: Select[Any, int]) -> dict[int, Access]:
    return {key: Access(level) for key, level in db.session.execute(statement)}


def _conditions(caller: Caller, filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    user_id = caller.user_id
    if filters.get("archived") is not None:
        yield Project.archived.is_(filters["archived"])
    if filters.get("visibility"):
        yield Project.visibility == Visibility.of(filters["visibility"])
    if user_id is not None and filters.get("owned"):
        yield Project.id.in_(authorized_projects(user_id, Role.OWNER))
    if user_id is not None and filters.get("membership"):
        yield Project.id.in_(authorized_projects(user_id))
    if user_id is not None and filters.get("min_access_level"):
        yield Project.id.in_(authorized_projects(user_id, Role(filters["min_access_level"])))
    if filters.get("starred"):
        yield Project.id.is_(None)
    if filters.get("with_issues_enabled"):
        yield Project.issues_access_level != DISABLED
    if filters.get("with_merge_requests_enabled"):
        yield Project.merge_requests_access_level != DISABLED
    if search := (filters.get("search") or "").strip():
        columns = [Project.path, Project.name, Project.description]
        if filters.get("search_namespaces"):
            columns += [Project.full_path, Namespace.full_name]
        yield searching.contains(search, *columns)
    yield from _bounds(filters)


def _bounds(filters: dict[str, Any]) -> Iterable[ColumnElement[bool]]:
    if filters.get("id_after") is not None:
        yield Project.id > filters["id_after"]
    if filters.get("id_before") is not None:
        yield Project.id < filters["id_before"]
    if filters.get("last_activity_after"):
        yield Project.last_activity_at > filters["last_activity_after"]
    if filters.get("last_activity_before"):
        yield Project.last_activity_at < filters["last_activity_before"]


def _ordered(statement: Select[Project], filters: dict[str, Any]) -> Select[Project]:
    name = filters.get("order_by") or "created_at"
    column = Project.name if name == "similarity" else getattr(Project, name)
    if filters.get("sort") == "asc":
        return statement.order_by(column.asc(), Project.id.asc())
    return statement.order_by(column.desc(), Project.id.desc())


def namespaces_for_projects(caller: Caller, user: User) -> list[Namespace]:
    """The namespaces in which a user may create a project, the personal one first."""
    groups = db.session.scalars(_groups_for_projects(caller)).all()
    load_roles(caller, groups)
    return [namespace_of(user), *(group for group in groups if allowed(caller, Ability.CREATE_PROJECT, group))]


def _groups_for_projects(caller: Caller) -> Select[Group]:
    """The groups in which the caller may be able to create a project; the rule of each is checked later."""
    statement = groups().order_by(func.lower(Group.full_path))
    if caller.admin or caller.user_id is None:
        return statement.limit(1000)
    return statement.where(Group.id.in_(authorized_namespaces(caller.user_id, Role.DEVELOPER)))


def has_projects() -> bool:
    """Whether the instance has any project."""
    return db.session.scalar(select(Project.id).limit(1)) is not None
