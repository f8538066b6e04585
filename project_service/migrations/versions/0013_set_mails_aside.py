"""Keep the error of a mail that is not sent, and when it is tried again or was set aside."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; code of the release before does not know them and need not."""
    op.add_column("mails", sa.Column("attempts", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), server_default="0", nullable=False))
    for name in ("retry_at", "failed_at"):
        op.add_column("mails", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    op.add_column("mails", sa.Column("error", sa.String(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    for name in ("error", "failed_at", "retry_at", "attempts"):
        op.drop_column("mails", name)
