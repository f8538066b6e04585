"""Labels of merge requests, and the indexes of their lists and of open issues."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# the labels that archives have brought so far lie among what has no column
TITLES = {
    "sqlite": """
        INSERT OR IGNORE INTO merge_request_labels (merge_request_id, title)
        SELECT merge_requests.id, json_extract(link.value, '$.label.title')
        FROM merge_requests, json_each(merge_requests.extra, '$.label_links') AS link
        WHERE CASE link.type WHEN 'object' THEN json_type(link.value, '$.label.title') END = 'text'
    """,
    "postgresql": """
        INSERT INTO merge_request_labels (merge_request_id, title)
        SELECT merge_requests.id, link.value #>> '{label,title}'
        FROM merge_requests
        CROSS JOIN LATERAL json_array_elements(
            CASE json_typeof(extra -> 'label_links') WHEN 'array' THEN extra -> 'label_links' END
        ) AS link
        WHERE json_typeof(link.value #> '{label,title}') = 'string'
        ON CONFLICT DO NOTHING
    """,
}


def upgrade() -> None:
    """Make the table, fill it, and index what is listed and counted."""
    op.create_table(
        "merge_request_labels",
        sa.Column("merge_request_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["merge_request_id"],
            ["merge_requests.id"],
            name=op.f("fk_merge_request_labels_merge_request_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("merge_request_id", "title", name=op.f("pk_merge_request_labels")),
    )
    with op.batch_alter_table("merge_request_labels", schema=None) as batch_op:
        batch_op.create_index("ix_merge_request_labels_title", ["title", "merge_request_id"], unique=False)
    with op.batch_alter_table("merge_requests", schema=None) as batch_op:
        for name in ("created_at", "updated_at"):
            columns = ["project_id", name, "id"]
            batch_op.create_index(f"ix_merge_requests_project_id_{name}", columns, unique=False)
    op.execute(TITLES[op.get_bind().dialect.name])


def downgrade() -> None:
    """Drop them."""
    with op.batch_alter_table("merge_requests", schema=None) as batch_op:
        for name in ("updated_at", "created_at"):
            batch_op.drop_index(f"ix_merge_requests_project_id_{name}")
    op.drop_table("merge_request_labels")
