"""Add the tables of the delivery engine, web hooks and their log."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)


def _where(condition: str) -> dict[str, Any]:
    return {f"{dialect}_where": sa.text(condition) for dialect in ("sqlite", "postgresql")}


def _columns(kind: Any, *names: str, nullable: bool = False) -> list[Any]:
    return [sa.Column(name, kind, nullable=nullable) for name in names]


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "delivery_payloads",
        sa.Column("id", KEY, nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_delivery_payloads"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_delivery_payloads_created_at", "delivery_payloads", ["created_at"])
    op.create_table(
        "deliveries",
        sa.Column("id", KEY, nullable=False),
        sa.Column("receiver", sa.String(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("payload_id", KEY, nullable=True),
        sa.Column("idempotency_key", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("attempts", KEY, nullable=False),
        *_columns(TIME, "due_at", "failed_at", nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["payload_id"], ["delivery_payloads.id"], name="fk_deliveries_payload_id"),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_waiting", "deliveries", ["receiver", "id"], **_where("failed_at IS NULL"))
    op.create_index("ix_deliveries_payload_id", "deliveries", ["payload_id"], **_where("payload_id IS NOT NULL"))
    op.create_index("ix_deliveries_failed_at", "deliveries", ["failed_at"], **_where("failed_at IS NOT NULL"))
    op.create_table(
        "web_hooks",
        sa.Column("id", KEY, nullable=False),
        *_columns(TIME, "created_at", "updated_at"),
        *_columns(KEY, "project_id", "group_id", nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        *_columns(sa.String(), "name", "description", nullable=True),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("enable_ssl_verification", sa.Boolean(), nullable=False),
        sa.Column("push_events_branch_filter", sa.String(), nullable=True),
        sa.Column("branch_filter_strategy", sa.String(), nullable=False),
        sa.Column("custom_webhook_template", sa.String(), nullable=True),
        *_columns(sa.Text(), "token", "signing_token", "url_variables", "custom_headers", nullable=True),
        sa.Column("recent_failures", KEY, nullable=False),
        sa.Column("disabled_until", TIME, nullable=True),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.Column("dropped_events", KEY, nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_web_hooks_project_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["group_id"], ["namespaces.id"], name="fk_web_hooks_group_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_web_hooks"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_web_hooks_project_id", "web_hooks", ["project_id", "id"])
    op.create_index("ix_web_hooks_group_id", "web_hooks", ["group_id", "id"])
    op.create_table(
        "web_hook_logs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("hook_id", KEY, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *_columns(sa.String(), "trigger", "url", "url_digest"),
        sa.Column("request_headers", sa.JSON(), nullable=False),
        sa.Column("payload_id", KEY, nullable=True),
        *_columns(sa.String(), "idempotency_key", "event_header"),
        sa.Column("response_headers", sa.JSON(), nullable=False),
        sa.Column("response_body", sa.String(), nullable=False),
        sa.Column("execution_duration", sa.Float(), nullable=False),
        sa.Column("response_status", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("attempt", KEY, nullable=False),
        sa.ForeignKeyConstraint(["hook_id"], ["web_hooks.id"], name="fk_web_hook_logs_hook_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["payload_id"], ["delivery_payloads.id"], name="fk_web_hook_logs_payload_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_web_hook_logs"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_web_hook_logs_hook_id", "web_hook_logs", ["hook_id", "id"])
    op.create_index("ix_web_hook_logs_created_at", "web_hook_logs", ["created_at"])
    op.create_index("ix_web_hook_logs_payload_id", "web_hook_logs", ["payload_id"], **_where("payload_id IS NOT NULL"))


def downgrade() -> None:
    """Drop them; what waits to be sent is lost."""
    for table in ("web_hook_logs", "web_hooks", "deliveries", "delivery_payloads"):
        op.drop_table(table)
