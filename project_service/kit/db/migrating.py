"""Migrations of the database; apart from the rest, for what serves requests never migrates and is spared alembic."""

from __future__ import annotations

import flask_migrate
from flask import current_app

from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import db

EXTENSION = "migrate"


def upgrade(revision: str = "head") -> None:
    """Bring the database of the current application to a revision, the newest one unless said."""
    _attach()
    flask_migrate.upgrade(revision=revision)


def downgrade(revision: str) -> None:
    """Take the database back to a revision."""
    _attach()
    flask_migrate.downgrade(revision=revision)


def write_migration(message: str, revision: str) -> None:
    """Write a migration from the difference between the models and the database."""
    _attach()
    flask_migrate.migrate(message=message, rev_id=revision)


def _attach() -> None:
    if EXTENSION not in current_app.extensions:
        flask_migrate.Migrate(current_app, db, directory=str(MIGRATIONS), compare_type=True)
