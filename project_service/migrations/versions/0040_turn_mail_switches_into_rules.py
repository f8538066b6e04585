"""Turn the switches for mails about alerts into notification rules, and subscriptions to errors into settings."""

from __future__ import annotations

import datetime as dt
import json
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
NAME = "E-mail to owners and maintainers"
MEMBERS = json.dumps([{"type": "members", "access_level": 40}])
WANTED_ERRORS = json.dumps({"new_error": True, "error_regression": True})
SWITCHES = (
    "SELECT project_id, send_email, send_recovery_email FROM incident_settings WHERE send_email OR send_recovery_email"
)
ADD_RULE = """
    INSERT INTO notification_rules (created_at, updated_at, project_id, name, enabled, events, integration_ids,
                                    matchers, targets, group_by, group_wait, group_interval, active_periods)
    VALUES (:now, :now, :project, :name, :enabled, :events, '[]', '[]', :targets, '[]', 5, 300, '[]')
"""
ADD_SETTINGS = """
    INSERT INTO notification_settings (created_at, updated_at, user_id, project_id, level, events)
    SELECT :now, :now, user_id, project_id, 'custom', :events FROM error_tracking_subscriptions
"""


def upgrade() -> None:
    """Write rules and settings that tell the same people, and remove the switches."""
    connection = op.get_bind()
    now = sa.bindparam("now", dt.datetime.now(dt.UTC).replace(tzinfo=None), type_=sa.DateTime())
    for project, triggered, resolved in connection.execute(sa.text(SWITCHES)).all():
        events = ["alert_triggered"] * bool(triggered) + ["alert_resolved"] * bool(resolved)
        values = {"project": project, "name": NAME, "enabled": True, "events": json.dumps(events), "targets": MEMBERS}
        connection.execute(sa.text(ADD_RULE).bindparams(now), values)
    connection.execute(sa.text(ADD_SETTINGS).bindparams(now), {"events": WANTED_ERRORS})
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
