"""Row and table locks that are held until the unit of work ends.

SQLite has one writer at a time and needs no such locks.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import inspect, text
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.orm.exc import StaleDataError

from project_service.kit.db.base import Base
from project_service.kit.db.session import db


def lock_row(row: Any, *columns: str) -> None:
    """Lock a row against changes by others, and read these columns again.

    Raises:
        StaleDataError: the row has been deleted.

    """
    try:
        db.session.refresh(row, columns or ("id",), with_for_update={"key_share": True})
    except InvalidRequestError as error:
        if not inspect(row).persistent:
            raise
        raise StaleDataError(f"{type(row).__name__} has been deleted") from error


def delete_locked(row: Any) -> None:
    """Lock and delete a row; of two concurrent requests the second finds it deleted.

    Raises:
        StaleDataError: the row has been deleted.

    """
    lock_row(row)
    db.session.delete(row)


def lock_table(model: type[Base]) -> None:
    """Lock a small table against writes by others, who can still read it."""
    if db.engine.dialect.name == "postgresql":
        db.session.execute(text(f"LOCK TABLE {model.__tablename__} IN SHARE ROW EXCLUSIVE MODE"))
