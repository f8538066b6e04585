"""Indexes in the orders in which projects, subgroups, issues and the alerts of environments are listed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

LOWER_NAME: sa.ColumnElement[str] = sa.literal_column("lower(name)")
Columns = list[str | sa.ColumnElement[str]]
ADDED: tuple[tuple[str, str, Columns], ...] = (
    ("projects", "ix_projects_updated_at", ["updated_at", "id"]),
    ("projects", "ix_projects_listed_name", ["name", "id"]),
    ("projects", "ix_projects_listed_path", ["path", "id"]),
    ("projects", "ix_projects_visibility_created_at", ["visibility", "created_at", "id"]),
    ("namespaces", "ix_namespaces_parent_id_name", ["parent_id", LOWER_NAME, "id"]),
    ("issues", "ix_issues_project_id_due_date", ["project_id", "due_date", "id"]),
    ("alerts", "ix_alerts_environment_id_started_at", ["environment_id", "started_at", "id"]),
)
REPLACED: tuple[tuple[str, str, Columns], ...] = (
    ("projects", "ix_projects_visibility", ["visibility", "id"]),
    ("namespaces", "ix_namespaces_parent_id", ["parent_id"]),
    ("alerts", "ix_alerts_environment_id", ["environment_id"]),
)


def upgrade() -> None:
    """Add them, and drop those that begin as they do."""
    for table, name, columns in ADDED:
        op.create_index(name, table, columns, unique=False)
    for table, name, _ in REPLACED:
        op.drop_index(name, table)


def downgrade() -> None:
    """Put back what was there."""
    for table, name, columns in REPLACED:
        op.create_index(name, table, columns, unique=False)
    for table, name, _ in ADDED:
        op.drop_index(name, table)
