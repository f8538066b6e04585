"""The commands of operators that take the whole application; ``cli`` loads them when one is called."""

from __future__ import annotations

import datetime as dt
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from project_service.areas.accounts import service as accounts
from project_service.areas.activity import service as activity
from project_service.areas.activity.jobs import prune_events
from project_service.areas.instance import service as instance_service
from project_service.areas.vulnerabilities import ingestion
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.cli import doctor as examination
from project_service.cli import output
from project_service.domain import instance_settings
from project_service.domain.namespaces import PLANS, change_plan, find_group
from project_service.domain.projects import Project, find_project
from project_service.domain.tokens import SCOPES
from project_service.domain.users import User, find_user_by, user_by
from project_service.factory import create_app
from project_service.kit import jobs
from project_service.kit.db import migrating
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid, ServiceError
from project_service.kit.http.fields import LARGEST_INTEGER, Date
from project_service.kit.security import encryption, secrets
from project_service.runtime import serving, worker_processes
from project_service.runtime.backups import service as backups
from project_service.runtime.backups.archive import BackupError
from project_service.runtime.startup import Preparation
from project_service.settings import Settings
from project_service.transfers import watching
from project_service.transfers.archive import diff, inspection
from project_service.transfers.archive.extraction import BadArchive

ROOT = "root"
ROOT_EMAIL = "admin@example.com"
ROOT_SCOPES = ["api", "read_user", "sudo"]
CREDENTIALS = "initial_credentials"


# an archive that is read: a file, a pipe by its name, or the standard input
ARCHIVE = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
PIPE = Path("-")
UNNAMED = "archive.tar.gz"  # what an archive is called that comes through a pipe

REFUSALS = (ServiceError, secrets.SecretKeyMissing, BackupError, watching.TransferFailed)


class Trouble(click.ClickException):
    """Two files could not be compared; diff and cmp end with the same status then."""

    exit_code = 2


@click.group()
def main() -> None:
    """What takes the whole application."""


def told(error: Exception) -> str | None:
    """What an operator hears of an error that can be mended; nothing of others."""
    if isinstance(error, OperationalError):
        return f"PROJECT_SERVICE_DATABASE_URL: {str(error.orig).splitlines()[0]}"
    if isinstance(error, Invalid):
        return "; ".join(f"{name} {text}" for name, texts in error.message.items() for text in texts)
    if isinstance(error, ServiceError) and isinstance(error.message, dict):
        return "; ".join(map(str, error.message.values()))
    return str(error) if isinstance(error, REFUSALS) else None


@main.command()
def prepare() -> None:
    """Upgrade the database and make the first administrator: what serve does before it starts anything."""
    settings = Settings.from_environment()
    with create_app(settings).app_context():
        _upgrade()
        _first_start(settings)
        db.engine.dispose()
    Preparation(settings.runtime_dir).end()


@main.command()
@click.option("--quick", is_flag=True, help="Leave imports and exports, which may take hours, to other workers.")
@click.option("--all", "everything", is_flag=True, help="Run five workers and a scheduler, all that a machine needs.")
def worker(quick: bool, everything: bool) -> None:
    """Run one worker: it takes up jobs until it is stopped."""
    if everything:
        if quick:
            raise click.UsageError("--all and --quick exclude each other.")
        sys.exit(worker_processes.work_and_schedule(create_app()))
    worker_processes.work(create_app(), jobs.QUICK_QUEUES if quick else jobs.QUEUES)


@main.command()
def scheduler() -> None:
    """Run the scheduler: it starts periodic jobs and rings again for forgotten ones."""
    worker_processes.schedule(create_app())


@main.command()
def doctor() -> None:
    """Examine database, Redis, storage, secrets and versions, and say what to do."""
    app = create_app()
    with app.app_context():
        findings = examination.examine(app.config["SETTINGS"])
    for finding in findings:
        click.echo(f"{'ok  ' if finding.well else 'BAD '} {finding.part}: {finding.text}")
    if not all(finding.well for finding in findings):
        sys.exit(1)


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """Write everything to FILE as of one moment, while the service goes on; the secret keys are not in it."""
    app = create_app()
    with app.app_context():
        click.echo(f"{file}: {backups.back_up(app.config['SETTINGS'], file)}")


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def restore(file: Path) -> None:
    """Fill an empty instance with the back-up in FILE, also on the other database; nothing else may run on it."""
    app = create_app()
    settings = app.config["SETTINGS"]
    with app.app_context(), serving.only_one(settings.data_dir):
        click.echo(f"{file}: {backups.restore(settings, file)}")


