"""Add reminders of what a rule has announced and is still open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0052"
down_revision = "0049"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "notification_reminders",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("rule_id", KEY, nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_notification_reminders_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["rule_id"], ["notification_rules.id"], name="fk_notification_reminders_rule_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_notification_reminders"),
        sa.UniqueConstraint(
            "rule_id", "project_id", "target", name="uq_notification_reminders_rule_id_project_id_target"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_reminders_project_id", "notification_reminders", ["project_id"])
    op.create_index("ix_notification_reminders_due_at", "notification_reminders", ["due_at"])


def downgrade() -> None:
    """Remove it."""
    op.drop_table("notification_reminders")
