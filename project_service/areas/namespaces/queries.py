"""Queries of namespaces and of their member counts: two statements per page, none per row."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Select, and_, func, or_, select, union, union_all
from sqlalchemy.orm import aliased

from project_service.access.identity import Caller
from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import bots
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.memberships import Membership, Share, alive, authorized_namespaces
from project_service.domain.namespaces import DEFAULT_PLAN, GROUP, TOP_PLANS, Namespace, NamespaceAncestor, namespaces
from project_service.domain.projects import Project
from project_service.kit.db import searching
from project_service.kit.db.session import db


def namespaces_matching(caller: Caller, **filters: Any) -> Select[Namespace]:
    """All namespaces for administrators, otherwise the personal one and groups with a direct membership."""
    statement = namespaces().order_by(Namespace.id)
    least = Role.OWNER if filters.get("owned_only") else Role.GUEST
    if not caller.admin:
        direct = select(Membership.namespace_id).where(
            Membership.user_id == caller.user_id, Membership.access_level >= least, alive()
        )
        statement = statement.where(or_(Namespace.owner_id == caller.user_id, Namespace.id.in_(direct)))
    elif filters.get("owned_only"):
        owned = authorized_namespaces(caller.user_id or 0, Role.OWNER)
        statement = statement.where(or_(Namespace.owner_id == caller.user_id, Namespace.id.in_(owned)))
    if filters.get("top_level_only"):
        statement = statement.where(Namespace.parent_id.is_(None))
    if search := (filters.get("search") or "").strip():
        columns = (Namespace.full_path,) if filters.get("full_path_search") else (Namespace.path, Namespace.name)
        statement = statement.where(searching.contains(search, *columns))
    return statement


def add_details(caller: Caller, namespaces_of_page: list[Namespace], requested_plan: str | None = None) -> None:
    """Set ``details`` on each namespace: the keys that this caller sees in addition to the basic ones.

    Namespaces reference, section 2.
    """
    groups = [namespace.id for namespace in namespaces_of_page if namespace.kind == GROUP]
    owned = set(groups) if caller.admin else _owned(caller, groups)
    members = _members_with_descendants(owned)
    billable = billable_members(
        [namespace for namespace in namespaces_of_page if namespace.kind == GROUP], requested_plan
    )
    for namespace in namespaces_of_page:
        details: dict[str, Any] = {}
        is_group = namespace.kind == GROUP
        owns = namespace.id in owned if is_group else caller.admin or namespace.owner_id == caller.user_id
        if is_group and owns:
            details["members_count_with_descendants"] = members.get(namespace.id, 0)
        details["billable_members_count"] = billable.get(namespace.id, 0) if is_group else 1
        if namespace.plan is not None:
            details |= {"seats_in_use": namespace.seats_in_use, "max_seats_used": namespace.max_seats_used}
        if owns:
            details |= {
                "plan": namespace.plan or DEFAULT_PLAN,
                "trial_ends_on": namespace.trial_ends_on,
                "trial": namespace.trial,
            }
        namespace.details = details


def billable_members(groups: list[Namespace], requested_plan: str | None = None) -> dict[int, int]:
    """Distinct active members of each group, its subgroups, their projects, and groups invited to any of these.

    Inherited members of an invited group count as well. Guests are free on the top plan, that of the group or the
    requested one.
    """
    free = [group.id for group in groups if requested_plan in TOP_PLANS or group.plan in TOP_PLANS]
    rest = [group.id for group in groups if group.id not in free]
    return _count_billable(rest, Role.GUEST) | _count_billable(free, Role.REPORTER)


def namespace_below(parent_id: int | None, path: str) -> Namespace | None:
    """A namespace by its path segment below a parent or at the top level, in any case."""
    is_below = Namespace.parent_id.is_(None) if parent_id is None else Namespace.parent_id == parent_id
    return db.session.scalar(namespaces().where(is_below, func.lower(Namespace.path) == path.lower()))


def names_in_use(candidates: list[str]) -> set[str]:
    """Those of the candidates that are the path or name of any namespace, in lower case."""
    names = [candidate.lower() for candidate in candidates]
    path, name = func.lower(Namespace.path), func.lower(Namespace.name)
    is_alive = Namespace.deleting_since.is_(None)
    used = union(select(path).where(is_alive, path.in_(names)), select(name).where(is_alive, name.in_(names)))
    return set(db.session.scalars(used))


def _owned(caller: Caller, ids: list[int]) -> set[int]:
    owned = authorized_namespaces(caller.user_id or 0, Role.OWNER).subquery()
    return set(db.session.scalars(select(owned.c[0]).where(owned.c[0].in_(ids)))) if ids else set()


def _members_with_descendants(ids: set[int]) -> dict[int, int]:
    root, below = NamespaceAncestor.ancestor_id, NamespaceAncestor.namespace_id
    members = select(root, Membership.user_id).join(Membership, Membership.namespace_id == below)
    return _count_users(ids, [_in_groups(members)])


def _count_billable(ids: list[int], least: Role) -> dict[int, int]:
    root, below = NamespaceAncestor.ancestor_id, NamespaceAncestor.namespace_id
    invited = aliased(NamespaceAncestor)
    rows = select(root, Membership.user_id)
    with_projects = rows.join(Project, and_(Project.namespace_id == below, Project.deleting_since.is_(None)))
    shares = and_(Share.access_level >= least, alive(Share))

    def invited_by(statement: Select[int, int]) -> Select[int, int]:
        return statement.join(invited, invited.namespace_id == Share.group_id).join(
            Membership, Membership.namespace_id == invited.ancestor_id
        )

    branches = [
        _in_groups(rows.join(Membership, Membership.namespace_id == below)),
        with_projects.join(Membership, Membership.project_id == Project.id),
        _in_groups(invited_by(rows.join(Share, and_(Share.namespace_id == below, shares)))),
        _in_groups(invited_by(with_projects.join(Share, and_(Share.project_id == Project.id, shares)))),
    ]
    return _count_users(ids, [branch.where(Membership.access_level >= least) for branch in branches])


def _in_groups(memberships: Select[int, int]) -> Select[int, int]:
    """Without the members of groups that are being deleted."""
    return memberships.join(Namespace, Namespace.id == Membership.namespace_id).where(
        Namespace.deleting_since.is_(None)
    )


def _count_users(ids: Collection[int], branches: list[Select[int, int]]) -> dict[int, int]:
    """Count the distinct active users below each root; the branches select rows of ``root, user``."""
    if not ids:
        return {}
    alive_below = (branch.where(NamespaceAncestor.ancestor_id.in_(ids), alive()) for branch in branches)
    rows = union_all(*alive_below).subquery()
    counted = (
        select(rows.c[0], func.count(rows.c[1].distinct()))
        .join(User, User.id == rows.c[1])
        .where(User.state == ACTIVE, User.deleting_since.is_(None), User.id.not_in(bots()))
        .group_by(rows.c[0])
    )
    return dict(db.session.execute(counted).all())
