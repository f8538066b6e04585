"""Link issues to errors that a Sentry server stores."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "sentry_issue_links",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("sentry_id", sa.String(), nullable=False),
        sa.Column("issue_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name="fk_sentry_issue_links_issue_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_sentry_issue_links_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_sentry_issue_links"),
        sa.UniqueConstraint("project_id", "sentry_id", name="uq_sentry_issue_links_project_id_sentry_id"),
        sa.UniqueConstraint("issue_id", name="uq_sentry_issue_links_issue_id"),
        sqlite_autoincrement=True,
    )


def downgrade() -> None:
    """Drop the table."""
    op.drop_table("sentry_issue_links")
