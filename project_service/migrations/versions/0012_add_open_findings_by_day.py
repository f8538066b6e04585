"""Add the number of open findings of branches by day, and an index of dismissed findings to count them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0009"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DISMISSED: dict[str, Any] = {
    "sqlite_where": sa.text("dismissed IS 1"),
    "postgresql_where": sa.text("dismissed IS true"),
}


def upgrade() -> None:
    """Add the table and the index."""
    op.create_table(
        "open_finding_days",
        sa.Column("project_id", KEY, autoincrement=False, nullable=False),
        sa.Column("ref", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("severity_order", KEY, autoincrement=False, nullable=False),
        sa.Column("open", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_open_finding_days_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "ref", "day", "severity_order", name="pk_open_finding_days"),
    )
    op.create_index("ix_findings_dismissed", "findings", ["project_id"], **DISMISSED)


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_findings_dismissed", "findings")
    op.drop_table("open_finding_days")
