"""The database: one base class, one way to write, one unit of work.

SQLite and PostgreSQL are served by the same code. On SQLite a unit that writes takes a kernel lock before
``BEGIN IMMEDIATE``: waiters queue in the kernel instead of polling, which keeps the tail of the waiting times short,
and no transaction has to be upgraded half-way. What only reads takes no lock at all.
"""

from __future__ import annotations

import datetime as dt
import enum
import fcntl
import os
import select
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

from flask import Flask, current_app
from flask_sqlalchemy import SQLAlchemy
from flask_sqlalchemy.session import Session as FlaskSession
from sqlalchemy import (
    BigInteger,
    Connection,
    DateTime,
    Dialect,
    Engine,
    Index,
    Integer,
    MetaData,
    event,
    inspect,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, DisconnectionError, IntegrityError, InvalidRequestError, OperationalError
from sqlalchemy.orm import DeclarativeBase, Mapped, Mapper, mapped_column, registry
from sqlalchemy.orm.exc import StaleDataError
from sqlalchemy.types import JSON, TypeDecorator

from project_service.kit import bigint_json, clock
from project_service.kit.http import current
from project_service.settings import Settings

MIGRATIONS = Path(__file__).parents[2] / "migrations"
BUSY_TIMEOUT_MS = 30_000
# How long PostgreSQL keeps the plan of a statement. Plans that read a small table whole go on doing so while it grows,
# until it looks at the table again by itself, which takes a minute or more.
PLANS_SECONDS = 10
DEADLOCK = "40P01"
IDLE = 0  # what libpq calls a connection without a transaction
POOL_SIZE = 8
KEPT = 4  # connections of a process, for each kind of unit
COMPILED = 200  # statements that are kept compiled; each takes some 40 kB
NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Mode(enum.Enum):
    """What a unit of work does with the database."""

    WRITES = enum.auto()
    SNAPSHOT = enum.auto()  # all of its statements read the same state, on SQLite
    READS = enum.auto()
    COMMITS_EACH = enum.auto()  # statements that write, and are transactions of their own


class Connections:
    """Connections that are kept open for units of work of one kind.

    To take a connection out of the pool and to hand it back takes longer than a statement. A few are kept; when more
    are needed at once, these come from the pool and go back there.
    """

    def __init__(self, engine: Engine, *, autocommit: bool = False) -> None:
        self.is_postgresql = engine.dialect.name == "postgresql"
        # what only reads needs no BEGIN; on SQLite the listener to "begin" sees to that
        level = {"isolation_level": "AUTOCOMMIT"} if autocommit and self.is_postgresql else {}
        self.engine = engine.execution_options(**level)
        self._idle: deque[Connection] = deque()
        self._waiting: deque[None] = deque()  # one for each who waits for the pool
        self._inherited: list[Connection] = []
        event.listen(engine, "engine_disposed", lambda _engine: self.close())

    def take(self) -> Connection:
        """A connection of the caller's own."""
        while True:
            try:
                found = self._idle.pop()
            except IndexError:
                return self._from_pool()
            if not self.is_postgresql or _can_be_used(found.connection.dbapi_connection, found.connection.info):
                return found
            found.invalidate()
            found.close()

    def _from_pool(self) -> Connection:
        self._waiting.append(None)
        try:
            return self.engine.connect()
        finally:
            self._waiting.pop()

    def give_back(self, connection: Connection) -> None:
        """Keep it for the next one, if it is whole and they are not too many; what was not committed is undone.

        While somebody waits for the pool it goes there: whoever comes again and again must not keep it from them.
        """
        is_whole = False
        try:
            if connection.in_transaction():
                connection.rollback()
            is_whole = connection.get_transaction() is None and self._is_at_rest(connection)
        finally:
            if is_whole and len(self._idle) < KEPT and not self._waiting:
                _unlock(connection.connection.info)
                self._idle.append(connection)
            else:
                if not is_whole:
                    connection.invalidate()  # a commit that failed leaves who knows what
                connection.close()

    def _is_at_rest(self, connection: Connection) -> bool:
        """Whether the driver, too, knows of no transaction."""
        if connection.invalidated:
            return False
        driver: Any = connection.connection.dbapi_connection
        return bool(driver.info.transaction_status == IDLE if self.is_postgresql else not driver.in_transaction)

    def close(self) -> None:
        """Close all that nobody has taken; the pool they came from may be gone."""
        while self._idle:
            connection = self._idle.pop()
            connection.invalidate()
            connection.close()

    def forget(self) -> None:
        """After a fork: these are the parent's, and are not to be closed under its feet."""
        self._inherited += self._idle
        self._idle.clear()
        self._waiting.clear()


class Unit:
    """The connection of a unit of work, from when it needs one, and the rows that were read in it.

    Statements that are prepared go straight to it. The session, where somebody asks for it, works on it too, and then
    its commit and its rollback are those of the connection.
    """

    __slots__ = ("_begins", "_connection", "_connections", "rows")

    def __init__(self, connections: Connections, *, begins: bool) -> None:
        self._connections = connections
        self._begins = begins
        self._connection: Connection | None = None
        self.rows: dict[Any, Any] = {}

    def connection(self) -> Connection:
        """The connection; in a transaction unless the unit only reads."""
        if self._connection is None:
            self._connection = self._connections.take()
        if self._begins and not self._connection.in_transaction():
            self._connection.begin()
        return self._connection

    def commit(self) -> None:
        """Commit what was done so far, and let go of the connection until the next statement."""
        if self._connection is not None:
            if self._connection.in_transaction():
                self._connection.commit()
            self.end()

    def end(self) -> None:
        """Let go of the connection; what was not committed is undone."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._connections.give_back(connection)


class Session(FlaskSession):
    """The session, which works on the connection of the unit of work if there is one."""

    def get_bind(self, *args: Any, **options: Any) -> Engine | Connection:
        """Where a statement goes."""
        unit = _current.get()
        return super().get_bind(*args, **options) if unit is None else unit.connection()

    def delete(self, instance: object) -> None:
        """Remove a row; of two who do so at once the second finds it gone, as if it had come later."""
        hold(instance)
        super().delete(instance)


_mode: ContextVar[Mode] = ContextVar("mode", default=Mode.WRITES)
_current: ContextVar[Unit | None] = ContextVar("unit", default=None)


class Timestamp(TypeDecorator[dt.datetime]):
    """A moment: aware and in UTC in Python on every database, whatever the driver hands back."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: dt.datetime | None, dialect: Dialect) -> dt.datetime | None:
        """Refuse a naive moment; SQLite has no zones and gets the UTC wall clock."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a stored moment needs a time zone")
        value = value.astimezone(dt.UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Read SQLite's text at one go, as lists have very many moments; connections to PostgreSQL hand back UTC."""
        return _from_wall_clock if dialect.name == "sqlite" else None


def _from_wall_clock(stored: str | None) -> dt.datetime | None:
    return None if stored is None else dt.datetime.fromisoformat(f"{stored}+00:00")


# SQLite counts only a column of exactly this type upwards by itself; its integers have 64 bits all the same
Key = BigInteger().with_variant(Integer, "sqlite")


class Base(DeclarativeBase):
    """What every table shares: how types are stored and constraints are called."""

    registry = registry(
        metadata=MetaData(naming_convention=NAMES),
        type_annotation_map={int: Key, dt.datetime: Timestamp, dict[str, Any]: JSON, list[str]: JSON, list[Any]: JSON},
    )


class Model(Base):
    """A row with an id that is never given twice, also after it was deleted."""

    __abstract__ = True

    id: Mapped[int] = mapped_column(Key, primary_key=True, sort_order=-10)

    def __init_subclass__(cls, **options: Any) -> None:
        """Have SQLite count ids upwards for ever: a freed id must not hand an old grant to a new row."""
        super().__init_subclass__(**options)
        table = cls.__dict__.get("__table__")
        if table is not None and list(table.primary_key.columns) == [table.columns.get("id")]:
            table.dialect_options["sqlite"]["autoincrement"] = True


class Timestamps:
    """When a row was made and last changed."""

    created_at: Mapped[dt.datetime] = mapped_column(default=clock.now, sort_order=-9)
    updated_at: Mapped[dt.datetime] = mapped_column(default=clock.now, onupdate=clock.now, sort_order=-8)


def index_of_present(name: str, column: str, *more: str) -> Index:
    """An index of the rows that have something in its first column."""
    there = text(f"{column} IS NOT NULL")
    return Index(name, column, *more, sqlite_where=there, postgresql_where=there)


def unique_while_kept(name: str, *columns: str) -> Index:
    """A unique index over the rows that are not being deleted; a deleted row's name is free at once."""
    kept = text("deleting_since IS NULL")
    parts = (column if column.isidentifier() else text(column) for column in columns)
    return Index(name, *parts, unique=True, sqlite_where=kept, postgresql_where=kept)


db = SQLAlchemy(
    model_class=Base,
    session_options={"class_": Session, "expire_on_commit": False, "join_transaction_mode": "control_fully"},
)
Row = TypeVar("Row", bound=Base)


def init_app(app: Flask, settings: Settings) -> None:
    """Wire engine and session into the application."""
    app.config["SQLALCHEMY_DATABASE_URI"] = settings.database_url
    app.config["SQLALCHEMY_ENGINE_OPTIONS"] = _engine_options(settings)
    db.init_app(app)
    with app.app_context():
        if settings.uses_sqlite:
            _listen_to_sqlite(db.engine, settings)
        else:
            _listen_to_postgresql(db.engine)
        app.extensions["connections"] = {each: Connections(db.engine, autocommit=each) for each in (True, False)}


@contextmanager
def unit_of_work(*, write: bool = True) -> Iterator[None]:
    """Run a request or a step of a job: one commit at its end, then what ``after_commit`` was given.

    Any exception leaves neither rows nor jobs behind. ``write=False`` is for steps that only read.
    """
    with _unit(Mode.WRITES if write else Mode.SNAPSHOT):
        yield


@contextmanager
def reading() -> Iterator[None]:
    """Answer a request that only reads: each statement sees what is committed when it begins.

    No transaction is begun or ended for it, which would take as long as a statement.
    """
    with _unit(Mode.READS):
        yield


def connection() -> Connection:
    """The connection of the current unit of work, or else of the session."""
    unit = _current.get()
    if unit is None or (_has_session() and db.session().in_nested_transaction()):
        return db.session.connection()  # which sends the savepoint that was asked for
    return unit.connection()


@contextmanager
def committing_each() -> Iterator[None]:
    """Write with statements that commit themselves, each waited for once: of PostgreSQL, where many may write at once.

    Who loses the connection in here does not know whether the last of them was carried out.
    """
    with _unit(Mode.COMMITS_EACH):
        yield


@contextmanager
def _unit(mode: Mode) -> Iterator[None]:
    outer = _current.get()
    if outer is not None and mode is Mode.WRITES and _mode.get() is not Mode.WRITES:
        commit()  # what was only read so far needs no lock, what is written now does
        outer = None
    unit = outer or _new_unit(mode)
    tokens = _mode.set(mode), _current.set(unit)
    try:
        yield
        commit()
        callbacks = _callbacks()
    except BaseException:
        undo()
        raise
    finally:
        _mode.reset(tokens[0])
        _current.reset(tokens[1])
        if unit is not None:
            unit.rows.clear()
            if unit is not outer:
                unit.end()
    for callback in callbacks:
        callback()


def _new_unit(mode: Mode) -> Unit | None:
    if _has_session() and db.session().in_transaction():
        return None  # begun before the unit was, as on the command line: the unit is the session's, and ends it
    begins = mode in (Mode.WRITES, Mode.SNAPSHOT)
    return Unit(current.app().extensions["connections"][not begins], begins=begins)


def commit() -> None:
    """Commit what the unit of work has done so far, and go on in it with nothing held."""
    if _has_session():
        db.session.commit()
    if unit := _current.get():
        unit.commit()


def can_be_repeated() -> None:
    """Have the commit of this unit not wait for the disk: it says itself how far the work is.

    A machine that fails may take the last of such units with it, whole and all that came after them, and whoever goes
    on does them again. The next commit that waits makes sure of them. On SQLite each commit waits.
    """
    if db.engine.dialect.name == "postgresql":
        db.session.execute(text("SET LOCAL synchronous_commit TO off"))


def _has_session() -> bool:
    """Whether anybody has asked for the session: what reads columns needs none."""
    sessions = db.session.registry
    return bool(sessions.registry) and sessions.has()  # mostly no thread has one, which is told sooner


def flush() -> None:
    """Send what the session has not sent yet, for statements that do not go through it."""
    if _has_session():
        db.session.flush()


def from_session(mapper: Mapper[Any], number: int) -> Any:
    """The row with this id, if the session has it."""
    if not _has_session():
        return None
    return db.session.identity_map.get(mapper.identity_key_from_primary_key((number,)))


def rows_of_unit() -> dict[Any, Any]:
    """What was read in the current unit of work and may be shown in it again; empty in one that writes."""
    unit = _current.get()
    return {} if unit is None or _mode.get() in (Mode.WRITES, Mode.COMMITS_EACH) else unit.rows


@contextmanager
def writing() -> Iterator[None]:
    """Within a unit that only reads: end it, and run the block as a unit that writes."""
    commit()
    with unit_of_work():
        yield


@contextmanager
def snapshot(name: str | None = None) -> Iterator[Connection]:
    """A connection that reads everything as of one moment, that of its first statement; others go on writing.

    With the name of a snapshot that another process has, and still reads by, it is that one's moment. SQLite knows no
    names: there it is now, which is the same as long as nobody writes.
    """
    token = _mode.set(Mode.SNAPSHOT)
    try:
        with db.engine.connect() as connection:
            if connection.dialect.name == "postgresql":
                connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            if name:
                connection.exec_driver_sql(f"SET TRANSACTION SNAPSHOT '{name}'")
            elif name is not None:
                name_of(connection)
            yield connection
    finally:
        _mode.reset(token)


def name_of(connection: Connection) -> str:
    """What another process takes the ``snapshot`` of a connection by, whose moment this is at the latest."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master")  # before it reads it has no moment
        return ""
    name: str = connection.exec_driver_sql("SELECT pg_export_snapshot()").scalar_one()
    return name


def undo() -> None:
    """Take back what the current unit of work has done so far, and go on in it: for forms that are shown again."""
    if _has_session():
        db.session.rollback()
        _callbacks()
    if unit := _current.get():
        unit.end()


def after_commit(callback: Callable[[], object]) -> None:
    """Call this when the unit of work has been committed, and never when it failed."""
    db.session.info.setdefault("after_commit", []).append(callback)


def add_unique(row: Row, taken: Exception) -> Row:
    """Store ``row``, or raise ``taken`` when a unique constraint says that another request was faster.

    A savepoint keeps the rest of the unit of work usable.
    """
    try:
        with db.session.begin_nested():
            db.session.add(row)
            db.session.flush()
    except IntegrityError as error:
        if is_unique_violation(error):
            raise taken from error
        raise
    return row


def hold(row: Any, *names: str) -> None:
    """Let nobody else change a row before this unit of work has ended, and read these columns anew.

    ``StaleDataError`` when the row is gone. SQLite has one writer at a time and knows no such locks.
    """
    try:
        db.session.refresh(row, names or ("id",), with_for_update={"key_share": True})
    except InvalidRequestError as error:
        if not inspect(row).persistent:
            raise
        raise StaleDataError(f"{type(row).__name__} was removed a moment ago") from error


def hold_table(model: type[Base]) -> None:
    """Let nobody else write to a small table before this unit of work has ended; others go on reading it."""
    if db.engine.dialect.name == "postgresql":
        db.session.execute(text(f"LOCK TABLE {model.__tablename__} IN SHARE ROW EXCLUSIVE MODE"))


@contextmanager
def unique(taken: Exception) -> Iterator[None]:
    """Flush the changes made in the block; raise ``taken`` when they collide with a unique constraint."""
    try:
        with db.session.begin_nested():
            yield
            db.session.flush()
    except IntegrityError as error:
        if is_unique_violation(error):
            raise taken from error
        raise


def insert(model: type[Base]) -> Any:
    """An ``INSERT`` that knows ``on_conflict_do_nothing`` and ``on_conflict_do_update`` on both databases."""
    dialect = sqlite if db.engine.dialect.name == "sqlite" else postgresql
    return dialect.insert(model)


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether the database refused a duplicate, as opposed to a missing parent or an empty column."""
    return getattr(error.orig, "sqlstate", None) == "23505" or "UNIQUE constraint failed" in str(error.orig)


def is_deadlock(error: Exception) -> bool:
    """Whether the database has undone a transaction so that another one could go on; it may be tried again."""
    return isinstance(error, OperationalError) and getattr(error.orig, "sqlstate", None) == DEADLOCK


def is_refused(error: Exception) -> bool:
    """Whether PostgreSQL has said itself that it did not carry a statement out; without that, nobody knows."""
    if not isinstance(error, DBAPIError) or error.connection_invalidated:
        return False
    return getattr(error.orig, "sqlstate", None) is not None


def dispose_after_fork() -> None:
    """Forget connections inherited from the parent without closing them under its feet."""
    for connections in current_app.extensions["connections"].values():
        connections.forget()
    db.engine.dispose(close=False)


def _callbacks() -> list[Callable[[], object]]:
    callbacks: list[Callable[[], object]] = db.session.info.pop("after_commit", []) if _has_session() else []
    return callbacks


def _engine_options(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {
        "hide_parameters": True,  # errors are logged, and what could not be written may be a secret
        "json_serializer": lambda value: bigint_json.dumps(value).decode(),
        "json_deserializer": _from_json,
        "query_cache_size": COMPILED,
        "pool_size": POOL_SIZE,
        # one of SQLite is a file that is open, and its writers hold one while they queue
        "max_overflow": -1 if settings.uses_sqlite else 2 * POOL_SIZE + KEPT,
    }
    # The places for values that PostgreSQL knows, $1; its driver looks for its own each time where there are many. With
    # these SQLAlchemy takes no "%" in an expression among the values of many rows that are inserted and returned.
    return options if settings.uses_sqlite else options | {"paramstyle": "numeric_dollar"}


def _from_json(stored: Any) -> Any:
    # SQLite takes the name of the type JSON for NUMERIC and hands a lone number back as a number
    return stored if isinstance(stored, int | float) else bigint_json.loads(stored)


def _listen_to_sqlite(engine: Engine, settings: Settings) -> None:
    lock_path = f"{engine.url.database}.lock"

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.create_function("folded", 1, _folded, deterministic=True)
        connection.isolation_level = None  # transactions begin where we say, not where the driver guesses
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={settings.sqlite_synchronous}",
            "foreign_keys=ON",
            f"busy_timeout={BUSY_TIMEOUT_MS}",
            "temp_store=MEMORY",
            "cache_size=-4000",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":
            return
        mode = _mode.get()
        if mode is Mode.WRITES:
            _lock(connection.connection.info, lock_path)
            send("BEGIN IMMEDIATE", connection)
        elif mode is Mode.SNAPSHOT:
            send("BEGIN", connection)

    def send(text: str, connection: Connection) -> None:
        # by way of the library it would take as long as a whole statement that does something
        driver: Any = connection.connection.dbapi_connection
        try:
            driver.execute(text)
        except Exception as error:  # noqa: BLE001  # raised again, as an error of the library
            connection._handle_dbapi_exception(error, text, None, None, None)

    @event.listens_for(engine, "checkin")
    def release(_connection: Any, record: Any) -> None:
        _unlock(record.info)

    @event.listens_for(engine, "close")
    @event.listens_for(engine, "close_detached")
    def forget(_connection: Any, record: Any = None) -> None:
        if record is not None:
            _unlock(record.info)


def _listen_to_postgresql(engine: Engine) -> None:
    driver: Any = engine.dialect.dbapi

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        # which take statements as they are, see _engine_options
        connection.cursor_factory, connection.server_cursor_factory = driver.RawCursor, driver.RawServerCursor
        _send_alone(connection, "SET TIME ZONE 'UTC'")  # of moments that are read
        record.info["planned"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def refuse_useless(connection: Any, record: Any, _proxy: Any) -> None:
        if not _can_be_used(connection, record.info):
            raise DisconnectionError


def _can_be_used(connection: Any, info: dict[Any, Any]) -> bool:
    """Whether a connection to PostgreSQL that rested is of use; of statements planned too long ago it drops the plans.

    One that a server which ended has closed has something to be read: its end. To ask it would take a round trip.
    """
    told = select.poll()
    try:
        told.register(connection.fileno(), select.POLLIN)
        if told.poll(0):
            return False
        if time.monotonic() - info["planned"] > PLANS_SECONDS:
            _send_alone(connection, "DISCARD PLANS")
            info["planned"] = time.monotonic()
    except connection.Error:
        return False
    return True


def _send_alone(connection: Any, statement: str) -> None:
    """Send PostgreSQL a statement that is no part of any transaction."""
    was, connection.autocommit = connection.autocommit, True
    connection.execute(statement)
    connection.autocommit = was


def _folded(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _lock(info: dict[Any, Any], path: str) -> None:
    """Queue behind the other writers; the kernel frees the lock of a process that dies."""
    if "write_lock" in info:
        return
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    info["write_lock"] = descriptor


def _unlock(info: dict[Any, Any]) -> None:
    descriptor = info.pop("write_lock", None)
    if descriptor is not None:
        os.close(descriptor)
