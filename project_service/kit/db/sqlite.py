"""SQLite: pragmas, transactions, and the queue of writers.

SQLite has one writer at a time, and a connection that finds it busy polls, which starves some of many writers. A
writing transaction therefore takes a kernel lock on a file beside the database before ``BEGIN IMMEDIATE``: waiting
writers queue in the kernel in order, and no transaction has to be upgraded from reading to writing.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import Any

from sqlalchemy import Connection, Engine, event

from project_service.kit import file_locks

BUSY_TIMEOUT_MS = 30_000
WRITE = "BEGIN IMMEDIATE"
SNAPSHOT = "BEGIN"
AUTOCOMMIT = ""
_LOCK = "write_lock"
# the statement that a transaction begins with in the current context
begin_statement: ContextVar[str] = ContextVar("begin_statement", default=WRITE)


def configure(engine: Engine, synchronous: str) -> None:
    """Register the listeners of an engine."""
    lock_path = f"{engine.url.database}.lock"

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.create_function("folded", 1, _folded, deterministic=True)
        connection.isolation_level = None  # the driver must not begin transactions by itself
        cursor = connection.cursor()
        for pragma in (
            "journal_mode=WAL",
            f"synchronous={synchronous}",
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
        statement = begin_statement.get()
        if statement == WRITE:
            _lock(connection.info, lock_path)
        if statement:
            connection.exec_driver_sql(statement)

    @event.listens_for(engine, "checkin")
    def release(_connection: Any, record: Any) -> None:
        _unlock(record.info)

    @event.listens_for(engine, "close")
    def release_closed(_connection: Any, record: Any) -> None:
        _unlock(record.info)


def open_shared_memory(engine: Engine) -> None:
    """Open a connection that stays in the pool of this process.

    The first connection to a database creates the shared memory of the write-ahead log; on a full disk it could not.
    """
    if not os.path.exists(engine.url.database or ""):
        return
    connection = engine.raw_connection()
    try:
        connection.cursor().execute("SELECT 1 FROM sqlite_master").fetchall()
    finally:
        connection.close()


def _folded(text: str | None) -> str | None:
    return None if text is None else text.lower()


def _lock(info: dict[Any, Any], path: str) -> None:
    """Wait for the other writers; the kernel releases the lock of a process that dies."""
    if _LOCK in info:
        return
    info[_LOCK] = file_locks.lock(path)


def _unlock(info: dict[Any, Any]) -> None:
    descriptor = info.pop(_LOCK, None)
    if descriptor is not None:
        os.close(descriptor)
