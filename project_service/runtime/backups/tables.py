"""Dump and load of the rows of every table, in one format for both databases.

Tables and columns are read from the database, never from the models: a backup of an older release is restored into the
tables of that release, which are upgraded afterwards. Values are JSON; dates and times are ISO 8601, JSON columns their
text, secrets stay encrypted.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import orjson
from sqlalchemy import (
    JSON,
    Boolean,
    Connection,
    Date,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    TableClause,
    Text,
    bindparam,
    cast,
    column,
    func,
    insert,
    inspect,
    select,
    table,
    text,
)
from sqlalchemy.types import String, TypeEngine

from project_service.kit.db.revisions import VERSION_TABLE
from project_service.runtime.backups.archive import BackupError

BATCH_ROWS = 500
CHUNK_BYTES = 4 << 20
JSON_TYPES = (Boolean, Integer, Float, String)  # with JSON values; Text is a String
PARSERS: dict[type[TypeEngine[Any]], Callable[[Any], Any]] = {
    DateTime: dt.datetime.fromisoformat,
    Date: dt.date.fromisoformat,
    LargeBinary: base64.b64decode,
}


def tables(connection: Connection) -> list[TableClause]:
    """Return all tables of the service, reflected from the database."""
    inspector, derived = inspect(connection), _search_tables(connection)
    return [
        table(name, *(column(each["name"], each["type"]) for each in inspector.get_columns(name)))
        for name in sorted(inspector.get_table_names())
        if name != VERSION_TABLE and not name.startswith(derived)
    ]


def _search_tables(connection: Connection) -> tuple[str, ...]:
    """Return the names of the virtual tables of SQLite; those of the tables behind them begin with theirs.

    They are indexes of texts, which triggers fill again.
    """
    if connection.dialect.name != "sqlite":
        return ()
    virtual = text("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL TABLE%'")
    return tuple(connection.scalars(virtual))


def is_empty(connection: Connection, source: TableClause) -> bool:
    """Whether a table has no rows."""
    return connection.execute(select(text("1")).select_from(source).limit(1)).first() is None


def dump(connection: Connection, source: TableClause) -> Iterator[tuple[int, bytes]]:
    """Iterate over the rows of a table in chunks with their number of rows; a chunk begins with the column names."""
    head = orjson.dumps([each.name for each in source.columns])
    lines, size = [head], 0
    rows = connection.execute(
        select(*(_outgoing(each) for each in source.columns)).select_from(source),
        execution_options={"stream_results": True, "yield_per": BATCH_ROWS},
    )
    for row in rows:
        lines.append(orjson.dumps([_to_json(value) for value in row]))
        size += len(lines[-1])
        if size >= CHUNK_BYTES:
            yield len(lines) - 1, b"\n".join(lines)
            lines, size = [head], 0
    if len(lines) > 1:
        yield len(lines) - 1, b"\n".join(lines)


def load(connection: Connection, target: TableClause, chunk: bytes) -> None:
    """Insert the rows of a chunk."""
    names, *rows = (orjson.loads(line) for line in chunk.splitlines())
    missing = [name for name in names if name not in target.columns]
    if missing:
        raise BackupError(f"the table {target.name} has no column {missing[0]}: the backup is of another release")
    columns = [target.columns[name] for name in names]
    statement = insert(target).values({each: _incoming(each, connection) for each in columns})
    read = [_parser(each.type) for each in columns]
    for start in range(0, len(rows), BATCH_ROWS):
        connection.execute(
            statement,
            [
                {
                    f"new_{name}": None if value is None else convert(value)
                    for name, convert, value in zip(names, read, row, strict=True)
                }
                for row in rows[start : start + BATCH_ROWS]
            ],
        )


def counters(connection: Connection) -> dict[str, int]:
    """Return the highest id that each table has ever assigned: an id is never assigned twice."""
    if connection.dialect.name == "sqlite":
        return {row.name: row.seq for row in connection.execute(text("SELECT name, seq FROM sqlite_sequence"))}
    counted = {}
    for source in tables(connection):
        if (sequence := _sequence(connection, source.name)) is not None:
            last = connection.scalar(text(f"SELECT CASE WHEN is_called THEN last_value END FROM {sequence}"))  # noqa: S608  # the name comes from the database
            if last is not None:
                counted[source.name] = last
    return counted


def set_counters(connection: Connection, last_ids: dict[str, int]) -> None:
    """Set the counters of ids to those of the backup."""
    for name, last in last_ids.items():
        if connection.dialect.name == "sqlite":
            connection.execute(text("DELETE FROM sqlite_sequence WHERE name = :name"), {"name": name})
            counted = text("INSERT INTO sqlite_sequence (name, seq) VALUES (:name, :last)")
            connection.execute(counted, {"name": name, "last": last})
        elif (sequence := _sequence(connection, name)) is not None:
            connection.execute(select(func.setval(sequence, last)))


def defer_constraints(connection: Connection) -> Callable[[], None]:
    """Defer the check of foreign keys, which have cycles; return a function that checks them."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
        return lambda: None  # checked at the commit
    quoted = connection.dialect.identifier_preparer.quote
    inspector = inspect(connection)
    altered = [
        f"ALTER TABLE {quoted(source.name)} ALTER CONSTRAINT {quoted(key['name'])}"
        for source in tables(connection)
        for key in inspector.get_foreign_keys(source.name)
        if key["name"] is not None and not key["options"].get("deferrable")
    ]
    for statement in altered:
        connection.exec_driver_sql(f"{statement} DEFERRABLE INITIALLY DEFERRED")

    def check() -> None:
        connection.exec_driver_sql("SET CONSTRAINTS ALL IMMEDIATE")
        for statement in altered:
            connection.exec_driver_sql(f"{statement} NOT DEFERRABLE")

    return check


def _sequence(connection: Connection, name: str) -> str | None:
    if "id" not in {each["name"] for each in inspect(connection).get_columns(name)}:
        return None
    return connection.scalar(select(func.pg_get_serial_sequence(name, "id")))


def _outgoing(source: Any) -> Any:
    if isinstance(source.type, JSON):
        return cast(source, Text)
    if not isinstance(source.type, (*JSON_TYPES, *PARSERS)):
        raise BackupError(f"columns of type {source.type}, such as {source.name}, are not supported")
    return source


def _incoming(target: Any, connection: Connection) -> Any:
    name = f"new_{target.name}"
    if not isinstance(target.type, JSON):
        return bindparam(name, type_=target.type)
    as_text = bindparam(name, type_=Text())
    return as_text if connection.dialect.name == "sqlite" else cast(as_text, target.type)


def _to_json(value: Any) -> Any:
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value


def _parser(type_: TypeEngine[Any]) -> Callable[[Any], Any]:
    return next((read for kind, read in PARSERS.items() if isinstance(type_, kind)), lambda value: value)
