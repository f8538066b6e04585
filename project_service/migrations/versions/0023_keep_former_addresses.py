"""Keep uses of former addresses and done to-do items, list alerts by receipt if they start later, mail recoveries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LISTED_AT = sa.text("(CASE WHEN started_at > created_at THEN created_at ELSE started_at END)")
OPEN = sa.text("status <> 2 AND status <> 3")


def upgrade() -> None:
    """Add tables and columns, which code of the release before does not know and need not, and replace indexes."""
    op.create_table(
        "alert_former_addresses",
        sa.Column("id", KEY, nullable=False),
        sa.Column("integration_id", KEY, nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["integration_id"], ["alert_integrations.id"], name=op.f("fk_alert_former_addresses_integration_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_former_addresses")),
        sa.UniqueConstraint("integration_id", "path", name=op.f("uq_alert_former_addresses_integration_id_path")),
        sqlite_autoincrement=True,
    )
    op.add_column("incident_settings", sa.Column("send_recovery_email", sa.Boolean(), server_default=sa.false(), nullable=False))
    op.execute("UPDATE incident_settings SET send_recovery_email = send_email")
    op.add_column("alert_todos", sa.Column("done_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_alert_todos_user_id_done_at", "alert_todos", ["user_id", "done_at", "id"], unique=False)
    op.drop_index(op.f("ix_alert_todos_user_id"), "alert_todos")
    for name in ("ix_alerts_started_at", "ix_alerts_listed_open", "ix_alerts_status"):
        op.drop_index(name, "alerts")
    op.create_index("ix_alerts_listed", "alerts", ["project_id", LISTED_AT, "id"], unique=False)
    op.create_index("ix_alerts_listed_open", "alerts", ["project_id", LISTED_AT, "id"], unique=False, sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_index("ix_alerts_status", "alerts", ["project_id", "status", LISTED_AT, "id"], unique=False)


def downgrade() -> None:
    """Put back what was there."""
    for name in ("ix_alerts_listed", "ix_alerts_listed_open", "ix_alerts_status"):
        op.drop_index(name, "alerts")
    op.create_index("ix_alerts_started_at", "alerts", ["project_id", "started_at", "id"], unique=False)
    op.create_index("ix_alerts_listed_open", "alerts", ["project_id", "started_at", "id"], unique=False, sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_index("ix_alerts_status", "alerts", ["project_id", "status", "started_at", "id"], unique=False)
    op.create_index(op.f("ix_alert_todos_user_id"), "alert_todos", ["user_id"], unique=False)
    op.drop_index("ix_alert_todos_user_id_done_at", "alert_todos")
    op.drop_column("alert_todos", "done_at")
    op.drop_column("incident_settings", "send_recovery_email")
    op.drop_table("alert_former_addresses")
