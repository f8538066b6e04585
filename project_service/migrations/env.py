"""Runs migrations on the application's engine; the same on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from alembic import context
from flask import current_app
from sqlalchemy import Connection

from project_service.kit.db.base import Base, Timestamp
from project_service.kit.db.session import db
from project_service.kit.security.key_ring import Encrypted


def run() -> None:
    """Migrate inside one transaction: on both databases an upgrade holds whole or not at all."""
    options = current_app.extensions["migrate"].configure_args
    with db.engine.connect() as connection, _without_actions_of_keys(connection):
        context.configure(connection=connection, target_metadata=Base.metadata, render_item=_render, **options)
        with context.begin_transaction():
            context.run_migrations()
            _check_keys(connection)


@contextmanager
def _without_actions_of_keys(connection: Connection) -> Iterator[None]:
    """Switch foreign keys off on SQLite, where a changed table is copied.

    Dropping the former table would delete the rows that refer to its rows, or their references.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    driver = connection.connection.cursor()  # outside of a transaction, in which the pragma has no effect
    driver.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        if connection.in_transaction():
            connection.rollback()
        driver.execute("PRAGMA foreign_keys=ON")
        driver.close()


def _check_keys(connection: Connection) -> None:
    """Refuse an upgrade on SQLite that would leave references to missing rows."""
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(5)
        if broken:
            raise RuntimeError(f"the upgrade would leave references to missing rows: {broken}")


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    # migrations import nothing of the program: its types are written as those of SQLAlchemy
    if kind == "type" and isinstance(item, Timestamp):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, Encrypted):
        return "sa.Text()"
    return False


run()
