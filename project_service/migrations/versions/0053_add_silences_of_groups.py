"""Add silences of groups, and those that end when what they matched is resolved."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0053"
down_revision = "0050"
branch_labels = None
depends_on = None

CONTRACTS = "0.1.0: a silence has a project or a group; earlier programs always write the project"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
PRESENT = sa.text("group_id IS NOT NULL")


def upgrade() -> None:
    """Add the columns; a silence belongs to a project or to a group."""
    with op.batch_alter_table("silences", **COPY) as batch:
        batch.alter_column("project_id", existing_type=KEY, nullable=True)
        batch.add_column(sa.Column("group_id", KEY, nullable=True))
        batch.add_column(sa.Column("ends_when_resolved", sa.Boolean(), server_default=sa.false(), nullable=False))
        batch.add_column(sa.Column("cleared_at", sa.DateTime(timezone=True), nullable=True))
        batch.create_foreign_key("fk_silences_group_id", "namespaces", ["group_id"], ["id"], ondelete="CASCADE")
        batch.create_check_constraint("one_owner", "(project_id IS NULL) <> (group_id IS NULL)")
    op.create_index(
        "ix_silences_group_id", "silences", ["group_id", "id"], sqlite_where=PRESENT, postgresql_where=PRESENT
    )


def downgrade() -> None:
    """Remove them, and the silences of groups."""
    op.drop_index("ix_silences_group_id", "silences")
    op.execute("DELETE FROM silences WHERE project_id IS NULL")
    with op.batch_alter_table("silences", **COPY) as batch:
        batch.drop_constraint("one_owner", type_="check")
        batch.drop_constraint("fk_silences_group_id", type_="foreignkey")
        for column in ("cleared_at", "ends_when_resolved", "group_id"):
            batch.drop_column(column)
        batch.alter_column("project_id", existing_type=KEY, nullable=False)
