"""``report check``: judge the report of a scanner, for the exit status of a job in a pipeline.

A server is asked over HTTP, without the application; else the instance of this machine judges. Exit status 0: passed,
1: failed, 2: it could not be judged (scanner formats reference, section 14).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import click
import orjson

from project_service.areas.vulnerabilities.levels import THRESHOLDS
from project_service.cli import error_texts, lazy_imports
from project_service.cli.reports import report_results, report_uploads
from project_service.cli.reports.report_uploads import CannotJudge

FAILED_STATUS, NOT_JUDGED_STATUS = 1, 2
FAILED = "failed"


@click.command("check")
@click.argument("file", type=click.File("rb"))
@click.option("--project", required=True, help="Id or full path.")
@click.option("--fail-on", default="high", show_default=True, type=click.Choice(THRESHOLDS), help="This and worse.")
@click.option("--fail-on-unknown", is_flag=True, help="Unknown severities fail, too.")
@click.option("--report-type", default=None, help="The report type; detected from the content if absent.")
@click.option("--branch", default=None, help="The branch; the project's default branch when absent.")
@click.option("--commit", default=None, help="The commit.")
@click.option("--category", default=None, help="Distinguishes several runs of one scanner.")
@click.option("--source-root", default=None, help="Absolute path that is cut off from paths of files.")
@click.option("--store", is_flag=True, help="Store the report, too; else nothing is changed.")
@click.option(
    "--format", "result_format", default="text", show_default=True, type=click.Choice(list(report_results.FORMATS))
)
@click.option("--url", envvar="PROJECT_SERVICE_URL", default=None, help="The server; else this machine's instance.")
@click.option("--token", envvar="PROJECT_SERVICE_TOKEN", default=None, help="Access token; best in the variable.")
@click.pass_context
def check_report(
    ctx: click.Context,
    /,
    file: IO[bytes],
    project: str,
    fail_on: str,
    fail_on_unknown: bool,
    report_type: str | None,
    store: bool,
    result_format: str,
    url: str | None,
    token: str | None,
    **options: str | None,
) -> None:
    """Judge what is new in the report FILE, or - for standard input, against the default branch.

    Exit status: 0 passed, 1 failed, 2 could not be judged.
    """
    gate = {"fail_on": fail_on, "fail_on_unknown": fail_on_unknown, "list_new": result_format == report_results.JUNIT}
    with _exit_status_of_errors():
        if url is None:
            answer = _judge_here(project, file, report_type, gate=gate, dry_run=not store, **options)
        else:
            fields = {**options, **gate, "report_type": report_type, "dry_run": not store}
            answer = report_uploads.upload(url, token, project, file, fields)
    click.echo(report_results.FORMATS[result_format](answer), nl=False)
    ctx.exit(FAILED_STATUS if answer["gate"]["status"] == FAILED else 0)


def _judge_here(
    project: str, file: IO[bytes], report_type: str | None, *, branch: str | None, commit: str | None, **options: Any
) -> dict[str, Any]:
    answer = lazy_imports.report_files().judge_here(project, file, report_type, ref=branch, sha=commit, **options)
    plain: dict[str, Any] = orjson.loads(orjson.dumps(answer))
    return plain


@contextmanager
def _exit_status_of_errors() -> Iterator[None]:
    """Report expected errors with the exit status of a report that was not judged."""
    try:
        yield
    except (CannotJudge, click.UsageError):
        raise
    except click.ClickException as error:
        raise CannotJudge(error.format_message()) from error
    except Exception as error:
        text = error_texts.text_of(error)
        if text is None:
            raise
        raise CannotJudge(text) from error
