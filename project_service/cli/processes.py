"""Commands that run or examine the service: ``prepare``, ``worker``, ``scheduler``, ``doctor``."""

from __future__ import annotations

import sys

import click
from sqlalchemy import select

from project_service.areas.accounts.administration import service as accounts
from project_service.areas.accounts.tokens import service as token_service
from project_service.areas.instance import doctor as examination
from project_service.cli.database import upgrade_database
from project_service.domain.accounts.users import User
from project_service.factory import create_app
from project_service.kit import jobs
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.responses import Application
from project_service.kit.security import private_files, tokens
from project_service.runtime import worker_processes
from project_service.runtime.startup import Preparation
from project_service.settings import Settings

ROOT_USERNAME = "root"
ROOT_EMAIL = "admin@example.com"
ROOT_SCOPES = ["api", "read_user", "sudo"]
CREDENTIALS_FILE = "initial_credentials"


@click.command()
def prepare() -> None:
    """Upgrade the database and create the first administrator; ``serve`` does this before anything else."""
    prepare_database(create_app())


def prepare_database(app: Application) -> None:
    """Upgrade the database, create the first administrator, and let the web server answer requests."""
    settings: Settings = app.config["SETTINGS"]
    with app.app_context():
        upgrade_database()
        _create_first_administrator(settings)
        db.engine.dispose()
    Preparation(settings.runtime_dir).end()


@click.command()
@click.option("--quick", is_flag=True, help="Leave imports and exports, which may take hours, to other workers.")
@click.option("--deliveries", is_flag=True, help="Send mails and web hooks, and do nothing else: one is needed.")
@click.option("--all", "everything", is_flag=True, help="Run six workers and a scheduler, all that a machine needs.")
def worker(quick: bool, deliveries: bool, everything: bool) -> None:
    """Run one worker: it runs jobs until it is stopped."""
    if quick + deliveries + everything > 1:
        raise click.UsageError("--all, --quick and --deliveries exclude each other.")
    if everything:
        sys.exit(worker_processes.work_and_schedule(create_app()))
    queues = jobs.QUICK_QUEUES if quick else (jobs.DELIVERIES,) if deliveries else jobs.FINITE_QUEUES
    worker_processes.work(create_app(), queues)


@click.command()
def scheduler() -> None:
    """Run the scheduler: it starts periodic jobs and enqueues overdue tasks again."""
    worker_processes.schedule(create_app())


@click.command()
def doctor() -> None:
    """Examine database, Redis, storage, secrets and versions, and say what to do."""
    app = create_app()
    with app.app_context():
        findings = examination.examine(app.config["SETTINGS"])
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'BAD '} {finding.part}: {finding.text}")
    if not all(finding.well for finding in findings):
        sys.exit(1)


def _create_first_administrator(settings: Settings) -> None:
    """Create the administrator of an empty instance and store the credentials in a private file.

    On a terminal they are printed once. Other outputs are often logs that many can read: they get the path of the file
    only. Secrets that the operator has set are neither stored nor printed.
    """
    with unit_of_work():
        if db.session.scalar(select(User.id).limit(1)) is not None:
            return
        password = settings.root_password or tokens.new_token()
        root = accounts.create_user(
            username=ROOT_USERNAME, name="Administrator", email=ROOT_EMAIL, password=password, admin=True
        )
        token = token_service.create_token(
            root, name="first token", scopes=ROOT_SCOPES, secret=settings.root_token
        ).token
    shown_password = password if settings.root_password is None else "as set in PROJECT_SERVICE_ROOT_PASSWORD"
    shown_token = token if settings.root_token is None else "as set in PROJECT_SERVICE_ROOT_TOKEN"
    text = f"username: {ROOT_USERNAME}\npassword: {shown_password}\ntoken: {shown_token}\n"
    path = settings.data_dir / CREDENTIALS_FILE
    private_files.write_private(path, text)
    if sys.stdout.isatty():
        click.echo(f"The administrator of this new instance (kept in {path}):\n{text}")
    else:
        click.echo(f"The credentials of the administrator of this new instance are in {path}")


COMMANDS = (prepare, worker, scheduler, doctor)
