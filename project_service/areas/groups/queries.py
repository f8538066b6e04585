"""Queries of groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import contains_eager, joinedload

from project_service.access.identity import Caller
from project_service.access.page_parts.open_issue_counts import add_open_issues
from project_service.access.rules import own_groups, visible_groups, visible_projects
from project_service.domain.access_levels import Role
from project_service.domain.memberships import Share, add_shares, authorized_namespaces
from project_service.domain.namespaces import Group, Namespace, NamespaceAncestor, groups
from project_service.domain.projects import Project, projects
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db


def groups_matching(caller: Caller, **filters: Any) -> Select[Group]:
    """The visible groups that match a filter; without ``all_available`` those in which the caller has a role."""
    statement = groups().where(visible_groups(caller), *_conditions(caller, filters))
    return _ordered(statement, filters)


def subgroups_of(caller: Caller, group: Group, **filters: Any) -> Select[Group]:
    """The visible direct children of a group."""
    statement = groups().where(
        Group.parent_id == group.id, visible_groups(caller), *_conditions(caller, filters | EVERY)
    )
    return _ordered(statement, filters)


def descendants_of(caller: Caller, group: Group, **filters: Any) -> Select[Group]:
    """The visible groups below a group, at any depth."""
    below = select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == group.id)
    statement = groups().where(
        Group.id.in_(below), Group.id != group.id, visible_groups(caller), *_conditions(caller, filters | EVERY)
    )
    return _ordered(statement, filters)


def shares_of(group: Group) -> Select[Share]:
    """The groups that a group is shared with."""
    shares = select(Share).where(Share.namespace_id == group.id).order_by(Share.id)
    return shares.options(joinedload(Share.group))


# as the indexes have them
ORDERS: dict[str, Any] = {
    "name": func.lower(Group.name),
    "path": func.lower(Group.path),
    "id": Group.id,
    "similarity": func.lower(Group.name),
}
EVERY = {"all_available": True}


def _conditions(caller: Caller, filters: dict[str, Any]) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    user_id = caller.user_id
    if user_id is not None and not filters.get("all_available", caller.admin):
        conditions.append(Group.id.in_(own_groups(user_id)))
    if user_id is not None and filters.get("owned"):
        conditions.append(Group.id.in_(authorized_namespaces(user_id, Role.OWNER)))
    if user_id is not None and filters.get("min_access_level"):
        conditions.append(Group.id.in_(authorized_namespaces(user_id, Role(filters["min_access_level"]))))
    if filters.get("skip_groups"):
        conditions.append(Group.id.not_in(filters["skip_groups"]))
    if filters.get("top_level_only"):
        conditions.append(Group.parent_id.is_(None))
    if search := (filters.get("search") or "").strip():
        conditions.append(searching.contains(search, Group.full_path, Group.full_name))
    return conditions


def _ordered(statement: Select[Group], filters: dict[str, Any]) -> Select[Group]:
    name = filters.get("order_by") or "name"
    column = ORDERS[name]
    return statement.order_by(column.desc() if filters.get("sort") == "desc" else column.asc(), Group.id.asc())


MAX_PROJECTS_SHOWN = 100


@dataclass(frozen=True)
class Details:
    """Shares and projects of a group."""

    shared_with_groups: list[Share]
    projects: list[Project] | None
    shared_projects: list[Project] | None


def details_of(caller: Caller, group: Group, *, with_projects: bool) -> Details:
    """Shares and the first projects of a group, that the caller may see."""
    shares = list(db.session.scalars(shares_of(group)))
    if not with_projects:
        return Details(shares, None, None)
    visible = projects().where(visible_projects(caller)).order_by(Project.created_at.desc(), Project.id.desc())
    visible = visible.options(contains_eager(Project.namespace).joinedload(Namespace.owner), NO_LAZY_LOADING)
    visible = visible.limit(MAX_PROJECTS_SHOWN)
    own = visible.where(Project.namespace_id == group.id)
    shared = visible.where(Project.id.in_(select(Share.project_id).where(Share.group_id == group.id)))
    details = Details(shares, list(db.session.scalars(own)), list(db.session.scalars(shared)))
    inside = [*(details.projects or ()), *(details.shared_projects or ())]
    add_shares(inside)
    add_open_issues(caller, inside)
    return details
