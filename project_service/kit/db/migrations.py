"""Database migrations through Flask-Migrate; a module of its own, because web processes never load alembic."""

from __future__ import annotations

import flask_migrate
from flask import current_app

from project_service.kit.db import text_search
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import db

EXTENSION = "migrate"


def upgrade(revision: str = "head") -> None:
    """Upgrade the database of the current application to a revision, by default the newest."""
    _attach()
    flask_migrate.upgrade(revision=revision)
    with db.engine.begin() as connection:
        text_search.create_missing(connection)


def downgrade(revision: str) -> None:
    """Downgrade the database to a revision."""
    _attach()
    flask_migrate.downgrade(revision=revision)


def write_migration(message: str, revision: str) -> None:
    """Generate a migration from the difference between the models and the database."""
    _attach()
    flask_migrate.migrate(message=message, rev_id=revision)


def _attach() -> None:
    if EXTENSION not in current_app.extensions:
        flask_migrate.Migrate(current_app, db, directory=str(MIGRATIONS), compare_type=True)
