"""Commands for reports of scanners that need the application: ``report ingest`` and ``report export``."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import click

from project_service.areas.vulnerabilities.exports.files import FORMATS, export_chunks
from project_service.areas.vulnerabilities.findings.schemas import IngestedSchema
from project_service.areas.vulnerabilities.ingestion import ingestion
from project_service.areas.vulnerabilities.levels import SEVERITIES
from project_service.areas.vulnerabilities.report_types import REPORT_TYPES
from project_service.areas.vulnerabilities.tracking.queries import STATES
from project_service.cli.parameters import WRITABLE_FILE, project_named, seekable_stream, writable_target
from project_service.cli.reports import report_uploads
from project_service.factory import create_app
from project_service.kit.http.errors import NotFound
from project_service.kit.http.fields import LARGEST_INTEGER


@click.group()
def commands() -> None:
    """The commands of ``report`` besides ``check``."""


@commands.command("ingest")
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


@commands.command("export")
@click.option("--project", required=True, help="Id or full path.")
@click.option("--format", "export_format", required=True, type=click.Choice(list(FORMATS)))
@click.option("--branch", default=None, help="The project's default branch when absent.")
@click.option("--state", multiple=True, type=click.Choice(STATES), help="Detected and dismissed ones when absent.")
@click.option("--severity", multiple=True, type=click.Choice(list(SEVERITIES)))
@click.option("--report-type", multiple=True, type=click.Choice(list(REPORT_TYPES)))
@click.option("--scanner", default=None, help="The id of the scanner.")
@click.option("--category", default=None)
@click.option("--output", type=WRITABLE_FILE, default="-", help="The file; standard output when absent.")
@click.option("--url", envvar="PROJECT_SERVICE_URL", default=None, help="The server; else this machine's instance.")
@click.option("--token", envvar="PROJECT_SERVICE_TOKEN", default=None, help="Access token; best in the variable.")
def export_findings(
    project: str,
    export_format: str,
    branch: str | None,
    output: Path,
    url: str | None,
    token: str | None,
    **filters: Any,
) -> None:
    """Write the tracked findings of a branch to a file: CSV, SARIF, or CycloneDX with analyses (VEX)."""
    if url is not None:
        lists = {name: value if isinstance(value, str) else ",".join(value) for name, value in filters.items() if value}
        parameters = {"format": export_format, "branch": branch, **lists}
        with writable_target(output) as target:
            _write(report_uploads.download(url, token, project, parameters), target)
        return
    with create_app().app_context(), writable_target(output) as target:
        _write(export_chunks(project_named(project), export_format, branch, filters), target)


def _write(chunks: Iterable[bytes], target: Path | IO[bytes]) -> None:
    iterator = iter(chunks)
    first = next(iterator, b"")  # a refused export leaves no file
    if not isinstance(target, Path):
        target.write(first)
        target.writelines(iterator)
        return
    with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(first)
        file.writelines(iterator)


def judge_here(
    project: str, file: IO[bytes], report_type: str | None, *, gate: dict[str, Any], **options: Any
) -> dict[str, Any]:
    """Return the answer of an upload to this machine's instance, with the judgement of its gate."""
    with create_app().app_context(), seekable_stream(file) as report:
        ingested = ingestion.ingest(project_named(project), report, report_type, gate_options=gate, **options)
        answer: dict[str, Any] = IngestedSchema.dump_value(ingested)
    return answer
