"""Add labels of groups and the priorities of labels; create labels for titles that have none."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
ROWS_AT_ONCE = 1000
CONTRACTS = "0.1.0: its labels all have a project, as the check demands of those without a group"
CREATE_MISSING = """
    INSERT INTO labels (project_id, title, color, created_at, updated_at)
    SELECT items.project_id, titles.title, '#6699cc', min(items.created_at), min(items.created_at)
    FROM {titles} AS titles JOIN {items} AS items ON items.id = titles.{key}
    WHERE length(titles.title) <= 255
      AND NOT EXISTS (SELECT 1 FROM labels WHERE labels.project_id = items.project_id AND labels.title = titles.title)
    GROUP BY items.project_id, titles.title
"""


def upgrade() -> None:
    """Add the column and the table."""
    with op.batch_alter_table("labels", **COPY) as batch:
        batch.alter_column("project_id", existing_type=KEY, nullable=True)
        batch.add_column(sa.Column("group_id", KEY, nullable=True))
        batch.create_foreign_key("fk_labels_group_id", "namespaces", ["group_id"], ["id"], ondelete="CASCADE")
        batch.create_check_constraint("owner", "(project_id IS NULL) <> (group_id IS NULL)")
    op.create_index("ix_labels_group_id", "labels", ["group_id", "title"], unique=True)
    op.create_table(
        "label_priorities",
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("label_id", KEY, nullable=False),
        sa.Column("priority", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_label_priorities_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["label_id"], ["labels.id"], name="fk_label_priorities_label_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project_id", "label_id", name="pk_label_priorities"),
    )
    op.create_index("ix_label_priorities_label_id", "label_priorities", ["label_id"])
    _copy_priorities()
    for titles, items, key in (
        ("issue_labels", "issues", "issue_id"),
        ("merge_request_labels", "merge_requests", "merge_request_id"),
    ):
        op.execute(CREATE_MISSING.format(titles=titles, items=items, key=key))


def downgrade() -> None:
    """Remove them, with the labels of groups."""
    op.drop_table("label_priorities")
    op.execute("DELETE FROM labels WHERE project_id IS NULL")
    op.drop_index("ix_labels_group_id", "labels")
    with op.batch_alter_table("labels", **COPY) as batch:
        batch.drop_constraint(op.f("ck_labels_owner"), type_="check")
        batch.drop_constraint("fk_labels_group_id", type_="foreignkey")
        batch.drop_column("group_id")
        batch.alter_column("project_id", existing_type=KEY, nullable=False)


def _copy_priorities() -> None:
    """Copy the priorities of imported labels, which are an attribute of their archive."""
    metadata = sa.MetaData()
    labels = sa.Table(
        "labels", metadata, sa.Column("id", KEY), sa.Column("project_id", KEY), sa.Column("extra", sa.JSON)
    )
    priorities = sa.Table(
        "label_priorities",
        metadata,
        sa.Column("project_id", KEY),
        sa.Column("label_id", KEY),
        sa.Column("priority", KEY),
    )
    connection, last = op.get_bind(), 0
    columns = sa.select(labels.c.id, labels.c.project_id, labels.c.extra)
    while rows := connection.execute(
        columns.where(labels.c.extra.is_not(None), labels.c.id > last).order_by(labels.c.id).limit(ROWS_AT_ONCE)
    ).all():
        last = rows[-1].id
        for row in rows:
            imported = row.extra.get("priorities") if isinstance(row.extra, dict) else None
            first = imported[0] if isinstance(imported, list) and imported else None
            number = first.get("priority") if isinstance(first, dict) else None
            if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**63:
                values = {"project_id": row.project_id, "label_id": row.id, "priority": number}
                connection.execute(priorities.insert().values(values))
