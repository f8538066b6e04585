"""Numbers (``iid``) that count within a project or a group: gaps are not filled, none is given twice."""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint, bindparam
from sqlalchemy.orm import Mapped, mapped_column

from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.kit.db.base import Base, Key, Model
from project_service.kit.db.session import db, insert


class Counter(Model):
    """The last number given for one kind of thing in one project."""

    __tablename__ = "counters"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    last: Mapped[int]


class GroupCounter(Model):
    """The last number given for one kind of thing in one group."""

    __tablename__ = "group_counters"
    __table_args__ = (UniqueConstraint("group_id", "kind"),)

    group_id: Mapped[int] = mapped_column(ForeignKey("namespaces.id", ondelete="CASCADE"))
    kind: Mapped[str]
    last: Mapped[int]


def next_iid(project_id: int, kind: str) -> int:
    """Return the next number of a project; the counter is locked until the end of the transaction."""
    return next_iids(project_id, kind, 1)


def next_iids(project_id: int, kind: str, count: int) -> int:
    """Reserve consecutive numbers of a project and return the first of them."""
    return _reserve(Counter, project_id, kind, count)


def next_iid_in(owner: Project | Group, kind: str) -> int:
    """Return the next number of a project or a group; the counter is locked until the end of the transaction."""
    return _reserve(GroupCounter if isinstance(owner, Group) else Counter, owner.id, kind, 1)


def _reserve(model: type[Counter | GroupCounter], owner_id: int, kind: str, count: int) -> int:
    values = {"of_owner": owner_id, "of_kind": kind, "added": count}
    last: int = db.session.connection().execute(_add(db.engine.dialect.name, model), values).scalar_one()
    return last - count + 1


@functools.cache
def _add(_dialect: str, model: type[Counter | GroupCounter]) -> Any:
    """The statement that reserves numbers, built once."""
    counters = Base.metadata.tables[model.__tablename__]
    owner = "group_id" if model is GroupCounter else "project_id"
    new = insert(counters).values(
        {owner: bindparam("of_owner"), "kind": bindparam("of_kind"), "last": bindparam("added", type_=Key)}
    )
    counted = new.on_conflict_do_update(
        index_elements=[owner, "kind"], set_={"last": counters.c.last + bindparam("added", type_=Key)}
    )
    return counted.returning(counters.c.last)
