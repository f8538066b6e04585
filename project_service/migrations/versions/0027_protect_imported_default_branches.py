"""Protect the branches of imported projects: those of their archives, and the default ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

MAX_LENGTH = 255
MAINTAINER, DEVELOPER, NOBODY = 40, 30, 0
# default_branch_protection of a group → the roles that may push and merge; 0 protects nothing
LEVELS = {1: (DEVELOPER, MAINTAINER), 2: (MAINTAINER, MAINTAINER), 3: (MAINTAINER, DEVELOPER), 4: (MAINTAINER, MAINTAINER)}
INDIVIDUAL = ("user_id", "group_id", "deploy_key_id")
PROTECTED = sa.table(
    "protected_branches",
    sa.column("project_id", sa.BigInteger()),
    sa.column("name", sa.String()),
    sa.column("push_access_level", sa.BigInteger()),
    sa.column("merge_access_level", sa.BigInteger()),
    sa.column("allow_force_push", sa.Boolean()),
    sa.column("added_by_import", sa.Boolean()),
    sa.column("created_at", sa.DateTime(timezone=True)),
    sa.column("updated_at", sa.DateTime(timezone=True)),
)
ARCHIVED = """
    SELECT archived_rows.project_id, archived_rows.data FROM repositories
    JOIN archived_rows ON archived_rows.project_id = repositories.project_id
    AND archived_rows.relation = 'protected_branches'
    WHERE repositories.kind = 'project' ORDER BY archived_rows.id
"""
DEFAULT = """
    SELECT projects.id, projects.default_branch, namespaces.default_branch_protection FROM repositories
    JOIN projects ON projects.id = repositories.project_id
    JOIN namespaces ON namespaces.id = projects.namespace_id
    WHERE repositories.kind = 'project' AND projects.default_branch IS NOT NULL
"""


def upgrade() -> None:
    """Add a column and rows; former releases stored the rows of archives only for the next export."""
    op.add_column(
        "protected_branches", sa.Column("added_by_import", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    connection, now = op.get_bind(), dt.datetime.now(dt.UTC)
    known = {(row.project_id, row.name) for row in connection.execute(sa.select(PROTECTED.c.project_id, PROTECTED.c.name))}
    rows = []
    for row in (*_of_archives(connection, now), *_of_defaults(connection)):
        if (row["project_id"], row["name"]) not in known:
            known.add((row["project_id"], row["name"]))
            rows.append({"allow_force_push": False, "added_by_import": False, "created_at": now, "updated_at": now} | row)
    if rows:
        op.bulk_insert(PROTECTED, rows)


def downgrade() -> None:
    """Drop the column; the branches stay protected."""
    op.drop_column("protected_branches", "added_by_import")


def _of_archives(connection: sa.Connection, now: dt.datetime) -> Iterator[dict[str, Any]]:
    columns = sa.column("project_id", sa.BigInteger()), sa.column("data", sa.JSON())
    for project_id, line in connection.execute(sa.text(ARCHIVED).columns(*columns)):
        name = line.get("name") if isinstance(line, dict) else None
        if not isinstance(name, str) or not name.strip() or len(name) > MAX_LENGTH or name in (".", ".."):
            continue
        yield {
            "project_id": project_id,
            "name": name,
            "push_access_level": _level(line.get("push_access_levels")),
            "merge_access_level": _level(line.get("merge_access_levels")),
            "allow_force_push": line.get("allow_force_push") is True,
            "created_at": _moment(line.get("created_at")) or now,
            "updated_at": _moment(line.get("updated_at")) or now,
        }


def _level(imported: Any) -> int:
    """The lowest role that may push or merge; never one that permits more users than the archive does."""
    if imported is None:
        return MAINTAINER
    entries = [one for one in imported if isinstance(one, dict)] if isinstance(imported, list) else []
    levels = [one.get("access_level") for one in entries if all(one.get(name) is None for name in INDIVIDUAL)]
    roles = [level for level in levels if type(level) is int and NOBODY < level <= MAINTAINER]
    return min((DEVELOPER if level <= DEVELOPER else MAINTAINER for level in roles), default=NOBODY)


def _moment(text: Any) -> dt.datetime | None:
    try:
        found = dt.datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _of_defaults(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    for project_id, branch, level in connection.execute(sa.text(DEFAULT)):
        levels = LEVELS.get(2 if level is None else level)
        if levels is not None:
            push, merge = levels
            yield {
                "project_id": project_id,
                "name": branch,
                "push_access_level": push,
                "merge_access_level": merge,
                "added_by_import": True,
            }
