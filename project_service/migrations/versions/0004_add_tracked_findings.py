"""Add tracked findings with their state on each branch, and the tracked finding of each finding."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0008"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
PRESENT: dict[str, Any] = {
    f"{dialect}_where": sa.text("tracked_id IS NOT NULL") for dialect in ("sqlite", "postgresql")
}


def upgrade() -> None:
    """Add the tables, the column, and an index for the list of pipelines."""
    op.create_index("ix_security_pipelines_project_id", "security_pipelines", ["project_id", "id"])
    op.create_table(
        "tracked_findings",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("scanner", "category", "report_type", "key")),
        sa.Column("group_key", sa.String(), nullable=False),
        sa.Column("marks", sa.JSON(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("start_line", KEY, nullable=True),
        sa.Column("end_line", KEY, nullable=True),
        sa.Column("version", sa.String(), nullable=True),
        sa.Column("first_seen_at", TIME, nullable=False),
        sa.Column("first_seen_pipeline_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_tracked_findings_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tracked_findings"),
        sqlite_autoincrement=True,
    )
    series = ["project_id", "scanner", "category"]
    op.create_index("ix_tracked_findings_key", "tracked_findings", [*series, "key"])
    op.create_index("ix_tracked_findings_group_key", "tracked_findings", [*series, "group_key"])
    with op.batch_alter_table("findings", **COPY) as batch:
        batch.add_column(sa.Column("tracked_id", KEY, nullable=True))
        batch.create_foreign_key(
            "fk_findings_tracked_id", "tracked_findings", ["tracked_id"], ["id"], ondelete="SET NULL"
        )
    op.create_index("ix_findings_tracked_id", "findings", ["tracked_id"], **PRESENT)
    op.create_table(
        "tracked_finding_states",
        sa.Column("tracked_id", KEY, autoincrement=False, nullable=False),
        sa.Column("ref", sa.String(), nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("finding_id", KEY, nullable=False),
        sa.Column("severity_order", KEY, nullable=False),
        sa.Column("first_seen_pipeline_id", KEY, nullable=False),
        sa.Column("last_seen_at", TIME, nullable=False),
        sa.Column("last_seen_pipeline_id", KEY, nullable=False),
        sa.Column("resolved_at", TIME, nullable=True),
        sa.Column("resolved_pipeline_id", KEY, nullable=True),
        sa.Column("reappeared_at", TIME, nullable=True),
        sa.Column("reappeared_pipeline_id", KEY, nullable=True),
        sa.Column("reappearances", KEY, nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=f"fk_tracked_finding_states_{column}", ondelete="CASCADE"
            )
            for column, table in (
                ("tracked_id", "tracked_findings"),
                ("project_id", "projects"),
                ("finding_id", "findings"),
            )
        ),
        sa.PrimaryKeyConstraint("tracked_id", "ref", name="pk_tracked_finding_states"),
    )
    listed = ["project_id", "ref", "state", "severity_order", "tracked_id"]
    op.create_index("ix_tracked_finding_states_list", "tracked_finding_states", listed)
    op.create_index("ix_tracked_finding_states_finding_id", "tracked_finding_states", ["finding_id"])


def downgrade() -> None:
    """Remove them."""
    op.drop_table("tracked_finding_states")
    op.drop_index("ix_findings_tracked_id", "findings")
    with op.batch_alter_table("findings", **COPY) as batch:
        batch.drop_constraint("fk_findings_tracked_id", type_="foreignkey")
        batch.drop_column("tracked_id")
    op.drop_table("tracked_findings")
    op.drop_index("ix_security_pipelines_project_id", "security_pipelines")
