"""Commands for people: ``user``, ``token``, ``namespace``."""

from __future__ import annotations

import click

from project_service.areas.accounts.administration import service as accounts
from project_service.areas.accounts.sign_in import two_factor
from project_service.areas.accounts.tokens import service as token_service
from project_service.cli.parameters import group_named, parse_day, user_named
from project_service.domain.accounts.tokens import SCOPES
from project_service.domain.namespaces import PLANS, change_plan
from project_service.factory import create_app
from project_service.kit.db.session import unit_of_work


@click.group()
def user() -> None:
    """Users."""


@user.command("create")
@click.argument("username")
@click.option("--email", required=True)
@click.option("--name", default=None, help="The username by default.")
@click.option("--admin", is_flag=True, help="Make an administrator.")
@click.password_option(help="Asked for when absent.")
def create_user(username: str, email: str, name: str | None, admin: bool, password: str) -> None:
    """Create a user."""
    with create_app().app_context(), unit_of_work():
        created = accounts.create_user(
            username=username, email=email, name=name or username, password=password, admin=admin
        )
        click.echo(f"created user {created.username} with id {created.id}")


@user.command("disable-two-factor")
@click.argument("username")
def disable_two_factor(username: str) -> None:
    """Switch two-factor authentication off for a user who has lost the second factor."""
    with create_app().app_context(), unit_of_work():
        account = user_named(username)
        if not account.two_factor_enabled:
            raise click.ClickException(f"{username}: {two_factor.NOT_ENABLED}")
        two_factor.reset_for(account)
    click.echo(f"{username}: two-factor authentication is switched off")


@click.group()
def token() -> None:
    """Personal access tokens."""


@token.command("create")
@click.argument("username")
@click.option("--name", required=True)
@click.option("--scopes", required=True, help="Separated by commas.")
@click.option("--expires-at", default=None, help="The day from which the token is expired, YYYY-MM-DD.")
def create_token(username: str, name: str, scopes: str, expires_at: str | None) -> None:
    """Create a token for a user and print it, once."""
    requested = [scope.strip() for scope in scopes.split(",") if scope.strip()]
    unknown = sorted(set(requested) - set(SCOPES))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)} (there are {', '.join(SCOPES)})", param_hint="--scopes")
    day = parse_day(expires_at, "--expires-at")
    with create_app().app_context(), unit_of_work():
        created = token_service.create_token(user_named(username), name=name, scopes=requested, expires_at=day)
        click.echo(created.token)


@click.group("namespace")
def namespace() -> None:
    """Namespaces."""


@namespace.command("set-plan")
@click.argument("path")
@click.argument("plan", type=click.Choice([*PLANS, "none"]))
@click.option("--trial-ends-on", default=None, help="The last day of a trial, YYYY-MM-DD.")
def set_plan(path: str, plan: str, trial_ends_on: str | None) -> None:
    """Give a group a plan, or take it away with "none"."""
    day = parse_day(trial_ends_on, "--trial-ends-on")
    with create_app().app_context(), unit_of_work():
        change_plan(group_named(path), plan=None if plan == "none" else plan, trial_ends_on=day)
    click.echo(f"{path}: {plan}")


COMMANDS = (user, token, namespace)
