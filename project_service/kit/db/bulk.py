"""Bulk insertion without ORM objects, and reservation of ids.

Rows are tuples in the order of the named columns, with the Python values of the columns.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    Date,
    TableValuedAlias,
    Text,
    bindparam,
    func,
    text,
)

from project_service.kit import exact_json
from project_service.kit.db.base import Base, Timestamp, table_of
from project_service.kit.db.session import allow_asynchronous_commit, db, unit_of_work

# one scalar: the sequence is looked up once, and one value is returned, not a row for each id
RESERVE = """
WITH own AS MATERIALIZED (SELECT pg_get_serial_sequence(:table, 'id')::regclass AS sequence)
SELECT array_agg(nextval(own.sequence)) FROM own, generate_series(1, :count)
"""
FIRST_RESERVED_IDS, MAX_RESERVED_IDS = 1000, 32_000


class Writer:
    """Inserts rows of one table: with ``COPY`` into PostgreSQL, with ``executemany`` into SQLite."""

    def __init__(self, model: type[Base], *columns: str) -> None:
        table = table_of(model)
        names = ", ".join(columns)
        self._is_sqlite = db.engine.dialect.name == "sqlite"
        self._converters = {
            index: convert
            for index, name in enumerate(columns)
            if (convert := _converter(table.c[name].type)) is not None
        }
        placeholders = ", ".join("?" * len(columns))
        self._insert = f"INSERT INTO {table.name} ({names}) VALUES ({placeholders})"  # noqa: S608  # names of our tables
        self._copy = f"COPY {table.name} ({names}) FROM STDIN"

    def write(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows within the current unit of work.

        Raises:
            DBAPIError: SQLite refused a row.
            psycopg.Error: PostgreSQL refused a row.

        """
        if not rows:
            return
        connection, stored = db.session.connection(), self._stored(rows)
        if self._is_sqlite:
            connection.exec_driver_sql(self._insert, list(stored))
            return
        cursor: Any = connection.connection.cursor()  # of psycopg: SQLAlchemy has no COPY
        with cursor, cursor.copy(self._copy) as copy:
            for row in stored:
                copy.write_row(row)

    def _stored(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """The rows with values that the drivers of both databases accept."""
        columns: list[Sequence[Any]] = list(zip(*rows, strict=True))
        for index, convert in self._converters.items():
            columns[index] = [None if value is None else convert(value) for value in columns[index]]
        return zip(*columns, strict=True)


def table_of_ids(ids: Iterable[int]) -> TableValuedAlias:
    """Return ids, sent as one parameter, as a table with the column ``value``."""
    if db.engine.dialect.name == "sqlite":
        return func.json_each(bindparam(None, _json(list(ids)), type_=Text)).table_valued("value")
    return func.unnest(bindparam(None, list(ids), type_=ARRAY(BigInteger))).table_valued("value").render_derived()


def new_ids(model: type[Base]) -> Iterator[int]:
    """Generate ids for new rows of a table, reserved in growing blocks.

    A block is reserved in a unit of work of its own and is never handed out again, even if no row uses its ids. Blocks
    grow because on SQLite each reservation waits for other writers.
    """
    counts = (min(FIRST_RESERVED_IDS << doublings, MAX_RESERVED_IDS) for doublings in itertools.count())
    return itertools.chain.from_iterable(_reserve(model.__tablename__, count) for count in counts)


def _reserve(table: str, count: int) -> Iterable[int]:
    with unit_of_work():
        allow_asynchronous_commit()  # ids can be lost only together with the rows that use them
        if db.engine.dialect.name != "sqlite":
            ids: list[int] = db.session.scalar(text(RESERVE), {"table": table, "count": count})
            return ids
        counted = text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :table RETURNING seq")
        last = db.session.scalar(counted, {"count": count, "table": table})
        if last is None:
            last = count
            db.session.execute(
                text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"), {"table": table, "last": last}
            )
        return range(last - count + 1, last + 1)


def _converter(kind: Any) -> Callable[[Any], Any] | None:
    if isinstance(kind, JSON):
        return _json
    if isinstance(kind, Timestamp):
        return _timestamp
    if isinstance(kind, Date):
        return dt.date.isoformat
    return None


def _json(value: Any) -> str:
    return exact_json.dumps(value).decode()


@functools.lru_cache(maxsize=1024)
def _timestamp(value: dt.datetime) -> str:
    # as SQLite stores it; connections to PostgreSQL read it as UTC, their time zone
    return value.astimezone(dt.UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
