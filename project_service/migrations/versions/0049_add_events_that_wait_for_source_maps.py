"""Add the events that wait for their source maps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0049"
down_revision = "0040"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLE = "error_waiting_events"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        TABLE,
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("stack", sa.String(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_digest", sa.String(), nullable=True),
        sa.Column("fields", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{TABLE}_project_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=f"pk_{TABLE}"),
        sa.UniqueConstraint("project_id", "event_id", name=f"uq_{TABLE}_project_id_event_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(f"ix_{TABLE}_stack", TABLE, ["project_id", "stack", "id"])
    op.create_index(f"ix_{TABLE}_received_at", TABLE, ["received_at", "id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table(TABLE)
