"""PostgreSQL: settings of a connection."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, event


def configure(engine: Engine) -> None:
    """Register the listeners of an engine."""

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.autocommit = True  # a setting within a transaction is undone when it is rolled back
        connection.execute("SET TIME ZONE 'UTC'")
        connection.autocommit = False
