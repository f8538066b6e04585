"""Numbers (``iid``) that count within a project: gaps are not filled, none is given twice."""

from __future__ import annotations

import functools
from typing import Any

from sqlalchemy import ForeignKey, UniqueConstraint, bindparam
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db.base import Base, Key, Model
from project_service.kit.db.session import db, insert


class Counter(Model):
    """The last number given for one kind of thing in one project."""

    __tablename__ = "counters"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    last: Mapped[int]


COUNTERS = Base.metadata.tables[Counter.__tablename__]


def next_iid(project_id: int, kind: str) -> int:
    """Return the next number; the counter is locked until the end of the transaction."""
    return next_iids(project_id, kind, 1)


def next_iids(project_id: int, kind: str, count: int) -> int:
    """Reserve consecutive numbers and return the first of them."""
    values = {"of_project": project_id, "of_kind": kind, "added": count}
    last: int = db.session.connection().execute(_add(db.engine.dialect.name), values).scalar_one()
    return last - count + 1


@functools.cache
def _add(_dialect: str) -> Any:
    """The statement that reserves numbers, built once."""
    new = insert(COUNTERS).values(
        project_id=bindparam("of_project"), kind=bindparam("of_kind"), last=bindparam("added", type_=Key)
    )
    counted = new.on_conflict_do_update(
        index_elements=["project_id", "kind"], set_={"last": COUNTERS.c.last + bindparam("added", type_=Key)}
    )
    return counted.returning(COUNTERS.c.last)