@main.group("db")
def database() -> None:
    """The database."""


@database.command()
def upgrade() -> None:
    """Bring the database to the newest version."""
    with create_app().app_context():
        _upgrade()


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
    """Write a migration from what has changed in the models (for developers)."""
    with create_app().app_context():
        numbers = [int(path.name[:4]) for path in (MIGRATIONS / "versions").glob("[0-9]*.py")]
        migrating.write_migration(message, f"{max(numbers, default=0) + 1:04d}")


@main.group()
def user() -> None:
    """People."""


@user.command("create")
@click.argument("username")
@click.option("--email", required=True)
@click.option("--name", default=None, help="The username by default.")
@click.option("--admin", is_flag=True, help="Make an administrator.")
@click.password_option(help="Asked for when absent.")
def create_user(username: str, email: str, name: str | None, admin: bool, password: str) -> None:
    """Create a user."""
    with create_app().app_context(), unit_of_work():
        made = accounts.create_user(
            username=username, email=email, name=name or username, password=password, admin=admin
        )
        click.echo(f"created user {made.username} with id {made.id}")


@main.group()
def token() -> None:
    """Personal access tokens."""


@token.command("create")
@click.argument("username")
@click.option("--name", required=True)
@click.option("--scopes", required=True, help="Separated by commas.")
@click.option("--expires-at", default=None, help="The day from which the token is worthless, YYYY-MM-DD.")
def create_token(username: str, name: str, scopes: str, expires_at: str | None) -> None:
    """Create a token for a user and print it, once."""
    wanted = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    unknown = sorted(set(wanted) - set(SCOPES))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)} (there are {', '.join(SCOPES)})", param_hint="--scopes")
    day = _day(expires_at, "--expires-at")
    with create_app().app_context(), unit_of_work():
        owner = user_by(username)
        if owner is None:
            raise click.BadParameter(f"there is no user {username}", param_hint="USERNAME")
        made = accounts.create_token(owner, name=name, scopes=wanted, expires_at=day)
        click.echo(made.token)  # type: ignore[attr-defined]  # shown once, never stored


@main.group()
def setting() -> None:
    """Application settings."""


@setting.command("get")
@click.argument("name", type=click.Choice(sorted(instance_settings.SETTINGS)), required=False)
def get_setting(name: str | None) -> None:
    """Print one setting, or all."""
    with create_app().app_context(), unit_of_work(write=False):
        values = instance_settings.all_settings()
    for shown in [name] if name else sorted(values):
        click.echo(f"{shown} = {values[shown]!r}")


@setting.command("set")
@click.argument("name", type=click.Choice(sorted(instance_settings.SETTINGS)))
@click.argument("value")
def set_setting(name: str, value: str) -> None:
    """Set one setting."""
    with create_app().app_context(), unit_of_work():
        values = instance_service.change_settings_from_text({name: value})
    click.echo(f"{name} = {values[name]!r}")


@main.group()
def feature() -> None:
    """Feature flags."""


@feature.command("list")
def list_features() -> None:
    """List the features that were ever set."""
    with create_app().app_context(), unit_of_work(write=False):
        for found in instance_service.features():
            click.echo(f"{found['name']}: {found['state']}")


@feature.command("enable")
@click.argument("name")
def enable_feature(name: str) -> None:
    """Switch a feature on for everybody."""
    with create_app().app_context(), unit_of_work():
        instance_service.set_feature(name, value="true")
    click.echo(f"{name}: on")


@feature.command("disable")
@click.argument("name")
def disable_feature(name: str) -> None:
    """Switch a feature off for everybody."""
    with create_app().app_context(), unit_of_work():
        instance_service.set_feature(name, value="false")
    click.echo(f"{name}: off")


@main.group("namespace")
def namespace() -> None:
    """Namespaces."""


