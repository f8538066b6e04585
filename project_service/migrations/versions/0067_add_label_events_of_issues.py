"""Add label events of issues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0067"
down_revision = "0061"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TABLE = "issue_label_events"


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        TABLE,
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("issue_id", KEY, nullable=False),
        sa.Column("author_id", KEY, nullable=True),
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("action", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name=f"fk_{TABLE}_issue_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=f"fk_{TABLE}_author_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name=f"pk_{TABLE}"),
        sqlite_autoincrement=True,
    )
    op.create_index(f"ix_{TABLE}_issue_id", TABLE, ["issue_id", "id"])
    op.create_index(f"ix_{TABLE}_title", TABLE, ["title", "issue_id"])
    op.create_index(f"ix_{TABLE}_author_id", TABLE, ["author_id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table(TABLE)
