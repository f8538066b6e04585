"""Revisions of the database, without alembic: web processes never load it."""

from __future__ import annotations

import re

from sqlalchemy import Connection, column, inspect, select, table

from project_service.kit.db.base import MIGRATIONS

VERSION_TABLE = "alembic_version"
_OWN = re.compile(r'^revision = "(\w+)"', re.MULTILINE)
_BEFORE = re.compile(r'^down_revision = "(\w+)"', re.MULTILINE)


def newest_revision() -> str:
    """Return the revision of the newest migration: the one that no other comes after."""
    sources = [path.read_text() for path in (MIGRATIONS / "versions").glob("[0-9]*.py")]
    revisions, followed = ({match[1] for text in sources if (match := each.search(text))} for each in (_OWN, _BEFORE))
    [newest] = revisions - followed
    return newest


def current_revision(connection: Connection) -> str | None:
    """Return the revision of the database; ``None`` without tables."""
    if VERSION_TABLE not in inspect(connection).get_table_names():
        return None
    return connection.scalar(select(column("version_num")).select_from(table(VERSION_TABLE)))
