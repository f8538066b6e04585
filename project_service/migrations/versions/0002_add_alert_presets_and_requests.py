"""Add presets and word tables of alert integrations, their log of requests, and the integration of an alert."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
PRESENT: dict[str, Any] = {
    name: {f"{dialect}_where": sa.text(f"{name} IS NOT NULL") for dialect in ("sqlite", "postgresql")}
    for name in ("fingerprint", "integration_id")
}
INDEXES_OF_EXPRESSIONS = ("ix_alerts_listed", "ix_alerts_listed_open", "ix_alerts_status")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
NEW_COLUMNS = ("preset", "severity_mapping", "resolved_values", "time_zone")


def upgrade() -> None:
    """Add the columns and the table."""
    op.add_column("alert_integrations", sa.Column("preset", sa.String(), nullable=True))
    op.add_column("alert_integrations", sa.Column("severity_mapping", sa.JSON(), nullable=True))
    op.add_column("alert_integrations", sa.Column("resolved_values", sa.JSON(), nullable=True))
    op.add_column("alert_integrations", sa.Column("time_zone", sa.String(), nullable=True))
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    if is_sqlite:  # the table is copied, which does not work with indexes of expressions
        for name in INDEXES_OF_EXPRESSIONS:
            op.drop_index(name, "alerts")
    with op.batch_alter_table("alerts", **COPY) as batch:
        batch.add_column(sa.Column("integration_id", KEY, nullable=True))
        batch.create_foreign_key(
            "fk_alerts_integration_id", "alert_integrations", ["integration_id"], ["id"], ondelete="SET NULL"
        )
    if is_sqlite:
        _create_indexes_of_expressions()
    op.create_index("ix_alerts_fingerprint", "alerts", ["project_id", "fingerprint", "id"], **PRESENT["fingerprint"])
    op.create_index("ix_alerts_integration_id", "alerts", ["integration_id", "id"], **PRESENT["integration_id"])
    op.create_table(
        "alert_requests",
        sa.Column("id", KEY, nullable=False),
        sa.Column("integration_id", KEY, nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("size", KEY, nullable=False),
        sa.Column("count", KEY, nullable=False),
        sa.Column("alert_iids", sa.JSON(), nullable=False),
        sa.Column("body", sa.Text(), nullable=True),
        sa.Column("is_cut", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["integration_id"],
            ["alert_integrations.id"],
            name="fk_alert_requests_integration_id",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name="pk_alert_requests"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_requests_integration_id", "alert_requests", ["integration_id", "id"])
    op.create_index("ix_alert_requests_listed", "alert_requests", ["integration_id", "received_at", "id"])
    op.create_index("ix_alert_requests_received_at", "alert_requests", ["received_at"])


def downgrade() -> None:
    """Remove them."""
    op.drop_table("alert_requests")
    op.drop_index("ix_alerts_integration_id", "alerts")
    op.drop_index("ix_alerts_fingerprint", "alerts")
    if op.get_bind().dialect.name == "sqlite":
        for name in INDEXES_OF_EXPRESSIONS:
            op.drop_index(name, "alerts")
    with op.batch_alter_table("alerts", **COPY) as batch:
        batch.drop_constraint("fk_alerts_integration_id", type_="foreignkey")
        batch.drop_column("integration_id")
    if op.get_bind().dialect.name == "sqlite":
        _create_indexes_of_expressions()
    for name in reversed(NEW_COLUMNS):
        op.drop_column("alert_integrations", name)


def _create_indexes_of_expressions() -> None:
    listed = sa.text("(\nCASE\n WHEN started_at > created_at THEN created_at\n ELSE started_at\nEND)")
    is_open = sa.text("status <> 2 AND status <> 3")
    op.create_index("ix_alerts_listed", "alerts", ["project_id", listed, "id"])
    op.create_index("ix_alerts_listed_open", "alerts", ["project_id", listed, "id"], sqlite_where=is_open)
    op.create_index("ix_alerts_status", "alerts", ["project_id", "status", listed, "id"])
