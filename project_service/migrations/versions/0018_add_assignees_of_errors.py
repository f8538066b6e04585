"""Add the assignee of an error, its resolution in the next release, and what is needed to undo a merge."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0013"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
COPY_OF_KEYED: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}}


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("tracked_errors", **COPY) as batch:
        batch.add_column(sa.Column("resolved_after", sa.DateTime(timezone=True), nullable=True))
        batch.add_column(sa.Column("assignee_id", KEY, nullable=True))
        batch.create_foreign_key("fk_tracked_errors_assignee_id", "users", ["assignee_id"], ["id"], ondelete="SET NULL")
    op.create_index("ix_tracked_errors_assignee_id", "tracked_errors", ["assignee_id"])
    with op.batch_alter_table("tracked_error_merges", **COPY_OF_KEYED) as batch:
        batch.add_column(sa.Column("title", sa.String(), nullable=True))
        batch.add_column(sa.Column("merged_at", sa.DateTime(timezone=True), nullable=True))
        batch.add_column(sa.Column("merged_by_id", KEY, nullable=True))
        batch.add_column(sa.Column("undo", sa.JSON(), nullable=True))
        batch.create_foreign_key(
            "fk_tracked_error_merges_merged_by_id", "users", ["merged_by_id"], ["id"], ondelete="SET NULL"
        )
    op.create_index("ix_tracked_error_merges_merged_by_id", "tracked_error_merges", ["merged_by_id"])


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_tracked_error_merges_merged_by_id", "tracked_error_merges")
    with op.batch_alter_table("tracked_error_merges", **COPY_OF_KEYED) as batch:
        batch.drop_constraint("fk_tracked_error_merges_merged_by_id", type_="foreignkey")
        for name in ("undo", "merged_by_id", "merged_at", "title"):
            batch.drop_column(name)
    op.drop_index("ix_tracked_errors_assignee_id", "tracked_errors")
    with op.batch_alter_table("tracked_errors", **COPY) as batch:
        batch.drop_constraint("fk_tracked_errors_assignee_id", type_="foreignkey")
        batch.drop_column("assignee_id")
        batch.drop_column("resolved_after")
