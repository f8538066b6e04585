"""Namespaces: personal ones of users, groups and subgroups; tables and finders.

Users' namespaces and groups share one id sequence and one space of paths (namespaces reference, section 1). Who is
above whom stands in a table of its own, so that inherited roles are one join at any depth.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, TypedDict, Unpack

from sqlalchemy import ForeignKey, Index, Select, func, insert, literal, select, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from project_service.domain.access_levels import Visibility
from project_service.domain.accounts.users import User
from project_service.kit.db import text_search
from project_service.kit.db.base import Base, Key, Model, Timestamps, table_of, unique_unless_deleting
from project_service.kit.db.session import db, one
from project_service.kit.db.text_search import TextIndex
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import whole_number

USER = "user"
GROUP = "group"
MAX_NAMESPACE_DEPTH = 20
DEFAULT_PLAN = "default"
FREE_PLANS = (None, DEFAULT_PLAN, "free")
TOP_PLANS = ("gold", "ultimate")
PLANS = (DEFAULT_PLAN, "free", "bronze", "silver", "premium", *TOP_PLANS)


class Namespace(Timestamps, Model):
    """A group or a personal namespace. While it is being deleted it is hidden and its path is free."""

    __tablename__ = "namespaces"

    kind: Mapped[str]
    name: Mapped[str]
    path: Mapped[str]
    full_path: Mapped[str]
    full_name: Mapped[str]
    visibility: Mapped[int] = mapped_column(default=Visibility.PRIVATE)
    avatar_url: Mapped[str | None]
    plan: Mapped[str | None]
    trial: Mapped[bool] = mapped_column(default=False)
    trial_ends_on: Mapped[dt.date | None]
    seats_in_use: Mapped[int] = mapped_column(default=0)
    max_seats_used: Mapped[int] = mapped_column(default=0)
    deleting_since: Mapped[dt.datetime | None]
    parent_id: Mapped[int | None] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    owner_id: Mapped[int | None] = mapped_column(ForeignKey("users.id", ondelete="CASCADE"), unique=True)
    owner: Mapped[User | None] = relationship()

    __mapper_args__ = {"polymorphic_on": "kind"}
    __table_args__ = (
        unique_unless_deleting("uq_namespaces_full_path", "lower(full_path)"),
        Index("ix_namespaces_parent_id_name", "parent_id", text("lower(name)"), "id"),
        Index("ix_namespaces_path", text("lower(path)")),
        Index("ix_namespaces_name", text("lower(name)")),
    )
    # not columns; set by queries for a response
    details: dict[str, Any]


class UserNamespace(Namespace):
    """The personal namespace of a user; its path is the username."""

    __mapper_args__ = {"polymorphic_identity": USER}


class Group(Namespace):
    """A group or subgroup."""

    __mapper_args__ = {"polymorphic_identity": GROUP}

    description: Mapped[str | None] = mapped_column(default="", nullable=True)
    share_with_group_lock: Mapped[bool | None] = mapped_column(default=False, nullable=True)
    require_two_factor_authentication: Mapped[bool | None] = mapped_column(default=False, nullable=True)
    two_factor_grace_period: Mapped[int | None] = mapped_column(default=48, nullable=True)
    project_creation_level: Mapped[str | None] = mapped_column(default="developer", nullable=True)
    subgroup_creation_level: Mapped[str | None] = mapped_column(default="maintainer", nullable=True)
    auto_devops_enabled: Mapped[bool | None]
    emails_disabled: Mapped[bool | None]
    mentions_disabled: Mapped[bool | None]
    lfs_enabled: Mapped[bool | None] = mapped_column(default=True, nullable=True)
    request_access_enabled: Mapped[bool | None] = mapped_column(default=True, nullable=True)
    default_branch: Mapped[str | None]  # of new projects here and below
    attributes: Mapped[dict[str, Any]] = mapped_column(default=dict, server_default="{}")  # stored for clients
    default_branch_protection: Mapped[int | None] = mapped_column(default=2, nullable=True)


TEXTS = text_search.add(TextIndex(table_of(Namespace), ("name", "path", "description")))


class NamespaceAncestor(Base):
    """``ancestor`` is ``namespace`` itself or above it; written once, when a namespace is made."""

    __tablename__ = "namespace_ancestors"

    namespace_id: Mapped[int] = mapped_column(Key, ForeignKey("namespaces.id", ondelete="CASCADE"), primary_key=True)
    ancestor_id: Mapped[int] = mapped_column(
        Key, ForeignKey("namespaces.id", ondelete="CASCADE"), primary_key=True, index=True
    )


def link_ancestors(namespace: Namespace) -> None:
    """Write the rows of a new namespace: itself and all ancestors."""
    above = select(literal(namespace.id), NamespaceAncestor.ancestor_id).where(
        NamespaceAncestor.namespace_id == (namespace.parent_id or 0)
    )
    db.session.execute(insert(NamespaceAncestor).values(namespace_id=namespace.id, ancestor_id=namespace.id))
    db.session.execute(insert(NamespaceAncestor).from_select(["namespace_id", "ancestor_id"], above))


def groups_above(namespace_id: Any) -> Select[int]:
    """The ids of a namespace and of those above it."""
    return select(NamespaceAncestor.ancestor_id).where(NamespaceAncestor.namespace_id == namespace_id)


def namespaces() -> Select[Namespace]:
    """Every namespace that is not being deleted; without an order."""
    return select(Namespace).where(Namespace.deleting_since.is_(None))


def groups() -> Select[Group]:
    """Every group that is not being deleted; without an order."""
    return select(Group).where(Group.deleting_since.is_(None))


def namespace_by(id_or_path: str | int) -> Namespace | None:
    """One namespace: digits are always an id, everything else a full path in any case."""
    text = str(id_or_path)
    number = whole_number(text)
    if number is not None:
        return db.session.scalar(namespaces().where(Namespace.id == number))
    matches = db.session.scalars(namespaces().where(func.lower(Namespace.full_path) == text.lower()))
    return matches.first()


def find_namespace(id_or_path: str | int) -> Namespace:
    """The same, or ``NotFound``."""
    namespace = namespace_by(id_or_path)
    if namespace is None:
        raise NotFound("Namespace")
    return namespace


def find_group(id_or_path: str | int) -> Group:
    """One group, by id or full path."""
    namespace = namespace_by(id_or_path)
    if not isinstance(namespace, Group):
        raise NotFound("Group")
    return namespace


def namespace_of(user: User) -> Namespace:
    """The personal namespace of a user; bots have none, which is ``NotFound``."""
    return one(select(UserNamespace).where(UserNamespace.owner_id == user.id), NotFound("Namespace"))


def descendants_of(namespace: Namespace) -> Select[int]:
    """The ids of a namespace and of all below it."""
    return select(NamespaceAncestor.namespace_id).where(NamespaceAncestor.ancestor_id == namespace.id)


class PlanFields(TypedDict, total=False):
    """What may be given of the plan of a group."""

    plan: str | None
    trial: bool | None
    trial_ends_on: dt.date | None


def change_plan(group: Group, **changes: Unpack[PlanFields]) -> None:
    """Set ``plan``, ``trial`` and ``trial_ends_on`` of a group as far as given; without a plan no seats count."""
    group.plan = changes.get("plan", group.plan)
    if "trial_ends_on" in changes:
        group.trial_ends_on = changes["trial_ends_on"]
        group.trial = changes["trial_ends_on"] is not None
    if (trial := changes.get("trial")) is not None:
        group.trial = trial
    if group.plan is None:
        group.seats_in_use = group.max_seats_used = 0
