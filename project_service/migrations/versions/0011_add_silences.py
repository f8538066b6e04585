"""Add silences, and the alerts that they matched."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "silences",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("project_id", KEY, nullable=False),
        sa.Column("matchers", sa.JSON(), nullable=False),
        sa.Column("starts_at", MOMENT, nullable=False),
        sa.Column("ends_at", MOMENT, nullable=False),
        sa.Column("comment", sa.String(), nullable=False),
        sa.Column("hold_incidents", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("created_by_id", KEY, nullable=True),
        sa.Column("ended_by_id", KEY, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("begun_at", MOMENT, nullable=True),
        sa.Column("finished_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["project_id"], ["projects.id"], name="fk_silences_project_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["created_by_id"], ["users.id"], name="fk_silences_created_by_id", ondelete="SET NULL"),
        sa.ForeignKeyConstraint(["ended_by_id"], ["users.id"], name="fk_silences_ended_by_id", ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id", name="pk_silences"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_silences_project_id", "silences", ["project_id", "id"])
    op.create_index("ix_silences_finished_at", "silences", ["finished_at", "ends_at"])
    for column in ("created_by_id", "ended_by_id"):
        present = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"ix_silences_{column}", "silences", [column], sqlite_where=present, postgresql_where=present)
    op.create_table(
        "silenced_alerts",
        sa.Column("silence_id", KEY, nullable=False),
        sa.Column("alert_id", KEY, nullable=False),
        sa.Column("held_back", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(
            ["silence_id"], ["silences.id"], name="fk_silenced_alerts_silence_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name="fk_silenced_alerts_alert_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("silence_id", "alert_id", name="pk_silenced_alerts"),
    )
    op.create_index("ix_silenced_alerts_alert_id", "silenced_alerts", ["alert_id"])


def downgrade() -> None:
    """Remove them."""
    op.drop_table("silenced_alerts")
    op.drop_table("silences")
