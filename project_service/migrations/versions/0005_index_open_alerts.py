"""An index of the alerts that are shown as open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the alerts that are shown as open."""
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.create_index(
            "ix_alerts_listed_open",
            ["project_id", "started_at", "id"],
            unique=False,
            sqlite_where=sa.text("status <> 2 AND status <> 3"),
            postgresql_where=sa.text("status <> 2 AND status <> 3"),
        )


def downgrade() -> None:
    """Drop the index."""
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.drop_index(
            "ix_alerts_listed_open",
            sqlite_where=sa.text("status <> 2 AND status <> 3"),
            postgresql_where=sa.text("status <> 2 AND status <> 3"),
        )
