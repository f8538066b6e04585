"""Memberships and effective roles: direct, inherited from a group above, or through a share with a group.

A role is found with one statement: ``find_project_and_role`` for the project of a URL, together with the project, or
``role_in``. Lists are filtered with the same rule as a subquery (``authorized_projects``, ``authorized_namespaces``).
Expired memberships do not count (common reference, section 7).
"""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import (
    CTE,
    CheckConstraint,
    ColumnElement,
    Date,
    ForeignKey,
    Index,
    Select,
    UniqueConstraint,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Mapped, aliased, joinedload, mapped_column, query_expression, relationship

from project_service.domain import projects
from project_service.domain.access_levels import Role
from project_service.domain.namespaces import Namespace, NamespaceAncestor
from project_service.domain.projects import Project
from project_service.domain.users import User
from project_service.kit import clock
from project_service.kit.db.base import Key, Model, Timestamps, table_of
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number


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
    below, shared_with = NamespaceAncestor.namespace_id, aliased(NamespaceAncestor)
    of_user = (Membership.user_id == user_id, alive(), below.in_(ids))
    inherited = select(below, Membership.access_level).join(
        Membership, Membership.namespace_id == NamespaceAncestor.ancestor_id
    )
    through = (
        select(below, lesser(Membership.access_level, Share.access_level))
        .join(Share, Share.namespace_id == NamespaceAncestor.ancestor_id)
        .join(shared_with, shared_with.namespace_id == Share.group_id)
        .join(Membership, Membership.namespace_id == shared_with.ancestor_id)
    )
    grants = union_all(inherited.where(*of_user), through.where(*of_user, alive(Share))).subquery()
    highest = select(grants.c[0], func.max(grants.c[1])).group_by(grants.c[0])
    levels: dict[int, int] = dict(db.session.execute(highest).all())
    return {number: Role(levels.get(number, 0)) for number in ids}


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
    shared_with = aliased(NamespaceAncestor)
    direct = (
        select(NamespaceAncestor.namespace_id)
        .join(Membership, Membership.namespace_id == NamespaceAncestor.ancestor_id)
        .where(Membership.user_id == user_id, Membership.access_level >= least, alive())
    )
    shared = (
        select(NamespaceAncestor.namespace_id)
        .join(Share, Share.namespace_id == NamespaceAncestor.ancestor_id)
        .join(shared_with, shared_with.namespace_id == Share.group_id)
        .join(Membership, Membership.namespace_id == shared_with.ancestor_id)
        .where(
            Membership.user_id == user_id,
            lesser(Membership.access_level, Share.access_level) >= least,
            alive(),
            alive(Share),
        )
    )
    return select(union_all(direct, shared).subquery().c[0])


def authorized_projects(user_id: int, least: Role = Role.GUEST) -> Select[int]:
    """The ids of the projects in which a user has at least this role."""
    shared_with = aliased(NamespaceAncestor)
    owned = (
        select(Project.id).join(Namespace, Namespace.id == Project.namespace_id).where(Namespace.owner_id == user_id)
    )
    direct = select(Membership.project_id).where(
        Membership.user_id == user_id,
        Membership.project_id.is_not(None),
        Membership.access_level >= least,
        alive(),
    )
    inherited = select(Project.id).where(Project.namespace_id.in_(authorized_namespaces(user_id, least)))
    shared = (
        select(Share.project_id)
        .join(shared_with, shared_with.namespace_id == Share.group_id)
        .join(Membership, Membership.namespace_id == shared_with.ancestor_id)
        .where(
            Share.project_id.is_not(None),
            Membership.user_id == user_id,
            lesser(Membership.access_level, Share.access_level) >= least,
            alive(),
            alive(Share),
        )
    )
    return select(union_all(owned, direct, inherited, shared).subquery().c[0])


@functools.cache
def _level_below() -> Select[int]:
    """The highest level of a user in a namespace."""
    return select(func.max(union_all(*_in_namespace(_NAMESPACE)).subquery().c.access_level))


@functools.cache
def _level_in_project() -> Select[int]:
    """The highest level of a user in a project."""
    grants = (*_in_namespace(_NAMESPACE), *_in_project(bindparam("project", type_=Key)))
    return select(func.max(union_all(*grants).subquery().c.access_level))


@functools.cache
def _project_and_levels(*, by_id: bool) -> Select[Any]:
    return projects.one_project(by_id=by_id).add_columns(*highest_levels())


def highest_levels(user_id: Any = None) -> Iterator[ColumnElement[int]]:
    """The highest level of each kind of grant, as columns of a statement that selects from the table of projects.

    ``user_id`` is an expression, by default the parameter ``user``. The other parameter is ``today``.
    """
    of_user = _USER if user_id is None else user_id
    for grants in (*_in_namespace(_projects.c.namespace_id, of_user), *_in_project(_projects.c.id, of_user)):
        level = grants.selected_columns.access_level
        yield grants.with_only_columns(func.max(level)).correlate(_projects, _users).scalar_subquery()


# grants are selected from tables: statements of mapped classes take longer to execute, also for single columns
_projects, _users, _ancestors = table_of(Project), table_of(User), table_of(NamespaceAncestor)
_memberships, _shares = table_of(Membership), table_of(Share)
_USER = bindparam("user", type_=Key)
_NAMESPACE = bindparam("namespace", type_=Key)
_TODAY = bindparam("today", type_=Date)


def _in_namespace(namespace_id: Any, user_id: Any = _USER) -> tuple[Select[int], Select[int]]:
    """The levels of a user in a namespace, one row each: inherited, and through shares.

    The parameters are ``user``, unless there is an expression for it, and ``today``.
    """
    above = _ancestors.c.namespace_id == namespace_id
    inherited = select(_memberships.c.access_level).join(
        _ancestors, _ancestors.c.ancestor_id == _memberships.c.namespace_id
    )
    shared = _shared(user_id).join(_ancestors, _ancestors.c.ancestor_id == _shares.c.namespace_id)
    return inherited.where(above, *_of_user(user_id)), shared.where(above)


def _in_project(project_id: Any, user_id: Any = _USER) -> tuple[Select[int], Select[int]]:
    """The levels of a user in a project itself, one row each."""
    direct = select(_memberships.c.access_level).where(_memberships.c.project_id == project_id, *_of_user(user_id))
    return direct, _shared(user_id).where(_shares.c.project_id == project_id)


def _shared(user_id: Any) -> Select[int]:
    shared_with = _ancestors.alias()
    return (
        select(lesser(_memberships.c.access_level, _shares.c.access_level).label("access_level"))
        .select_from(_shares)
        .join(shared_with, shared_with.c.namespace_id == _shares.c.group_id)
        .join(_memberships, _memberships.c.namespace_id == shared_with.c.ancestor_id)
        .where(*_of_user(user_id), alive(_shares.c, _TODAY))
    )


def _of_user(user_id: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return _memberships.c.user_id == user_id, alive(_memberships.c, _TODAY)


def levels_by_project(user_id: Any, today: Any) -> CTE:
    """The projects in which a user has a role today: ``project_id`` and the highest ``access_level``."""
    shared_with = aliased(NamespaceAncestor)
    capped = lesser(Membership.access_level, Share.access_level)
    owned = (
        select(Project.id, literal(int(Role.OWNER)))
        .join(Namespace, Namespace.id == Project.namespace_id)
        .where(Namespace.owner_id == user_id)
    )
    direct = select(Membership.project_id, Membership.access_level).where(
        Membership.user_id == user_id, Membership.project_id.is_not(None), alive(today=today)
    )
    inherited = (
        select(Project.id, Membership.access_level)
        .join(NamespaceAncestor, NamespaceAncestor.namespace_id == Project.namespace_id)
        .join(Membership, Membership.namespace_id == NamespaceAncestor.ancestor_id)
        .where(Membership.user_id == user_id, alive(today=today))
    )
    members_of_invited = (
        select(Share.project_id, capped)
        .join(shared_with, shared_with.namespace_id == Share.group_id)
        .join(Membership, Membership.namespace_id == shared_with.ancestor_id)
        .where(Membership.user_id == user_id, alive(today=today), alive(Share, today))
    )
    shared_projects = members_of_invited.where(Share.project_id.is_not(None))
    shared_groups = (
        members_of_invited.with_only_columns(Project.id, capped)
        .join(NamespaceAncestor, NamespaceAncestor.ancestor_id == Share.namespace_id)
        .join(Project, Project.namespace_id == NamespaceAncestor.namespace_id)
    )
    grants = union_all(owned, direct, inherited, shared_projects, shared_groups).subquery()
    project_id, level = grants.c[0], grants.c[1]
    highest = select(project_id.label("project_id"), func.max(level).label("access_level"))
    return highest.group_by(project_id).cte("levels")


def members_for_choice(project: Project, most: int = 500, least: Role = Role.NONE) -> Select[int, str, str]:
    """The members of a project with at least a role, direct and inherited: id, name and username."""
    above = select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == project.namespace_id)
    here = or_(Membership.project_id == project.id, Membership.namespace_id.in_(above))
    ids: Any = select(Membership.user_id).where(here, alive(), Membership.access_level >= least)
    if project.namespace.owner_id is not None:
        ids = ids.union_all(select(literal(project.namespace.owner_id)))
    people = select(User.id, User.name, User.username).where(User.deleting_since.is_(None), User.id.in_(ids))
    return people.order_by(User.name).limit(most)
