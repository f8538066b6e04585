"""Add columns for the access levels of monitoring and environments, which were stored for clients only."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0062"
down_revision = "0057"
branch_labels = None
depends_on = None

COLUMNS = ("monitor_access_level", "environments_access_level")
PROJECTS = sa.table(
    "projects",
    sa.column("id", sa.BigInteger),
    sa.column("attributes", sa.JSON),
    *(sa.column(name, sa.String) for name in COLUMNS),
)


def upgrade() -> None:
    """Add the columns; take the levels over from the attributes."""
    for name in COLUMNS:
        op.add_column("projects", sa.Column(name, sa.String(), server_default="enabled", nullable=False))
    for project_id, attributes in _projects_with("access_level"):
        levels = {name: attributes.pop(name) for name in COLUMNS if name in attributes}
        if levels:
            _update(project_id, attributes=attributes, **levels)


def downgrade() -> None:
    """Store the levels among the attributes again."""
    changed = sa.or_(*(PROJECTS.c[name] != "enabled" for name in COLUMNS))
    columns = (PROJECTS.c[name] for name in COLUMNS)
    for project_id, attributes, *levels in (
        op.get_bind().execute(sa.select(PROJECTS.c.id, PROJECTS.c.attributes, *columns).where(changed)).all()
    ):
        _update(project_id, attributes=(attributes or {}) | dict(zip(COLUMNS, levels, strict=True)))
    for name in COLUMNS:
        op.drop_column("projects", name)


def _projects_with(text: str) -> list[tuple[int, dict[str, str]]]:
    has_text = sa.cast(PROJECTS.c.attributes, sa.Text).contains(text)
    rows = op.get_bind().execute(sa.select(PROJECTS.c.id, PROJECTS.c.attributes).where(has_text)).all()
    return [(row.id, dict(row.attributes)) for row in rows]


def _update(project_id: int, **values: object) -> None:
    op.get_bind().execute(sa.update(PROJECTS).where(PROJECTS.c.id == project_id).values(**values))
