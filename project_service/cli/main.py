"""Operator commands: ``project-service …``.

Importing the application takes about a second: ``serve`` does it once it is sure that it can run here, the others when
one of them is called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from project_service.cli import output
from project_service.kit import logs
from project_service.runtime import serving
from project_service.runtime.embedded_redis import EmbeddedRedisError
from project_service.runtime.supervisor import ChildFailed, SupervisorError
from project_service.settings import Settings, SettingsError

if TYPE_CHECKING:
    from project_service.kit.http.responses import Application

REFUSALS = (SettingsError, serving.ServeError, EmbeddedRedisError, SupervisorError)


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
    except REFUSALS as error:
        text: str | None = str(error)
    except OSError as error:
        text = _os_error_text(error)
    except Exception as error:
        from project_service.cli import application  # noqa: PLC0415  # as in _application_commands

        text = application.error_text(error)
        if text is None:
            raise
    output.discard()
    click.echo(f"project-service: {text}", err=True)
    sys.exit(1)


def _os_error_text(error: OSError) -> str:
    """The text for a file or an output that cannot be read or written."""
    text = output.write_error(error)
    if text is not None:
        return text
    if not isinstance(error.filename, str):
        return f"a file cannot be read or written ({error})"
    file, data_dir = Path(error.filename).absolute(), Settings.from_environment().data_dir
    if file.is_relative_to(data_dir) or data_dir.is_relative_to(file):  # or its future place
        return f"PROJECT_SERVICE_DATA_DIR: cannot be used ({error})"
    return f"{file} cannot be used ({error.strerror})"


def _application_commands() -> click.Group:
    from project_service.cli import application  # noqa: PLC0415  # takes a second

    return application.commands
