"""Queries of members of groups and projects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, Subquery, and_, case, func, or_, select, union_all
from sqlalchemy.orm import contains_eager, with_expression

from project_service.domain.access_levels import Role
from project_service.domain.accounts.resource_bots import bots
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.memberships import Membership, alive, grants_in, user_ids_with
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.kit.db import searching
from project_service.kit.db.session import NO_LAZY_LOADING, db, one
from project_service.kit.http.errors import RecordNotFound

ProjectOrGroup = Project | Namespace
MAX_SUGGESTIONS, MIN_SUGGESTED_LENGTH, MAX_SEARCH_LENGTH = 10, 2, 100


def members_of(subject: ProjectOrGroup, **filters: Any) -> Select[Membership]:
    """The direct members of a group or project, oldest membership first."""
    here = Membership.project_id if isinstance(subject, Project) else Membership.namespace_id
    return _filtered(_memberships().where(here == subject.id, alive()), filters).order_by(Membership.id)


def all_members_of(subject: ProjectOrGroup, **filters: Any) -> Select[Membership]:
    """The members of a group or project, direct, inherited and through shares: one row per user, with the highest role.

    The role is loaded as ``capped_level``.
    """
    reach = _reach_of(subject)
    rank = func.row_number().over(
        partition_by=reach.c.user_id,
        order_by=(reach.c.access_level.desc(), reach.c.is_inherited, reach.c.membership_id),
    )
    best = select(reach.c.membership_id, reach.c.access_level, rank.label("rank")).subquery()
    statement = _memberships().join(best, and_(best.c.membership_id == Membership.id, best.c.rank == 1))
    capped = statement.options(with_expression(Membership.capped_level, best.c.access_level))
    # a membership that the session has already gets its ``capped_level`` too
    capped = capped.execution_options(populate_existing=True)
    return _filtered(capped, filters).order_by(Membership.user_id)


def users_of(project: Project, **filters: Any) -> Select[User]:
    """The users with a role in a project, however they have it, and the owner of its personal namespace."""
    statement = select(User).where(User.id.in_(user_ids_with(Role.MINIMAL, project)), User.deleting_since.is_(None))
    statement = statement.order_by(User.id)
    if filters.get("skip_users"):
        statement = statement.where(User.id.not_in(filters["skip_users"]))
    if search := (filters.get("search") or "").strip():
        statement = statement.where(_is_called(search))
    return statement.options(NO_LAZY_LOADING)


def suggested_users(subject: ProjectOrGroup, search: str) -> Iterable[Row[str, str]]:
    """Usernames and names of users who are no direct members: by a part of either, or by a whole public e-mail."""
    here = Membership.project_id if isinstance(subject, Project) else Membership.namespace_id
    members = select(Membership.user_id).where(here == subject.id, alive())
    text = search.strip()[:MAX_SEARCH_LENGTH]
    is_called = or_(searching.contains(text, User.name, User.username), func.lower(User.public_email) == text.lower())
    people = select(User.username, User.name).where(
        User.deleting_since.is_(None), User.state == ACTIVE, User.id.not_in(members), User.id.not_in(bots())
    )
    if len(text) < MIN_SUGGESTED_LENGTH:
        return ()
    return db.session.execute(people.where(is_called).order_by(User.id).limit(MAX_SUGGESTIONS))


def find_member(subject: ProjectOrGroup, user_id: int) -> Membership:
    """The direct membership of a user."""
    return one(members_of(subject).where(Membership.user_id == user_id), RecordNotFound())


def find_any_member(subject: ProjectOrGroup, user_id: int) -> Membership:
    """The membership with the highest role of a user, direct or not."""
    return one(all_members_of(subject).where(Membership.user_id == user_id), RecordNotFound())


def _memberships() -> Select[Membership]:
    statement = select(Membership).join(Membership.user).where(User.deleting_since.is_(None))
    return statement.options(contains_eager(Membership.user), NO_LAZY_LOADING)


def _filtered(statement: Select[Membership], filters: dict[str, Any]) -> Select[Membership]:
    conditions: list[ColumnElement[bool]] = []
    if query := (filters.get("query") or "").strip():
        conditions.append(_is_called(query))
    if filters.get("user_ids"):
        conditions.append(User.id.in_(filters["user_ids"]))
    return statement.where(*conditions)


def _is_called(text: str) -> ColumnElement[bool]:
    return or_(searching.contains(text, User.name, User.username), func.lower(User.email) == text.lower())


def _reach_of(subject: ProjectOrGroup) -> Subquery:
    """The grants of a group or project, with ``is_inherited``: 0 for its own memberships, 1 for others."""
    here = Membership.project_id if isinstance(subject, Project) else Membership.namespace_id
    is_inherited: Any = case((here == subject.id, 0), else_=1)
    # each way by itself: alternatives of two columns have no index on PostgreSQL
    return union_all(*(way.add_columns(is_inherited.label("is_inherited")) for way in grants_in(subject))).subquery()


def inherited_role(user_id: int, subject: Project | Namespace) -> tuple[Role, Namespace | None]:
    """The highest inherited role, and the group it comes from."""
    if isinstance(subject, Project):
        above = NamespaceAncestor.namespace_id == subject.namespace_id
    else:
        above = and_(NamespaceAncestor.namespace_id == subject.id, NamespaceAncestor.ancestor_id != subject.id)
    row = db.session.execute(
        select(Membership.access_level, Namespace)
        .join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Membership.namespace_id)
        .join(Namespace, Namespace.id == Membership.namespace_id)
        .where(above, Membership.user_id == user_id, alive())
        .order_by(Membership.access_level.desc(), Namespace.id)
        .limit(1)
    ).first()
    return (Role(row[0]), row[1]) if row else (Role.NONE, None)
