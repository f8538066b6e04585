"""Turn the switches for mails about alerts into notification rules, and subscriptions to errors into settings."""

from __future__ import annotations

import datetime as dt
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0025"
branch_labels = None
depends_on = None

CONTRACTS = "0.1.0: rules and personal settings replace the switches, whose columns and table are not read any more"
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
COPY: dict[str, Any] = {"reflect_kwargs": {"resolve_fks": False}, "table_kwargs": {"sqlite_autoincrement": True}}
TIME = sa.DateTime(timezone=True)
NAME = "E-mail to owners and maintainers"
SWITCHES = """
    SELECT project_id, send_email, send_recovery_email FROM incident_settings
    WHERE send_email OR send_recovery_email
"""
RULES = sa.table(
    "notification_rules",
    *(sa.column(name, TIME) for name in ("created_at", "updated_at")),
    *(sa.column(name, KEY) for name in ("project_id", "group_wait", "group_interval")),
    sa.column("name", sa.String),
    sa.column("enabled", sa.Boolean),
    *(
        sa.column(name, sa.JSON)
        for name in ("events", "integration_ids", "matchers", "targets", "group_by", "active_periods")
    ),
)
SETTINGS = sa.table(
    "notification_settings",
    *(sa.column(name, TIME) for name in ("created_at", "updated_at")),
    *(sa.column(name, KEY) for name in ("user_id", "project_id")),
    sa.column("level", sa.String),
    sa.column("events", sa.JSON),
)


def upgrade() -> None:
    """Write rules and settings that tell the same people, and remove the switches."""
    connection = op.get_bind()
    now = dt.datetime.now(dt.UTC)
    times = {"created_at": now, "updated_at": now}
    empty: dict[str, Any] = {name: [] for name in ("integration_ids", "matchers", "group_by", "active_periods")}
    for project_id, triggered, resolved in connection.execute(sa.text(SWITCHES)).all():
        events = ["alert_triggered"] * bool(triggered) + ["alert_resolved"] * bool(resolved)
        targets = [{"type": "members", "access_level": 40}]
        rule = {"project_id": project_id, "name": NAME, "enabled": True, "events": events, "targets": targets}
        connection.execute(sa.insert(RULES).values(rule | times | empty | {"group_wait": 5, "group_interval": 300}))
    wanted = {"level": "custom", "events": {"new_error": True, "error_regression": True}}
    subscriptions = sa.text("SELECT user_id, project_id FROM error_tracking_subscriptions")
    for user_id, project_id in connection.execute(subscriptions).all():
        setting = {"user_id": user_id, "project_id": project_id}
        connection.execute(sa.insert(SETTINGS).values(setting | times | wanted))
    with op.batch_alter_table("incident_settings", **COPY) as batch:
        batch.drop_column("send_email")
        batch.drop_column("send_recovery_email")
    with op.batch_alter_table("error_tracking_settings", **COPY) as batch:
        batch.drop_column("mails_day")
        batch.drop_column("mails_sent")
        batch.drop_column("mails_withheld")
    op.drop_column("tracked_errors", "mailed_at")
    op.drop_table("error_tracking_subscriptions")


def downgrade() -> None:
    """Add the switches again, all off."""
    op.create_table(
        "error_tracking_subscriptions",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name="fk_error_tracking_subscriptions_project_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name="fk_error_tracking_subscriptions_user_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_error_tracking_subscriptions"),
        sa.UniqueConstraint("project_id", "user_id", name="uq_error_tracking_subscriptions_project_id_user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_error_tracking_subscriptions_user_id", "error_tracking_subscriptions", ["user_id"])
    op.add_column("tracked_errors", sa.Column("mailed_at", sa.DateTime(timezone=True), nullable=True))
    with op.batch_alter_table("error_tracking_settings", **COPY) as batch:
        batch.add_column(sa.Column("mails_day", sa.Date(), nullable=True))
        batch.add_column(sa.Column("mails_sent", KEY, server_default="0", nullable=False))
        batch.add_column(sa.Column("mails_withheld", KEY, server_default="0", nullable=False))
    with op.batch_alter_table("incident_settings", **COPY) as batch:
        batch.add_column(sa.Column("send_email", sa.Boolean(), server_default=sa.false(), nullable=False))
        batch.add_column(sa.Column("send_recovery_email", sa.Boolean(), server_default=sa.false(), nullable=False))
