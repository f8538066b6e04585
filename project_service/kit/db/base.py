"""Models base: column types, constraint names, primary keys, timestamps and partial indexes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Index, Integer, MetaData, Table, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, registry
from sqlalchemy.types import JSON, TypeDecorator

from project_service.kit import clock

MIGRATIONS = Path(__file__).parents[2] / "migrations"
CONSTRAINT_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Timestamp(TypeDecorator[dt.datetime]):
    """A point in time: aware and in UTC in Python on every database."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        """Refuse a naive datetime; SQLite has no time zones and stores UTC."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored moment needs a time zone")
        value = value.astimezone(dt.UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Parse SQLite's text in one step; connections to PostgreSQL return UTC already."""
        return _from_sqlite_text if dialect.name == "sqlite" else None


def _from_sqlite_text(stored: str | None) -> dt.datetime | None:
    return None if stored is None else dt.datetime.fromisoformat(f"{stored}+00:00")


# SQLite assigns ids automatically only to a column of exactly the type INTEGER, which has 64 bits there
Key = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """Base class of all mapped classes: column types by annotation, names of constraints."""

    # annotations without ``Mapped`` declare attributes that queries set for a response and that are never stored
    __allow_unmapped__ = True
    registry = registry(
        metadata=MetaData(naming_convention=CONSTRAINT_NAMES),
        type_annotation_map={int: Key, dt.datetime: Timestamp, dict[str, Any]: JSON, list[str]: JSON, list[Any]: JSON},
    )


class Model(Base):
    """A row with an id that is never reused, also after the row was deleted."""

    __abstract__ = True

    id: Mapped[int] = mapped_column(Key, primary_key=True, sort_order=-10)

    def __init_subclass__(cls, **options: Any) -> None:
        """Set AUTOINCREMENT on SQLite: a reused id would give a new row the permissions of an old one."""
        super().__init_subclass__(**options)
        table = cls.__dict__.get("__table__")
        if table is not None and list(table.primary_key.columns) == [table.columns.get("id")]:
            table.dialect_options["sqlite"]["autoincrement"] = True


class Timestamps:
    """Columns with the times of creation and last change."""

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now, sort_order=-9)
    updated_at: Mapped[dt.datetime] = mapped_column(default=clock.now, onupdate=clock.now, sort_order=-8)


def table_of(model: type[Base]) -> Table:
    """Return the table of a mapped class."""
    return Base.metadata.tables[model.__tablename__]


def index_where_present(name: str, column: str, *more: str) -> Index:
    """Return a partial index of the rows whose first column is not NULL."""
    present = text(f"{column} IS NOT NULL")
    return Index(name, column, *more, sqlite_where=present, postgresql_where=present)


def unique_unless_deleting(name: str, *columns: str) -> Index:
    """Return a unique index of the rows that are not being deleted: the name of a deleted row is free at once."""
    present = text("deleting_since IS NULL")
    parts = (column if column.isidentifier() else text(column) for column in columns)
    return Index(name, *parts, unique=True, sqlite_where=present, postgresql_where=present)
