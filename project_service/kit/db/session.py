"""The database session and the unit of work.

``db.session`` is Flask-SQLAlchemy's session. A request or a step of a job runs in ``unit_of_work()``, which commits at
its end, or in ``reading()``, which needs no transaction on the server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from flask import Flask
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import Connection, Select, Table, text
from sqlalchemy.dialects import postgresql as postgresql_dialect
from sqlalchemy.dialects import sqlite as sqlite_dialect
from sqlalchemy.exc import IntegrityError, OperationalError
from sqlalchemy.orm import raiseload

from project_service.kit import exact_json
from project_service.kit.db import deadlines, postgresql, sqlite
from project_service.kit.db.base import Base
from project_service.settings import Settings

POOL_SIZE = 8
MAX_OVERFLOW_CONNECTIONS = 20
COMPILED_STATEMENTS = 500
DEADLOCK_DETECTED = "40P01"  # PostgreSQL's SQLSTATE codes
UNIQUE_VIOLATION = "23505"
AFTER_COMMIT = "after_commit"
# option of statements for lists: a relationship that was not loaded with the list raises instead of loading row by row
NO_LAZY_LOADING = raiseload("*", sql_only=True)

Row = TypeVar("Row", bound=Base)
Found = TypeVar("Found")

db = SQLAlchemy(model_class=Base, session_options={"expire_on_commit": False})
_begin_statement: ContextVar[str | None] = ContextVar("unit_of_work", default=None)


def init_app(app: Flask, settings: Settings) -> None:
    """Configure engine and session of an application."""
    app.config["SQLALCHEMY_DATABASE_URI"] = settings.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = {
        "hide_parameters": True,  # errors are logged, and parameters may be secrets
        "json_serializer": lambda value: exact_json.dumps(value).decode(),
        "json_deserializer": _from_json,
        "query_cache_size": COMPILED_STATEMENTS,
        "pool_size": POOL_SIZE,
        # writers of SQLite hold a connection while they queue; one more is only an open file
        "max_overflow": -1 if settings.uses_sqlite else MAX_OVERFLOW_CONNECTIONS,
        "pool_pre_ping": not settings.uses_sqlite,
    }
    db.init_app(app)
    with app.app_context():
        if settings.uses_sqlite:
            sqlite.configure(db.engine, settings.sqlite_synchronous)
        else:
            postgresql.configure(db.engine)
        deadlines.configure(db.engine)


def _from_json(stored: Any) -> Any:
    # SQLite treats the type name JSON as NUMERIC and returns a lone number as a number
    return stored if isinstance(stored, int | float) else exact_json.loads(stored)


@contextmanager
def unit_of_work(*, write: bool = True) -> Iterator[None]:
    """Run a request or a step of a job: one commit at its end, then the ``after_commit`` callbacks.

    An exception leaves neither rows nor jobs. ``write=False`` is for steps that only read. A unit inside another one
    joins it; a writing unit inside one that reads ends the reading transaction first.
    """
    with _unit(sqlite.WRITE if write else sqlite.SNAPSHOT):
        yield


@contextmanager
def reading() -> Iterator[None]:
    """Run a request that only reads: each statement sees what is committed when it begins.

    No transaction is begun or ended on the server, which would cost round trips.
    """
    with _unit(sqlite.AUTOCOMMIT):
        yield


@contextmanager
def writing() -> Iterator[None]:
    """Inside a unit that only reads: end its transaction and run the block as a unit that writes."""
    db.session.commit()
    with unit_of_work():
        yield


@contextmanager
def _unit(begin_statement: str) -> Iterator[None]:
    outer = _begin_statement.get()
    if outer is not None and outer != begin_statement == sqlite.WRITE:
        db.session.commit()  # a reading transaction holds no lock, a writing one must
    tokens = _begin_statement.set(begin_statement), sqlite.begin_statement.set(begin_statement)
    try:
        if begin_statement == sqlite.AUTOCOMMIT:
            _begin_autocommit()
        yield
        db.session.commit()
        callbacks = _pop_callbacks()
    except BaseException:
        rollback()
        raise
    finally:
        sqlite.begin_statement.reset(tokens[1])
        _begin_statement.reset(tokens[0])
    for callback in callbacks:
        callback()


def _begin_autocommit() -> None:
    if db.engine.dialect.name == "postgresql" and not db.session().in_transaction():
        db.session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})


def rollback() -> None:
    """Undo what the current unit of work has done so far and continue in it: for forms that are shown again."""
    db.session.rollback()
    _pop_callbacks()


def after_commit(callback: Callable[[], object]) -> None:
    """Call this after the commit of the unit of work, and not at all if it fails."""
    db.session.info.setdefault(AFTER_COMMIT, []).append(callback)


def _pop_callbacks() -> list[Callable[[], object]]:
    callbacks: list[Callable[[], object]] = db.session.info.pop(AFTER_COMMIT, [])
    return callbacks


def begin_search() -> None:
    """Limit the time of the statements that follow in this request: they compare texts (``kit/db/deadlines.py``)."""
    deadlines.begin(db.session)


def allow_asynchronous_commit() -> None:
    """Let the commit of this unit return before it is on disk: for steps that store their own checkpoint.

    A server that crashes may lose the last of such units, each as a whole and in order; the job repeats them. The next
    synchronous commit makes them durable. On SQLite every commit is synchronous.
    """
    if db.engine.dialect.name == "postgresql":
        db.session.execute(text("SET LOCAL synchronous_commit TO off"))


@contextmanager
def snapshot() -> Iterator[Connection]:
    """A connection whose statements all see the state at the first of them, while others go on writing."""
    token = sqlite.begin_statement.set(sqlite.SNAPSHOT)
    try:
        with db.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            yield connection
    finally:
        sqlite.begin_statement.reset(token)


def one(statement: Select[Found], missing: Exception) -> Found:
    """Return the first column of the first row of a statement; raise ``missing`` if there is none."""
    value = db.session.scalar(statement)
    if value is None:
        raise missing
    return value


def add_unique(row: Row, violation: Exception) -> Row:
    """Store ``row``, or raise ``violation`` if it violates a unique constraint.

    A savepoint keeps the rest of the unit of work usable.
    """
    with unique(violation):
        db.session.add(row)
    return row


@contextmanager
def unique(violation: Exception) -> Iterator[None]:
    """Flush the changes made in the block; raise ``violation`` if they violate a unique constraint."""
    try:
        with db.session.begin_nested():
            yield
            db.session.flush()
    except IntegrityError as error:
        if is_unique_violation(error):
            raise violation from error
        raise


def insert(model: type[Base] | Table) -> Any:
    """Return an ``INSERT`` that has ``on_conflict_do_nothing`` and ``on_conflict_do_update`` on both databases."""
    dialect = sqlite_dialect if db.engine.dialect.name == "sqlite" else postgresql_dialect
    return dialect.insert(model)


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether the database refused a duplicate, not a missing parent or an empty column."""
    return getattr(error.orig, "sqlstate", None) == UNIQUE_VIOLATION or "UNIQUE constraint failed" in str(error.orig)


def is_deadlock(error: Exception) -> bool:
    """Whether PostgreSQL ended the transaction because of a deadlock; it may be retried."""
    return isinstance(error, OperationalError) and getattr(error.orig, "sqlstate", None) == DEADLOCK_DETECTED


def dispose_after_fork() -> None:
    """Drop the connections inherited from the parent process without closing them."""
    db.engine.dispose(close=False)
    if db.engine.dialect.name == "sqlite":
        sqlite.open_shared_memory(db.engine)
