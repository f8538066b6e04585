"""Revisions of the database, without alembic: web processes never load it."""

from __future__ import annotations

from sqlalchemy import Connection, column, inspect, select, table

from project_service.kit.db.base import MIGRATIONS

VERSION_TABLE = "alembic_version"


def newest_revision() -> str:
    """Return the revision of the newest migration, with which the name of its file begins."""
    return max(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def current_revision(connection: Connection) -> str | None:
    """Return the revision of the database; ``None`` without tables."""
    if VERSION_TABLE not in inspect(connection).get_table_names():
        return None
    return connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
