"""Search for parts of texts by an index of trigrams: FTS5 on SQLite, ``pg_trgm`` on PostgreSQL.

Each ``TextIndex`` covers some columns of a table. On SQLite it is an FTS5 table, which a migration creates with the
triggers that keep it current in the same transaction. On PostgreSQL it is an index of an expression, which
``create_missing`` creates after each upgrade where the server has the extension. Without an index, and for words of
less than ``MIN_WORD_CHARACTERS``, the texts of rows are compared: callers bound how many (``needs_scan``, ``newest``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    String,
    Table,
    and_,
    bindparam,
    cast,
    column,
    func,
    inspect,
    literal_column,
    select,
    table,
    text,
    tuple_,
)

from project_service.kit.db import searching
from project_service.kit.db.session import begin_search, db

MIN_WORD_CHARACTERS = 3
MAX_WORDS = 10
EXTENSION = "pg_trgm"
# more rows than this with a word: comparing texts in the order of a list finds a page of them sooner
MAX_MATCHES = 10_000
MAX_SCANNED_ROWS = 20_000  # the newest, by a search that no index serves
LIKE_ESCAPE = "/"
LIKE_SYMBOL = re.compile(r"[%_/]")
ADD = "INSERT INTO {index} (rowid, {names}) VALUES (new.id, {new});"
REMOVE = "INSERT INTO {index} ({index}, rowid, {names}) VALUES ('delete', old.id, {old});"
REBUILD = "INSERT INTO {index} ({index}) VALUES ('rebuild')"
# statements name columns that they do not change
TRIGGERS = {
    "{index}_insert": "AFTER INSERT ON {table} BEGIN " + ADD + " END",
    "{index}_delete": "AFTER DELETE ON {table} BEGIN " + REMOVE + " END",
    "{index}_update": "AFTER UPDATE OF {names} ON {table} WHEN {differs} BEGIN " + REMOVE + ADD + " END",
}
_WORD = re.compile(r'"([^"]+)"|(\S+)')


INDEXES: list[TextIndex] = []


@dataclass(frozen=True, slots=True)
class TextIndex:
    """The columns of a table whose texts are searched; others than texts are searched as they are stored."""

    table: Table
    columns: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the FTS5 table of SQLite, and of the index of PostgreSQL."""
        return f"{self.table.name}_search"

    def expression(self, prefix: str = "") -> str:
        """Return the SQL of all texts of a row, one on each line."""
        texts = (f"coalesce(CAST({prefix}{name} AS TEXT), '')" for name in self.columns)
        return " || '\n' || ".join(texts)


def add(index: TextIndex) -> TextIndex:
    """Register an index, which upgrades create and ``doctor`` examines."""
    INDEXES.append(index)
    return index


def words_of(query: str, most: int = MAX_WORDS) -> list[str]:
    """Return the words of a query in lower case, up to ``most``; what is quoted is one word."""
    words = ((quoted or word).strip().lower().replace("\0", "") for quoted, word in _WORD.findall(query))
    return list(dict.fromkeys(word for word in words if word))[:most]


def needs_scan(index: TextIndex, words: Sequence[str]) -> bool:
    """Whether no index serves any of the words, so that the caller has to bound the rows that are compared."""
    return not any(map(_is_long, words)) or not has_index(index)


def newest(statement: Select[Any], moment: Any, row_id: Any) -> tuple[Select[Any], bool]:
    """Restrict a statement to its newest ``MAX_SCANNED_ROWS`` rows; return it and whether it leaves out any.

    ``moment`` and ``row_id`` are the columns of the order, both descending; an index should serve it.
    """
    begin_search()
    order = tuple_(moment, row_id)
    columns = statement.order_by(None).with_only_columns(moment, row_id, maintain_column_froms=True)
    last = columns.order_by(moment.desc(), row_id.desc()).offset(MAX_SCANNED_ROWS).limit(1)
    oldest = db.session.execute(last).first()
    return (statement, False) if oldest is None else (statement.where(order > tuple_(*oldest)), True)


def has_index(index: TextIndex) -> bool:
    """Whether the index exists in the current database; an index that is not registered exists nowhere."""
    if index not in INDEXES:
        return False
    if db.engine.dialect.name == "sqlite":
        return True
    return db.session.scalar(select(cast(func.to_regclass(index.name), String))) is not None


