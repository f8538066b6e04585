"""Add milestones of groups, with the counters of their numbers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0053"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
CONTRACTS = "0.1.0: its milestones all have a project, as the check demands of those without a group"
FORGET = (
    "UPDATE issues SET milestone_id = NULL FROM milestones WHERE milestones.id = milestone_id AND group_id > 0",
    "UPDATE merge_requests SET milestone_id = NULL FROM milestones WHERE milestones.id = milestone_id AND group_id > 0",
    "DELETE FROM release_milestones WHERE milestone_id IN (SELECT id FROM milestones WHERE group_id > 0)",
)


def upgrade() -> None:
    """Add the column and the table."""
    with op.batch_alter_table("milestones", **COPY) as batch:
        batch.alter_column("project_id", existing_type=KEY, nullable=True)
        batch.add_column(sa.Column("group_id", KEY, nullable=True))
        batch.create_foreign_key("fk_milestones_group_id", "namespaces", ["group_id"], ["id"], ondelete="CASCADE")
        batch.create_check_constraint("owner", "(project_id IS NULL) <> (group_id IS NULL)")
    op.create_index("ix_milestones_title", "milestones", ["title", "id"])
    op.create_index("ix_milestones_group_id", "milestones", ["group_id", "due_date", "id"])
    op.create_index("ix_milestones_group_id_iid", "milestones", ["group_id", "iid"], unique=True)
    op.create_index("ix_milestones_group_id_title", "milestones", ["group_id", "title"], unique=True)
    op.create_table(
        "group_counters",
        sa.Column("id", KEY, nullable=False),
        sa.Column("group_id", KEY, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("last", KEY, nullable=False),
        sa.ForeignKeyConstraint(["group_id"], ["namespaces.id"], name="fk_group_counters_group_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_group_counters"),
        sa.UniqueConstraint("group_id", "kind", name="uq_group_counters_group_id_kind"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Remove them, with the milestones of groups."""
    op.drop_table("group_counters")
    for statement in FORGET:
        op.execute(statement)
    op.execute("DELETE FROM milestones WHERE project_id IS NULL")
    for index in ("group_id_title", "group_id_iid", "group_id", "title"):
        op.drop_index(f"ix_milestones_{index}", "milestones")
    with op.batch_alter_table("milestones", **COPY) as batch:
        batch.drop_constraint(op.f("ck_milestones_owner"), type_="check")
        batch.drop_constraint("fk_milestones_group_id", type_="foreignkey")
        batch.drop_column("group_id")
        batch.alter_column("project_id", existing_type=KEY, nullable=False)
