"""Add indexes of texts for the search on SQLite, with the triggers that keep them current, and one of issues by time.

Those of PostgreSQL depend on an extension of the server: kit/db/text_search.py creates them after each upgrade.
"""

from __future__ import annotations

from alembic import op

revision = "0013"
down_revision = "0006"
branch_labels = None
depends_on = None

INDEXES = {
    "issues": ("title", "description"),
    "milestones": ("title", "description"),
    "projects": ("name", "path", "description"),
    "namespaces": ("name", "path", "description"),
    "users": ("name", "username"),
    "tracked_errors": ("title", "culprit"),
    "tracked_findings": ("name",),
}
TABLE = """
CREATE VIRTUAL TABLE {table}_search USING fts5(
    {names}, content = '{table}', content_rowid = 'id', tokenize = 'trigram'
)
"""
FILL = "INSERT INTO {table}_search ({table}_search) VALUES ('rebuild')"
ADD = "INSERT INTO {table}_search (rowid, {names}) VALUES (new.id, {new});"
REMOVE = "INSERT INTO {table}_search ({table}_search, rowid, {names}) VALUES ('delete', old.id, {old});"
TRIGGERS = (
    "CREATE TRIGGER {table}_search_insert AFTER INSERT ON {table} BEGIN " + ADD + " END",
    "CREATE TRIGGER {table}_search_delete AFTER DELETE ON {table} BEGIN " + REMOVE + " END",
    # statements name columns that they do not change
    "CREATE TRIGGER {table}_search_update AFTER UPDATE OF {names} ON {table} WHEN {differs}"
    " BEGIN " + REMOVE + ADD + " END",
)


def upgrade() -> None:
    """Create the indexes from the stored rows. Triggers that a later copy of a table loses are created again."""
    op.create_index("ix_issues_created_at", "issues", ["created_at", "id"])
    if op.get_bind().dialect.name != "sqlite":
        return
    for table, columns in INDEXES.items():
        parts = {
            "table": table,
            "names": ", ".join(columns),
            "new": ", ".join(f"new.{name}" for name in columns),
            "old": ", ".join(f"old.{name}" for name in columns),
            "differs": " OR ".join(f"new.{name} IS NOT old.{name}" for name in columns),
        }
        for statement in (TABLE, FILL, *TRIGGERS):
            op.execute(statement.format(**parts))


def downgrade() -> None:
    """Drop the indexes."""
    op.drop_index("ix_issues_created_at", "issues")
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for table in INDEXES:
        if not is_sqlite:
            op.execute(f"DROP INDEX IF EXISTS {table}_search")
            continue
        for event in ("insert", "delete", "update"):
            op.execute(f"DROP TRIGGER IF EXISTS {table}_search_{event}")  # a copy of the table loses them
        op.execute(f"DROP TABLE {table}_search")
