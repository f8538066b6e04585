"""Add keys of users, groups and projects that clients read, and the access level of releases."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0045"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    op.add_column("users", sa.Column("pronouns", sa.String(), nullable=True))
    op.add_column("users", sa.Column("discord", sa.String(), server_default="", nullable=False))
    op.add_column("users", sa.Column("github", sa.String(), server_default="", nullable=False))
    op.add_column("namespaces", sa.Column("default_branch", sa.String(), nullable=True))
    op.add_column("namespaces", sa.Column("attributes", sa.JSON(), server_default="{}", nullable=False))
    op.add_column("projects", sa.Column("releases_access_level", sa.String(), server_default="enabled", nullable=False))
    # the former default, stored or not, had no effect; now it would ask another server for pictures
    op.execute("DELETE FROM application_settings WHERE name = 'gravatar_enabled'")


def downgrade() -> None:
    """Remove them."""
    op.drop_column("projects", "releases_access_level")
    op.drop_column("namespaces", "attributes")
    op.drop_column("namespaces", "default_branch")
    for column in ("github", "discord", "pronouns"):
        op.drop_column("users", column)
