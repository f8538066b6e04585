"""Most issues have no milestone and are open: the indexes of who closed them, and of milestones, leave these out."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

INDEXES = {"ix_issues_closed_by_id": "closed_by_id", "ix_issues_milestone_id": "milestone_id"}


def upgrade() -> None:
    """Create the indexes again, of rows with a milestone only."""
    for name, column in INDEXES.items():
        op.drop_index(name, table_name="issues")
        is_set = sa.text(f"{column} IS NOT NULL")
        op.create_index(name, "issues", [column], sqlite_where=is_set, postgresql_where=is_set)


def downgrade() -> None:
    """Create the indexes again, of all rows."""
    for name, column in INDEXES.items():
        op.drop_index(name, table_name="issues")
        op.create_index(name, "issues", [column])
