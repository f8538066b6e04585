"""Operator commands: ``project-service …``.

``serve`` starts the processes of the service and does nothing but watch over them: it takes neither the time nor the
memory that the application takes. All other commands are in ``operations``, which is loaded when one is called.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from project_service.cli import output
from project_service.kit import collecting, logs
from project_service.runtime import serving
from project_service.runtime.embedded_redis import EmbeddedRedisError
from project_service.runtime.supervisor import ChildFailed, SupervisorError
from project_service.settings import Settings, SettingsError

REFUSALS = (SettingsError, serving.ServeError, EmbeddedRedisError, SupervisorError)


class Commands(click.Group):
    """The commands, with errors told in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted([*super().list_commands(ctx), *_operations().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command; only those of ``operations`` load it."""
        return super().get_command(ctx, cmd_name) or _operations().get_command(ctx, cmd_name)

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command; what the operator can mend is said in one line with exit status 1."""
        try:
            return super().main(*args, **options)
        except ChildFailed as error:  # it has told why
            sys.exit(error.status)
        except REFUSALS as error:
            text: str | None = str(error)
        except OSError as error:
            text = _unusable(error)
        except Exception as error:
            from project_service.cli import operations  # noqa: PLC0415  # as in _operations

            text = operations.told(error)
            if text is None:
                raise
        output.let_go()
        click.echo(f"project-service: {text}", err=True)
        sys.exit(1)


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
    logs.configure(settings.log_level)
    sys.exit(serving.serve(settings, host, port, workers))


def _unusable(error: OSError) -> str:
    """What cannot be read or written: the output, or the file that the error names, if it does."""
    told = output.lost(error)
    if told is not None:
        return told
    if not isinstance(error.filename, str):
        return f"a file cannot be read or written ({error})"
    file, data_dir = Path(error.filename).absolute(), Settings.from_environment().data_dir
    if file.is_relative_to(data_dir) or data_dir.is_relative_to(file):  # or where it would be made
        return f"PROJECT_SERVICE_DATA_DIR: cannot be used ({error})"
    return f"{file} cannot be used ({error.strerror})"


def _operations() -> click.Group:
    with collecting.spared():
        from project_service.cli import operations  # noqa: PLC0415  # with the application, which takes a second

    return operations.main
