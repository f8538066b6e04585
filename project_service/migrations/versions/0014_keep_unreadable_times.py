"""Keep the times of alerts that could not be read, which their pages show."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; code of the release before does not know it and need not."""
    op.add_column("alerts", sa.Column("unreadable_times", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("alerts", "unreadable_times")
