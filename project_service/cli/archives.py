"""Commands for export archives: ``archive``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from project_service.cli import output, transfer_progress
from project_service.cli.parameters import (
    READABLE_FILE,
    STANDARD_STREAM,
    WRITABLE_FILE,
    project_named,
    regular_file,
    user_named,
    writable_target,
)
from project_service.domain.projects import Project
from project_service.factory import create_app
from project_service.kit.db.session import db
from project_service.transfers.archive import diff, inspection
from project_service.transfers.archive.contents import BadArchive

PIPED_ARCHIVE_NAME = "archive.tar.gz"


class ComparisonError(click.ClickException):
    """Two archives could not be compared; the exit status is that of diff and cmp."""

    exit_code = 2


@click.group("archive")
def project_archive() -> None:
    """Export archives, independent of any project."""


@project_archive.command("inspect")
@click.argument("file", type=READABLE_FILE)
def inspect_archive(file: Path) -> None:
    """Print what FILE (- for standard input) contains and what it would become; nothing is imported."""
    with _archive_errors(), regular_file(file) as archive:
        for line in inspection.inspect(archive).lines():
            click.echo(line)


@project_archive.command("import")
@click.argument("file", type=READABLE_FILE)
@click.argument("path")
@click.option("--as", "username", required=True, help="The importing user: only administrators get users mapped.")
@click.option("--namespace", default=None, help="Id or full path; that of the user when absent.")
@click.option("--overwrite", is_flag=True, help="Replace a project of this path.")
def import_archive(file: Path, path: str, username: str, namespace: str | None, overwrite: bool) -> None:
    """Import FILE (- for standard input) as a project with this PATH, and show the progress.

    The workers of the running service do the import.
    """
    with create_app().app_context():
        user = user_named(username)
        with regular_file(file) as archive:
            name = file.name if archive == file else PIPED_ARCHIVE_NAME
            with archive.open("rb") as stream:
                project = transfer_progress.start_import(
                    user, stream, name, path, namespace=namespace, overwrite=overwrite
                )
        _show_progress("Importing", transfer_progress.follow_import(project.id))
        for warning in transfer_progress.left_out(project.id):
            click.echo(f"Warning: {warning}", err=True)
        click.echo(db.session.get_one(Project, project.id, populate_existing=True).full_path)


@project_archive.command("export")
@click.argument("project")
@click.argument("file", type=WRITABLE_FILE)
@click.option("--as", "username", required=True, help="The exporting user, a maintainer of the project.")
def export_archive(project: str, file: Path, username: str) -> None:
    """Export PROJECT to FILE (- for standard output), and show the progress.

    The workers of the running service do the export.
    """
    with writable_target(file) as target, create_app().app_context():
        export_id = transfer_progress.start_export(user_named(username), project_named(project))
        _show_progress("Exporting", transfer_progress.follow_export(export_id, target))
        click.echo(str(file), err=file == STANDARD_STREAM)


@project_archive.command("diff")
@click.argument("one", type=READABLE_FILE)
@click.argument("other", type=READABLE_FILE)
def diff_archives(one: Path, other: Path) -> None:
    """Print the differences of two archives, except those that every transfer causes; one may be - for standard input.

    Exit status 0 means no difference, 1 some, 2 that the archives could not be compared.
    """
    if one == other == STANDARD_STREAM:
        raise click.UsageError("Only one of the archives can come through the standard input.")
    with _archive_errors(ComparisonError):
        with regular_file(one) as first, regular_file(other) as second:
            differences = diff.compare(first, second)
        for difference in differences:
            click.echo(str(difference))
        click.echo(
            f"{len(differences)} differences" if differences else "The archives say the same.", err=bool(differences)
        )
    sys.exit(bool(differences))


def _show_progress(label: str, steps: Iterator[transfer_progress.TransferProgress]) -> None:
    """A progress bar until the transfer has ended."""
    with click.progressbar(length=1, label=label, file=sys.stderr) as bar:
        for step in steps:
            bar.length = step.total or 1
            bar.pos = min(step.done, bar.length)
            bar.finished = step.ended
            bar.render_progress()


@contextmanager
def _archive_errors(failure: type[click.ClickException] = click.ClickException) -> Iterator[None]:
    """Report an invalid archive, or a failure to read or unpack it, as a command error."""
    try:
        yield
    except BadArchive as error:
        raise failure(str(error)) from error
    except BrokenPipeError:  # the reader of the output has closed it
        raise
    except OSError as error:
        text = output.write_error(error) or f"the archive cannot be read or unpacked ({error.strerror})"
        output.discard()
        raise failure(text) from error


COMMANDS = (project_archive,)
