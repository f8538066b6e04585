"""Add heartbeats, their calls, and the time of the last check."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0021"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "heartbeats",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("period_seconds", KEY, nullable=False),
        sa.Column("schedule", sa.String(), nullable=True),
        sa.Column("time_zone", sa.String(), nullable=False),
        sa.Column("matcher_title", sa.String(), nullable=True),
        sa.Column("grace_seconds", KEY, nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=True),
        sa.Column("runbook", sa.String(), nullable=True),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("key_digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("last_ping_at", MOMENT, nullable=True),
        sa.Column("last_status", sa.String(), nullable=True),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("due_at", MOMENT, nullable=True),
        sa.Column("missing_at", MOMENT, nullable=True),
        sa.Column("alert_iid", KEY, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_heartbeats_project_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeats"),
        sa.UniqueConstraint("key_digest", name="uq_heartbeats_key_digest"),
        sa.UniqueConstraint("project_id", "name", name="uq_heartbeats_project_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_heartbeats_project_id", "heartbeats", ["project_id", "id"])
    _create_partial_index("ix_heartbeats_missing_at", ["missing_at"])
    _create_partial_index("ix_heartbeats_matcher_title", ["matcher_title", "project_id"])
    op.create_table(
        "heartbeat_pings",
        sa.Column("id", KEY, nullable=False),
        sa.Column("heartbeat_id", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("exit_status", KEY, nullable=True),
        sa.Column("duration", sa.Float(), nullable=True),
        sa.Column("method", sa.String(), nullable=True),
        sa.Column("remote_address", sa.String(), nullable=True),
        sa.Column("user_agent", sa.String(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["heartbeat_id"], ["heartbeats.id"], name="fk_heartbeat_pings_heartbeat_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeat_pings"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_heartbeat_pings_heartbeat_id", "heartbeat_pings", ["heartbeat_id", "id"])
    op.create_table(
        "heartbeat_checks",
        sa.Column("id", KEY, nullable=False),
        sa.Column("checked_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_heartbeat_checks"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("heartbeat_checks")
    op.drop_table("heartbeat_pings")
    op.drop_table("heartbeats")


def _create_partial_index(name: str, columns: list[str]) -> None:
    present = sa.text(f"{columns[0]} IS NOT NULL")
    op.create_index(name, "heartbeats", columns, sqlite_where=present, postgresql_where=present)
