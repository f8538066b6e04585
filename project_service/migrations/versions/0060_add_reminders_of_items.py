"""Add the last reminder of an item and how many there were, for the panel "Notifications"."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0060"
down_revision = "0062"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
PRESENT = sa.text("reminder_id IS NOT NULL")
TABLE, FOREIGN_KEY = "notification_items", "fk_notification_items_reminder_id"


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table(TABLE, **COPY) as batch:
        batch.add_column(sa.Column("reminder_id", KEY, nullable=True))
        batch.add_column(sa.Column("reminder_count", KEY, server_default="0", nullable=False))
        batch.create_foreign_key(FOREIGN_KEY, "notification_deliveries", ["reminder_id"], ["id"], ondelete="SET NULL")
    op.create_index(
        "ix_notification_items_reminder_id",
        TABLE,
        ["reminder_id", "id"],
        sqlite_where=PRESENT,
        postgresql_where=PRESENT,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_notification_items_reminder_id", TABLE)
    with op.batch_alter_table(TABLE, **COPY) as batch:
        batch.drop_constraint(FOREIGN_KEY, type_="foreignkey")
        batch.drop_column("reminder_count")
        batch.drop_column("reminder_id")
