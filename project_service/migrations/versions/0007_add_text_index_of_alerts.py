"""Add the index of texts of alerts on SQLite, with the triggers that keep it current.

That of PostgreSQL depends on an extension of the server: kit/db/text_search.py creates it after each upgrade.
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0003"
branch_labels = None
depends_on = None

TABLE = """
CREATE VIRTUAL TABLE alerts_search USING fts5(
    title, description, service, monitoring_tool, hosts,
    content = 'alerts', content_rowid = 'id', tokenize = 'trigram'
)
"""
REMOVE = """
INSERT INTO alerts_search (alerts_search, rowid, title, description, service, monitoring_tool, hosts)
VALUES ('delete', old.id, old.title, old.description, old.service, old.monitoring_tool, old.hosts);
"""
ADD = """
INSERT INTO alerts_search (rowid, title, description, service, monitoring_tool, hosts)
VALUES (new.id, new.title, new.description, new.service, new.monitoring_tool, new.hosts);
"""
TRIGGERS = {
    "alerts_search_insert": f"AFTER INSERT ON alerts BEGIN {ADD} END",
    "alerts_search_delete": f"AFTER DELETE ON alerts BEGIN {REMOVE} END",
    "alerts_search_update": "AFTER UPDATE OF title, description, service, monitoring_tool, hosts ON alerts"
    f" BEGIN {REMOVE} {ADD} END",
}


def upgrade() -> None:
    """Create the index from the stored alerts, and its triggers. A later copy of the table has to do this again."""
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute(TABLE)
    op.execute("INSERT INTO alerts_search (alerts_search) VALUES ('rebuild')")
    for name, trigger in TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {trigger}")


def downgrade() -> None:
    """Drop the index."""
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP INDEX IF EXISTS alerts_search")
        return
    for name in TRIGGERS:
        op.execute(f"DROP TRIGGER {name}")
    op.execute("DROP TABLE alerts_search")
