"""Add the commits and deploys of releases of errors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0019"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
RELEASES = "error_releases"


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column(RELEASES, sa.Column("commit_count", KEY, server_default="0", nullable=False))
    op.add_column(RELEASES, sa.Column("last_commit", sa.JSON(), nullable=True))
    op.add_column(RELEASES, sa.Column("commits", sa.JSON(), nullable=True))
    op.create_table(
        "error_release_deploys",
        sa.Column("id", KEY, nullable=False),
        sa.Column("release_id", KEY, nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["release_id"], ["error_releases.id"], name="fk_error_release_deploys_release_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_error_release_deploys"),
        sqlite_autoincrement=True,
    )
    columns = ["release_id", "finished_at", "id"]
    op.create_index("ix_error_release_deploys_finished_at", "error_release_deploys", columns)


def downgrade() -> None:
    """Remove them."""
    op.drop_table("error_release_deploys")
    for name in ("commits", "last_commit", "commit_count"):
        op.drop_column(RELEASES, name)