@namespace.command("set-plan")
@click.argument("path")
@click.argument("plan", type=click.Choice([*PLANS, "none"]))
@click.option("--trial-ends-on", default=None, help="The last day of a trial, YYYY-MM-DD.")
def set_plan(path: str, plan: str, trial_ends_on: str | None) -> None:
    """Give a group a plan, or take it away with "none"."""
    day = _day(trial_ends_on, "--trial-ends-on")
    with create_app().app_context(), unit_of_work():
        change_plan(find_group(path), plan=None if plan == "none" else plan, trial_ends_on=day)
    click.echo(f"{path}: {plan}")


@main.group()
def events() -> None:
    """Activity events."""


@events.command()
@click.option("--dry-run", is_flag=True, help="Only say how many there are.")
def prune(dry_run: bool) -> None:
    """Remove the events that are older than two years."""
    with create_app().app_context():
        with unit_of_work(write=False):
            count = activity.count_old()
        if not dry_run:
            prune_events()
    click.echo(f"{count} events {'would be' if dry_run else 'were'} removed")


@main.group("archive")
def project_archive() -> None:
    """Export archives, apart from any project."""


@project_archive.command("inspect")
@click.argument("file", type=ARCHIVE)
def inspect_archive(file: Path) -> None:
    """Tell what FILE (- for what comes through a pipe) holds and what it would become; nothing is imported."""
    with _told(), _kept(file) as kept:
        for line in inspection.inspect(kept).lines():
            click.echo(line)


@project_archive.command("import")
@click.argument("file", type=ARCHIVE)
@click.argument("path")
@click.option("--as", "username", required=True, help="Who imports: people are matched only for administrators.")
@click.option("--namespace", default=None, help="Id or full path; that of the user when absent.")
@click.option("--overwrite", is_flag=True, help="Take the place of a project of this path.")
def import_archive(file: Path, path: str, username: str, namespace: str | None, overwrite: bool) -> None:
    """Import FILE (- for what comes through a pipe) as a project of this PATH, and watch how it goes.

    It is done by the workers of the running service.
    """
    with create_app().app_context():
        user = find_user_by(username)
        with _kept(file) as kept:
            name = file.name if kept == file else UNNAMED
            with kept.open("rb") as stream:
                project = watching.start_import(user, stream, name, path, namespace=namespace, overwrite=overwrite)
        _show("Importing", watching.follow_import(project.id))
        for warning in watching.left_out(project.id):
            click.echo(f"Warning: {warning}", err=True)
        click.echo(db.session.get_one(Project, project.id, populate_existing=True).full_path)


@project_archive.command("export")
@click.argument("project")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--as", "username", required=True, help="In whose name; they have to be a maintainer of it.")
def export_archive(project: str, file: Path, username: str) -> None:
    """Export PROJECT into FILE (- for the standard output), and watch how it goes.

    It is done by the workers of the running service.
    """
    with _writable(file) as target, create_app().app_context():
        export_id = watching.start_export(find_user_by(username), find_project(project))
        _show("Exporting", watching.follow_export(export_id, target))
        click.echo(str(file), err=file == PIPE)


@project_archive.command("diff")
@click.argument("one", type=ARCHIVE)
@click.argument("other", type=ARCHIVE)
def diff_archives(one: Path, other: Path) -> None:
    """Tell what differs between two archives but for what every transfer changes; one may be - for the standard input.

    Exit status 0 means that nothing does, 1 that something does, 2 that it could not be found out.
    """
    if one == other == PIPE:
        raise click.UsageError("Only one of the archives can come through the standard input.")
    with _told(Trouble):
        with _kept(one) as kept, _kept(other) as other_kept:
            found = diff.compare(kept, other_kept)
        for difference in found:
            click.echo(str(difference))
        click.echo(f"{len(found)} differences" if found else "The archives say the same.", err=bool(found))
    sys.exit(bool(found))


@main.group("report")
def security_report() -> None:
    """Reports of security scanners."""


@security_report.command("ingest")
@click.argument("project")
@click.argument("file", type=click.File("rb"))
@click.option("--report-type", required=True, type=click.Choice(list(REPORT_TYPES)), help="What the report is of.")
@click.option("--ref", default=None, help="The branch; the project's default branch when absent.")
@click.option("--sha", default=None, help="The commit.")
@click.option(
    "--pipeline-id",
    default=None,
    type=click.IntRange(1, LARGEST_INTEGER),
    help="Add the report to a pipeline that is there.",
)
def ingest_report(
    project: str, file: IO[bytes], report_type: str, ref: str | None, sha: str | None, pipeline_id: int | None
) -> None:
    """Take in a report: PROJECT is an id or a full path, FILE may be - for what comes through a pipe."""
    with create_app().app_context(), _seekable(file) as report:
        told = ingestion.ingest(find_project(project), report, report_type, ref=ref, sha=sha, pipeline_id=pipeline_id)
    click.echo(f"pipeline {told.pipeline_id}: {told.found} found, {told.merged} merged, {told.dropped} dropped")


