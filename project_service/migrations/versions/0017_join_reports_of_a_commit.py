"""Record the scanner of reports, and number the pipelines of a commit, so that concurrent reports join one pipeline."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add the columns, empty in existing rows; code of the release before does not know them and need not."""
    op.add_column("security_pipelines", sa.Column("attempt", KEY, nullable=True))
    op.add_column("security_reports", sa.Column("scanner", sa.String(), nullable=True))
    op.add_column("security_reports", sa.Column("repetition", KEY, nullable=True))
    op.create_index("uq_security_pipelines_attempt", "security_pipelines", ["project_id", "ref", "sha", "attempt"], unique=True)
    op.create_index("uq_security_reports_scanner", "security_reports", ["pipeline_id", "report_type", "scanner", "repetition"], unique=True)


def downgrade() -> None:
    """Drop the columns."""
    op.drop_index("uq_security_reports_scanner", table_name="security_reports")
    op.drop_index("uq_security_pipelines_attempt", table_name="security_pipelines")
    for name in ("repetition", "scanner"):
        op.drop_column("security_reports", name)
    op.drop_column("security_pipelines", "attempt")
