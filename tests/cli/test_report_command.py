"""``project-service report ingest``."""

from __future__ import annotations

import os
import subprocess
import sys

import orjson
import pytest
from click.testing import CliRunner

from project_service.areas.vulnerabilities.models import Finding, Pipeline
from project_service.cli import main
from project_service.factory import create_app
from project_service.kit.db.session import db
from project_service.settings import Settings
from tests.support.security_reports import report, vulnerability


@pytest.fixture
def ingest(environment, tmp_path):
    """Runs the command on a report."""

    def run(document, *words, project="shop/till", kind="sast"):
        file = tmp_path / "report.json"
        file.write_bytes(document if isinstance(document, bytes) else orjson.dumps(document))
        arguments = ["report", "ingest", project, str(file), "--report-type", kind, *words]
        return CliRunner().invoke(main.main, arguments, env=environment)

    return run


def stored(environment):
    with create_app(Settings.from_environment(environment)).app_context():
        rows = [(one.ref, one.sha) for one in db.session.query(Pipeline)], db.session.query(Finding).count()
        db.session.remove()
        db.engine.dispose()
    return rows


def test_the_format_is_detected_and_skipped_entries_are_reported(environment, tmp_path):
    file = tmp_path / "scan.sarif"
    results = [{"ruleId": "A", "message": {"text": "a"}}, {"ruleId": "B", "message": {"text": "b"}, "kind": "pass"}]
    run = {"tool": {"driver": {"name": "Scan"}}, "results": results}
    file.write_bytes(orjson.dumps({"version": "2.1.0", "runs": [run]}))

    done = CliRunner().invoke(main.main, ["report", "ingest", "shop/till", str(file)], env=environment)

    assert (done.exit_code, done.stdout) == (0, "pipeline 1: 2 found, 1 merged, 0 dropped, 1 left out\n")


def test_a_report_is_ingested(ingest, environment):
    document = report(vulnerability("a"), vulnerability("a"))

    responses = [ingest(document, "--ref", "main", "--sha", "ab" * 20), ingest(document, "--pipeline-id", "1")]

    assert [(one.exit_code, one.output) for one in responses] == [
        (0, "pipeline 1: 2 found, 1 merged, 1 dropped\n"),
        (0, "pipeline 1: 2 found, 0 merged, 2 dropped\n"),
    ]
    assert stored(environment) == ([("main", "ab" * 20)], 4)


@pytest.mark.parametrize(
    ("document", "words", "options", "told"),
    [
        (b"{", (), {}, "project-service: JSON parsing failed: "),
        (
            {"vulnerabilities": [{"name": "A", "severity": 1}]},
            *((), {}, "sast security report parsing failed: /vulnerabilities/0/severity must be a string or null"),
        ),
        ({}, (), {"project": "shop/none"}, "Error: there is no project shop/none"),
        ({}, ("--pipeline-id", "77"), {}, "Error: shop/till has no pipeline 77"),
        ({}, ("--sha", "x"), {}, "sha"),
    ],
)
def test_refusals_are_reported_in_one_line(document, words, options, told, ingest, environment):
    response = ingest(document, *words, **options)

    assert (response.exit_code, told in response.output, len(response.output.splitlines())) == (1, True, 1)
    assert stored(environment) == ([], 0)


def test_an_unknown_type_is_a_usage_error(ingest):
    assert ingest({}, kind="lint").exit_code == 2


def test_a_report_is_read_from_a_pipe(environment, tmp_path):
    """Nothing that comes through one can be read twice."""
    command = [sys.executable, "-m", "project_service", "report", "ingest", "shop/till", "-", "--report-type", "sast"]

    done = subprocess.run(
        command,
        input=orjson.dumps(report(vulnerability("a"))),
        env=os.environ | environment,
        capture_output=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"1 found, 1 merged, 0 dropped\n")


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["--pipeline-id", "9" * 20], 2, "is not in the range"),
        (["--sha", "main"], 1, "project-service: sha is invalid"),
    ],
)
def test_errors_are_reported_in_one_line(words, status, told, ingest):
    done = ingest(report(vulnerability("a")), *words)

    assert (done.exit_code, told in done.output) == (status, True), done.output
