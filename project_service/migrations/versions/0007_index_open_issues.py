"""An index of the open issues of projects, which are counted."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Index the issues of a project by state."""
    with op.batch_alter_table("issues", schema=None) as batch_op:
        batch_op.create_index("ix_issues_project_id_state", ["project_id", "state", "confidential"], unique=False)


def downgrade() -> None:
    """Drop the index."""
    with op.batch_alter_table("issues", schema=None) as batch_op:
        batch_op.drop_index("ix_issues_project_id_state")
