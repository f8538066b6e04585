"""Add links between issues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "issue_links",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("target_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["issues.id"], name="fk_issue_links_source_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["target_id"], ["issues.id"], name="fk_issue_links_target_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_issue_links"),
        sa.UniqueConstraint("source_id", "target_id", name="uq_issue_links_source_id_target_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_issue_links_target_id", "issue_links", ["target_id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table("issue_links")
