"""Add the number of what began and ended during the quiet hours of a person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0064"
down_revision = "0063"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column."""
    op.add_column("notification_groups", sa.Column("ended_count", KEY, server_default="0", nullable=False))


def downgrade() -> None:
    """Remove it."""
    op.drop_column("notification_groups", "ended_count")
