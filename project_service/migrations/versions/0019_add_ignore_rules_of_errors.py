"""Add rules for events of errors that are not stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "error_ignore_rules",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("title", sa.String(), nullable=True),
        sa.Column("release", sa.String(), nullable=True),
        sa.Column("environment", sa.String(), nullable=True),
        sa.Column("file", sa.String(), nullable=True),
        sa.Column("dropped_events", KEY, nullable=False),
        sa.Column("last_dropped_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_error_ignore_rules_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_error_ignore_rules"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_error_ignore_rules_project_id", "error_ignore_rules", ["project_id", "id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table("error_ignore_rules")
