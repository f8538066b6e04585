"""Which namespaces there are, and what is counted of them: two statements for a whole page, none per row."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Select, and_, func, or_, select

from project_service.access.identity import Caller
from project_service.core.levels import Role
from project_service.core.memberships import Membership, Share, alive, authorized_namespaces
from project_service.core.namespaces import DEFAULT_PLAN, GROUP, TOP_PLANS, Namespace, NamespaceAncestor, namespaces
from project_service.core.projects import Project
from project_service.core.users import ACTIVE, User
from project_service.kit import searching
from project_service.kit.database import db


def namespaces_matching(caller: Caller, **wanted: Any) -> Select[Namespace]:
    """Administrators get all, everybody else their own and the groups they are direct members of."""
    statement = namespaces().order_by(Namespace.id)
    least = Role.OWNER if wanted.get("owned_only") else Role.GUEST
    if not caller.admin:
        direct = select(Membership.namespace_id).where(
            Membership.user_id == caller.user_id, Membership.access_level >= least, alive()
        )
        statement = statement.where(or_(Namespace.owner_id == caller.user_id, Namespace.id.in_(direct)))
    elif wanted.get("owned_only"):
        owned = authorized_namespaces(caller.user_id or 0, Role.OWNER)
        statement = statement.where(or_(Namespace.owner_id == caller.user_id, Namespace.id.in_(owned)))
    if wanted.get("top_level_only"):
        statement = statement.where(Namespace.parent_id.is_(None))
    if search := (wanted.get("search") or "").strip():
        columns = (Namespace.full_path,) if wanted.get("full_path_search") else (Namespace.path, Namespace.name)
        statement = statement.where(searching.contains(search, *columns))
    return statement


def add_details(caller: Caller, found: list[Namespace], requested_plan: str | None = None) -> None:
    """Set ``details`` on each namespace: what this caller sees beside the basic keys (section 2)."""
    groups = [namespace.id for namespace in found if namespace.kind == GROUP]
    owned = set(groups) if caller.admin else _owned(caller, groups)
    members = _members_with_descendants(owned)
    billable = billable_members([namespace for namespace in found if namespace.kind == GROUP], requested_plan)
    for namespace in found:
        details: dict[str, Any] = {}
        is_group = namespace.kind == GROUP
        owns = namespace.id in owned if is_group else caller.admin or namespace.owner_id == caller.user_id
        if is_group and owns:
            details["members_count_with_descendants"] = members.get(namespace.id, 0)
        details["billable_members_count"] = billable.get(namespace.id, 0) if is_group else 1
        if owns:
            if namespace.plan is not None:
                details |= {"seats_in_use": namespace.seats_in_use, "max_seats_used": namespace.max_seats_used}
            details |= {
                "plan": namespace.plan or DEFAULT_PLAN,
                "trial_ends_on": namespace.trial_ends_on,
                "trial": namespace.trial,
            }
        namespace.details = details  # type: ignore[attr-defined]  # shown beside the columns, never stored


def billable_members(groups: list[Namespace], requested_plan: str | None = None) -> dict[int, int]:
    """Distinct active members of each group, its subgroups, their projects, and groups invited to any of these.

    On the top plan guests are free.
    """
    free = [group.id for group in groups if (requested_plan or group.plan) in TOP_PLANS]
    rest = [group.id for group in groups if group.id not in free]
    return _count_billable(rest, Role.GUEST) | _count_billable(free, Role.REPORTER)


def namespace_below(parent_id: int | None, path: str) -> Namespace | None:
    """A namespace by its own segment, directly below a parent or at the top, in any case."""
    place = Namespace.parent_id.is_(None) if parent_id is None else Namespace.parent_id == parent_id
    return db.session.scalar(namespaces().where(place, func.lower(Namespace.path) == path.lower()))


def names_like(stem: str) -> set[str]:
    """Paths and names of all namespaces that begin with a text, in lower case."""
    start = stem.lower()
    rows = db.session.execute(
        select(func.lower(Namespace.path), func.lower(Namespace.name)).where(
            Namespace.deleting_since.is_(None),
            or_(
                func.lower(Namespace.path).startswith(start, autoescape=True),
                func.lower(Namespace.name).startswith(start, autoescape=True),
            ),
        )
    )
    return {text for row in rows for text in row}


def _owned(caller: Caller, ids: list[int]) -> set[int]:
    owned = authorized_namespaces(caller.user_id or 0, Role.OWNER).subquery()
    return set(db.session.scalars(select(owned.c[0]).where(owned.c[0].in_(ids)))) if ids else set()


def _members_with_descendants(ids: set[int]) -> dict[int, int]:
    if not ids:
        return {}
    counted = (
        select(NamespaceAncestor.ancestor_id, func.count(Membership.user_id.distinct()))
        .join(Membership, Membership.namespace_id == NamespaceAncestor.namespace_id)
        .where(NamespaceAncestor.ancestor_id.in_(ids), alive())
        .group_by(NamespaceAncestor.ancestor_id)
    )
    return dict(db.session.execute(counted).all())


def _count_billable(ids: list[int], least: Role) -> dict[int, int]:
    if not ids:
        return {}
    root = NamespaceAncestor.ancestor_id
    below = NamespaceAncestor.namespace_id
    member = and_(Membership.access_level >= least, alive())
    in_groups = select(root, Membership.user_id).join(Membership, Membership.namespace_id == below)
    in_projects = (
        select(root, Membership.user_id)
        .join(Project, Project.namespace_id == below)
        .join(Membership, Membership.project_id == Project.id)
        .where(Project.deleting_since.is_(None))
    )
    invited_to_groups = (
        select(root, Membership.user_id)
        .join(Share, Share.namespace_id == below)
        .join(Membership, Membership.namespace_id == Share.group_id)
        .where(alive(Share))
    )
    invited_to_projects = (
        select(root, Membership.user_id)
        .join(Project, Project.namespace_id == below)
        .join(Share, Share.project_id == Project.id)
        .join(Membership, Membership.namespace_id == Share.group_id)
        .where(alive(Share), Project.deleting_since.is_(None))
    )
    branches = (in_groups, in_projects, invited_to_groups, invited_to_projects)
    reach = in_groups.where(root.in_(ids), member).union_all(
        *(branch.where(root.in_(ids), member) for branch in branches[1:])
    )
    rows = reach.subquery()
    counted = (
        select(rows.c[0], func.count(rows.c[1].distinct()))
        .join(User, User.id == rows.c[1])
        .where(User.state == ACTIVE, User.deleting_since.is_(None))
        .group_by(rows.c[0])
    )
    return dict(db.session.execute(counted).all())
