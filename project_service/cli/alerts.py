"""Commands for receivers of alerts: ``integration``."""

from __future__ import annotations

from urllib.parse import urlsplit

import click

from project_service.areas.alerts.integrations import service
from project_service.areas.alerts.models import HTTP, PROMETHEUS
from project_service.cli.parameters import project_named
from project_service.factory import create_app
from project_service.kit.db.session import unit_of_work


@click.group("integration")
def integration() -> None:
    """Integrations that receive alerts."""


@integration.command("create")
@click.argument("project")
@click.argument("name")
@click.option("--type", "kind", default=HTTP, type=click.Choice([HTTP, PROMETHEUS]), show_default=True)
def create_integration(project: str, name: str, kind: str) -> None:
    """Create an integration of PROJECT, and print address and key for the monitoring tool.

    Without PROJECT_SERVICE_EXTERNAL_URL the address is a path.
    """
    app = create_app()
    with app.app_context(), unit_of_work():
        created = service.create_integration(project_named(project), name=name, type=kind, active=True)
        address = service.address_of(created) or ""
        click.echo(f"address: {address if app.config['EXTERNAL_URL'] else urlsplit(address).path}")
        click.echo(f"key: {created.token}")


COMMANDS = (integration,)
