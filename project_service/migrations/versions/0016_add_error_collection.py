"""Add client keys, errors, their events and counters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; code of the release before does not know them and need not."""
    op.create_table(
        "error_tracking_client_keys",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_error_tracking_client_keys_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_error_tracking_client_keys")),
        sa.UniqueConstraint("public_key", name=op.f("uq_error_tracking_client_keys_public_key")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("error_tracking_client_keys", schema=None) as batch_op:
        batch_op.create_index("ix_error_tracking_client_keys_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "error_tracking_drops",
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_error_tracking_drops_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "start", "reason", name=op.f("pk_error_tracking_drops")),
    )
    op.create_table(
        "error_tracking_subscriptions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_error_tracking_subscriptions_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_error_tracking_subscriptions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_error_tracking_subscriptions")),
        sa.UniqueConstraint("project_id", "user_id", name=op.f("uq_error_tracking_subscriptions_project_id_user_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("error_tracking_subscriptions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_error_tracking_subscriptions_user_id"), ["user_id"], unique=False)

    op.create_table(
        "tracked_errors",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("culprit", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("logger", sa.String(), nullable=True),
        sa.Column("platform", sa.String(), nullable=True),
        sa.Column("status", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("environment_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("release_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("stored_events", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("first_release", sa.String(), nullable=True),
        sa.Column("first_release_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_release", sa.String(), nullable=True),
        sa.Column("last_release_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("regressed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("mailed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["issue_id"], ["issues.id"], name=op.f("fk_tracked_errors_issue_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_tracked_errors_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tracked_errors")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tracked_errors", schema=None) as batch_op:
        batch_op.create_index("ix_tracked_errors_count", ["project_id", "count", "id"], unique=False)
        batch_op.create_index("ix_tracked_errors_first_seen", ["project_id", "first_seen", "id"], unique=False)
        batch_op.create_index("ix_tracked_errors_last_seen", ["project_id", "last_seen", "id"], unique=False)
        batch_op.create_index("ix_tracked_errors_status_count", ["project_id", "status", "count", "id"], unique=False)
        batch_op.create_index(
            "ix_tracked_errors_status_first_seen", ["project_id", "status", "first_seen", "id"], unique=False
        )
        batch_op.create_index(
            "ix_tracked_errors_status_last_seen", ["project_id", "status", "last_seen", "id"], unique=False
        )
        batch_op.create_index(
            "uq_tracked_errors_issue_id",
            ["issue_id"],
            unique=True,
            sqlite_where=sa.text("issue_id IS NOT NULL"),
            postgresql_where=sa.text("issue_id IS NOT NULL"),
        )

    op.create_table(
        "tracked_error_counts",
        sa.Column("error_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("seconds", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name=op.f("fk_tracked_error_counts_error_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("error_id", "seconds", "start", name=op.f("pk_tracked_error_counts")),
    )
    with op.batch_alter_table("tracked_error_counts", schema=None) as batch_op:
        batch_op.create_index("ix_tracked_error_counts_start", ["seconds", "start"], unique=False)

    op.create_table(
        "tracked_error_digests",
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("error_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name=op.f("fk_tracked_error_digests_error_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_tracked_error_digests_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "digest", name=op.f("pk_tracked_error_digests")),
    )
    with op.batch_alter_table("tracked_error_digests", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tracked_error_digests_error_id"), ["error_id"], unique=False)

    op.create_table(
        "tracked_error_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("error_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name=op.f("fk_tracked_error_events_error_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_tracked_error_events_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tracked_error_events")),
        sa.UniqueConstraint("project_id", "event_id", name=op.f("uq_tracked_error_events_project_id_event_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tracked_error_events", schema=None) as batch_op:
        batch_op.create_index("ix_tracked_error_events_occurred_at", ["error_id", "occurred_at", "id"], unique=False)

    op.create_table(
        "tracked_error_facets",
        sa.Column("error_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=False, nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name=op.f("fk_tracked_error_facets_error_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_tracked_error_facets_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("error_id", "kind", "value", name=op.f("pk_tracked_error_facets")),
    )
    with op.batch_alter_table("tracked_error_facets", schema=None) as batch_op:
        batch_op.create_index("ix_tracked_error_facets_kind", ["project_id", "kind", "value", "error_id"], unique=False)

    op.create_table(
        "tracked_error_users",
        sa.Column("error_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name=op.f("fk_tracked_error_users_error_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("error_id", "digest", name=op.f("pk_tracked_error_users")),
    )
    integer = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column(
        "error_tracking_settings", sa.Column("store_addresses", sa.Boolean(), server_default=sa.false(), nullable=False)
    )
    op.add_column("error_tracking_settings", sa.Column("hidden_keys", sa.JSON(), server_default="[]", nullable=False))
    op.add_column(
        "error_tracking_settings", sa.Column("resolve_after_days", integer, server_default="0", nullable=False)
    )
    op.add_column("error_tracking_settings", sa.Column("user_digest_key", sa.Text(), nullable=True))
    op.add_column("error_tracking_settings", sa.Column("sentry_project_id", sa.String(), nullable=True))
    op.add_column("error_tracking_settings", sa.Column("mails_day", sa.Date(), nullable=True))
    op.add_column("error_tracking_settings", sa.Column("mails_sent", integer, server_default="0", nullable=False))
    op.add_column("error_tracking_settings", sa.Column("mails_withheld", integer, server_default="0", nullable=False))


def downgrade() -> None:
    """Drop the tables."""
    for name in ("mails_withheld", "mails_sent", "mails_day", "sentry_project_id", "user_digest_key"):
        op.drop_column("error_tracking_settings", name)
    for name in ("resolve_after_days", "hidden_keys", "store_addresses"):
        op.drop_column("error_tracking_settings", name)

    op.drop_table("tracked_error_users")
    with op.batch_alter_table("tracked_error_facets", schema=None) as batch_op:
        batch_op.drop_index("ix_tracked_error_facets_kind")

    op.drop_table("tracked_error_facets")
    with op.batch_alter_table("tracked_error_events", schema=None) as batch_op:
        batch_op.drop_index("ix_tracked_error_events_occurred_at")

    op.drop_table("tracked_error_events")
    with op.batch_alter_table("tracked_error_digests", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_tracked_error_digests_error_id"))

    op.drop_table("tracked_error_digests")
    with op.batch_alter_table("tracked_error_counts", schema=None) as batch_op:
        batch_op.drop_index("ix_tracked_error_counts_start")

    op.drop_table("tracked_error_counts")
    with op.batch_alter_table("tracked_errors", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_tracked_errors_issue_id",
            sqlite_where=sa.text("issue_id IS NOT NULL"),
            postgresql_where=sa.text("issue_id IS NOT NULL"),
        )
        batch_op.drop_index("ix_tracked_errors_status_last_seen")
        batch_op.drop_index("ix_tracked_errors_status_first_seen")
        batch_op.drop_index("ix_tracked_errors_status_count")
        batch_op.drop_index("ix_tracked_errors_last_seen")
        batch_op.drop_index("ix_tracked_errors_first_seen")
        batch_op.drop_index("ix_tracked_errors_count")

    op.drop_table("tracked_errors")
    with op.batch_alter_table("error_tracking_subscriptions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_error_tracking_subscriptions_user_id"))

    op.drop_table("error_tracking_subscriptions")
    op.drop_table("error_tracking_drops")
    with op.batch_alter_table("error_tracking_client_keys", schema=None) as batch_op:
        batch_op.drop_index("ix_error_tracking_client_keys_project_id")

    op.drop_table("error_tracking_client_keys")
