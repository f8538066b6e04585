"""Add to-do items about anything, with those about alerts, which had a table of their own."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0012"
branch_labels = None
depends_on = None

CONTRACTS = "0.1.0: its to-do items are rows of the new table from here on"
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
COPY = """
    INSERT INTO todos (user_id, project_id, action, target_type, target_id, done_at, created_at, updated_at)
    SELECT alert_todos.user_id, alerts.project_id, 'marked', 'AlertManagement::Alert', alerts.id,
           alert_todos.done_at, alert_todos.created_at, alert_todos.updated_at
    FROM alert_todos JOIN alerts ON alerts.id = alert_todos.alert_id ORDER BY alert_todos.id
"""
COPY_BACK = """
    INSERT INTO alert_todos (alert_id, user_id, done_at, created_at, updated_at)
    SELECT target_id, user_id, min(done_at), min(created_at), max(updated_at)
    FROM todos WHERE target_type = 'AlertManagement::Alert' GROUP BY target_id, user_id
"""


def upgrade() -> None:
    """Create the table and move the items about alerts to it."""
    op.create_table(
        "todos",
        sa.Column("id", KEY, nullable=False),
        *_times(),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("author_id", KEY, nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("target_type", sa.String(), nullable=False),
        sa.Column("target_id", KEY, nullable=False),
        sa.Column("note_id", KEY, nullable=True),
        sa.Column("page", sa.String(), nullable=True),
        sa.Column("done_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_todos_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_todos_project_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name="fk_todos_author_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["note_id"], ["notes.id"], name="fk_todos_note_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_todos"),
        sqlite_autoincrement=True,
    )
    pending = ["user_id", "target_type", "target_id"]
    op.create_index("uq_todos_pending", "todos", pending, unique=True, **_where("done_at IS NULL"))
    op.create_index("ix_todos_user_id_done_at", "todos", ["user_id", "done_at", "id"])
    op.create_index("ix_todos_user_id", "todos", ["user_id", "id"])
    op.create_index("ix_todos_target", "todos", ["target_type", "target_id"])
    op.create_index("ix_todos_project_id", "todos", ["project_id"])
    op.create_index("ix_todos_author_id", "todos", ["author_id"], **_where("author_id IS NOT NULL"))
    op.create_index("ix_todos_note_id", "todos", ["note_id"], **_where("note_id IS NOT NULL"))
    op.execute(COPY)
    op.drop_table("alert_todos")


def downgrade() -> None:
    """Bring the table of items about alerts back; other items are lost."""
    op.create_table(
        "alert_todos",
        sa.Column("id", KEY, nullable=False),
        *_times(),
        sa.Column("alert_id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("done_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name="fk_alert_todos_alert_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_alert_todos_user_id", ondelete="CASCADE"),
        sa.UniqueConstraint("alert_id", "user_id", name="uq_alert_todos_alert_id"),
        sa.PrimaryKeyConstraint("id", name="pk_alert_todos"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_todos_user_id_done_at", "alert_todos", ["user_id", "done_at", "id"])
    op.execute(COPY_BACK)
    op.drop_table("todos")


def _times() -> list[sa.Column[Any]]:
    return [sa.Column(name, TIME, nullable=False) for name in ("created_at", "updated_at")]


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}
