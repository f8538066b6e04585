"""Queries of the groups around a project or group: above it, shared with it, inviting it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, func, select, union_all

from project_service.access.identity import Caller
from project_service.access.rules import visible_groups
from project_service.domain.access_levels import Role, Visibility
from project_service.domain.memberships import Share, alive, authorized_namespaces
from project_service.domain.namespaces import Group, NamespaceAncestor, groups
from project_service.domain.projects import Project
from project_service.kit.db import searching

DIRECT, INHERITED = "direct", "inherited"


def groups_of_project(caller: Caller, project: Project, **filters: Any) -> Select[Group]:
    """The groups above a project and, with ``with_shared``, those that it is shared with; newest first."""
    wanted = [_above(project.namespace_id)]
    if filters["with_shared"]:
        shares = select(Share.group_id).where(Share.project_id == project.id, alive(Share))
        if filters.get("shared_min_access_level") is not None:
            shares = shares.where(Share.access_level >= filters["shared_min_access_level"])
        invited = select(Group.id).where(Group.id.in_(shares))
        if filters["shared_visible_only"]:
            invited = invited.where(visible_groups(caller))
        wanted.append(invited)
    return _filtered(groups().where(Group.id.in_(union_all(*wanted))), filters).order_by(Group.id.desc())


def invited_to_project(caller: Caller, project: Project, **filters: Any) -> Select[Group]:
    """The visible groups that a project, or a group above it, is shared with; newest first."""
    inherited = Share.namespace_id.in_(_above(project.namespace_id))
    return _invited(caller, Share.project_id == project.id, inherited, filters)


def invited_to_group(caller: Caller, group: Group, **filters: Any) -> Select[Group]:
    """The visible groups that a group, or one above it, is shared with; newest first."""
    inherited = Share.namespace_id.in_(_above(group.id).where(NamespaceAncestor.ancestor_id != group.id))
    return _invited(caller, Share.namespace_id == group.id, inherited, filters)


def shared_with(caller: Caller, group: Group, **filters: Any) -> Select[Group]:
    """The visible groups that are shared with a group, by name."""
    inviting = select(Share.namespace_id).where(
        Share.group_id == group.id, Share.namespace_id.is_not(None), alive(Share)
    )
    statement = _filtered(groups().where(Group.id.in_(inviting), visible_groups(caller)), filters)
    if filters.get("visibility"):
        statement = statement.where(Group.visibility == Visibility.of(filters["visibility"]))
    return _at_least(caller, statement, filters).order_by(func.lower(Group.name), Group.id)


def _invited(caller: Caller, direct: Any, inherited: Any, filters: dict[str, Any]) -> Select[Group]:
    relations = filters.get("relation") or [DIRECT, INHERITED]
    # each way by itself: alternatives of two columns have no index on PostgreSQL
    ways = [way for name, way in ((DIRECT, direct), (INHERITED, inherited)) if name in relations]
    wanted = union_all(*(select(Share.group_id).where(way, alive(Share)) for way in ways))
    statement = _filtered(groups().where(Group.id.in_(wanted), visible_groups(caller)), filters)
    return _at_least(caller, statement, filters).order_by(Group.id.desc())


def _at_least(caller: Caller, statement: Select[Group], filters: dict[str, Any]) -> Select[Group]:
    least = filters.get("min_access_level")
    if least is None or caller.admin:
        return statement
    return statement.where(Group.id.in_(authorized_namespaces(caller.user_id or 0, Role(least))))


def _filtered(statement: Select[Group], filters: dict[str, Any]) -> Select[Group]:
    if filters.get("skip_groups"):
        statement = statement.where(Group.id.not_in(filters["skip_groups"]))
    if search := (filters.get("search") or "").strip():
        statement = statement.where(searching.contains(search, Group.full_path, Group.full_name))
    return statement


def _above(namespace_id: int) -> Select[int]:
    return select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)
