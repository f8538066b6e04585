"""Add the ids of discussions to notes, from archives that have them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0045"
branch_labels = None
depends_on = None

COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
ARCHIVED = {
    "sqlite": """
        UPDATE notes SET discussion_id = json_extract(extra, '$.discussion_id')
        WHERE extra IS NOT NULL AND length(json_extract(extra, '$.discussion_id')) = 40
          AND json_extract(extra, '$.discussion_id') NOT GLOB '*[^0-9a-f]*'
    """,
    "postgresql": """
        UPDATE notes SET discussion_id = extra::jsonb ->> 'discussion_id'
        WHERE extra IS NOT NULL AND extra::jsonb ->> 'discussion_id' ~ '^[0-9a-f]{40}$'
    """,
}


def upgrade() -> None:
    """Add the column."""
    op.add_column("notes", sa.Column("discussion_id", sa.String(), nullable=True))
    op.get_bind().exec_driver_sql(ARCHIVED[op.get_bind().dialect.name])


def downgrade() -> None:
    """Remove it."""
    with op.batch_alter_table("notes", **COPY) as batch:
        batch.drop_column("discussion_id")
