"""Add audit events, which cannot be changed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEXES = {
    "ix_audit_events_created_at": ["created_at", "id"],
    "ix_audit_events_entity_type": ["entity_type", "created_at", "id"],
    "ix_audit_events_entity_id": ["entity_type", "entity_id", "created_at", "id"],
    "ix_audit_events_author_id": ["author_id", "created_at", "id"],
}


def upgrade() -> None:
    """Add the table, its indexes, and a trigger that refuses updates."""
    op.create_table(
        "audit_events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("event_name", sa.String(), nullable=False),
        sa.Column("author_id", KEY, nullable=False),
        sa.Column("entity_type", sa.String(), nullable=False),
        sa.Column("entity_id", KEY, nullable=False),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_events"),
        sqlite_autoincrement=True,
    )
    for name, columns in INDEXES.items():
        op.create_index(name, "audit_events", columns)
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


def downgrade() -> None:
    """Drop the table with its trigger."""
    op.drop_table("audit_events")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION refuse_change_of_audit_event()")
