"""Add the text that proves the key of an instance."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "key_proofs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("proof", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_key_proofs"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("key_proofs")