@contextmanager
def _seekable(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """A file that can be read more than once; what comes through a pipe is kept on disk meanwhile."""
    if file.seekable():
        yield file
        return
    with tempfile.TemporaryFile() as kept:
        try:
            shutil.copyfileobj(file, kept)
        except OSError as error:
            raise click.ClickException(f"the report cannot be read ({error})") from error
        yield kept


@main.group("secrets")
def secret() -> None:
    """Encryption at rest."""


@secret.command()
@click.option("--forget", is_flag=True, help="Make no new key, but forget the old ones.")
def rotate(forget: bool) -> None:
    """Encrypt every stored secret with a new key; the service goes on meanwhile.

    The old key is kept for reading until a second call with --forget.
    """
    app = create_app()
    with app.app_context():
        count = (encryption.forget if forget else encryption.rotate)(app.config["SETTINGS"])
    click.echo(f"encrypted {count} secrets with the newest key")


def _show(label: str, steps: Iterator[watching.Progress]) -> None:
    """A bar that moves with a transfer until that has ended."""
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:
        for step in steps:
            bar.length = step.total or 1
            bar.pos = min(step.done, bar.length)
            bar.finished = step.ended
            bar.render_progress()


@contextmanager
def _told(failure: type[click.ClickException] = click.ClickException) -> Iterator[None]:
    """Say what is wrong with an archive, or with where it is unpacked, as every other error of a command."""
    try:
        yield
    except BadArchive as error:
        raise failure(str(error)) from error
    except BrokenPipeError:  # whoever reads what is told has enough
        raise
    except OSError as error:
        text = output.lost(error) or f"the archive cannot be read or unpacked ({error.strerror})"
        output.let_go()
        raise failure(text) from error


@contextmanager
def _kept(file: Path) -> Iterator[Path]:
    """An archive as a file that can be read more than once; what comes through a pipe is kept on disk meanwhile."""
    if file != PIPE and file.is_file():
        yield file
        return
    with tempfile.NamedTemporaryFile() as kept:
        with click.open_file(str(file), "rb") as source:
            shutil.copyfileobj(source, kept)
            kept.flush()
        yield Path(kept.name)


@contextmanager
def _writable(file: Path) -> Iterator[Path | IO[bytes]]:
    """Where an archive can be written, found out before it is made; what is no ordinary file is opened only once."""
    if file == PIPE:
        yield sys.stdout.buffer
        return
    is_new = not os.path.lexists(file)
    try:
        opened = open(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "wb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise click.BadParameter(f"cannot be written ({error.strerror})", param_hint="'FILE'") from error
    with opened:
        if not file.is_file():
            yield opened
            return
    if is_new:
        file.unlink()  # until there is something to be written
    yield file


def _day(text: str | None, option: str) -> dt.date | None:
    try:
        return Date().read(text) if text else None
    except ValueError as error:
        raise click.BadParameter("not a date", param_hint=option) from error


def _upgrade() -> None:
    migrating.upgrade()
    encryption.leave_proof()


def _first_start(settings: Settings) -> None:
    """Make the administrator of an empty instance, and tell their credentials this once."""
    with unit_of_work():
        if db.session.scalar(select(User.id).limit(1)) is not None:
            return
        password = settings.root_password or secrets.new_token()
        root = accounts.create_user(
            username=ROOT, name="Administrator", email=ROOT_EMAIL, password=password, admin=True
        )
        text = accounts.create_token(root, name="first token", scopes=ROOT_SCOPES, secret=settings.root_token).token  # type: ignore[attr-defined]  # shown once
    told = f"username: {ROOT}\npassword: {password}\ntoken: {text}\n"
    path = settings.data_dir / CREDENTIALS
    secrets.write_private(path, told)
    click.echo(f"The administrator of this new instance (kept in {path}):\n{told}")
