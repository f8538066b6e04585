"""Add two-factor authentication, password resets, and networks of sign-ins."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def _table(name: str, *parts: sa.schema.SchemaItem) -> None:
    op.create_table(
        name,
        sa.Column("id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        *parts,
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=f"fk_{name}_user_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=f"pk_{name}"),
        sqlite_autoincrement=True,
    )


def _timestamps() -> list[sa.Column[object]]:
    return [sa.Column(name, TIME, nullable=False) for name in ("created_at", "updated_at")]


def upgrade() -> None:
    """Add tables and columns; code of the release before does not know them and need not."""
    op.add_column("users", sa.Column("two_factor_enabled", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.add_column("users", sa.Column("two_factor_grace_started_at", TIME, nullable=True))
    _table(
        "two_factor_secrets",
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("last_step", KEY, nullable=False),
        *_timestamps(),
        sa.UniqueConstraint("user_id", name="uq_two_factor_secrets_user_id"),
    )
    _table(
        "recovery_codes",
        sa.Column("digest", sa.String(), nullable=False),
        sa.UniqueConstraint("user_id", "digest", name="uq_recovery_codes_user_id_digest"),
    )
    _table(
        "password_resets",
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        *_timestamps(),
        sa.UniqueConstraint("digest", name="uq_password_resets_digest"),
    )
    for column in ("user_id", "expires_at"):
        op.create_index(f"ix_password_resets_{column}", "password_resets", [column])
    _table(
        "sign_in_networks",
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.UniqueConstraint("user_id", "network", name="uq_sign_in_networks_user_id_network"),
    )
    op.create_index("ix_sign_in_networks_last_used_at", "sign_in_networks", ["last_used_at"])


def downgrade() -> None:
    """Drop them; two-factor authentication is off afterwards."""
    for table in ("sign_in_networks", "password_resets", "recovery_codes", "two_factor_secrets"):
        op.drop_table(table)
    for column in ("two_factor_grace_started_at", "two_factor_enabled"):
        op.drop_column("users", column)
