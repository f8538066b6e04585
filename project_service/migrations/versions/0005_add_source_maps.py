"""Add releases of errors, uploaded source maps, resolved stacks and merged errors."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
HAS_STACK = sa.text("stack IS NOT NULL")


def upgrade() -> None:
    """Add the column and the tables."""
    op.add_column("tracked_error_events", sa.Column("stack", sa.String(), nullable=True))
    op.create_index(
        "ix_tracked_error_events_stack",
        "tracked_error_events",
        ["project_id", "stack", "id"],
        sqlite_where=HAS_STACK,
        postgresql_where=HAS_STACK,
    )
    op.create_table(
        "tracked_error_merges",
        sa.Column("id", KEY, autoincrement=False, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("error_id", KEY, nullable=False),
        _to_project("tracked_error_merges"),
        sa.ForeignKeyConstraint(
            ["error_id"], ["tracked_errors.id"], name="fk_tracked_error_merges_error_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_tracked_error_merges"),
    )
    op.create_index("ix_tracked_error_merges_project_id", "tracked_error_merges", ["project_id"])
    op.create_index("ix_tracked_error_merges_error_id", "tracked_error_merges", ["error_id"])
    op.create_table(
        "error_releases",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("ref", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("released_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        _to_project("error_releases"),
        sa.PrimaryKeyConstraint("id", name="pk_error_releases"),
        sa.UniqueConstraint("project_id", "version", name="uq_error_releases_project_id_version"),
        sqlite_autoincrement=True,
    )
    newest = sa.text("coalesce(released_at, created_at)")
    op.create_index("ix_error_releases_newest", "error_releases", ["project_id", "status", newest, "id"])
    _create_bundles()
    _create_artifacts()
    op.create_table(
        "error_resolved_stacks",
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("release", sa.String(), nullable=True),
        sa.Column("dist", sa.String(), nullable=True),
        sa.Column("debug_ids", sa.JSON(), nullable=False),
        sa.Column("frames", sa.JSON(), nullable=False),
        sa.Column("problems", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        _to_project("error_resolved_stacks"),
        sa.PrimaryKeyConstraint("project_id", "digest", name="pk_error_resolved_stacks"),
    )
    op.create_index("ix_error_resolved_stacks_created_at", "error_resolved_stacks", ["project_id", "created_at"])


def downgrade() -> None:
    """Remove them."""
    for table in (
        "error_resolved_stacks",
        "source_map_artifacts",
        "source_map_bundles",
        "error_releases",
        "tracked_error_merges",
    ):
        op.drop_table(table)
    op.drop_index("ix_tracked_error_events_stack", "tracked_error_events")
    op.drop_column("tracked_error_events", "stack")


def _create_bundles() -> None:
    op.create_table(
        "source_map_bundles",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("release", sa.String(), nullable=True),
        sa.Column("dist", sa.String(), nullable=True),
        sa.Column("checksum", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("error", sa.String(), nullable=True),
        sa.Column("files", KEY, nullable=False),
        sa.Column("bytes", KEY, nullable=False),
        sa.Column("uploaded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("uploader_id", KEY, nullable=True),
        _to_project("source_map_bundles"),
        sa.ForeignKeyConstraint(
            ["uploader_id"], ["users.id"], name="fk_source_map_bundles_uploader_id", ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_source_map_bundles"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_source_map_bundles_project_id", "source_map_bundles", ["project_id", "id"])
    op.create_index("ix_source_map_bundles_checksum", "source_map_bundles", ["project_id", "checksum"])
    op.create_index("ix_source_map_bundles_release", "source_map_bundles", ["project_id", "release", "id"])
    op.create_index("ix_source_map_bundles_uploader_id", "source_map_bundles", ["uploader_id"])


def _create_artifacts() -> None:
    op.create_table(
        "source_map_artifacts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("bundle_id", KEY, nullable=False),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("debug_id", sa.String(), nullable=True),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("url_digest", sa.String(), nullable=False),
        sa.Column("source_map_url", sa.String(), nullable=True),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size", KEY, nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=False),
        _to_project("source_map_artifacts"),
        sa.ForeignKeyConstraint(
            ["bundle_id"], ["source_map_bundles.id"], name="fk_source_map_artifacts_bundle_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_source_map_artifacts"),
        sqlite_autoincrement=True,
    )
    table = "source_map_artifacts"
    op.create_index("ix_source_map_artifacts_debug_id", table, ["project_id", "debug_id", "id"])
    op.create_index("ix_source_map_artifacts_url_digest", table, ["project_id", "url_digest", "id"])
    op.create_index("ix_source_map_artifacts_sha256", table, ["project_id", "sha256"])
    op.create_index("ix_source_map_artifacts_bundle_id", table, ["bundle_id"])


def _to_project(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name=f"fk_{table}_project_id", ondelete="CASCADE")
