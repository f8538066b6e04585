"""Runs migrations on the application's engine; the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any, Literal

from alembic import context
from flask import current_app

from project_service.kit.db.base import Base, Timestamp
from project_service.kit.db.session import db
from project_service.kit.security.key_ring import Encrypted


def run() -> None:
    """Migrate inside one transaction: on both databases an upgrade holds whole or not at all."""
    options = current_app.extensions["migrate"].configure_args
    with db.engine.connect() as connection:
        context.configure(connection=connection, target_metadata=Base.metadata, render_item=_render, **options)
        with context.begin_transaction():
            context.run_migrations()


def _render(kind: str, item: Any, _context: Any) -> str | Literal[False]:
    # migrations import nothing of the program: its types are written as those of SQLAlchemy
    if kind == "type" and isinstance(item, Timestamp):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, Encrypted):
        return "sa.Text()"
    return False


run()
