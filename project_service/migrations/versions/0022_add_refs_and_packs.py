"""Refs and packs of repositories, protected branches, former paths of projects."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
NAME = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Let a repository have rows of refs and packs in place of a bundle; a job converts the bundles."""
    with op.batch_alter_table("repositories", copy_from=_repositories()) as batch_op:
        batch_op.alter_column("storage_name", existing_type=sa.String(), nullable=True)
        batch_op.add_column(sa.Column("head", sa.String(), nullable=True))
        batch_op.add_column(sa.Column("bundle_header", sa.LargeBinary(), nullable=True))
    op.create_table(
        "repository_refs",
        sa.Column("repository_id", KEY, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("target", sa.String(), nullable=False),
        sa.Column("peeled", sa.String(), nullable=True),
        _foreign_key("repository_refs", "repository_id", "repositories"),
        sa.PrimaryKeyConstraint("repository_id", "name", name=op.f("pk_repository_refs")),
    )
    op.create_table(
        "repository_packs",
        sa.Column("id", KEY, nullable=False),
        sa.Column("repository_id", KEY, nullable=False),
        sa.Column("object_name", sa.String(), nullable=False),
        sa.Column("size", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("replaced_at", MOMENT, nullable=True),
        _foreign_key("repository_packs", "repository_id", "repositories"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repository_packs")),
        sa.UniqueConstraint("object_name", name=op.f("uq_repository_packs_object_name")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_repository_packs_repository_id"), "repository_packs", ["repository_id"], unique=False)
    op.create_table(
        "protected_branches",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("push_access_level", KEY, nullable=False),
        sa.Column("merge_access_level", KEY, nullable=False),
        sa.Column("allow_force_push", sa.Boolean(), server_default=sa.false(), nullable=False),
        _foreign_key("protected_branches", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_protected_branches")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_protected_branches_project_id_name")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "redirect_routes",
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        _foreign_key("redirect_routes", "project_id", "projects"),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_redirect_routes")),
    )
    op.create_index(op.f("ix_redirect_routes_project_id"), "redirect_routes", ["project_id"], unique=False)


def downgrade() -> None:
    """Drop them; repositories without a bundle cannot go back."""
    for table in ("redirect_routes", "protected_branches", "repository_packs", "repository_refs"):
        op.drop_table(table)
    op.execute("DELETE FROM repositories WHERE storage_name IS NULL")
    more = (sa.Column("head", sa.String()), sa.Column("bundle_header", sa.LargeBinary()))
    with op.batch_alter_table("repositories", copy_from=_repositories(*more)) as batch_op:
        batch_op.drop_column("bundle_header")
        batch_op.drop_column("head")
        batch_op.alter_column("storage_name", existing_type=sa.String(), nullable=False)


def _foreign_key(table: str, column: str, parent: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [f"{parent}.id"], name=op.f(f"fk_{table}_{column}"), ondelete="CASCADE")


def _repositories(*more: sa.Column[Any]) -> sa.Table:
    """The table that SQLite copies to change a column."""
    return sa.Table(
        "repositories",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("storage_name", sa.String(), nullable=bool(more)),
        sa.Column("size", KEY, nullable=False),
        *more,
        _foreign_key("repositories", "project_id", "projects"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repositories")),
        sa.UniqueConstraint("project_id", "kind", name=op.f("uq_repositories_project_id_kind")),
        sqlite_autoincrement=True,
    )
