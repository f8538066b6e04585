"""Add the theme of a user, and whether a new password is needed at the next sign-in."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; code of the release before does not know them and need not."""
    op.add_column("users", sa.Column("theme", sa.String(), server_default="system", nullable=False))
    op.add_column("users", sa.Column("password_expired", sa.Boolean(), server_default=sa.false(), nullable=False))


def downgrade() -> None:
    """Drop the columns."""
    op.drop_column("users", "password_expired")
    op.drop_column("users", "theme")
