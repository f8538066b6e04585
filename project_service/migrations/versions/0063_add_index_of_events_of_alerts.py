"""Add the index that lists alerts by the number of their events."""

from __future__ import annotations

from alembic import op

revision = "0063"
down_revision = "0067"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_alerts_events", "alerts", ["project_id", "events", "id"])


def downgrade() -> None:
    """Drop the index."""
    op.drop_index("ix_alerts_events", "alerts")
