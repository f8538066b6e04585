"""The deadline of searches that compare texts: how long they take depends on what a caller searches for.

``begin`` is called by everything that makes the condition of such a search. The statements that follow in the same
transaction are then limited to what is left of ``SEARCH_SECONDS``: on PostgreSQL by ``statement_timeout``, on SQLite by
a function that the database calls while it works. A statement that exceeds it raises the ``OperationalError`` that
``is_exceeded`` recognizes. Jobs have no deadline.
"""

from __future__ import annotations

import time
from typing import Any

from flask import has_request_context
from sqlalchemy import Connection, Engine, event, text
from sqlalchemy.exc import OperationalError

SEARCH_SECONDS = 5.0
INSTRUCTIONS_BETWEEN_CHECKS = 1000  # of SQLite's virtual machine
SQLITE_INTERRUPTED = 9
QUERY_CANCELED = "57014"  # PostgreSQL's SQLSTATE code
_END = "search_deadline"


def configure(engine: Engine) -> None:
    """Remove the deadline of a connection when it returns to the pool."""
    is_sqlite = engine.dialect.name == "sqlite"

    @event.listens_for(engine, "checkin")
    def remove(connection: Any, record: Any) -> None:
        if record.info.pop(_END, None) is not None and is_sqlite and connection is not None:
            connection.set_progress_handler(None, 0)


def begin(session: Any) -> None:
    """Limit the statements of a session up to the end of its transaction; only the first call sets the deadline."""
    if not has_request_context():
        return
    connection: Connection = session.connection()
    if connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT":  # the setting needs a transaction
        session.commit()
        connection = session.connection()
    is_first = _END not in connection.info
    end = connection.info.setdefault(_END, time.monotonic() + SEARCH_SECONDS)
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        if is_first:
            driver.set_progress_handler(lambda: time.monotonic() > end, INSTRUCTIONS_BETWEEN_CHECKS)
    else:
        left_ms = max(1, round((end - time.monotonic()) * 1000))
        connection.execute(text(f"SET LOCAL statement_timeout TO {left_ms}"))


def is_exceeded(error: Exception) -> bool:
    """Whether the database ended a statement at its deadline."""
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    return code == SQLITE_INTERRUPTED or getattr(error.orig, "sqlstate", None) == QUERY_CANCELED
