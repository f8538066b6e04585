"""Many rows at once, past the machinery that makes objects of them: for imports.

Rows are tuples in the order of the named columns, their values those that the columns have in Python. They are written
in the current transaction, with the driver's own means: ``executemany`` on SQLite, ``COPY`` on PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import orjson
from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Date,
    Table,
    TableValuedAlias,
    any_,
    bindparam,
    func,
    select,
    text,
)

from project_service.kit.database import Base, Timestamp, db, unit_of_work

# the sequence is looked up once, and the numbers come as one value: both cost more than the numbers
RESERVE = """
WITH own AS MATERIALIZED (SELECT pg_get_serial_sequence(:table, 'id')::regclass AS sequence)
SELECT array_agg(nextval(own.sequence)) FROM own, generate_series(1, :count)
"""
WALL_CLOCK = len("2021-01-20 08:15:30.123456")
Convert = Callable[[Any], Any]
Packed = bytes | list[list[Any]]
ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
ESCAPED = re.compile(r"[\\\t\n\r]")


class Writer:
    """Writes rows of one table. What rows are ``packed`` to can be made in another process than the one that writes."""

    def __init__(self, model: type[Base], *columns: str) -> None:
        table: Table = model.__table__  # type: ignore[assignment]  # of a mapped class it is nothing else
        self.sqlite = db.engine.dialect.name == "sqlite"
        self.converters = [
            (place, convert)
            for place, name in enumerate(columns)
            if (convert := _converter(table.c[name].type, sqlite=self.sqlite)) is not None
        ]
        names = ", ".join(columns)
        if self.sqlite:
            self.statement = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  # our own names
        else:
            self.statement = f"COPY {table.name} ({names}) FROM STDIN"

    def packed(self, rows: Iterable[tuple[Any, ...]]) -> Packed:
        """Rows as ``write`` takes them."""
        converted = self._converted(rows)
        return list(converted) if self.sqlite else b"".join(map(copied, converted))

    def write(self, packed: Packed) -> None:
        """Store rows; what the database refuses raises the error of the driver."""
        if not packed:
            return
        driver = db.session.connection().connection
        cursor: Any = driver.cursor()
        try:
            if self.sqlite:
                cursor.executemany(self.statement, packed)
            else:
                with cursor.copy(self.statement) as copy:
                    copy.write(packed)
        finally:
            cursor.close()

    def _converted(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[list[Any]]:
        converters = self.converters
        for row in rows:
            values = list(row)
            for place, convert in converters:
                value = values[place]
                if value is not None:
                    values[place] = convert(value)
            yield values


def copied(row: Iterable[Any]) -> bytes:
    """A row as a line of ``COPY`` in PostgreSQL's text format, which is made without a connection to ask."""
    return b"\t".join(map(_copied, row)) + b"\n"


def _copied(value: Any) -> bytes:
    if value is None:
        return b"\\N"
    if isinstance(value, str):
        return ESCAPED.sub(_escaped, value).encode() if ESCAPED.search(value) else value.encode()
    # a truth value is a number to Python, and 0 or 1 to PostgreSQL as well
    return b"%d" % value if isinstance(value, int) else str(value).encode()


def _escaped(found: re.Match[str]) -> str:
    return ESCAPES[found[0]]


def among(column: Any, parameter: str) -> ColumnElement[bool]:
    """Whether a column is one of some ``numbers``, given as one parameter: the statement stays, however many."""
    return _is_of(column, parameter)


def one_of(column: Any, values: Iterable[Any]) -> ColumnElement[bool]:
    """The same for values that stand in the statement; ``in_`` makes another statement of each number of them."""
    return _is_of(column, None, value=numbers(values))


def numbers(values: Iterable[Any]) -> Any:
    """The value of such a parameter."""
    return _json(list(values)) if db.engine.dialect.name == "sqlite" else list(values)


def _is_of(column: Any, name: str | None, **value: Any) -> ColumnElement[bool]:
    if db.engine.dialect.name == "sqlite":
        given = func.json_each(bindparam(name, **value)).table_valued("value")
        found: ColumnElement[bool] = column.in_(select(given.c.value))
        return found
    return column == any_(bindparam(name, **value, type_=ARRAY(column.type)))  # type: ignore[no-any-return]  # of any column


def listed(values: Iterable[int]) -> TableValuedAlias:
    """Some numbers as a table with the column ``value``, given as one parameter."""
    if db.engine.dialect.name == "sqlite":
        return func.json_each(bindparam(None, numbers(values))).table_valued("value")
    return func.unnest(bindparam(None, numbers(values), type_=ARRAY(BigInteger))).table_valued("value").render_derived()


class Query:
    """A statement that is compiled once, and whose rows come as the driver has them: nothing is converted."""

    def __init__(self, connection: Connection, statement: Any) -> None:
        self.connection = connection
        self.compiled = statement.compile(dialect=connection.dialect)
        self.text = str(self.compiled)

    def rows(self, **values: Any) -> Sequence[Any]:
        """All rows for these values."""
        given = self.compiled.construct_params(values)
        positions = self.compiled.positiontup
        sent = given if positions is None else tuple(given[name] for name in positions)
        return self.connection.exec_driver_sql(self.text, sent).all()


class Ids(Iterator[int]):
    """Ids for new rows of a table, reserved some thousands at a time in a unit of their own."""

    def __init__(self, model: type[Base], block: int = 5000) -> None:
        self.table = str(model.__tablename__)
        self.block = block
        self._reserved: Iterator[int] = iter(())

    def __iter__(self) -> Ids:
        """The ids one after the other."""
        return self

    def __next__(self) -> int:
        """The next id; nobody else gets it, also when no row comes to have it."""
        number = next(self._reserved, None)
        if number is None:
            self._reserved = iter(_reserve(self.table, self.block))
            number = next(self._reserved)
        return number


def _reserve(table: str, count: int) -> Iterable[int]:
    with unit_of_work():
        if db.engine.dialect.name != "sqlite":
            found: list[int] = db.session.scalar(text(RESERVE), {"table": table, "count": count})
            return found
        counted = text("UPDATE sqlite_sequence SET seq = seq + :count WHERE name = :table RETURNING seq")
        last = db.session.scalar(counted, {"count": count, "table": table})
        if last is None:
            last = count
            db.session.execute(
                text("INSERT INTO sqlite_sequence (name, seq) VALUES (:table, :last)"), {"table": table, "last": last}
            )
        return range(last - count + 1, last + 1)


def _converter(kind: Any, *, sqlite: bool) -> Convert | None:
    if isinstance(kind, JSON):
        return _json
    if not sqlite:
        return None
    if isinstance(kind, Timestamp):
        return _wall_clock
    return _day if isinstance(kind, Date) else None


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


@functools.lru_cache(maxsize=1024)
def _wall_clock(value: dt.datetime) -> str:
    return value.astimezone(dt.UTC).isoformat(" ", "microseconds")[:WALL_CLOCK]


def _day(value: dt.date) -> str:
    return value.isoformat()
