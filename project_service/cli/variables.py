"""Commands for CI/CD variables: ``variables export`` and ``variables import``."""

from __future__ import annotations

from pathlib import Path
from typing import IO
from urllib.parse import quote, urlencode

import click
import orjson
import urllib3

from project_service.areas.variables.dotenv import MAX_FILE_BYTES, DotenvProblem, parse
from project_service.areas.variables.effective.expansion import expand
from project_service.areas.variables.effective.precedence import EffectiveVariable, effective_variables, record_reading
from project_service.areas.variables.files import write_files
from project_service.areas.variables.formats import JSON, TEXT_FORMATS, render
from project_service.areas.variables.importing import (
    CREATED,
    REPLACED,
    SKIPPED,
    ImportedVariable,
    ImportRefused,
    import_variables,
)
from project_service.areas.variables.models import ANY_SCOPE
from project_service.areas.variables.schemas import EffectiveVariableSchema
from project_service.areas.variables.service import KEY
from project_service.cli.parameters import project_named
from project_service.factory import create_app
from project_service.kit import exact_json
from project_service.kit.db.session import rollback, unit_of_work
from project_service.kit.http import urls

REMOTE_TIMEOUT_SECONDS = 30


@click.group("variables")
def variables() -> None:
    """CI/CD variables of projects."""


@variables.command("export")
@click.argument("project")
@click.option("--environment", default="", help="The environment of the job; none when absent.")
@click.option("--protected", is_flag=True, help="Also what only protected branches and tags get.")
@click.option("--format", "form", default="dotenv", type=click.Choice([*TEXT_FORMATS, JSON]), show_default=True)
@click.option("--expand", "expanded", is_flag=True, help="Replace $KEY and ${KEY} in values that are not raw.")
@click.option("--files", type=click.Path(file_okay=False, path_type=Path), help="Write variables of type file here.")
@click.option("--hidden", is_flag=True, help="Also the values of hidden variables; not of a remote server.")
@click.option("--server", default=None, help="Ask this server, by the address that browsers use.")
@click.option(
    "--token", envvar="VARIABLES_TOKEN", default=None, help="Access token for --server; better set VARIABLES_TOKEN."
)
def export_variables(
    project: str,
    environment: str,
    protected: bool,
    form: str,
    expanded: bool,
    files: Path | None,
    hidden: bool,
    server: str | None,
    token: str | None,
) -> None:
    """Print what a job of PROJECT (an id or a full path) gets."""
    if server is None:
        exported = _of_this_server(project, environment, protected, hidden)
    elif hidden:
        raise click.UsageError("hidden values are exported on their own server only: leave out --hidden or --server")
    elif not token:
        raise click.UsageError("--server needs an access token, best in the variable VARIABLES_TOKEN")
    else:
        exported = _of_remote_server(server, token, project, environment, protected)
    if files is not None:
        exported = write_files(exported, files)
    if expanded:
        exported = expand(exported)
    for variable in exported:
        if variable.note is not None:
            click.echo(f"{variable.key}: {variable.note}", err=True)
    if form == JSON:
        click.echo(exact_json.dumps([EffectiveVariableSchema.dump_value(variable) for variable in exported]))
    else:
        click.echo(render(exported, form).encode(), nl=False)


@variables.command("import")
@click.argument("project")
@click.argument("file", type=click.File("rb"))
@click.option("--environment", default=ANY_SCOPE, show_default=True, help="The environment scope of the variables.")
@click.option("--protected", is_flag=True, help="Only for protected branches and tags.")
@click.option("--masked", is_flag=True, help="Masked in logs of jobs.")
@click.option("--hidden", "masked_and_hidden", is_flag=True, help="Masked, and never shown again.")
@click.option("--raw", is_flag=True, help="$ has no meaning in the values.")
@click.option("--replace", is_flag=True, help="Give existing variables the new values; else they are skipped.")
@click.option("--dry-run", is_flag=True, help="Check everything and change nothing.")
def import_file(
    project: str, file: IO[bytes], environment: str, replace: bool, dry_run: bool, **attributes: bool
) -> None:
    """Create variables of PROJECT from a dotenv FILE, or - for standard input: all of them or none."""
    try:
        entries = parse(file.read(MAX_FILE_BYTES + 1))
        with create_app().app_context(), unit_of_work():
            done = import_variables(
                project_named(project), entries, environment_scope=environment, replace=replace, **attributes
            )
            if dry_run:
                rollback()
    except DotenvProblem as error:
        raise click.ClickException(f"nothing was imported: {error}") from error
    except ImportRefused as error:
        raise click.ClickException("\n".join(["nothing was imported", *error.problems])) from error
    _report(done, dry_run=dry_run)


def _report(done: list[ImportedVariable], *, dry_run: bool) -> None:
    for change in done:
        click.echo(f"{'would be ' if dry_run else ''}{change.action}: {change.key}")
    counts = {action: sum(change.action == action for change in done) for action in (CREATED, REPLACED, SKIPPED)}
    summary = ", ".join(f"{count} {action}" for action, count in counts.items() if count) or "nothing to import"
    click.echo(f"{summary}{' (dry run: nothing was changed)' if dry_run else ''}")


def _of_this_server(path: str, environment: str, protected: bool, hidden: bool) -> list[EffectiveVariable]:
    with create_app().app_context(), unit_of_work():
        project = project_named(path)
        variables = effective_variables(project, environment, protected=protected, with_hidden=hidden)
        record_reading(project, variables, "export")
    return variables


def _of_remote_server(
    server: str, token: str, project: str, environment: str, protected: bool
) -> list[EffectiveVariable]:
    query = urlencode({"environment": environment, "protected": str(protected).lower()})
    url = f"{server.rstrip('/')}{urls.API_PREFIX}/projects/{quote(project, safe='')}/variables/effective?{query}"
    if not url.startswith(("http://", "https://")):
        raise click.BadParameter("has to begin with https:// or http://", param_hint="--server")
    try:
        # redirects are not followed: they would send the token to another server
        answer = urllib3.request(
            "GET", url, headers={"PRIVATE-TOKEN": token}, redirect=False, timeout=REMOTE_TIMEOUT_SECONDS
        )
        rows = orjson.loads(answer.data)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise click.ClickException(f"{server} does not answer as expected ({type(error).__name__})") from error
    if answer.status == 404:
        raise click.ClickException(f"{server} has no project {project}, or the token may not read its variables")
    if answer.status != 200:
        text = str(rows.get("message", rows.get("error", ""))) if isinstance(rows, dict) else ""
        raise click.ClickException(f"{server} refuses: {answer.status} {text.removeprefix(str(answer.status)).strip()}")
    try:
        variables = [EffectiveVariable(**row) for row in rows]
        # keys are names of files and parts of shell scripts: what no variable can be called is not written there
        if not all(KEY.fullmatch(variable.key) and isinstance(variable.value, str | None) for variable in variables):
            raise ValueError
        return variables
    except (TypeError, ValueError) as error:
        raise click.ClickException(f"{server} is no Project Service that knows effective variables") from error


COMMANDS = (variables,)
