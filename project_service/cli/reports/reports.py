"""Commands for reports of security scanners: ``report``."""

from __future__ import annotations

import click

from project_service.cli import lazy_imports
from project_service.cli.reports import report_checks


class ReportCommands(click.Group):
    """The group: imports the application only for the commands that need it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted([*super().list_commands(ctx), *_application_commands().list_commands(ctx)])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command."""
        return super().get_command(ctx, cmd_name) or _application_commands().get_command(ctx, cmd_name)


def _application_commands() -> click.Group:
    commands: click.Group = lazy_imports.report_files().commands
    return commands


@click.group("report", cls=ReportCommands)
def security_report() -> None:
    """Reports of security scanners."""


security_report.add_command(report_checks.check_report)
