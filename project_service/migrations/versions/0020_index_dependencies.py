"""Index components by name, and findings by their package."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

HAS_PACKAGE = sa.text("package IS NOT NULL")


def upgrade() -> None:
    """Add the indexes; the columns are empty in rows of earlier releases."""
    op.create_index("ix_security_components_name", "security_components", ["report_id", "name", "version", "position"])
    op.create_index("ix_findings_package", "findings", ["package", "report_id"], sqlite_where=HAS_PACKAGE, postgresql_where=HAS_PACKAGE)


def downgrade() -> None:
    """Drop the indexes."""
    op.drop_index("ix_findings_package", table_name="findings")
    op.drop_index("ix_security_components_name", table_name="security_components")
