"""Add the bots of access tokens of projects and groups, and families of rotated tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the table, and columns of tokens."""
    op.create_table(
        "resource_bots",
        sa.Column("id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("namespace_id", KEY, nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_resource_bots_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_resource_bots_project_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name="fk_resource_bots_namespace_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resource_bots"),
        sa.UniqueConstraint("user_id", name="uq_resource_bots_user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_resource_bots_project_id", "resource_bots", ["project_id"])
    op.create_index("ix_resource_bots_namespace_id", "resource_bots", ["namespace_id"])
    op.add_column("personal_access_tokens", sa.Column("family_id", KEY, nullable=True))
    op.add_column("personal_access_tokens", sa.Column("expiry_mailed_on", sa.Date(), nullable=True))
    op.create_index("ix_personal_access_tokens_family_id", "personal_access_tokens", ["family_id"])


def downgrade() -> None:
    """Drop the table and the columns."""
    op.drop_index("ix_personal_access_tokens_family_id", "personal_access_tokens")
    op.drop_column("personal_access_tokens", "expiry_mailed_on")
    op.drop_column("personal_access_tokens", "family_id")
    op.drop_table("resource_bots")
