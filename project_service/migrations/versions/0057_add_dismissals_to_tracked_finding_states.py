"""Add the dismissal to the states of tracked findings, and indexes for each combination of states of a list."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

TABLE = "tracked_finding_states"
IS_CLOSED: dict[str, Any] = {
    "sqlite_where": sa.text("dismissed IS 1 OR state = 'resolved'"),
    "postgresql_where": sa.text("dismissed IS true OR state = 'resolved'"),
}
IS_DISMISSED: dict[str, Any] = {
    "sqlite_where": sa.text("dismissed IS 1"),
    "postgresql_where": sa.text("dismissed IS true"),
}


def upgrade() -> None:
    """Add the column and the indexes; they replace the index of dismissed findings."""
    op.add_column(TABLE, sa.Column("dismissed", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute(
        "UPDATE tracked_finding_states SET dismissed = true "
        "WHERE finding_id IN (SELECT id FROM findings WHERE dismissed)"
    )
    of_branch, in_order = ["project_id", "ref"], ["severity_order", "tracked_id"]
    op.create_index(f"ix_{TABLE}_dismissed", TABLE, [*of_branch, "state", "dismissed", *in_order])
    op.create_index(f"ix_{TABLE}_all", TABLE, [*of_branch, *in_order])
    op.create_index(f"ix_{TABLE}_closed", TABLE, [*of_branch, *in_order], **IS_CLOSED)
    op.drop_index("ix_findings_dismissed", "findings")


def downgrade() -> None:
    """Remove them."""
    op.create_index("ix_findings_dismissed", "findings", ["project_id"], **IS_DISMISSED)
    for name in ("closed", "all", "dismissed"):
        op.drop_index(f"ix_{TABLE}_{name}", TABLE)
    op.drop_column(TABLE, "dismissed")
