"""Add subscriptions to labels."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0056"
down_revision = "0043"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "label_subscriptions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("label_id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_label_subscriptions_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["label_id"], ["labels.id"], name="fk_label_subscriptions_label_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_label_subscriptions_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_label_subscriptions"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_label_subscriptions_user_id_label_id",
        "label_subscriptions",
        ["user_id", "label_id", sa.text("coalesce(project_id, 0)")],
        unique=True,
    )
    op.create_index("ix_label_subscriptions_label_id", "label_subscriptions", ["label_id"])
    op.create_index("ix_label_subscriptions_project_id", "label_subscriptions", ["project_id"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table("label_subscriptions")
