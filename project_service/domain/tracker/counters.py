"""Numbers that count within a project, without gaps being filled and without two getting the same."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, UniqueConstraint, bindparam, select, true
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.db.base import Model
from project_service.kit.db.session import insert
from project_service.kit.db.statements import prepared


class Counter(Model):
    """The last number given for one kind of thing in one project."""

    __tablename__ = "counters"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    last: Mapped[int]


def next_iid(project_id: int, kind: str) -> int:
    """Take the next number; the row is locked until the end of the transaction, so nobody gets the same."""
    return next_iids(project_id, kind, 1)


def next_iids(project_id: int, kind: str, count: int) -> int:
    """Take so many numbers that follow one another; the first of them."""
    last: int = _advance(project=project_id, kind=kind, count=count).scalar_one()
    return last - count + 1


def advance(condition: ColumnElement[bool] | None = None) -> Any:
    """The statement that takes ``count`` numbers for a ``kind`` in a ``project``, and gives the last of them.

    It takes and gives none where a condition does not hold.
    """
    row = {"project_id": "project", "kind": "kind", "last": "count"}
    types = Counter.__table__.c
    values = [bindparam(given, type_=types[name].type) for name, given in row.items()]
    # SQLite takes ON for a part of a join where no WHERE stands before it
    some = select(*values).where(true() if condition is None else condition)
    new = insert(Counter).from_select(list(row), some)
    counted = new.on_conflict_do_update(
        index_elements=["project_id", "kind"], set_={"last": Counter.last + new.excluded.last}
    )
    return counted.returning(Counter.last)


_advance = prepared(advance)
