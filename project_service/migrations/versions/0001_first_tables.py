"""first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """first tables."""
    op.create_table(
        "application_settings",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_application_settings")),
    )
    op.create_table(
        "feature_gates",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feature_gates")),
        sa.UniqueConstraint("feature", "key", "value", name=op.f("uq_feature_gates_feature_key_value")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "mails",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("recipient", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mails")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("mails", schema=None) as batch_op:
        batch_op.create_index("ix_mails_created_at", ["created_at", "id"], unique=False)

    op.create_table(
        "periodic_runs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_periodic_runs")),
        sa.UniqueConstraint("name", name=op.f("uq_periodic_runs_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "sign_in_failures",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("failures", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_failures")),
        sa.UniqueConstraint("subject", name=op.f("uq_sign_in_failures_subject")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("sign_in_failures", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sign_in_failures_since"), ["since"], unique=False)

    op.create_table(
        "tasks",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("attempts", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index("ix_tasks_due", ["failed_at", "run_at"], unique=False)

    op.create_table(
        "users",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("external", sa.Boolean(), nullable=False),
        sa.Column("private_profile", sa.Boolean(), nullable=False),
        sa.Column("can_create_group", sa.Boolean(), nullable=False),
        sa.Column("projects_limit", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("password_hash", sa.String(), nullable=True),
        sa.Column("avatar_url", sa.String(), nullable=True),
        sa.Column("bio", sa.String(), nullable=False),
        sa.Column("location", sa.String(), nullable=True),
        sa.Column("public_email", sa.String(), nullable=False),
        sa.Column("skype", sa.String(), nullable=False),
        sa.Column("linkedin", sa.String(), nullable=False),
        sa.Column("twitter", sa.String(), nullable=False),
        sa.Column("website_url", sa.String(), nullable=False),
        sa.Column("organization", sa.String(), nullable=True),
        sa.Column("job_title", sa.String(), nullable=False),
        sa.Column("note", sa.String(), nullable=True),
        sa.Column("extern_uid", sa.String(), nullable=True),
        sa.Column("provider", sa.String(), nullable=True),
        sa.Column("theme_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("color_scheme_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_activity_on", sa.Date(), nullable=True),
        sa.Column("current_sign_in_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_sign_in_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("current_sign_in_ip", sa.String(), nullable=True),
        sa.Column("last_sign_in_ip", sa.String(), nullable=True),
        sa.Column("sign_in_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("deleting_since", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.create_index(
            "uq_users_email",
            [sa.literal_column("lower(email)")],
            unique=True,
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.create_index(
            "uq_users_username",
            [sa.literal_column("lower(username)")],
            unique=True,
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )

    op.create_table(
        "browser_sessions",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_browser_sessions_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_browser_sessions")),
        sa.UniqueConstraint("digest", name=op.f("uq_browser_sessions_digest")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("browser_sessions", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_browser_sessions_user_id"), ["user_id"], unique=False)

    op.create_table(
        "namespaces",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("full_path", sa.String(), nullable=False),
        sa.Column("full_name", sa.String(), nullable=False),
        sa.Column("visibility", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("avatar_url", sa.String(), nullable=True),
        sa.Column("plan", sa.String(), nullable=True),
        sa.Column("trial", sa.Boolean(), nullable=False),
        sa.Column("trial_ends_on", sa.Date(), nullable=True),
        sa.Column("seats_in_use", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("max_seats_used", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("deleting_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("parent_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("owner_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("share_with_group_lock", sa.Boolean(), nullable=True),
        sa.Column("require_two_factor_authentication", sa.Boolean(), nullable=True),
        sa.Column("two_factor_grace_period", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("project_creation_level", sa.String(), nullable=True),
        sa.Column("subgroup_creation_level", sa.String(), nullable=True),
        sa.Column("auto_devops_enabled", sa.Boolean(), nullable=True),
        sa.Column("emails_disabled", sa.Boolean(), nullable=True),
        sa.Column("mentions_disabled", sa.Boolean(), nullable=True),
        sa.Column("lfs_enabled", sa.Boolean(), nullable=True),
        sa.Column("request_access_enabled", sa.Boolean(), nullable=True),
        sa.Column("default_branch_protection", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["owner_id"], ["users.id"], name=op.f("fk_namespaces_owner_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["namespaces.id"], name=op.f("fk_namespaces_parent_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_namespaces")),
        sa.UniqueConstraint("owner_id", name=op.f("uq_namespaces_owner_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("namespaces", schema=None) as batch_op:
        batch_op.create_index("ix_namespaces_name", [sa.literal_column("lower(name)")], unique=False)
        batch_op.create_index(batch_op.f("ix_namespaces_parent_id"), ["parent_id"], unique=False)
        batch_op.create_index("ix_namespaces_path", [sa.literal_column("lower(path)")], unique=False)
        batch_op.create_index(
            "uq_namespaces_full_path",
            [sa.literal_column("lower(full_path)")],
            unique=True,
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )

    op.create_table(
        "personal_access_tokens",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_personal_access_tokens_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_personal_access_tokens")),
        sa.UniqueConstraint("digest", name=op.f("uq_personal_access_tokens_digest")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("personal_access_tokens", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_personal_access_tokens_user_id"), ["user_id"], unique=False)

    op.create_table(
        "namespace_ancestors",
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("ancestor_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["ancestor_id"], ["namespaces.id"], name=op.f("fk_namespace_ancestors_ancestor_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name=op.f("fk_namespace_ancestors_namespace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("namespace_id", "ancestor_id", name=op.f("pk_namespace_ancestors")),
    )
    with op.batch_alter_table("namespace_ancestors", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_namespace_ancestors_ancestor_id"), ["ancestor_id"], unique=False)

    op.create_table(
        "projects",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("full_path", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("visibility", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("archived", sa.Boolean(), nullable=False),
        sa.Column("default_branch", sa.String(), nullable=True),
        sa.Column("tag_list", sa.JSON(), nullable=False),
        sa.Column("avatar_url", sa.String(), nullable=True),
        sa.Column("issues_access_level", sa.String(), nullable=False),
        sa.Column("repository_access_level", sa.String(), nullable=False),
        sa.Column("merge_requests_access_level", sa.String(), nullable=False),
        sa.Column("forking_access_level", sa.String(), nullable=False),
        sa.Column("wiki_access_level", sa.String(), nullable=False),
        sa.Column("builds_access_level", sa.String(), nullable=False),
        sa.Column("snippets_access_level", sa.String(), nullable=False),
        sa.Column("pages_access_level", sa.String(), nullable=False),
        sa.Column("operations_access_level", sa.String(), nullable=False),
        sa.Column("analytics_access_level", sa.String(), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("import_status", sa.String(), nullable=False),
        sa.Column("import_error", sa.String(), nullable=True),
        sa.Column("last_activity_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleting_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("creator_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["creator_id"], ["users.id"], name=op.f("fk_projects_creator_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name=op.f("fk_projects_namespace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_projects")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.create_index("ix_projects_created_at", ["created_at", "id"], unique=False)
        batch_op.create_index(batch_op.f("ix_projects_creator_id"), ["creator_id"], unique=False)
        batch_op.create_index("ix_projects_last_activity_at", ["last_activity_at", "id"], unique=False)
        batch_op.create_index("ix_projects_namespace_id_created_at", ["namespace_id", "created_at", "id"], unique=False)
        batch_op.create_index("ix_projects_visibility", ["visibility", "id"], unique=False)
        batch_op.create_index(
            "uq_projects_full_path",
            [sa.literal_column("lower(full_path)")],
            unique=True,
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.create_index(
            "uq_projects_name",
            ["namespace_id", "name"],
            unique=True,
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )

    op.create_table(
        "alert_integrations",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("endpoint_identifier", sa.String(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("payload_example", sa.String(), nullable=True),
        sa.Column("mapping", sa.JSON(), nullable=False),
        sa.Column("target_url", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_alert_integrations_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_integrations")),
        sa.UniqueConstraint(
            "project_id", "endpoint_identifier", name=op.f("uq_alert_integrations_project_id_endpoint_identifier")
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("alert_integrations", schema=None) as batch_op:
        batch_op.create_index("ix_alert_integrations_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "counters",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("last", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_counters_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_counters")),
        sa.UniqueConstraint("project_id", "kind", name=op.f("uq_counters_project_id_kind")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "environments",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("external_url", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_environments_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_environments")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_environments_project_id_name")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("environments", schema=None) as batch_op:
        batch_op.create_index("ix_environments_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "error_tracking_settings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("integrated", sa.Boolean(), nullable=False),
        sa.Column("api_url", sa.String(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("project_name", sa.String(), nullable=True),
        sa.Column("organization_name", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_error_tracking_settings_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_error_tracking_settings")),
        sa.UniqueConstraint("project_id", name=op.f("uq_error_tracking_settings_project_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "incident_settings",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("create_issue", sa.Boolean(), nullable=False),
        sa.Column("send_email", sa.Boolean(), nullable=False),
        sa.Column("auto_close_incident", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_incident_settings_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_incident_settings")),
        sa.UniqueConstraint("project_id", name=op.f("uq_incident_settings_project_id")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "memberships",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("access_level", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("created_by_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name=op.f("ck_memberships_one_place")),
        sa.ForeignKeyConstraint(
            ["created_by_id"], ["users.id"], name=op.f("fk_memberships_created_by_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name=op.f("fk_memberships_namespace_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_memberships_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_memberships_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_memberships")),
        sa.UniqueConstraint("user_id", "namespace_id", name=op.f("uq_memberships_user_id_namespace_id")),
        sa.UniqueConstraint("user_id", "project_id", name=op.f("uq_memberships_user_id_project_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("memberships", schema=None) as batch_op:
        batch_op.create_index("ix_memberships_expires_at", ["expires_at"], unique=False)
        batch_op.create_index("ix_memberships_namespace_id", ["namespace_id", "id"], unique=False)
        batch_op.create_index("ix_memberships_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "merge_requests",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("iid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("source_branch", sa.String(), nullable=True),
        sa.Column("target_branch", sa.String(), nullable=True),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(
            ["author_id"], ["users.id"], name=op.f("fk_merge_requests_author_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_merge_requests_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_merge_requests")),
        sa.UniqueConstraint("project_id", "iid", name=op.f("uq_merge_requests_project_id_iid")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("merge_requests", schema=None) as batch_op:
        batch_op.create_index("ix_merge_requests_author_id", ["author_id"], unique=False)

    op.create_table(
        "milestones",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("iid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=True),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_milestones_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_milestones")),
        sa.UniqueConstraint("project_id", "iid", name=op.f("uq_milestones_project_id_iid")),
        sa.UniqueConstraint("project_id", "title", name=op.f("uq_milestones_project_id_title")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("milestones", schema=None) as batch_op:
        batch_op.create_index("ix_milestones_project_id", ["project_id", "due_date", "id"], unique=False)

    op.create_table(
        "notes",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("noteable_type", sa.String(), nullable=False),
        sa.Column("noteable_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("commit_id", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=True),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("attachment", sa.String(), nullable=True),
        sa.Column("system", sa.Boolean(), nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("position", sa.JSON(), nullable=True),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_notes_author_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_notes_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_notes")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.create_index("ix_notes_author_id", ["author_id"], unique=False)
        batch_op.create_index("ix_notes_noteable", ["noteable_type", "noteable_id", "created_at", "id"], unique=False)
        batch_op.create_index("ix_notes_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "protected_tags",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("create_access_levels", sa.JSON(), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_protected_tags_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_protected_tags")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_protected_tags_project_id_name")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("protected_tags", schema=None) as batch_op:
        batch_op.create_index("ix_protected_tags_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "routes",
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name=op.f("fk_routes_namespace_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_routes_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_routes")),
        sa.UniqueConstraint("namespace_id", name=op.f("uq_routes_namespace_id")),
        sa.UniqueConstraint("project_id", name=op.f("uq_routes_project_id")),
    )
    op.create_table(
        "shares",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("group_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("namespace_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("access_level", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name=op.f("ck_shares_one_place")),
        sa.ForeignKeyConstraint(["group_id"], ["namespaces.id"], name=op.f("fk_shares_group_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["namespace_id"], ["namespaces.id"], name=op.f("fk_shares_namespace_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_shares_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_shares")),
        sa.UniqueConstraint("group_id", "namespace_id", name=op.f("uq_shares_group_id_namespace_id")),
        sa.UniqueConstraint("group_id", "project_id", name=op.f("uq_shares_group_id_project_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("shares", schema=None) as batch_op:
        batch_op.create_index("ix_shares_namespace_id", ["namespace_id"], unique=False)
        batch_op.create_index("ix_shares_project_id", ["project_id"], unique=False)

    op.create_table(
        "snippets",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("file_name", sa.String(), nullable=True),
        sa.Column("content", sa.String(), nullable=True),
        sa.Column("visibility", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_snippets_author_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_snippets_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snippets")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("snippets", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_snippets_author_id"), ["author_id"], unique=False)
        batch_op.create_index("ix_snippets_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "variables",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("variable_type", sa.String(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("raw", sa.Boolean(), nullable=False),
        sa.Column("environment_scope", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_variables_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_variables")),
        sa.UniqueConstraint(
            "project_id", "key", "environment_scope", name=op.f("uq_variables_project_id_key_environment_scope")
        ),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("variables", schema=None) as batch_op:
        batch_op.create_index("ix_variables_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "wiki_pages",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_wiki_pages_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wiki_pages")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("wiki_pages", schema=None) as batch_op:
        batch_op.create_index("ix_wiki_pages_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "issues",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("iid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("issue_type", sa.String(), nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("discussion_locked", sa.Boolean(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=True),
        sa.Column("weight", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("notes_count", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_by_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("milestone_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_issues_author_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["closed_by_id"], ["users.id"], name=op.f("fk_issues_closed_by_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["milestone_id"], ["milestones.id"], name=op.f("fk_issues_milestone_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_issues_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_issues")),
        sa.UniqueConstraint("project_id", "iid", name=op.f("uq_issues_project_id_iid")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("issues", schema=None) as batch_op:
        batch_op.create_index("ix_issues_author_id", ["author_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_issues_closed_by_id"), ["closed_by_id"], unique=False)
        batch_op.create_index("ix_issues_milestone_id", ["milestone_id"], unique=False)
        batch_op.create_index("ix_issues_project_id_created_at", ["project_id", "created_at", "id"], unique=False)
        batch_op.create_index("ix_issues_project_id_updated_at", ["project_id", "updated_at", "id"], unique=False)

    op.create_table(
        "alerts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("iid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("severity", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("status", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("service", sa.String(), nullable=True),
        sa.Column("monitoring_tool", sa.String(), nullable=True),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("events", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("environment_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("assignee_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.ForeignKeyConstraint(["assignee_id"], ["users.id"], name=op.f("fk_alerts_assignee_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name=op.f("fk_alerts_environment_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name=op.f("fk_alerts_issue_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_alerts_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
        sa.UniqueConstraint("project_id", "iid", name=op.f("uq_alerts_project_id_iid")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alerts_assignee_id"), ["assignee_id"], unique=False)
        batch_op.create_index("ix_alerts_environment_id", ["environment_id"], unique=False)
        batch_op.create_index("ix_alerts_issue_id", ["issue_id"], unique=False)
        batch_op.create_index("ix_alerts_started_at", ["project_id", "started_at", "id"], unique=False)
        batch_op.create_index("ix_alerts_status", ["project_id", "status", "started_at", "id"], unique=False)
        batch_op.create_index(
            "uq_alerts_open_fingerprint",
            ["project_id", "fingerprint"],
            unique=True,
            sqlite_where=sa.text("status <> 2"),
            postgresql_where=sa.text("status <> 2"),
        )

    op.create_table(
        "designs",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("iid", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("filename", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name=op.f("fk_designs_issue_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_designs_project_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_designs")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("designs", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_designs_issue_id"), ["issue_id"], unique=False)
        batch_op.create_index("ix_designs_project_id", ["project_id", "id"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("action", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("kind", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("restriction", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("author_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("project_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("target_type", sa.String(), nullable=True),
        sa.Column("target_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("data", sa.JSON(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["author_id"], ["users.id"], name=op.f("fk_events_author_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name=op.f("fk_events_issue_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=op.f("fk_events_project_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index(
            "ix_events_author_id_created_at",
            ["author_id", "created_at", "id", "kind", "restriction", "issue_id", "action", "target_type", "project_id"],
            unique=False,
        )
        batch_op.create_index("ix_events_author_id_project_id", ["author_id", "project_id"], unique=False)
        batch_op.create_index(
            "ix_events_created_at", ["created_at", "id", "project_id", "kind", "restriction"], unique=False
        )
        batch_op.create_index("ix_events_issue_id", ["issue_id"], unique=False)
        batch_op.create_index(
            "ix_events_project_id_created_at",
            ["project_id", "created_at", "id", "kind", "restriction", "issue_id", "action", "target_type"],
            unique=False,
        )
        batch_op.create_index("ix_events_target", ["target_type", "target_id"], unique=False)

    op.create_table(
        "issue_assignees",
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(
            ["issue_id"], ["issues.id"], name=op.f("fk_issue_assignees_issue_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_issue_assignees_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("issue_id", "user_id", name=op.f("pk_issue_assignees")),
    )
    with op.batch_alter_table("issue_assignees", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_issue_assignees_user_id"), ["user_id"], unique=False)

    op.create_table(
        "issue_labels",
        sa.Column("issue_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["issue_id"], ["issues.id"], name=op.f("fk_issue_labels_issue_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("issue_id", "title", name=op.f("pk_issue_labels")),
    )
    with op.batch_alter_table("issue_labels", schema=None) as batch_op:
        batch_op.create_index("ix_issue_labels_title", ["title", "issue_id"], unique=False)

    op.create_table(
        "alert_todos",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("alert_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("user_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name=op.f("fk_alert_todos_alert_id"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_alert_todos_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alert_todos")),
        sa.UniqueConstraint("alert_id", "user_id", name=op.f("uq_alert_todos_alert_id_user_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("alert_todos", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_alert_todos_user_id"), ["user_id"], unique=False)


def downgrade() -> None:
    """Take it back."""
    with op.batch_alter_table("alert_todos", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_alert_todos_user_id"))

    op.drop_table("alert_todos")
    with op.batch_alter_table("issue_labels", schema=None) as batch_op:
        batch_op.drop_index("ix_issue_labels_title")

    op.drop_table("issue_labels")
    with op.batch_alter_table("issue_assignees", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_issue_assignees_user_id"))

    op.drop_table("issue_assignees")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index("ix_events_target")
        batch_op.drop_index("ix_events_project_id_created_at")
        batch_op.drop_index("ix_events_issue_id")
        batch_op.drop_index("ix_events_created_at")
        batch_op.drop_index("ix_events_author_id_project_id")
        batch_op.drop_index("ix_events_author_id_created_at")

    op.drop_table("events")
    with op.batch_alter_table("designs", schema=None) as batch_op:
        batch_op.drop_index("ix_designs_project_id")
        batch_op.drop_index(batch_op.f("ix_designs_issue_id"))

    op.drop_table("designs")
    with op.batch_alter_table("alerts", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_alerts_open_fingerprint", sqlite_where=sa.text("status <> 2"), postgresql_where=sa.text("status <> 2")
        )
        batch_op.drop_index("ix_alerts_status")
        batch_op.drop_index("ix_alerts_started_at")
        batch_op.drop_index("ix_alerts_issue_id")
        batch_op.drop_index("ix_alerts_environment_id")
        batch_op.drop_index(batch_op.f("ix_alerts_assignee_id"))

    op.drop_table("alerts")
    with op.batch_alter_table("issues", schema=None) as batch_op:
        batch_op.drop_index("ix_issues_project_id_updated_at")
        batch_op.drop_index("ix_issues_project_id_created_at")
        batch_op.drop_index("ix_issues_milestone_id")
        batch_op.drop_index(batch_op.f("ix_issues_closed_by_id"))
        batch_op.drop_index("ix_issues_author_id")

    op.drop_table("issues")
    with op.batch_alter_table("wiki_pages", schema=None) as batch_op:
        batch_op.drop_index("ix_wiki_pages_project_id")

    op.drop_table("wiki_pages")
    with op.batch_alter_table("variables", schema=None) as batch_op:
        batch_op.drop_index("ix_variables_project_id")

    op.drop_table("variables")
    with op.batch_alter_table("snippets", schema=None) as batch_op:
        batch_op.drop_index("ix_snippets_project_id")
        batch_op.drop_index(batch_op.f("ix_snippets_author_id"))

    op.drop_table("snippets")
    with op.batch_alter_table("shares", schema=None) as batch_op:
        batch_op.drop_index("ix_shares_project_id")
        batch_op.drop_index("ix_shares_namespace_id")

    op.drop_table("shares")
    op.drop_table("routes")
    with op.batch_alter_table("protected_tags", schema=None) as batch_op:
        batch_op.drop_index("ix_protected_tags_project_id")

    op.drop_table("protected_tags")
    with op.batch_alter_table("notes", schema=None) as batch_op:
        batch_op.drop_index("ix_notes_project_id")
        batch_op.drop_index("ix_notes_noteable")
        batch_op.drop_index("ix_notes_author_id")

    op.drop_table("notes")
    with op.batch_alter_table("milestones", schema=None) as batch_op:
        batch_op.drop_index("ix_milestones_project_id")

    op.drop_table("milestones")
    with op.batch_alter_table("merge_requests", schema=None) as batch_op:
        batch_op.drop_index("ix_merge_requests_author_id")

    op.drop_table("merge_requests")
    with op.batch_alter_table("memberships", schema=None) as batch_op:
        batch_op.drop_index("ix_memberships_project_id")
        batch_op.drop_index("ix_memberships_namespace_id")
        batch_op.drop_index("ix_memberships_expires_at")

    op.drop_table("memberships")
    op.drop_table("incident_settings")
    op.drop_table("error_tracking_settings")
    with op.batch_alter_table("environments", schema=None) as batch_op:
        batch_op.drop_index("ix_environments_project_id")

    op.drop_table("environments")
    op.drop_table("counters")
    with op.batch_alter_table("alert_integrations", schema=None) as batch_op:
        batch_op.drop_index("ix_alert_integrations_project_id")

    op.drop_table("alert_integrations")
    with op.batch_alter_table("projects", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_projects_name",
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.drop_index(
            "uq_projects_full_path",
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.drop_index("ix_projects_visibility")
        batch_op.drop_index("ix_projects_namespace_id_created_at")
        batch_op.drop_index("ix_projects_last_activity_at")
        batch_op.drop_index(batch_op.f("ix_projects_creator_id"))
        batch_op.drop_index("ix_projects_created_at")

    op.drop_table("projects")
    with op.batch_alter_table("namespace_ancestors", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_namespace_ancestors_ancestor_id"))

    op.drop_table("namespace_ancestors")
    with op.batch_alter_table("personal_access_tokens", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_personal_access_tokens_user_id"))

    op.drop_table("personal_access_tokens")
    with op.batch_alter_table("namespaces", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_namespaces_full_path",
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.drop_index("ix_namespaces_path")
        batch_op.drop_index(batch_op.f("ix_namespaces_parent_id"))
        batch_op.drop_index("ix_namespaces_name")

    op.drop_table("namespaces")
    with op.batch_alter_table("browser_sessions", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_browser_sessions_user_id"))

    op.drop_table("browser_sessions")
    with op.batch_alter_table("users", schema=None) as batch_op:
        batch_op.drop_index(
            "uq_users_username",
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )
        batch_op.drop_index(
            "uq_users_email",
            sqlite_where=sa.text("deleting_since IS NULL"),
            postgresql_where=sa.text("deleting_since IS NULL"),
        )

    op.drop_table("users")
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_index("ix_tasks_due")

    op.drop_table("tasks")
    with op.batch_alter_table("sign_in_failures", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_sign_in_failures_since"))

    op.drop_table("sign_in_failures")
    op.drop_table("periodic_runs")
    with op.batch_alter_table("mails", schema=None) as batch_op:
        batch_op.drop_index("ix_mails_created_at")

    op.drop_table("mails")
    op.drop_table("feature_gates")
    op.drop_table("application_settings")
