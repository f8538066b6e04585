"""Commands for the whole instance: ``setting`` and ``feature``."""

from __future__ import annotations

import click

from project_service.areas.instance import service as instance_service
from project_service.domain import instance_settings
from project_service.factory import create_app
from project_service.kit.db.session import unit_of_work


@click.group()
def setting() -> None:
    """Application settings."""


@setting.command("get")
@click.argument("name", type=click.Choice(sorted(instance_settings.SETTINGS)), required=False)
def get_setting(name: str | None) -> None:
    """Print one setting, or all."""
    with create_app().app_context(), unit_of_work(write=False):
        values = instance_settings.all_settings()
    for setting_name in [name] if name else sorted(values):
        click.echo(f"{setting_name} = {values[setting_name]!r}")


@setting.command("set")
@click.argument("name", type=click.Choice(sorted(instance_settings.SETTINGS)))
@click.argument("value")
def set_setting(name: str, value: str) -> None:
    """Set one setting."""
    with create_app().app_context(), unit_of_work():
        values = instance_service.change_settings_from_text({name: value})
    click.echo(f"{name} = {values[name]!r}")


@click.group()
def feature() -> None:
    """Feature flags."""


@feature.command("list")
def list_features() -> None:
    """List the features that have been set."""
    with create_app().app_context(), unit_of_work(write=False):
        for set_feature in instance_service.features():
            click.echo(f"{set_feature['name']}: {set_feature['state']}")


@feature.command("enable")
@click.argument("name")
def enable_feature(name: str) -> None:
    """Switch a feature on for all."""
    with create_app().app_context(), unit_of_work():
        instance_service.set_feature(name, value="true")
    click.echo(f"{name}: on")


@feature.command("disable")
@click.argument("name")
def disable_feature(name: str) -> None:
    """Switch a feature off for all."""
    with create_app().app_context(), unit_of_work():
        instance_service.set_feature(name, value="false")
    click.echo(f"{name}: off")


COMMANDS = (setting, feature)
