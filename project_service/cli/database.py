"""Commands for stored data: ``db``, ``backup``, ``restore``, ``secrets``, ``events``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from project_service.areas.activity import service as activity
from project_service.areas.activity.jobs import prune_events
from project_service.areas.instance import doctor as examination
from project_service.factory import create_app
from project_service.kit.db import migrations
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import unit_of_work
from project_service.kit.security import encryption
from project_service.runtime import serving
from project_service.runtime.backups import service as backups


@click.group("db")
def database() -> None:
    """The database."""


@database.command()
def upgrade() -> None:
    """Upgrade the database to the newest version."""
    with create_app().app_context():
        upgrade_database()


@database.command()
def check() -> None:
    """Say whether the database is at the newest version; exit status 1 when it is not."""
    with create_app().app_context():
        finding = examination.migrations()
    click.echo(finding.text)
    if not finding.well:
        sys.exit(1)


@database.command()
@click.option("--message", "-m", required=True, help="What the migration does.")
def revision(message: str) -> None:
    """Write a migration from the changes of the models (for developers)."""
    with create_app().app_context():
        numbers = [int(path.name[:4]) for path in (MIGRATIONS / "versions").glob("[0-9]*.py")]
        migrations.write_migration(message, f"{max(numbers, default=0) + 1:04d}")


def upgrade_database() -> None:
    """Upgrade to the newest version, and store what later starts check the secret key against."""
    migrations.upgrade()
    encryption.leave_proof()


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write everything to FILE as of one moment while the service runs; the secret keys are not included."""
    app = create_app()
    with app.app_context():
        click.echo(f"{file}: {backups.back_up(app.config['SETTINGS'], file)}")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Fill an empty instance from the backup in FILE, on either database; nothing else may run on it."""
    app = create_app()
    settings = app.config["SETTINGS"]
    with app.app_context(), serving.only_one(settings.data_dir):
        click.echo(f"{file}: {backups.restore(settings, file)}")


@click.group("secrets")
def secret() -> None:
    """Encryption at rest."""


@secret.command()
@click.option("--forget", is_flag=True, help="Generate no key; remove the old ones.")
def rotate(forget: bool) -> None:
    """Encrypt every stored secret with a new key while the service runs.

    The old key is kept for reading until a second call with --forget.
    """
    app = create_app()
    with app.app_context():
        count = (encryption.forget if forget else encryption.rotate)(app.config["SETTINGS"])
    click.echo(f"encrypted {count} secrets with the newest key")


@click.group()
def events() -> None:
    """Activity events."""


@events.command()
@click.option("--dry-run", is_flag=True, help="Only print their number.")
def prune(dry_run: bool) -> None:
    """Remove the events that are older than two years."""
    with create_app().app_context():
        with unit_of_work(write=False):
            count = activity.count_old()
        if not dry_run:
            prune_events()
    click.echo(f"{count} events {'would be' if dry_run else 'were'} removed")


COMMANDS = (database, backup, restore, secret, events)
