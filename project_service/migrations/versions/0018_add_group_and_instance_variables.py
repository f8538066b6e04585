"""Add CI/CD variables of groups and of the instance."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _columns() -> list[sa.Column[object]]:
    return [
        sa.Column("id", KEY, nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("variable_type", sa.String(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("raw", sa.Boolean(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
    ]


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "group_variables",
        *_columns(),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("environment_scope", sa.String(), nullable=False),
        sa.Column("namespace_id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["namespace_id"],
            ["namespaces.id"],
            name="fk_group_variables_namespace_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_group_variables"),
        sa.UniqueConstraint(
            "namespace_id", "key", "environment_scope", name="uq_group_variables_namespace_id_key_environment_scope"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_group_variables_namespace_id", "group_variables", ["namespace_id", "id"])
    op.create_table(
        "instance_variables",
        *_columns(),
        sa.PrimaryKeyConstraint("id", name="pk_instance_variables"),
        sa.UniqueConstraint("key", name="uq_instance_variables_key"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("instance_variables")
    op.drop_table("group_variables")
