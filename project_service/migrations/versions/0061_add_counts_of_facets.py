"""Add how many events of an error named each environment and release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0061"
down_revision = "0060"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLE = "tracked_error_facets"


def upgrade() -> None:
    """Add the column; events from before are not counted."""
    op.add_column(TABLE, sa.Column("count", KEY, server_default="0", nullable=False))


def downgrade() -> None:
    """Remove it."""
    op.drop_column(TABLE, "count")
