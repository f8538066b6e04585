"""An index of alerts by severity; those of incidents, environments and assignees only hold what has one."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

WHOLE: tuple[tuple[str, list[str]], ...] = (
    ("ix_alerts_issue_id", ["issue_id"]),
    ("ix_alerts_environment_id_started_at", ["environment_id", "started_at", "id"]),
    ("ix_alerts_assignee_id", ["assignee_id"]),
)
PARTIAL: tuple[tuple[str, list[str]], ...] = (*WHOLE[:2], ("ix_alerts_assignee_id", ["assignee_id", "id"]))


def upgrade() -> None:
    """Add the one, and put the smaller ones in place of the others."""
    op.create_index("ix_alerts_severity", "alerts", ["project_id", "severity", "id"], unique=False)
    for name, columns in PARTIAL:
        there = sa.text(f"{columns[0]} IS NOT NULL")
        op.drop_index(name, "alerts")
        op.create_index(name, "alerts", columns, unique=False, sqlite_where=there, postgresql_where=there)


def downgrade() -> None:
    """Put back what was there."""
    for name, columns in WHOLE:
        op.drop_index(name, "alerts")
        op.create_index(name, "alerts", columns, unique=False)
    op.drop_index("ix_alerts_severity", "alerts")
