"""Record the format and the category of reports, their components, and dismissals and packages of findings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns; code of the release before leaves them at their defaults."""
    op.add_column("security_reports", sa.Column("format", sa.String(), nullable=True))
    op.add_column("security_reports", sa.Column("category", sa.String(), nullable=True))
    op.add_column("findings", sa.Column("suppressed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("findings", sa.Column("package", sa.String(), nullable=True))
    op.create_table(
        "security_components",
        sa.Column("report_id", KEY, nullable=False),
        sa.Column("position", KEY, autoincrement=False, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("package_manager", sa.String(), nullable=False),
        sa.Column("dependency_file_path", sa.String(), nullable=False),
        sa.Column("purl", sa.String(), nullable=True),
        sa.Column("type", sa.String(), nullable=False),
        sa.Column("direct", sa.Boolean(), nullable=True),
        sa.Column("licenses", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["report_id"], ["security_reports.id"], ondelete="CASCADE", name=op.f("fk_security_components_report_id")),
        sa.PrimaryKeyConstraint("report_id", "position", name=op.f("pk_security_components")),
    )


def downgrade() -> None:
    """Drop the table and the columns."""
    op.drop_table("security_components")
    for table, name in (("findings", "package"), ("findings", "suppressed"), ("security_reports", "category"), ("security_reports", "format")):
        op.drop_column(table, name)
