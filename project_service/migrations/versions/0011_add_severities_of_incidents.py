"""Incidents are as severe as the alerts they were made of, and may say what a template says."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; code of the release before does not know them and need not."""
    op.add_column("issues", sa.Column("severity", sa.String(), server_default="unknown", nullable=False))
    op.add_column("incident_settings", sa.Column("issue_template_key", sa.String(), nullable=True))
    op.add_column("incident_settings", sa.Column("issue_template", sa.String(), nullable=True))


def downgrade() -> None:
    """Take them away."""
    op.drop_column("incident_settings", "issue_template")
    op.drop_column("incident_settings", "issue_template_key")
    op.drop_column("issues", "severity")
