"""The tables of the first release, area by area; constraints without a name get that of the naming convention."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite assigns ids only to a column of exactly the type INTEGER
KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True)
# in the order of bytes, as git sorts names of refs
REF_NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")


def upgrade() -> None:
    """Create the tables, those first that others refer to."""
    _create_instance()
    _create_users()
    _create_namespaces()
    _create_projects()
    _create_variables()
    _create_tracker()
    _create_events()
    _create_repositories()
    _create_alerts()
    _create_error_tracking()
    _create_vulnerabilities()
    _create_transfers()


def downgrade() -> None:
    """Drop all tables."""
    connection = op.get_bind()
    ordered = [name for name, _ in sa.inspect(connection).get_sorted_table_and_fkc_names() if name is not None]
    for name in reversed(ordered):
        if name != "alembic_version":
            op.drop_table(name)
    if connection.dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_change_of_audit_event()")


def _id() -> sa.Column[Any]:
    return sa.Column("id", KEY, primary_key=True)


def _timestamps() -> list[sa.Column[Any]]:
    return [sa.Column(name, TIME, nullable=False) for name in ("created_at", "updated_at")]


def _reference(column: str, table: str, *, ondelete: str = "CASCADE", **options: Any) -> sa.Column[Any]:
    return sa.Column(column, KEY, sa.ForeignKey(f"{table}.id", ondelete=ondelete), **{"nullable": False} | options)


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def _refuse_changes_of_audit_events() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_change_of_audit_event() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'audit events cannot be changed'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_events_append_only BEFORE UPDATE ON audit_events "
            "FOR EACH ROW EXECUTE FUNCTION refuse_change_of_audit_event()"
        )
    else:
        op.execute(
            "CREATE TRIGGER audit_events_append_only BEFORE UPDATE ON audit_events "
            "BEGIN SELECT RAISE(ABORT, 'audit events cannot be changed'); END"
        )


def _create_instance() -> None:
    """Settings, background jobs, rate limits, audit events."""
    op.create_table(
        "application_settings",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "feature_gates",
        _id(),
        sa.Column("feature", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        sa.UniqueConstraint("feature", "key", "value"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "key_proofs",
        _id(),
        sa.Column("proof", sa.Text(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tasks",
        _id(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("arguments", sa.JSON(), nullable=False),
        sa.Column("queue", sa.String(), nullable=False),
        sa.Column("request_id", sa.String(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("run_at", TIME, nullable=False),
        sa.Column("leased_until", TIME, nullable=True),
        sa.Column("fence", KEY, nullable=False),
        sa.Column("attempts", KEY, nullable=False),
        sa.Column("failed_at", TIME, nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tasks_due", "tasks", ["failed_at", "run_at"])
    op.create_table(
        "periodic_runs",
        _id(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.UniqueConstraint("name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "rate_limits",
        _id(),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("calls", KEY, nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.UniqueConstraint("subject"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_rate_limits_until", "rate_limits", ["until"])
    op.create_table(
        "audit_events",
        _id(),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("event_name", sa.String(), nullable=False),
        sa.Column("author_id", KEY, nullable=False),
        sa.Column("entity_type", sa.String(), nullable=False),
        sa.Column("entity_id", KEY, nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_events_author_id", "audit_events", ["author_id", "created_at", "id"])
    op.create_index("ix_audit_events_created_at", "audit_events", ["created_at", "id"])
    op.create_index("ix_audit_events_entity_id", "audit_events", ["entity_type", "entity_id", "created_at", "id"])
    op.create_index("ix_audit_events_entity_type", "audit_events", ["entity_type", "created_at", "id"])
    _refuse_changes_of_audit_events()


def _create_users() -> None:
    """Users, their tokens and sessions, two-factor authentication."""
    op.create_table(
        "users",
        _id(),
        *_timestamps(),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("email", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("admin", sa.Boolean(), nullable=False),
        sa.Column("external", sa.Boolean(), nullable=False),
        sa.Column("private_profile", sa.Boolean(), nullable=False),
        sa.Column("can_create_group", sa.Boolean(), nullable=False),
        sa.Column("projects_limit", KEY, nullable=False),
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
        sa.Column("theme_id", KEY, nullable=False),
        sa.Column("color_scheme_id", KEY, nullable=False),
        sa.Column("confirmed_at", TIME, nullable=True),
        sa.Column("last_activity_on", sa.Date(), nullable=True),
        sa.Column("current_sign_in_at", TIME, nullable=True),
        sa.Column("last_sign_in_at", TIME, nullable=True),
        sa.Column("current_sign_in_ip", sa.String(), nullable=True),
        sa.Column("last_sign_in_ip", sa.String(), nullable=True),
        sa.Column("sign_in_count", KEY, nullable=False),
        sa.Column("theme", sa.String(), server_default="system", nullable=False),
        sa.Column("password_expired", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("two_factor_enabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("two_factor_grace_started_at", TIME, nullable=True),
        sa.Column("namespace_id", KEY, nullable=True),
        sa.Column("deleting_since", TIME, nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_users_email", "users", [sa.text("lower(email)")], unique=True, **_where("deleting_since IS NULL")
    )
    op.create_index("ix_users_public_email", "users", [sa.text("lower(public_email)")])
    op.create_index(
        "uq_users_username", "users", [sa.text("lower(username)")], unique=True, **_where("deleting_since IS NULL")
    )
    op.create_table(
        "personal_access_tokens",
        _id(),
        *_timestamps(),
        _reference("user_id", "users"),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("scopes", sa.JSON(), nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.Column("revoked", sa.Boolean(), nullable=False),
        sa.Column("last_used_at", TIME, nullable=True),
        sa.Column("family_id", KEY, nullable=True),
        sa.Column("expiry_mailed_on", sa.Date(), nullable=True),
        sa.UniqueConstraint("digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_personal_access_tokens_family_id", "personal_access_tokens", ["family_id"])
    op.create_index("ix_personal_access_tokens_user_id", "personal_access_tokens", ["user_id"])
    op.create_table(
        "browser_sessions",
        _id(),
        *_timestamps(),
        _reference("user_id", "users"),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("agent", sa.String(), nullable=True),
        sa.UniqueConstraint("digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_browser_sessions_user_id", "browser_sessions", ["user_id"])
    op.create_table(
        "two_factor_secrets",
        _id(),
        *_timestamps(),
        _reference("user_id", "users"),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("last_step", KEY, nullable=False),
        sa.UniqueConstraint("user_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "recovery_codes",
        _id(),
        _reference("user_id", "users"),
        sa.Column("digest", sa.String(), nullable=False),
        sa.UniqueConstraint("user_id", "digest"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "password_resets",
        _id(),
        *_timestamps(),
        _reference("user_id", "users"),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expires_at", TIME, nullable=False),
        sa.UniqueConstraint("digest"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_password_resets_expires_at", "password_resets", ["expires_at"])
    op.create_index("ix_password_resets_user_id", "password_resets", ["user_id"])
    op.create_table(
        "sign_in_networks",
        _id(),
        _reference("user_id", "users"),
        sa.Column("network", sa.String(), nullable=False),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.UniqueConstraint("user_id", "network"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_sign_in_networks_last_used_at", "sign_in_networks", ["last_used_at"])


def _create_namespaces() -> None:
    """Groups and personal namespaces."""
    op.create_table(
        "namespaces",
        _id(),
        *_timestamps(),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("full_path", sa.String(), nullable=False),
        sa.Column("full_name", sa.String(), nullable=False),
        sa.Column("visibility", KEY, nullable=False),
        sa.Column("avatar_url", sa.String(), nullable=True),
        sa.Column("plan", sa.String(), nullable=True),
        sa.Column("trial", sa.Boolean(), nullable=False),
        sa.Column("trial_ends_on", sa.Date(), nullable=True),
        sa.Column("seats_in_use", KEY, nullable=False),
        sa.Column("max_seats_used", KEY, nullable=False),
        sa.Column("deleting_since", TIME, nullable=True),
        _reference("parent_id", "namespaces", nullable=True),
        _reference("owner_id", "users", nullable=True),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("share_with_group_lock", sa.Boolean(), nullable=True),
        sa.Column("require_two_factor_authentication", sa.Boolean(), nullable=True),
        sa.Column("two_factor_grace_period", KEY, nullable=True),
        sa.Column("project_creation_level", sa.String(), nullable=True),
        sa.Column("subgroup_creation_level", sa.String(), nullable=True),
        sa.Column("auto_devops_enabled", sa.Boolean(), nullable=True),
        sa.Column("emails_disabled", sa.Boolean(), nullable=True),
        sa.Column("mentions_disabled", sa.Boolean(), nullable=True),
        sa.Column("lfs_enabled", sa.Boolean(), nullable=True),
        sa.Column("request_access_enabled", sa.Boolean(), nullable=True),
        sa.Column("default_branch_protection", KEY, nullable=True),
        sa.UniqueConstraint("owner_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_namespaces_name", "namespaces", [sa.text("lower(name)")])
    op.create_index("ix_namespaces_parent_id_name", "namespaces", ["parent_id", sa.text("lower(name)"), "id"])
    op.create_index("ix_namespaces_path", "namespaces", [sa.text("lower(path)")])
    op.create_index(
        "uq_namespaces_full_path",
        "namespaces",
        [sa.text("lower(full_path)")],
        unique=True,
        **_where("deleting_since IS NULL"),
    )
    op.create_table(
        "namespace_ancestors",
        _reference("namespace_id", "namespaces"),
        _reference("ancestor_id", "namespaces"),
        sa.PrimaryKeyConstraint("namespace_id", "ancestor_id"),
    )
    op.create_index("ix_namespace_ancestors_ancestor_id", "namespace_ancestors", ["ancestor_id"])


def _create_projects() -> None:
    """Projects, their paths and members."""
    op.create_table(
        "projects",
        _id(),
        *_timestamps(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("full_path", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("visibility", KEY, nullable=False),
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
        sa.Column("security_and_compliance_access_level", sa.String(), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("import_status", sa.String(), nullable=False),
        sa.Column("import_error", sa.String(), nullable=True),
        sa.Column("loading", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("last_activity_at", TIME, nullable=False),
        sa.Column("deleting_since", TIME, nullable=True),
        _reference("namespace_id", "namespaces"),
        _reference("creator_id", "users", ondelete="SET NULL", nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_projects_created_at", "projects", ["created_at", "id"])
    op.create_index("ix_projects_creator_id", "projects", ["creator_id"])
    op.create_index("ix_projects_last_activity_at", "projects", ["last_activity_at", "id"])
    op.create_index("ix_projects_listed_name", "projects", ["name", "id"])
    op.create_index("ix_projects_listed_path", "projects", ["path", "id"])
    op.create_index("ix_projects_namespace_id_created_at", "projects", ["namespace_id", "created_at", "id"])
    op.create_index("ix_projects_updated_at", "projects", ["updated_at", "id"])
    op.create_index("ix_projects_visibility_created_at", "projects", ["visibility", "created_at", "id"])
    op.create_index(
        "uq_projects_full_path",
        "projects",
        [sa.text("lower(full_path)")],
        unique=True,
        **_where("deleting_since IS NULL"),
    )
    op.create_index(
        "uq_projects_name", "projects", ["namespace_id", "name"], unique=True, **_where("deleting_since IS NULL")
    )
    op.create_table(
        "routes",
        sa.Column("path", sa.String(), nullable=False),
        _reference("namespace_id", "namespaces", nullable=True),
        _reference("project_id", "projects", nullable=True),
        sa.PrimaryKeyConstraint("path"),
        sa.UniqueConstraint("namespace_id"),
        sa.UniqueConstraint("project_id"),
    )
    op.create_table(
        "redirect_routes",
        sa.Column("path", sa.String(), nullable=False),
        _reference("project_id", "projects"),
        sa.PrimaryKeyConstraint("path"),
    )
    op.create_index("ix_redirect_routes_project_id", "redirect_routes", ["project_id"])
    op.create_table(
        "memberships",
        _id(),
        *_timestamps(),
        _reference("user_id", "users"),
        _reference("namespace_id", "namespaces", nullable=True),
        _reference("project_id", "projects", nullable=True),
        sa.Column("access_level", KEY, nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        _reference("created_by_id", "users", ondelete="SET NULL", nullable=True),
        sa.UniqueConstraint("user_id", "namespace_id"),
        sa.UniqueConstraint("user_id", "project_id"),
        sa.CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_memberships_expires_at", "memberships", ["expires_at"])
    op.create_index("ix_memberships_namespace_id", "memberships", ["namespace_id", "id"])
    op.create_index("ix_memberships_project_id", "memberships", ["project_id", "id"])
    op.create_table(
        "shares",
        _id(),
        *_timestamps(),
        _reference("group_id", "namespaces"),
        _reference("namespace_id", "namespaces", nullable=True),
        _reference("project_id", "projects", nullable=True),
        sa.Column("access_level", KEY, nullable=False),
        sa.Column("expires_at", sa.Date(), nullable=True),
        sa.UniqueConstraint("group_id", "namespace_id"),
        sa.UniqueConstraint("group_id", "project_id"),
        sa.CheckConstraint("(namespace_id IS NULL) <> (project_id IS NULL)", name="one_place"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_shares_namespace_id", "shares", ["namespace_id"])
    op.create_index("ix_shares_project_id", "shares", ["project_id"])
    op.create_table(
        "resource_bots",
        _id(),
        _reference("user_id", "users"),
        _reference("project_id", "projects", ondelete="SET NULL", nullable=True),
        _reference("namespace_id", "namespaces", ondelete="SET NULL", nullable=True),
        sa.UniqueConstraint("user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_resource_bots_namespace_id", "resource_bots", ["namespace_id"])
    op.create_index("ix_resource_bots_project_id", "resource_bots", ["project_id"])


def _create_variables() -> None:
    """CI/CD variables."""
    op.create_table(
        "instance_variables",
        _id(),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("variable_type", sa.String(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("raw", sa.Boolean(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.UniqueConstraint("key"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "group_variables",
        _id(),
        *_timestamps(),
        _reference("namespace_id", "namespaces"),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("environment_scope", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("variable_type", sa.String(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("raw", sa.Boolean(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.UniqueConstraint("namespace_id", "key", "environment_scope"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_group_variables_namespace_id", "group_variables", ["namespace_id", "id"])
    op.create_table(
        "variables",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("environment_scope", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=True),
        sa.Column("variable_type", sa.String(), nullable=False),
        sa.Column("protected", sa.Boolean(), nullable=False),
        sa.Column("masked", sa.Boolean(), nullable=False),
        sa.Column("raw", sa.Boolean(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.UniqueConstraint("project_id", "key", "environment_scope"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_variables_project_id", "variables", ["project_id", "id"])


def _create_tracker() -> None:
    """Issues, merge requests and what belongs to them."""
    op.create_table(
        "counters",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("last", KEY, nullable=False),
        sa.UniqueConstraint("project_id", "kind"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "labels",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("color", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "title"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "milestones",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("iid", KEY, nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("start_date", sa.Date(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "iid"),
        sa.UniqueConstraint("project_id", "title"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_milestones_project_id", "milestones", ["project_id", "due_date", "id"])
    op.create_table(
        "issues",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("iid", KEY, nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("issue_type", sa.String(), nullable=False),
        sa.Column("severity", sa.String(), server_default="unknown", nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("discussion_locked", sa.Boolean(), nullable=True),
        sa.Column("due_date", sa.Date(), nullable=True),
        sa.Column("weight", KEY, nullable=True),
        sa.Column("notes_count", KEY, nullable=False),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("closed_at", TIME, nullable=True),
        _reference("closed_by_id", "users", ondelete="SET NULL", nullable=True),
        _reference("milestone_id", "milestones", ondelete="SET NULL", nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "iid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_issues_author_id", "issues", ["author_id"])
    op.create_index("ix_issues_closed_by_id", "issues", ["closed_by_id"], **_where("closed_by_id IS NOT NULL"))
    op.create_index("ix_issues_milestone_id", "issues", ["milestone_id"], **_where("milestone_id IS NOT NULL"))
    op.create_index("ix_issues_project_id_created_at", "issues", ["project_id", "created_at", "id"])
    op.create_index("ix_issues_project_id_due_date", "issues", ["project_id", "due_date", "id"])
    op.create_index("ix_issues_project_id_state", "issues", ["project_id", "state", "confidential"])
    op.create_index("ix_issues_project_id_updated_at", "issues", ["project_id", "updated_at", "id"])
    op.create_table(
        "issue_labels",
        _reference("issue_id", "issues"),
        sa.Column("title", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("issue_id", "title"),
    )
    op.create_index("ix_issue_labels_title", "issue_labels", ["title", "issue_id"])
    op.create_table(
        "issue_assignees",
        _reference("issue_id", "issues"),
        _reference("user_id", "users"),
        sa.PrimaryKeyConstraint("issue_id", "user_id"),
    )
    op.create_index("ix_issue_assignees_user_id", "issue_assignees", ["user_id"])
    op.create_table(
        "merge_requests",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("iid", KEY, nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("source_branch", sa.String(), nullable=True),
        sa.Column("target_branch", sa.String(), nullable=True),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        _reference("milestone_id", "milestones", ondelete="SET NULL", nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "iid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_merge_requests_author_id", "merge_requests", ["author_id"])
    op.create_index("ix_merge_requests_milestone_id", "merge_requests", ["milestone_id"])
    op.create_index("ix_merge_requests_project_id_created_at", "merge_requests", ["project_id", "created_at", "id"])
    op.create_index("ix_merge_requests_project_id_updated_at", "merge_requests", ["project_id", "updated_at", "id"])
    op.create_table(
        "merge_request_labels",
        _reference("merge_request_id", "merge_requests"),
        sa.Column("title", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("merge_request_id", "title"),
    )
    op.create_index("ix_merge_request_labels_title", "merge_request_labels", ["title", "merge_request_id"])
    op.create_table(
        "notes",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("noteable_type", sa.String(), nullable=False),
        sa.Column("noteable_id", KEY, nullable=True),
        sa.Column("commit_id", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=True),
        sa.Column("body", sa.String(), nullable=False),
        sa.Column("attachment", sa.String(), nullable=True),
        sa.Column("system", sa.Boolean(), nullable=False),
        sa.Column("confidential", sa.Boolean(), nullable=False),
        sa.Column("position", sa.JSON(), nullable=True),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_notes_author_id", "notes", ["author_id"])
    op.create_index("ix_notes_noteable", "notes", ["noteable_type", "noteable_id", "created_at", "id"])
    op.create_index("ix_notes_project_id", "notes", ["project_id", "id"])
    op.create_table(
        "designs",
        _id(),
        _reference("project_id", "projects"),
        _reference("issue_id", "issues"),
        sa.Column("iid", KEY, nullable=True),
        sa.Column("filename", sa.String(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_designs_issue_id", "designs", ["issue_id"])
    op.create_index("ix_designs_project_id", "designs", ["project_id", "id"])
    op.create_table(
        "snippets",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("file_name", sa.String(), nullable=True),
        sa.Column("content", sa.String(), nullable=True),
        sa.Column("visibility", KEY, nullable=False),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_snippets_author_id", "snippets", ["author_id"])
    op.create_index("ix_snippets_project_id", "snippets", ["project_id", "id"])
    op.create_table(
        "wiki_pages",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_wiki_pages_project_id", "wiki_pages", ["project_id", "id"])
    op.create_table(
        "environments",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=False),
        sa.Column("external_url", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.UniqueConstraint("project_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_environments_project_id", "environments", ["project_id", "id"])


def _create_events() -> None:
    """Activity events."""
    op.create_table(
        "events",
        _id(),
        sa.Column("action", KEY, nullable=False),
        sa.Column("kind", KEY, nullable=False),
        sa.Column("restriction", KEY, nullable=False),
        _reference("author_id", "users"),
        _reference("project_id", "projects"),
        _reference("issue_id", "issues", nullable=True),
        sa.Column("target_type", sa.String(), nullable=True),
        sa.Column("target_id", KEY, nullable=True),
        sa.Column("data", sa.JSON(), nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_events_author_id_created_at",
        "events",
        ["author_id", "created_at", "id", "kind", "restriction", "issue_id", "action", "target_type", "project_id"],
    )
    op.create_index("ix_events_author_id_project_id", "events", ["author_id", "project_id", "restriction"])
    op.create_index("ix_events_created_at", "events", ["created_at", "id", "project_id", "kind", "restriction"])
    op.create_index("ix_events_issue_id", "events", ["issue_id"])
    op.create_index(
        "ix_events_project_id_created_at",
        "events",
        ["project_id", "created_at", "id", "kind", "restriction", "issue_id", "action", "target_type"],
    )
    op.create_index("ix_events_target", "events", ["target_type", "target_id"])


def _create_repositories() -> None:
    """Repositories, protected refs, releases."""
    op.create_table(
        "repositories",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("size", KEY, nullable=False),
        sa.Column("head", sa.String(), nullable=True),
        sa.Column("bundle_header", sa.LargeBinary(), nullable=True),
        sa.UniqueConstraint("project_id", "kind"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "repository_refs",
        _reference("repository_id", "repositories"),
        sa.Column("name", REF_NAME, nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("peeled", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "name"),
    )
    op.create_table(
        "repository_packs",
        _id(),
        _reference("repository_id", "repositories"),
        sa.Column("object_name", sa.String(), nullable=False),
        sa.Column("size", KEY, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("replaced_at", TIME, nullable=True),
        sa.UniqueConstraint("object_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_repository_packs_repository_id", "repository_packs", ["repository_id"])
    op.create_table(
        "protected_branches",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("push_access_level", KEY, nullable=False),
        sa.Column("merge_access_level", KEY, nullable=False),
        sa.Column("allow_force_push", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("added_by_import", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.UniqueConstraint("project_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "protected_tags",
        _id(),
        *_timestamps(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("create_access_levels", sa.JSON(), nullable=False),
        _reference("project_id", "projects"),
        sa.UniqueConstraint("project_id", "name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_protected_tags_project_id", "protected_tags", ["project_id", "id"])
    op.create_table(
        "releases",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("tag", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("sha", sa.String(), nullable=True),
        sa.Column("released_at", TIME, nullable=False),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("extra", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "tag"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_releases_author_id", "releases", ["author_id"])
    op.create_index("ix_releases_created_at", "releases", ["project_id", "created_at", "id"])
    op.create_index("ix_releases_project_id", "releases", ["project_id", "id"])
    op.create_index("ix_releases_released_at", "releases", ["project_id", "released_at", "id"])
    op.create_table(
        "release_links",
        _id(),
        *_timestamps(),
        _reference("release_id", "releases"),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("filepath", sa.String(), nullable=True),
        sa.Column("link_type", sa.String(), nullable=False),
        sa.UniqueConstraint("release_id", "name"),
        sa.UniqueConstraint("release_id", "url"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "release_milestones",
        _id(),
        _reference("release_id", "releases"),
        _reference("milestone_id", "milestones"),
        sa.UniqueConstraint("release_id", "milestone_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_release_milestones_milestone_id", "release_milestones", ["milestone_id"])


def _create_alerts() -> None:
    """Alerts, their integrations and settings."""
    op.create_table(
        "incident_settings",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("create_issue", sa.Boolean(), nullable=False),
        sa.Column("send_email", sa.Boolean(), nullable=False),
        sa.Column("send_recovery_email", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("auto_close_incident", sa.Boolean(), nullable=False),
        sa.Column("issue_template_key", sa.String(), nullable=True),
        sa.Column("issue_template", sa.String(), nullable=True),
        sa.UniqueConstraint("project_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alert_integrations",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("endpoint_identifier", sa.String(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("payload_example", sa.String(), nullable=True),
        sa.Column("mapping", sa.JSON(), nullable=False),
        sa.Column("target_url", sa.String(), nullable=True),
        sa.UniqueConstraint("project_id", "endpoint_identifier"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_integrations_project_id", "alert_integrations", ["project_id", "id"])
    op.create_table(
        "alert_former_addresses",
        _id(),
        _reference("integration_id", "alert_integrations"),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.UniqueConstraint("integration_id", "path"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "alerts",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("iid", KEY, nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("severity", KEY, nullable=False),
        sa.Column("status", KEY, nullable=False),
        sa.Column("service", sa.String(), nullable=True),
        sa.Column("monitoring_tool", sa.String(), nullable=True),
        sa.Column("hosts", sa.JSON(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("events", KEY, nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=True),
        sa.Column("payload", sa.JSON(), nullable=False),
        sa.Column("unreadable_times", sa.JSON(), nullable=True),
        _reference("environment_id", "environments", ondelete="SET NULL", nullable=True),
        _reference("issue_id", "issues", ondelete="SET NULL", nullable=True),
        _reference("assignee_id", "users", ondelete="SET NULL", nullable=True),
        sa.UniqueConstraint("project_id", "iid"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alerts_assignee_id", "alerts", ["assignee_id", "id"], **_where("assignee_id IS NOT NULL"))
    op.create_index(
        "ix_alerts_environment_id_started_at",
        "alerts",
        ["environment_id", "started_at", "id"],
        **_where("environment_id IS NOT NULL"),
    )
    op.create_index("ix_alerts_issue_id", "alerts", ["issue_id"], **_where("issue_id IS NOT NULL"))
    op.create_index(
        "ix_alerts_listed",
        "alerts",
        ["project_id", sa.text("(CASE WHEN started_at > created_at THEN created_at ELSE started_at END)"), "id"],
    )
    op.create_index(
        "ix_alerts_listed_open",
        "alerts",
        ["project_id", sa.text("(CASE WHEN started_at > created_at THEN created_at ELSE started_at END)"), "id"],
        **_where("status <> 2 AND status <> 3"),
    )
    op.create_index("ix_alerts_severity", "alerts", ["project_id", "severity", "id"])
    op.create_index(
        "ix_alerts_status",
        "alerts",
        [
            "project_id",
            "status",
            sa.text("(CASE WHEN started_at > created_at THEN created_at ELSE started_at END)"),
            "id",
        ],
    )
    op.create_index(
        "uq_alerts_open_fingerprint", "alerts", ["project_id", "fingerprint"], unique=True, **_where("status <> 2")
    )
    op.create_table(
        "alert_todos",
        _id(),
        *_timestamps(),
        _reference("alert_id", "alerts"),
        _reference("user_id", "users"),
        sa.Column("done_at", TIME, nullable=True),
        sa.UniqueConstraint("alert_id", "user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_todos_user_id_done_at", "alert_todos", ["user_id", "done_at", "id"])


def _create_error_tracking() -> None:
    """Settings of error tracking, collected errors, links to a Sentry server."""
    op.create_table(
        "error_tracking_settings",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("integrated", sa.Boolean(), nullable=False),
        sa.Column("api_url", sa.String(), nullable=True),
        sa.Column("token", sa.Text(), nullable=True),
        sa.Column("project_name", sa.String(), nullable=True),
        sa.Column("organization_name", sa.String(), nullable=True),
        sa.Column("store_addresses", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("hidden_keys", sa.JSON(), server_default="[]", nullable=False),
        sa.Column("resolve_after_days", KEY, server_default="0", nullable=False),
        sa.Column("user_digest_key", sa.Text(), nullable=True),
        sa.Column("sentry_project_id", sa.String(), nullable=True),
        sa.Column("mails_day", sa.Date(), nullable=True),
        sa.Column("mails_sent", KEY, server_default="0", nullable=False),
        sa.Column("mails_withheld", KEY, server_default="0", nullable=False),
        sa.UniqueConstraint("project_id"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "error_tracking_client_keys",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("public_key", sa.String(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.UniqueConstraint("public_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_error_tracking_client_keys_project_id", "error_tracking_client_keys", ["project_id", "id"])
    op.create_table(
        "error_tracking_subscriptions",
        _id(),
        _reference("project_id", "projects"),
        _reference("user_id", "users"),
        sa.UniqueConstraint("project_id", "user_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_error_tracking_subscriptions_user_id", "error_tracking_subscriptions", ["user_id"])
    op.create_table(
        "error_tracking_drops",
        _reference("project_id", "projects"),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("count", KEY, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "start", "reason"),
    )
    op.create_table(
        "tracked_errors",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("type", sa.String(), nullable=True),
        sa.Column("message", sa.String(), nullable=True),
        sa.Column("culprit", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("logger", sa.String(), nullable=True),
        sa.Column("platform", sa.String(), nullable=True),
        sa.Column("status", KEY, nullable=False),
        sa.Column("count", KEY, nullable=False),
        sa.Column("user_count", KEY, nullable=False),
        sa.Column("environment_count", KEY, nullable=False),
        sa.Column("release_count", KEY, nullable=False),
        sa.Column("stored_events", KEY, nullable=False),
        sa.Column("first_seen", TIME, nullable=False),
        sa.Column("last_seen", TIME, nullable=False),
        sa.Column("first_release", sa.String(), nullable=True),
        sa.Column("first_release_at", TIME, nullable=True),
        sa.Column("last_release", sa.String(), nullable=True),
        sa.Column("last_release_at", TIME, nullable=True),
        sa.Column("resolved_at", TIME, nullable=True),
        sa.Column("regressed_at", TIME, nullable=True),
        sa.Column("mailed_at", TIME, nullable=True),
        _reference("issue_id", "issues", ondelete="SET NULL", nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tracked_errors_count", "tracked_errors", ["project_id", "count", "id"])
    op.create_index("ix_tracked_errors_first_seen", "tracked_errors", ["project_id", "first_seen", "id"])
    op.create_index("ix_tracked_errors_last_seen", "tracked_errors", ["project_id", "last_seen", "id"])
    op.create_index("ix_tracked_errors_status_count", "tracked_errors", ["project_id", "status", "count", "id"])
    op.create_index(
        "ix_tracked_errors_status_first_seen", "tracked_errors", ["project_id", "status", "first_seen", "id"]
    )
    op.create_index("ix_tracked_errors_status_last_seen", "tracked_errors", ["project_id", "status", "last_seen", "id"])
    op.create_index(
        "uq_tracked_errors_issue_id", "tracked_errors", ["issue_id"], unique=True, **_where("issue_id IS NOT NULL")
    )
    op.create_table(
        "tracked_error_events",
        _id(),
        _reference("project_id", "projects"),
        _reference("error_id", "tracked_errors"),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("occurred_at", TIME, nullable=False),
        sa.Column("received_at", TIME, nullable=False),
        sa.Column("summary", sa.JSON(), nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.UniqueConstraint("project_id", "event_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tracked_error_events_occurred_at", "tracked_error_events", ["error_id", "occurred_at", "id"])
    op.create_table(
        "tracked_error_digests",
        _reference("project_id", "projects"),
        sa.Column("digest", sa.String(), nullable=False),
        _reference("error_id", "tracked_errors"),
        sa.PrimaryKeyConstraint("project_id", "digest"),
    )
    op.create_index("ix_tracked_error_digests_error_id", "tracked_error_digests", ["error_id"])
    op.create_table(
        "tracked_error_counts",
        _reference("error_id", "tracked_errors"),
        sa.Column("seconds", KEY, autoincrement=False, nullable=False),
        sa.Column("start", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("count", KEY, nullable=False),
        sa.PrimaryKeyConstraint("error_id", "seconds", "start"),
    )
    op.create_index("ix_tracked_error_counts_start", "tracked_error_counts", ["seconds", "start"])
    op.create_table(
        "tracked_error_facets",
        _reference("error_id", "tracked_errors"),
        sa.Column("kind", KEY, autoincrement=False, nullable=False),
        sa.Column("value", sa.String(), nullable=False),
        _reference("project_id", "projects"),
        sa.PrimaryKeyConstraint("error_id", "kind", "value"),
    )
    op.create_index("ix_tracked_error_facets_kind", "tracked_error_facets", ["project_id", "kind", "value", "error_id"])
    op.create_table(
        "tracked_error_users",
        _reference("error_id", "tracked_errors"),
        sa.Column("digest", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("error_id", "digest"),
    )
    op.create_table(
        "sentry_issue_links",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("sentry_id", sa.String(), nullable=False),
        _reference("issue_id", "issues"),
        sa.UniqueConstraint("issue_id"),
        sa.UniqueConstraint("project_id", "sentry_id"),
        sqlite_autoincrement=True,
    )


def _create_vulnerabilities() -> None:
    """Pipelines, security reports, findings, dismissals."""
    op.create_table(
        "security_pipelines",
        _id(),
        sa.Column("created_at", TIME, nullable=False),
        _reference("project_id", "projects"),
        sa.Column("ref", sa.String(), nullable=False),
        sa.Column("sha", sa.String(), nullable=True),
        sa.Column("attempt", KEY, nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_security_pipelines_ref", "security_pipelines", ["project_id", "ref", "id"])
    op.create_index(
        "uq_security_pipelines_attempt", "security_pipelines", ["project_id", "ref", "sha", "attempt"], unique=True
    )
    op.create_table(
        "security_reports",
        _id(),
        sa.Column("created_at", TIME, nullable=False),
        _reference("pipeline_id", "security_pipelines"),
        sa.Column("report_type", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=True),
        sa.Column("scan", sa.JSON(), nullable=True),
        sa.Column("turn", KEY, nullable=False),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("scanner", sa.String(), nullable=False),
        sa.Column("repetition", KEY, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_security_reports_pipeline_id", "security_reports", ["pipeline_id", "id"])
    op.create_index(
        "uq_security_reports_scanner",
        "security_reports",
        ["pipeline_id", "report_type", "scanner", "repetition"],
        unique=True,
    )
    op.create_table(
        "security_remediations",
        _reference("report_id", "security_reports"),
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("report_id", "position"),
    )
    op.create_table(
        "security_components",
        _reference("report_id", "security_reports"),
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("package_manager", sa.String(), nullable=False),
        sa.Column("dependency_file_path", sa.String(), nullable=False),
        sa.Column("purl", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("direct", sa.Boolean(), nullable=True),
        sa.Column("licenses", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("report_id", "position"),
    )
    op.create_index("ix_security_components_name", "security_components", ["report_id", "name", "version", "position"])
    op.create_table(
        "findings",
        _id(),
        _reference("project_id", "projects"),
        _reference("pipeline_id", "security_pipelines"),
        _reference("report_id", "security_reports"),
        sa.Column("sort", KEY, nullable=False),
        sa.Column("place", KEY, nullable=False),
        sa.Column("position", KEY, nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("dismissed", sa.Boolean(), nullable=False),
        sa.Column("suppressed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("uuid", sa.String(), nullable=True),
        sa.Column("project_fingerprint", sa.String(), nullable=False),
        sa.Column("compare_key", sa.String(), nullable=False),
        sa.Column("remediation", KEY, nullable=True),
        sa.Column("package", sa.String(), nullable=True),
        sa.Column("data", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_findings_list", "findings", ["pipeline_id", "kept", "sort", "place", "dismissed"])
    op.create_index("ix_findings_package", "findings", ["package", "report_id"], **_where("package IS NOT NULL"))
    op.create_index("ix_findings_project_fingerprint", "findings", ["project_id", "project_fingerprint"])
    op.create_index("ix_findings_report_id", "findings", ["report_id", "position"])
    op.create_index("ix_findings_uuid", "findings", ["project_id", "uuid"])
    op.create_table(
        "finding_tallies",
        _reference("pipeline_id", "security_pipelines"),
        sa.Column("sort", KEY, autoincrement=False, nullable=False),
        sa.Column("found", KEY, nullable=False),
        sa.Column("dismissed", KEY, nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "sort"),
    )
    op.create_table(
        "vulnerability_feedback",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        _reference("author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("feedback_type", sa.String(), nullable=False),
        sa.Column("category", sa.String(), nullable=False),
        sa.Column("project_fingerprint", sa.String(), nullable=False),
        sa.Column("finding_uuid", sa.String(), nullable=True),
        sa.Column("meant", sa.String(), nullable=False),
        _reference("pipeline_id", "security_pipelines", ondelete="SET NULL", nullable=True),
        _reference("issue_id", "issues", nullable=True),
        _reference("merge_request_id", "merge_requests", nullable=True),
        sa.Column("comment", sa.String(), nullable=True),
        _reference("comment_author_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("commented_at", TIME, nullable=True),
        sa.Column("dismissal_reason", sa.String(), nullable=True),
        sa.Column("vulnerability_data", sa.JSON(), nullable=True),
        sa.UniqueConstraint("project_id", "category", "feedback_type", "meant", name="uq_vulnerability_feedback_meant"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_vulnerability_feedback_author_id", "vulnerability_feedback", ["author_id"])
    op.create_index("ix_vulnerability_feedback_comment_author_id", "vulnerability_feedback", ["comment_author_id"])
    op.create_index(
        "ix_vulnerability_feedback_finding_uuid",
        "vulnerability_feedback",
        ["project_id", "feedback_type", "finding_uuid"],
    )
    op.create_index("ix_vulnerability_feedback_issue_id", "vulnerability_feedback", ["issue_id"])
    op.create_index(
        "ix_vulnerability_feedback_meant", "vulnerability_feedback", ["project_id", "feedback_type", "meant"]
    )
    op.create_index("ix_vulnerability_feedback_merge_request_id", "vulnerability_feedback", ["merge_request_id"])
    op.create_index("ix_vulnerability_feedback_pipeline_id", "vulnerability_feedback", ["pipeline_id"])


def _create_transfers() -> None:
    """Imports, exports, archived rows, uploaded files."""
    op.create_table(
        "project_imports",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        _reference("user_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("correlation_id", sa.String(), nullable=True),
        sa.Column("storage_name", sa.String(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("wanted_path", sa.String(), nullable=True),
        sa.Column("override_params", sa.JSON(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("relation", sa.String(), nullable=True),
        sa.Column("line", KEY, nullable=False),
        sa.Column("rows_done", KEY, nullable=False),
        sa.Column("rows_total", KEY, nullable=True),
        sa.Column("relations_done", KEY, nullable=False),
        sa.Column("relations_total", KEY, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.UniqueConstraint("project_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_imports_user_id", "project_imports", ["user_id"])
    op.create_table(
        "import_failures",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("exception_class", sa.String(), nullable=False),
        sa.Column("exception_message", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("relation_name", sa.String(), nullable=False),
        sa.Column("line_number", KEY, nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_import_failures_project_id", "import_failures", ["project_id", "id"])
    op.create_table(
        "project_exports",
        _id(),
        *_timestamps(),
        _reference("project_id", "projects"),
        _reference("user_id", "users", ondelete="SET NULL", nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=True),
        sa.Column("upload_url", sa.Text(), nullable=True),
        sa.Column("upload_method", sa.String(), nullable=True),
        sa.Column("storage_name", sa.String(), nullable=True),
        sa.Column("file_name", sa.String(), nullable=True),
        sa.Column("size", KEY, nullable=True),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("rows_done", KEY, nullable=False),
        sa.Column("rows_total", KEY, nullable=True),
        sa.Column("relations_done", KEY, nullable=False),
        sa.Column("relations_total", KEY, nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_exports_project_id", "project_exports", ["project_id", "id"])
    op.create_index("ix_project_exports_storage_name", "project_exports", ["storage_name", "updated_at"])
    op.create_index("ix_project_exports_user_id", "project_exports", ["user_id"])
    op.create_table(
        "archived_rows",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("relation", sa.String(), nullable=False),
        sa.Column("data", sa.JSON(), nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_archived_rows_project_id", "archived_rows", ["project_id", "relation", "id"])
    op.create_table(
        "project_files",
        _id(),
        _reference("project_id", "projects"),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("storage_name", sa.String(), nullable=False),
        sa.Column("size", KEY, nullable=False),
        sa.Column("data", sa.JSON(), nullable=True),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_project_files_project_id", "project_files", ["project_id", "path"], unique=True)
