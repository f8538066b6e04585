"""Add the SHA-1 of uploaded source maps, by which old clients compare."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0044"
branch_labels = None
depends_on = None

TABLE = "source_map_artifacts"


def upgrade() -> None:
    """Add the column."""
    op.add_column(TABLE, sa.Column("sha1", sa.String(), nullable=True))


def downgrade() -> None:
    """Remove it."""
    op.drop_column(TABLE, "sha1")
