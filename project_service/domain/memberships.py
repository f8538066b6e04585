"""Memberships and effective roles: direct, inherited from a group above, or through a share with a group.

``group_grants`` and ``project_grants`` are the rule; all others are made of them: single checks, lists of projects, of
groups and of members, and the recipients of mails (``user_ids_with``).

A role is found with one statement: ``find_project_and_role`` for the project of a URL, together with the project, or
``role_in``. Lists are filtered with the same rule as a subquery (``authorized_projects``, ``authorized_namespaces``).
Expired memberships do not count (common reference, section 7).
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from flask import g, has_request_context
from sqlalchemy import (
    CTE,
    CheckConstraint,
    ColumnElement,
    CompoundSelect,
    Date,
    ForeignKey,
    Index,
    Integer,
    Select,
    Subquery,
    UniqueConstraint,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Mapped, joinedload, mapped_column, query_expression, relationship

from project_service.domain import projects
from project_service.domain.access_levels import Role
from project_service.domain.accounts.users import ACTIVE, User
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.base import Key, Model, Timestamps, table_of
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

MAX_CHOICES = 500  # members that a field offers


class Membership(Timestamps, Model):
    """The role of a user in a group or project, optionally until a day."""

    __tablename__ = "memberships"
    __table_args__ = (
        UniqueConstraint("user_id", "namespace_id"),
        UniqueConstraint("user_id", "project_id"),
        CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        Index("ix_memberships_namespace_id", "namespace_id", "id"),
        Index("ix_memberships_project_id", "project_id", "id"),
        Index("ix_memberships_expires_at", "expires_at"),
    )

    user_id: Mapped[int] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"))
    user: Mapped[User] = relationship(foreign_keys=[user_id])
    namespace_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    namespace: Mapped[Namespace | None] = relationship()
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    project: Mapped[Project | None] = relationship()
    access_level: Mapped[int]
    expires_at: Mapped[dt.date | None]
    created_by_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="SET NULL"))
    capped_level: Mapped[int | None] = query_expression()  # the effective role where it was loaded for

    @property
    def level(self) -> int:
        """The effective role where it was loaded for: a share may allow less than ``access_level``."""
        return self.access_level if self.capped_level is None else self.capped_level

    @property
    def expired(self) -> bool:
        """Whether its last day has passed."""
        return self.expires_at is not None and self.expires_at <= clock.today()


class Share(Timestamps, Model):
    """A share of a group or project with a group: its members get at most this role."""

    __tablename__ = "shares"
    __table_args__ = (
        UniqueConstraint("group_id", "namespace_id"),
        UniqueConstraint("group_id", "project_id"),
        CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        Index("ix_shares_namespace_id", "namespace_id"),
        Index("ix_shares_project_id", "project_id"),
    )

    group_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    group: Mapped[Namespace] = relationship(foreign_keys=[group_id])
    namespace_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    access_level: Mapped[int]
    expires_at: Mapped[dt.date | None]


def alive(kind: Any = Membership, today: Any = None) -> ColumnElement[bool]:
    """Whether a membership or share is valid today."""
    return or_(kind.expires_at.is_(None), kind.expires_at > (clock.today() if today is None else today))


def lesser(first: Any, second: Any) -> ColumnElement[int]:
    """The smaller of two levels."""
    return case((first < second, first), else_=second)


def role_in(user_id: int, subject: Project | Namespace) -> Role:
    """The highest role of a user in a project or namespace, not considering administrators."""
    project, namespace = (subject, subject.namespace) if isinstance(subject, Project) else (None, subject)
    if namespace.owner_id == user_id:
        return Role.OWNER
    of_user = {"user": user_id, "namespace": namespace.id, "today": clock.today()}
    if project is None:
        level = db.session.scalar(_level_below(), of_user)
    else:
        level = db.session.scalar(_level_in_project(), of_user | {"project": project.id})
    return Role(level or 0)


def find_project_and_role(user_id: int, id_or_path: str | int) -> tuple[Project, Role]:
    """A project and the highest role of a user in it, with one statement; ``NotFound`` without the project."""
    number = whole_number(str(id_or_path))
    id_or_full_path = str(id_or_path).lower() if number is None else number
    row = db.session.execute(
        _project_and_levels(by_id=number is not None),
        {"wanted": id_or_full_path, "user": user_id, "today": clock.today()},
    ).first()
    if row is None:
        raise NotFound("Project")
    project, *levels = row
    if project.namespace.owner_id == user_id:
        return project, Role.OWNER
    return project, Role(max(level or 0 for level in levels))


def roles_in_groups(user_id: int, ids: Sequence[int]) -> dict[int, Role]:
    """The roles of a user in several groups, by id, with one statement."""
    levels: dict[int, int] = dict(db.session.execute(levels_by_place(group_grants(), user_id, ids)).all())
    return {number: Role(levels.get(number, 0)) for number in ids}


def levels_by_place(grants: Iterable[Select[Any]], user_id: int | None, ids: Collection[int]) -> Select[int, int]:
    """The highest level that grants give a user, by the ids of places."""
    in_places = _union(grant.where(_place(grant).in_(ids)) for grant in _of_user(grants, user_id))
    return select(in_places.c.place_id, func.max(in_places.c.access_level)).group_by(in_places.c.place_id)


def direct_membership(user_id: int, subject: Project | Namespace) -> Membership | None:
    """The direct membership, expired or not."""
    return db.session.scalar(memberships_of(subject).where(Membership.user_id == user_id))


def memberships_of(subject: Project | Namespace) -> Select[Membership]:
    """The direct memberships of a group or project, oldest first."""
    column = Membership.project_id if isinstance(subject, Project) else Membership.namespace_id
    return select(Membership).where(column == subject.id).order_by(Membership.id)


def owners_of(namespace_id: Any) -> Select[int]:
    """The ids of the direct owners of a group."""
    return (
        select(Membership.user_id)
        .join(User, User.id == Membership.user_id)
        .where(
            Membership.namespace_id == namespace_id,
            Membership.access_level == Role.OWNER,
            alive(),
            User.deleting_since.is_(None),
        )
    )


def add_shares(projects: Sequence[Project]) -> None:
    """Set ``shares`` on each project, with one statement for all of them."""
    by_project: dict[int, list[Share]] = {project.id: [] for project in projects}
    shares = select(Share).where(Share.project_id.in_(by_project)).order_by(Share.id).options(joinedload(Share.group))
    for share in db.session.scalars(shares):
        by_project[share.project_id or 0].append(share)
    for project in projects:
        project.shares = by_project[project.id]


def authorized_namespaces(user_id: int, least: Role = Role.MINIMAL) -> Select[int]:
    """The ids of the groups in which a user has at least this role: direct, inherited, or through a share."""
    return select(_union(_at_least(_of_user(group_grants(), user_id), least)).c.place_id)


def authorized_projects(user_id: int, least: Role = Role.GUEST) -> Select[int]:
    """The ids of the projects in which a user has at least this role.

    A page has it in up to ten statements, and building it takes longer than executing most of them: a request builds it
    once for each role.
    """
    if not has_request_context():
        return _authorized_projects(user_id, least)
    built: dict[tuple[int, Role], Select[int]] = g.setdefault("authorized_projects", {})
    if (user_id, least) not in built:
        built[user_id, least] = _authorized_projects(user_id, least)
    return built[user_id, least]


def _authorized_projects(user_id: int, least: Role) -> Select[int]:
    places = [grant.with_only_columns(_place(grant)) for grant in _at_least(_of_user(project_grants(), user_id), least)]
    inherited = select(_projects.c.id).where(_projects.c.namespace_id.in_(authorized_namespaces(user_id, least)))
    return select(union_all(_owned_projects(user_id), *places, inherited).subquery().c[0])


def user_ids_with(least: Role, subject: Project | Namespace) -> CompoundSelect[int]:
    """The ids of the users with at least this role in a project or group, however they have it; some repeatedly."""
    namespace_id = subject.namespace_id if isinstance(subject, Project) else subject.id
    return _user_ids(grants_in(subject), namespace_id, least)


def _user_ids(grants: Iterable[Select[Any]], namespace_id: Any, least: Any) -> CompoundSelect[int]:
    users = [grant.with_only_columns(_user(grant)) for grant in _at_least(grants, least)]
    owner = select(_namespaces.c.owner_id).where(_namespaces.c.id == namespace_id, _namespaces.c.owner_id.is_not(None))
    return union_all(*users, owner)


@functools.cache
def _level_below() -> Select[int]:
    """The highest level of a user in a namespace."""
    return select(func.max(_union(_of_user(_in_namespace(_NAMESPACE), _USER)).c.access_level))


@functools.cache
def _level_in_project() -> Select[int]:
    """The highest level of a user in a project."""
    grants = (*_in_namespace(_NAMESPACE), *_in_project(bindparam("project", type_=Key)))
    return select(func.max(_union(_of_user(grants, _USER)).c.access_level))


@functools.cache
def _project_and_levels(*, by_id: bool) -> Select[Any]:
    return projects.one_project(by_id=by_id).add_columns(*highest_levels())


def highest_levels(user_id: Any = None) -> Iterator[ColumnElement[int]]:
    """The highest level of each kind of grant, as columns of a statement that selects from the table of projects.

    ``user_id`` is an expression, by default the parameter ``user``. The other parameter is ``today``.
    """
    grants = (*_in_namespace(_projects.c.namespace_id), *_in_project(_projects.c.id))
    for grant in _of_user(grants, _USER if user_id is None else user_id):
        level = grant.selected_columns.access_level
        yield grant.with_only_columns(func.max(level)).correlate(_projects, _users).scalar_subquery()


def group_grants(today: Any = None) -> tuple[Select[Any], Select[Any]]:
    """The roles of users in groups, a row for each way: memberships of groups above or there, and through shares.

    The columns are ``place_id``, ``membership_id``, ``user_id`` and ``access_level``.
    """
    inherited = _grant(_ancestors.c.namespace_id, _memberships.c.access_level, today).join(
        _ancestors, _ancestors.c.ancestor_id == _memberships.c.namespace_id
    )
    shared = _shared(_ancestors.c.namespace_id, today)
    return inherited, shared.join(_ancestors, _ancestors.c.ancestor_id == _shares.c.namespace_id)


def project_grants(today: Any = None) -> tuple[Select[Any], Select[Any]]:
    """The roles of users in projects themselves, as ``group_grants``: memberships, and through shares.

    Those in the groups above a project are ``group_grants``.
    """
    direct = _grant(_memberships.c.project_id, _memberships.c.access_level, today)
    shared = _shared(_shares.c.project_id, today)
    return direct.where(_memberships.c.project_id.is_not(None)), shared.where(_shares.c.project_id.is_not(None))


def grants_in(subject: Project | Namespace) -> tuple[Select[Any], ...]:
    """The roles of all users in a project or group, as ``group_grants``."""
    if not isinstance(subject, Project):
        return _at(group_grants(), subject.id)
    return *_at(group_grants(), subject.namespace_id), *_at(project_grants(), subject.id)


# grants are selected from tables: statements of mapped classes take longer to execute, also for single columns
_projects, _users, _ancestors = table_of(Project), table_of(User), table_of(NamespaceAncestor)
_memberships, _shares, _namespaces = table_of(Membership), table_of(Share), table_of(Namespace)
_USER = bindparam("user", type_=Key)
_NAMESPACE = bindparam("namespace", type_=Key)
_TODAY = bindparam("today", type_=Date)


def _grant(place_id: ColumnElement[Any], level: ColumnElement[int], today: Any) -> Select[Any]:
    row = _memberships.c.id.label("membership_id"), _memberships.c.user_id, level.label("access_level")
    return select(place_id.label("place_id"), *row).where(alive(_memberships.c, today))


def _shared(place_id: ColumnElement[Any], today: Any) -> Select[Any]:
    """What the members of a group get where the group is invited: at most the level of the share."""
    shared_with = _ancestors.alias()
    return (
        _grant(place_id, lesser(_memberships.c.access_level, _shares.c.access_level), today)
        .select_from(_shares)
        .join(shared_with, shared_with.c.namespace_id == _shares.c.group_id)
        .join(_memberships, _memberships.c.namespace_id == shared_with.c.ancestor_id)
        .where(alive(_shares.c, today))
    )


def _in_namespace(namespace_id: Any) -> tuple[Select[Any], ...]:
    return _at(group_grants(_TODAY), namespace_id)


def _in_project(project_id: Any) -> tuple[Select[Any], ...]:
    return _at(project_grants(_TODAY), project_id)


def _at(grants: Iterable[Select[Any]], place_id: Any) -> tuple[Select[Any], ...]:
    return tuple(grant.where(_place(grant) == place_id) for grant in grants)


def _of_user(grants: Iterable[Select[Any]], user_id: Any) -> tuple[Select[Any], ...]:
    return tuple(grant.where(_memberships.c.user_id == user_id) for grant in grants)


def _at_least(grants: Iterable[Select[Any]], least: Any) -> tuple[Select[Any], ...]:
    return tuple(grant.where(grant.selected_columns.access_level >= least) for grant in grants)


def _place(grant: Select[Any]) -> ColumnElement[int]:
    return grant.selected_columns.place_id


def _user(grant: Select[Any]) -> ColumnElement[int]:
    return grant.selected_columns.user_id


def _union(grants: Iterable[Select[Any]]) -> Subquery:
    return union_all(*grants).subquery()


def _owned_projects(user_id: Any) -> Select[int]:
    """The ids of the projects in the personal namespace of a user."""
    here = _namespaces.c.id == _projects.c.namespace_id
    return select(_projects.c.id).join(_namespaces, here).where(_namespaces.c.owner_id == user_id)


def levels_by_project(user_id: Any, today: Any) -> CTE:
    """The projects in which a user has a role today: ``project_id`` and the highest ``access_level``."""
    owned = _owned_projects(user_id).add_columns(literal(int(Role.OWNER)))
    own = (
        grant.with_only_columns(_place(grant), grant.selected_columns.access_level)
        for grant in _of_user(project_grants(today), user_id)
    )
    inherited = (
        grant.with_only_columns(_projects.c.id, grant.selected_columns.access_level).join(
            _projects, _projects.c.namespace_id == _ancestors.c.namespace_id
        )
        for grant in _of_user(group_grants(today), user_id)
    )
    grants = union_all(owned, *own, *inherited).subquery()
    project_id, level = grants.c[0], grants.c[1]
    highest = select(project_id.label("project_id"), func.max(level).label("access_level"))
    return highest.group_by(project_id).cte("levels")


@functools.cache
def members_for_choice() -> Select[int, str, str]:
    """The users with at least a role in a project, however they have it: id, name and username, by name.

    It is executed with ``choice_in``.
    """
    grants = (*_in_namespace(_NAMESPACE), *_in_project(bindparam("project", type_=Key)))
    ids = _user_ids(grants, _NAMESPACE, bindparam("least", type_=Integer))
    people = select(User.id, User.name, User.username).where(User.deleting_since.is_(None), User.id.in_(ids))
    return people.order_by(User.name).limit(bindparam("most", type_=Integer))


@functools.cache
def active_members_for_choice() -> Select[int, str, str]:
    """Those ``members_for_choice`` who are active."""
    return members_for_choice().where(User.state == ACTIVE)


def choice_in(project: Project, least: Role = Role.MINIMAL, most: int = MAX_CHOICES) -> dict[str, Any]:
    """The parameters of ``members_for_choice`` for a project, a role and the number of users wanted."""
    places = {"project": project.id, "namespace": project.namespace_id}
    return places | {"least": int(least), "most": most, "today": clock.today()}
