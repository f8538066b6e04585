"""Add who uploaded a file of a project, and when."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0020"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
IS_UPLOADED = sa.text("uploaded_by_id IS NOT NULL")


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("project_files", **COPY) as batch:
        batch.add_column(sa.Column("created_at", sa.DateTime(timezone=True), nullable=True))
        batch.add_column(sa.Column("uploaded_by_id", KEY, nullable=True))
        batch.create_foreign_key(
            "fk_project_files_uploaded_by_id", "users", ["uploaded_by_id"], ["id"], ondelete="SET NULL"
        )
    op.create_index("ix_project_files_listed", "project_files", ["project_id", "id"])
    op.create_index(
        "ix_project_files_uploaded_by_id",
        "project_files",
        ["uploaded_by_id"],
        sqlite_where=IS_UPLOADED,
        postgresql_where=IS_UPLOADED,
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_project_files_uploaded_by_id", "project_files")
    op.drop_index("ix_project_files_listed", "project_files")
    with op.batch_alter_table("project_files", **COPY) as batch:
        batch.drop_constraint("fk_project_files_uploaded_by_id", type_="foreignkey")
        batch.drop_column("uploaded_by_id")
        batch.drop_column("created_at")
