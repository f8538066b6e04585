"""Many rows at once, past the machinery that makes objects of them: for imports.

Rows are tuples in the order of the named columns, their values those that the columns have in Python. They are written
in the current transaction, with the driver's own means: ``executemany`` on SQLite, ``COPY`` on PostgreSQL.
"""

from __future__ import annotations

import datetime as dt
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import NoneType
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Date,
    Table,
    TableValuedAlias,
    Text,
    any_,
    bindparam,
    cast,
    func,
    select,
    text,
)
from sqlalchemy.engine.interfaces import DBAPICursor

from project_service.kit import bigint_json
from project_service.kit.db.base import Base, Timestamp
from project_service.kit.db.session import allow_asynchronous_commit, db, unit_of_work
from project_service.kit.db.statements import tell

# the sequence is looked up once, and the numbers come as one value: both cost more than the numbers
RESERVE = """
WITH own AS MATERIALIZED (SELECT pg_get_serial_sequence(:table, 'id')::regclass AS sequence)
SELECT array_agg(nextval(own.sequence)) FROM own, generate_series(1, :count)
"""
FIRST_IDS, MOST_IDS = 1000, 32_000
NOTHING = "\\N"  # in the text format of COPY
ESCAPES = (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r"))
WALL_CLOCK = len("2021-01-20 08:15:30.123456")
Convert = Callable[[Any], Any]
Packed = bytes | list[tuple[Any, ...]]


class Writer:
    """Writes rows of one table. What rows are ``packed`` to can be made in another process than the one that writes."""

    def __init__(self, model: type[Base], *columns: str) -> None:
        table: Table = model.__table__  # type: ignore[assignment]  # of a mapped class it is nothing else
        self.sqlite = db.engine.dialect.name == "sqlite"
        self.converters = [_converter(table.c[name].type, sqlite=self.sqlite) for name in columns]
        names = ", ".join(columns)
        if self.sqlite:
            self.statement = f"INSERT INTO {table.name} ({names}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608  # our own names
        else:
            self.statement = f"COPY {table.name} ({names}) FROM STDIN"

    def packed(self, rows: Iterable[tuple[Any, ...]]) -> Packed:
        """Rows as ``write`` takes them; ``ValueError`` for a text with NUL, which PostgreSQL has not."""
        given = list(zip(*rows, strict=True))
        if not given:
            return [] if self.sqlite else b""
        columns = [_converted(column, convert) for column, convert in zip(given, self.converters, strict=True)]
        if self.sqlite:
            return list(zip(*columns, strict=True))
        lines = map("\t".join, zip(*map(_copied, columns), strict=True))
        return "\n".join([*lines, ""]).encode()

    def write(self, *packed: Packed) -> None:
        """Store rows, in one go however many portions they were packed in.

        What the database refuses raises the error of the driver.
        """
        if not any(packed):
            return
        connection = db.session.connection()
        cursor: Any = connection.connection.cursor()
        tell(connection, cursor, self.statement, None)
        try:
            if self.sqlite:
                cursor.executemany(self.statement, itertools.chain(*packed))
            else:
                with cursor.copy(self.statement) as copy:
                    for each in packed:
                        copy.write(each)
        finally:
            cursor.close()


def _converted(column: Sequence[Any], convert: Convert | None) -> Sequence[Any]:
    if convert is None or _is_all(column, None):
        return column
    return [None if value is None else convert(value) for value in column]


def _is_all(column: Sequence[Any], value: Any) -> bool:
    return column.count(value) == len(column)


def _copied(column: Sequence[Any]) -> Iterable[str]:
    """The values of a column in PostgreSQL's text format of ``COPY``, which is made without a connection to ask."""
    if _is_all(column, column[0]):
        return itertools.repeat(_as_text(column[0]), len(column))
    kinds = set(map(type, column))
    if kinds == {int}:
        return map(str, column)
    if kinds == {str}:
        return _escaped(column)
    if kinds == {str, NoneType}:
        texts = _escaped([value or "" for value in column])
        return [NOTHING if value is None else text for value, text in zip(column, texts, strict=True)]
    known = {value: _as_text(value) for value in set(column)}  # most columns say the same in many rows
    return [known[value] for value in column]


def _as_text(value: Any) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return _escaped([value])[0]
    # a truth value is a number to Python, and 0 or 1 to PostgreSQL as well
    return str(int(value)) if isinstance(value, int) else str(value)


def _escaped(values: Sequence[str]) -> list[str]:
    """Texts of ``COPY``, all of them looked through at once: there is none that PostgreSQL takes and that has a NUL."""
    joined = "\0".join(values)
    for character, escape in ESCAPES:
        if character in joined:  # which is found much quicker than replaced
            joined = joined.replace(character, escape)
    escaped = joined.split("\0")
    if len(escaped) != len(values):
        raise ValueError("a text has a NUL")
    return escaped


def among(column: Any, parameter: str) -> ColumnElement[bool]:
    """Whether a column is one of some ``numbers``, given as one parameter: the statement stays, however many."""
    return _is_of(column, parameter)


def one_of(column: Any, values: Iterable[Any]) -> ColumnElement[bool]:
    """The same for values that stand in the statement; ``in_`` makes another statement of each number of them."""
    return _is_of(column, None, value=numbers(values))


def numbers(values: Iterable[int | str]) -> str:
    """The value of such a parameter, as a text that the database takes apart."""
    if db.engine.dialect.name == "sqlite":
        return _json(list(values))
    return f"{{{','.join(str(value) if isinstance(value, int) else _element(value) for value in values)}}}"


def _element(text: str) -> str:
    r"""A text in the notation that PostgreSQL has for arrays: in quotes, where ``"`` and ``\`` have a ``\`` before."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def _is_of(column: Any, name: str | None, **value: Any) -> ColumnElement[bool]:
    given = bindparam(name, **value, type_=Text)
    found: ColumnElement[bool]
    if db.engine.dialect.name == "sqlite":
        found = column.in_(select(func.json_each(given).table_valued("value").c.value))
    else:
        # Asked of a SELECT, it is no matter of planning how many there are: else each statement is planned anew.
        found = column == any_(cast(select(given).scalar_subquery(), ARRAY(column.type)))
    return found


def listed(values: Iterable[int]) -> TableValuedAlias:
    """Some numbers as a table with the column ``value``, given as one parameter."""
    given = bindparam(None, numbers(values), type_=Text)
    if db.engine.dialect.name == "sqlite":
        return func.json_each(given).table_valued("value")
    return func.unnest(cast(given, ARRAY(BigInteger))).table_valued("value").render_derived()


class Query:
    """A statement that is compiled once, and whose rows come as the driver has them: nothing is converted."""

    def __init__(self, connection: Connection, statement: Any) -> None:
        self.connection = connection
        self.compiled = statement.compile(dialect=connection.dialect)
        self.text = str(self.compiled)

    def rows(self, **values: Any) -> Sequence[Any]:
        """All rows for these values."""
        return self.ask(**values).fetchall()

    def ask(self, **values: Any) -> DBAPICursor:
        """A cursor of the driver, for ``fetchall``; in a pipeline the database begins to answer meanwhile."""
        given = self.compiled.construct_params(values)
        names = self.compiled.positiontup
        sent = given if names is None else tuple(given[name] for name in names)
        cursor = self.connection.connection.cursor()
        tell(self.connection, cursor, self.text, sent)
        cursor.execute(self.text, sent)
        return cursor


def pipeline(connection: Connection) -> AbstractContextManager[Any]:
    """Where ``Query.ask`` waits for no answer, as far as the driver can do that; nothing else may be sent here."""
    driver: Any = connection.connection.driver_connection
    return nullcontext() if connection.dialect.name == "sqlite" else driver.pipeline()


def new_ids(model: type[Base]) -> Iterator[int]:
    """Ids for new rows of a table, reserved many at a time in a unit of their own when they are asked for.

    Nobody else gets one, also when no row comes to have it. Where many have been taken, more are reserved at once: on
    SQLite each time waits until nobody else writes.
    """
    counts = (min(FIRST_IDS << turn, MOST_IDS) for turn in itertools.count())
    return itertools.chain.from_iterable(_reserve(model.__tablename__, count) for count in counts)


def _reserve(table: str, count: int) -> Iterable[int]:
    with unit_of_work():
        allow_asynchronous_commit()  # ids can be lost only together with the rows that use them
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
    return bigint_json.dumps(value).decode()


@functools.lru_cache(maxsize=1024)
def _wall_clock(value: dt.datetime) -> str:
    return value.astimezone(dt.UTC).isoformat(" ", "microseconds")[:WALL_CLOCK]


def _day(value: dt.date) -> str:
    return value.isoformat()
