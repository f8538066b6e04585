"""Commands for reports of security scanners: ``report``."""

from __future__ import annotations

from typing import IO, Any

import click

from project_service.areas.vulnerabilities.ingestion import ingestion
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.cli.parameters import project_named, seekable_stream
from project_service.factory import create_app
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import LARGEST_INTEGER


@click.group("report")
def security_report() -> None:
    """Reports of security scanners."""


@security_report.command("ingest")
@click.argument("project")
@click.argument("file", type=click.File("rb"))
@click.option(
    "--report-type",
    default=None,
    type=click.Choice(list(REPORT_TYPES)),
    help="The report type; detected from the content if absent.",
)
@click.option("--ref", default=None, help="The branch; the project's default branch when absent.")
@click.option("--sha", default=None, help="The commit.")
@click.option(
    "--pipeline-id",
    default=None,
    type=click.IntRange(1, LARGEST_INTEGER),
    help="Add the report to an existing pipeline.",
)
@click.option("--category", default=None, help="Distinguishes several runs of one scanner.")
@click.option("--source-root", default=None, help="Absolute path that is cut off from paths of files.")
def ingest_report(project: str, file: IO[bytes], report_type: str | None, **options: Any) -> None:
    """Ingest a report, whose format is found out. PROJECT is an id or a full path; FILE may be - for standard input."""
    with create_app().app_context(), seekable_stream(file) as report:
        target = project_named(project)
        try:
            result = ingestion.ingest(target, report, report_type, **options)
        except NotFound as error:
            raise click.ClickException(f"{project} has no pipeline {options['pipeline_id']}") from error
    others = f", {result.left['total']} left out" if result.left["total"] else ""
    click.echo(
        f"pipeline {result.pipeline_id}: {result.found} found, {result.merged} merged, {result.dropped} dropped{others}"
    )


COMMANDS = (security_report,)
