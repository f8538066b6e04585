"""Add time zones and visits of users, and invitations; find findings and audit events by an index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0011"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the column, the table and the index."""
    op.add_column("users", sa.Column("time_zone", sa.String(), server_default="", nullable=False))
    op.add_column("alerts", sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("project_imports", sa.Column("row_counts", sa.JSON(), nullable=True))
    op.create_table(
        "project_visits",
        sa.Column("id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("visited_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name="fk_project_visits_user_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_project_visits_project_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_project_visits"),
        sa.UniqueConstraint("user_id", "project_id", name="uq_project_visits_user_id_project_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_visits_user_id", "project_visits", ["user_id", "visited_at", "id"])
    op.create_index("ix_project_visits_project_id", "project_visits", ["project_id"])
    op.create_table(
        "invitations",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("access_level", KEY, nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("namespace_id", KEY, nullable=True),
        sa.Column("created_by_id", KEY, nullable=False),
        sa.CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_invitations_project_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name="fk_invitations_namespace_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"], ["users.id"], name="fk_invitations_created_by_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("namespace_id", "email", name="uq_invitations_namespace_id_email"),
        sa.UniqueConstraint("project_id", "email", name="uq_invitations_project_id_email"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_invitations_created_by_id", "invitations", ["created_by_id"])
    op.create_index("ix_invitations_created_at", "invitations", ["created_at"])
    op.create_index("ix_audit_events_event_name", "audit_events", ["event_name", "created_at", "id"])
    op.create_index("ix_tracked_findings_first_seen", "tracked_findings", ["project_id", "first_seen_at", "id"])


def downgrade() -> None:
    """Remove them."""
    op.drop_index("ix_audit_events_event_name", "audit_events")
    op.drop_index("ix_tracked_findings_first_seen", "tracked_findings")
    op.drop_table("invitations")
    op.drop_table("project_visits")
    op.drop_column("project_imports", "row_counts")
    op.drop_column("alerts", "acknowledged_at")
    op.drop_column("users", "time_zone")
