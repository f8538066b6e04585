"""Numbers that count within a project, without gaps being filled and without two getting the same."""

from __future__ import annotations

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit.database import Model, db, insert


class Counter(Model):
    """The last number given for one kind of thing in one project."""

    __tablename__ = "counters"
    __table_args__ = (UniqueConstraint("project_id", "kind"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id", ondelete="CASCADE"))
    kind: Mapped[str]
    last: Mapped[int]


def next_iid(project_id: int, kind: str) -> int:
    """Take the next number; the row is locked until the end of the transaction, so nobody gets the same."""
    statement = insert(Counter).values(project_id=project_id, kind=kind, last=1)
    counted = statement.on_conflict_do_update(
        index_elements=["project_id", "kind"], set_={"last": Counter.last + 1}
    ).returning(Counter.last)
    return int(db.session.execute(counted).scalar_one())
