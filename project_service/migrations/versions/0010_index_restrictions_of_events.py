"""Add the restriction to the index of an author's events by project, so that it alone is read to count them."""

from __future__ import annotations

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

NAME, COLUMNS = "ix_events_author_id_project_id", ["author_id", "project_id"]


def upgrade() -> None:
    """Put the wider index in place of the other."""
    op.drop_index(NAME, "events")
    op.create_index(NAME, "events", [*COLUMNS, "restriction"], unique=False)


def downgrade() -> None:
    """Put back what was there."""
    op.drop_index(NAME, "events")
    op.create_index(NAME, "events", COLUMNS, unique=False)
