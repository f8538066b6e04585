"""Operator commands: ``project-service …``.

Importing the application takes about a second: ``serve`` does it once it is sure that it can run here, ``report check``
only without a server to ask, the others when one of them is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from project_service.cli import error_texts, output
from project_service.cli.reports import reports
from project_service.kit import logs
from project_service.runtime import serving
from project_service.runtime.supervisor import ChildFailed
from project_service.settings import Settings

if TYPE_CHECKING:
    from project_service.kit.http.responses import Application


class Commands(click.Group):
    """The command group: loads application commands lazily and reports expected errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted([*super().list_commands(ctx), *_application_commands().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command; the application is imported only for its own commands."""
        return super().get_command(ctx, cmd_name) or _application_commands().get_command(ctx, cmd_name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; an error that the operator can fix is one line and exit status 1."""
        with _errors_in_one_line():
            return super().main(*args, **options)


@click.group(cls=Commands)
def main() -> None:
    """A small self-hosted server that speaks the GitLab REST API v4."""


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8080, show_default=True, help="Port to listen on; 0 takes a free one.")
@click.option("--workers", default=os.cpu_count() or 2, show_default="processors", help="Web processes.")
def serve(host: str, port: int, workers: int) -> None:
    """Run everything on this machine: database upgrade, Redis, web, worker, scheduler."""
    settings = Settings.from_environment()
    logs.configure(settings.log_level, settings.log_format)
    sys.exit(serving.serve(settings, host, port, workers, _prepare))


main.add_command(reports.security_report)


def _prepare(app: Application) -> None:
    from project_service.cli import processes  # noqa: PLC0415  # as in _application_commands

    with _errors_in_one_line():
        processes.prepare_database(app)


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
        return
    except ChildFailed as error:  # it has printed why
        sys.exit(error.status)
    except Exception as error:
        text = error_texts.text_of(error)
        if text is None:
            raise
    output.discard()
    click.echo(f"project-service: {text}", err=True)
    sys.exit(1)


def _application_commands() -> click.Group:
    from project_service.cli import application  # noqa: PLC0415  # takes a second

    return application.commands