def contains(index: TextIndex, words: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition that the texts of a row contain all words, in any case, with a deadline."""
    begin_search()
    if db.engine.dialect.name != "sqlite" or index not in INDEXES:
        return and_(*(_compares(index, word) for word in words))
    indexed = [word for word in words if _is_long(word)]
    compared = [_compares(index, word) for word in words if not _is_long(word)]
    if indexed and not _is_frequent(index, indexed):
        return and_(index.table.c.id.in_(_matches(index, indexed)), *compared)
    return and_(*(_compares(index, word) for word in indexed), *compared)


def create_missing(connection: Connection) -> None:
    """Create what upgrades do not: triggers that the copy of a table has lost on SQLite, indexes of PostgreSQL.

    The latter need an extension that the server has and lets us use.
    """
    if connection.dialect.name == "sqlite":
        for index in INDEXES:
            _create_missing_triggers(connection, index)
    if connection.dialect.name != "postgresql" or not _has_extension(connection):
        return
    for index in INDEXES:
        if inspect(connection).has_table(index.table.name):
            connection.exec_driver_sql(
                f"CREATE INDEX IF NOT EXISTS {index.name} ON {index.table.name}"
                f" USING gin (lower({index.expression()}) gin_trgm_ops)"
            )


def _create_missing_triggers(connection: Connection, index: TextIndex) -> None:
    """Create the triggers that keep an index current, and fill it again, unless all are there."""
    present = text("SELECT name FROM sqlite_master WHERE name LIKE :start ESCAPE '!' AND type IN ('table', 'trigger')")
    start = index.name.replace("_", "!_") + "%"
    names = set(connection.scalars(present, {"start": start}))
    parts = {
        "index": index.name,
        "table": index.table.name,
        "names": ", ".join(index.columns),
        "new": ", ".join(f"new.{name}" for name in index.columns),
        "old": ", ".join(f"old.{name}" for name in index.columns),
        "differs": " OR ".join(f"new.{name} IS NOT old.{name}" for name in index.columns),
    }
    if index.name not in names or all(trigger.format(**parts) in names for trigger in TRIGGERS):
        return
    for trigger, statement in TRIGGERS.items():
        connection.exec_driver_sql(f"DROP TRIGGER IF EXISTS {trigger.format(**parts)}")
        connection.exec_driver_sql(f"CREATE TRIGGER {trigger.format(**parts)} {statement.format(**parts)}")
    connection.exec_driver_sql(REBUILD.format(**parts))


def _has_extension(connection: Connection) -> bool:
    """Whether the extension is installed in the database, now or before."""
    installed = text("SELECT installed_version FROM pg_available_extensions WHERE name = :name")
    extension = connection.execute(installed, {"name": EXTENSION}).first()
    if extension is None or extension[0] is not None:
        return extension is not None
    may_create = text("SELECT has_database_privilege(current_database(), 'CREATE')")
    if not connection.scalar(may_create):
        return False
    connection.exec_driver_sql(f"CREATE EXTENSION IF NOT EXISTS {EXTENSION}")  # a trusted one: the owner may
    return True


def _is_long(word: str) -> bool:
    return len(word) >= MIN_WORD_CHARACTERS


def _is_frequent(index: TextIndex, words: Sequence[str]) -> bool:
    counted = _matches(index, words).limit(MAX_MATCHES + 1).subquery()
    return (db.session.scalar(select(func.count()).select_from(counted)) or 0) > MAX_MATCHES


def _matches(index: TextIndex, words: Sequence[str]) -> Select[int]:
    phrases = " AND ".join('"{}"'.format(word.replace('"', '""')) for word in words)
    indexed = table(index.name, column("rowid"))
    query = literal_column(index.name).op("MATCH")(bindparam(None, phrases, type_=String))
    return select(indexed.c.rowid).where(query)


def _compares(index: TextIndex, word: str) -> ColumnElement[bool]:
    texts: ColumnElement[str] = literal_column(index.expression(f"{index.table.name}."), String)
    # SQLite's own function knows the letters of ASCII only, and is much faster than one that knows all
    fold = func.lower if word.isascii() else searching.folded
    # in the text of the statement: which plan of PostgreSQL is fast depends on how many rows have the word, and a plan
    # for parameters of any value sorts all of them
    escaped = LIKE_SYMBOL.sub(rf"{LIKE_ESCAPE}\g<0>", word)
    pattern = bindparam(None, f"%{escaped}%", type_=String, literal_execute=True)
    return fold(texts).like(pattern, escape=LIKE_ESCAPE)
