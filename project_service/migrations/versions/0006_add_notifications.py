"""Add events, rules, channels, messages and personal settings of notifications."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "notification_quiet_hours",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("time_zone", sa.String(), nullable=False),
        sa.Column("days", sa.JSON(), nullable=False),
        sa.Column("starts", sa.String(), nullable=False),
        sa.Column("ends", sa.String(), nullable=False),
        sa.Column("except_critical", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_quiet_hours_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_quiet_hours")),
        sa.UniqueConstraint("user_id", name=op.f("uq_notification_quiet_hours_user_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "notification_announcements",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("subject_type", sa.String(), nullable=False),
        sa.Column("subject_id", KEY, nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("announced_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_announcements_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_announcements")),
        sa.UniqueConstraint(
            "subject_type",
            "subject_id",
            "target",
            name=op.f("uq_notification_announcements_subject_type_subject_id_target"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_announcements_announced_at", "notification_announcements", ["announced_at"])
    op.create_index("ix_notification_announcements_project_id", "notification_announcements", ["project_id"])

    op.create_table(
        "notification_channels",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("group_id", KEY, nullable=True),
        sa.Column("user_id", KEY, nullable=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("secrets", sa.Text(), nullable=True),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("anonymous_actions", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("rate_per_minute", KEY, nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("final_failures", KEY, nullable=False),
        sa.Column("troubled_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("probe_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.Column("last_delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tokens", sa.Float(), nullable=True),
        sa.Column("tokens_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(project_id IS NOT NULL AND group_id IS NULL AND user_id IS NULL)"
            " OR (project_id IS NULL AND group_id IS NOT NULL AND user_id IS NULL)"
            " OR (project_id IS NULL AND group_id IS NULL AND user_id IS NOT NULL)",
            name=op.f("ck_notification_channels_one_owner"),
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["namespaces.id"], name=op.f("fk_notification_channels_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_channels_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_channels_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_channels")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_notification_channels_failing_since",
        "notification_channels",
        ["failing_since"],
        sqlite_where=sa.text("failing_since IS NOT NULL"),
        postgresql_where=sa.text("failing_since IS NOT NULL"),
    )

    op.create_table(
        "notification_events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("subject_type", sa.String(), nullable=False),
        sa.Column("subject_id", KEY, nullable=False),
        sa.Column("severity", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=True),
        sa.Column("author_id", KEY, nullable=True),
        sa.Column("snapshot", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("routed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("silence_ids", sa.JSON(), nullable=False),
        sa.Column("reasons", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name=op.f("fk_notification_events_author_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_events_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_events")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_notification_events_author_id",
        "notification_events",
        ["author_id"],
        sqlite_where=sa.text("author_id IS NOT NULL"),
        postgresql_where=sa.text("author_id IS NOT NULL"),
    )
    op.create_index("ix_notification_events_created_at", "notification_events", ["created_at"])
    op.create_index("ix_notification_events_project_id", "notification_events", ["project_id", "id"])
    op.create_index("ix_notification_events_subject", "notification_events", ["subject_type", "subject_id", "id"])
    op.create_index(
        "ix_notification_events_unrouted",
        "notification_events",
        ["id"],
        sqlite_where=sa.text("routed_at IS NULL"),
        postgresql_where=sa.text("routed_at IS NULL"),
    )

    op.create_table(
        "notification_rules",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("group_id", KEY, nullable=True),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("min_severity", sa.String(), nullable=True),
        sa.Column("environment", sa.String(), nullable=True),
        sa.Column("integration_ids", sa.JSON(), nullable=False),
        sa.Column("matchers", sa.JSON(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("group_by", sa.JSON(), nullable=False),
        sa.Column("group_wait", KEY, nullable=False),
        sa.Column("group_interval", KEY, nullable=False),
        sa.Column("repeat_interval", KEY, nullable=True),
        sa.Column("active_periods", sa.JSON(), nullable=False),
        sa.CheckConstraint("(project_id IS NULL) <> (group_id IS NULL)", name=op.f("ck_notification_rules_one_owner")),
        sa.ForeignKeyConstraint(
            ["group_id"], ["namespaces.id"], name=op.f("fk_notification_rules_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_rules_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_rules")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "notification_settings",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("group_id", KEY, nullable=True),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("notification_email", sa.String(), nullable=True),
        sa.CheckConstraint("project_id IS NULL OR group_id IS NULL", name=op.f("ck_notification_settings_one_subject")),
        sa.ForeignKeyConstraint(
            ["group_id"], ["namespaces.id"], name=op.f("fk_notification_settings_group_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_settings_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_settings_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_settings")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_settings_level", "notification_settings", ["level"])
    op.create_index("ix_notification_settings_user_id", "notification_settings", ["user_id", "id"])
    op.create_index(
        "uq_notification_settings_global",
        "notification_settings",
        ["user_id"],
        unique=True,
        sqlite_where=sa.text("project_id IS NULL AND group_id IS NULL"),
        postgresql_where=sa.text("project_id IS NULL AND group_id IS NULL"),
    )
    op.create_index("uq_notification_settings_group_id", "notification_settings", ["group_id", "user_id"], unique=True)
    op.create_index(
        "uq_notification_settings_project_id", "notification_settings", ["project_id", "user_id"], unique=True
    )

    op.create_table(
        "notification_deliveries",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=True),
        sa.Column("channel_id", KEY, nullable=True),
        sa.Column("user_id", KEY, nullable=True),
        sa.Column("recipient", sa.String(), nullable=False),
        sa.Column("channel_name", sa.String(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("content", sa.JSON(), nullable=False),
        sa.Column("triggered_count", KEY, nullable=False),
        sa.Column("resolved_count", KEY, nullable=False),
        sa.Column("other_count", KEY, nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempts", KEY, nullable=False),
        sa.Column("next_attempt_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("response_status", sa.String(), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("merged_into_id", KEY, nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["channel_id"],
            ["notification_channels.id"],
            name=op.f("fk_notification_deliveries_channel_id"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["merged_into_id"],
            ["notification_deliveries.id"],
            name=op.f("fk_notification_deliveries_merged_into_id"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_deliveries_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notification_deliveries_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_deliveries")),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_deliveries_channel_id", "notification_deliveries", ["channel_id", "id"])
    op.create_index("ix_notification_deliveries_created_at", "notification_deliveries", ["created_at"])
    op.create_index(
        "ix_notification_deliveries_merged_into_id",
        "notification_deliveries",
        ["merged_into_id"],
        sqlite_where=sa.text("merged_into_id IS NOT NULL"),
        postgresql_where=sa.text("merged_into_id IS NOT NULL"),
    )
    op.create_index("ix_notification_deliveries_project_id", "notification_deliveries", ["project_id", "id"])
    op.create_index(
        "ix_notification_deliveries_user_id",
        "notification_deliveries",
        ["user_id", "id"],
        sqlite_where=sa.text("user_id IS NOT NULL"),
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )

    op.create_table(
        "notification_groups",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("rule_id", KEY, nullable=True),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("group_key", sa.String(), nullable=False),
        sa.Column("interval_seconds", KEY, nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_notification_groups_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["rule_id"], ["notification_rules.id"], name=op.f("fk_notification_groups_rule_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_groups")),
        sa.UniqueConstraint(
            "project_id",
            "origin",
            "target",
            "group_key",
            name=op.f("uq_notification_groups_project_id_origin_target_group_key"),
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notification_groups_due_at", "notification_groups", ["due_at"])
    op.create_index(
        "ix_notification_groups_rule_id",
        "notification_groups",
        ["rule_id"],
        sqlite_where=sa.text("rule_id IS NOT NULL"),
        postgresql_where=sa.text("rule_id IS NOT NULL"),
    )

    op.create_table(
        "notification_items",
        sa.Column("id", KEY, nullable=False),
        sa.Column("group_id", KEY, nullable=True),
        sa.Column("event_id", KEY, nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("rule_id", KEY, nullable=True),
        sa.Column("delivery_id", KEY, nullable=True),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["notification_deliveries.id"],
            name=op.f("fk_notification_items_delivery_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["event_id"], ["notification_events.id"], name=op.f("fk_notification_items_event_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["group_id"], ["notification_groups.id"], name=op.f("fk_notification_items_group_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notification_items")),
        sa.UniqueConstraint("event_id", "target", name=op.f("uq_notification_items_event_id_target")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_notification_items_delivery_id",
        "notification_items",
        ["delivery_id", "id"],
        sqlite_where=sa.text("delivery_id IS NOT NULL"),
        postgresql_where=sa.text("delivery_id IS NOT NULL"),
    )
    op.create_index("ix_notification_items_group_id", "notification_items", ["group_id"])
    op.create_index(
        "ix_notification_items_waiting",
        "notification_items",
        ["group_id", "id"],
        sqlite_where=sa.text("delivery_id IS NULL"),
        postgresql_where=sa.text("delivery_id IS NULL"),
    )

    op.create_index(
        "uq_notification_channels_project_id",
        "notification_channels",
        ["project_id", sa.text("lower(name)")],
        unique=True,
    )
    op.create_index(
        "uq_notification_channels_group_id", "notification_channels", ["group_id", sa.text("lower(name)")], unique=True
    )
    op.create_index(
        "uq_notification_channels_user_id", "notification_channels", ["user_id", sa.text("lower(name)")], unique=True
    )
    op.create_index(
        "uq_notification_rules_project_id", "notification_rules", ["project_id", sa.text("lower(name)")], unique=True
    )
    op.create_index(
        "uq_notification_rules_group_id", "notification_rules", ["group_id", sa.text("lower(name)")], unique=True
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("notification_items")
    op.drop_table("notification_groups")
    op.drop_table("notification_deliveries")
    op.drop_table("notification_settings")
    op.drop_table("notification_rules")
    op.drop_table("notification_events")
    op.drop_table("notification_channels")
    op.drop_table("notification_announcements")
    op.drop_table("notification_quiet_hours")
