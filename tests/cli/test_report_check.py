"""``project-service report check`` and ``report export``: exit status, text, JSON and JUnit, here and on a server."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from werkzeug.serving import make_server
from werkzeug.wrappers import Response

from project_service.cli import main
from project_service.cli.reports import report_uploads
from tests.areas.vulnerabilities.tracking.test_tracking import result, sarif
from tests.cli.test_report_command import stored
from tests.support import sample_data
from tests.support.sample_data import DEV
from tests.support.security_reports import send

PASSED, FAILED, NOT_JUDGED = 0, 1, 2
HIGH_RULES = "AB"


def document(rules):
    return sarif(*(result(rule, level="error" if rule in HIGH_RULES else "note") for rule in rules))


@pytest.fixture
def check(environment, tmp_path):
    """Runs the command on a report of rules."""

    def run(rules, *words, project="shop/till", **variables):
        file = tmp_path / "scan.sarif"
        file.write_bytes(rules if isinstance(rules, bytes) else json.dumps(document(rules)).encode())
        words = ["report", "check", str(file), "--project", project, *words]
        return CliRunner().invoke(main.main, words, env=environment | variables)

    return run


def test_new_findings_fail_and_stored_ones_are_known(check):
    runs = [
        check("AC"),
        check("AC", "--store"),
        check("AC"),
        check("ABC", "--branch", "feature"),
        check("C", "--fail-on", "low"),
    ]

    assert [one.exit_code for one in runs] == [FAILED, FAILED, PASSED, FAILED, PASSED]
    assert runs[2].stdout.splitlines() == [
        "scan (sast): 2 entries, 2 findings, 0 the same as others, 0 left out",
        "passed: No new findings of high or above since main.",
    ]
    assert runs[3].stdout.splitlines()[1:] == [
        "high     a.py:3  Found by B.",
        "failed: 1 new finding of high or above since main.",
    ]


def test_a_check_stores_nothing_unless_it_is_told_to(check, environment):
    check("A")
    before = stored(environment)
    check("A", "--store", "--branch", "feature", "--commit", "ab" * 20)

    assert (before, stored(environment)) == (([], 0), ([("feature", "ab" * 20)], 1))


def test_json_is_the_answer_and_junit_has_a_case_for_each_new_finding(check):
    answer = json.loads(check("ABC", "--format", "json").stdout)
    suites = ElementTree.fromstring(check("ABC", "--format", "junit").stdout)
    clean = ElementTree.fromstring(check("", "--format", "junit").stdout)

    assert (answer["gate"]["status"], answer["gate"]["failing"], answer["pipeline_id"]) == ("failed", 2, None)
    (suite,) = suites
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("Scan", "3", "2")
    cases = [(case.get("name"), case.get("classname"), case.find("failure") is not None) for case in suite]
    assert cases == [(f"Found by {rule}.", "a.py:3", rule != "C") for rule in "ABC"]
    assert [case.get("name") for case in clean.iter("testcase")] == ["no new findings"]


@pytest.mark.parametrize(
    ("report", "words", "options", "told"),
    [
        (b"{", (), {}, "project-service: JSON parsing failed: "),
        (b'{"version": "2.0.0", "runs": []}', (), {}, "/version SARIF 2.0.0 is not supported"),
        ("A", (), {"project": "shop/none"}, "project-service: there is no project shop/none"),
        ("A", ("--commit", "x"), {}, "project-service: sha is invalid"),
    ],
    ids=["json", "version", "project", "commit"],
)
def test_what_cannot_be_judged_has_status_2(report, words, options, told, check):
    done = check(report, *words, **options)

    assert (done.exit_code, told in done.stderr) == (NOT_JUDGED, True), done.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--url", "http://127.0.0.1:9", "--token", "t"), "cannot be reached"),
        (("--url", "ftp://x", "--token", "t"), "has to begin with https://"),
        (("--url", "http://127.0.0.1:9"), "needs an access token"),
        (("--fail-on", "awful"), "awful"),
    ],
    ids=["server", "scheme", "token", "severity"],
)
def test_wrong_use_and_a_server_that_is_away_have_status_2(words, told):
    done = CliRunner().invoke(main.main, ["report", "check", "-", "--project", "a/b", *words], input=b"{}", env={})

    assert (done.exit_code, told in done.stderr) == (NOT_JUDGED, True), done.output


@contextmanager
def running(application):
    """A server for a moment; gives its address."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def server(app):
    with running(app) as url:
        yield url


def test_a_server_judges_without_the_application(server, people, project, tmp_path):
    token = sample_data.make_token(people[DEV])
    file = tmp_path / "scan.sarif"
    file.write_text(json.dumps(document("A")))
    program = (
        "import sys; from project_service.cli.main import main\ntry: main()\nfinally: print('flask' in sys.modules)"
    )

    def run(path, *words, secret=token):
        command = [
            sys.executable,
            "-c",
            program,
            "report",
            "check",
            str(file),
            "--project",
            path,
            "--url",
            server,
            *words,
        ]
        done = subprocess.run(
            command,
            env={"PROJECT_SERVICE_TOKEN": secret, "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr

    status, lines, _ = run(project.full_path, "--fail-on-unknown", "--branch", "feature")

    assert (status, lines[-1]) == (FAILED, "False")
    assert lines[-2].startswith("failed: 1 new finding of high or above or unknown on feature; main has no report")
    assert run("acme/none")[0] == run(project.full_path, secret="wrong")[0] == NOT_JUDGED
    assert "404 Project Not Found" in run("acme/none")[2]


@pytest.mark.parametrize(
    ("refusals", "waits", "told"),
    [
        ([(429, "7"), (503, None)], [7, 4], "failed: 1 new finding"),
        ([(503, "3600")], [], "refuses: 503"),
        ([(503, None)] * 9, [2, 4, 8, 16], "refuses: 503"),
    ],
    ids=["busy", "long", "always"],
)
def test_a_busy_server_is_asked_again(refusals, waits, told, app, people, project, tmp_path, monkeypatch):
    (tmp_path / "scan.sarif").write_text(json.dumps(document("A")))
    waited, left = [], list(refusals)
    monkeypatch.setattr(report_uploads, "time", SimpleNamespace(sleep=waited.append))

    def busy(environ, start_response):
        if not left:
            return app(environ, start_response)
        status, seconds = left.pop(0)
        return Response(status=status, headers={"Retry-After": seconds} if seconds else {})(environ, start_response)

    with running(busy) as url:
        words = ["--url", url, "--token", sample_data.make_token(people[DEV])]
        words = ["report", "check", str(tmp_path / "scan.sarif"), "--project", project.full_path, *words]
        done = CliRunner().invoke(main.main, words, env={})

    assert (waited, told in done.output) == (waits, True), done.output


@pytest.mark.parametrize("target", ["file", "standard output"])
def test_findings_are_exported_to_a_file(target, check, environment, tmp_path):
    check("AB", "--store")
    file = tmp_path / "findings.csv"
    words = ["report", "export", "--project", "shop/till", "--format", "csv", "--severity", "high"]
    words += ["--output", str(file)] if target == "file" else []

    done = CliRunner().invoke(main.main, words, env=environment)

    assert done.exit_code == 0, done.output
    content = file.read_text() if target == "file" else done.stdout
    assert [line.split(",")[5] for line in content.splitlines()] == ["Vulnerability", "Found by A.", "Found by B."]


def test_findings_of_a_server_are_exported(server, people, project, as_, tmp_path):
    file = tmp_path / "findings.csv"
    send(as_(DEV), project, document("AB"), "")

    def export(path):
        words = ["report", "export", "--project", path, "--format", "csv", "--severity", "high", "--output", str(file)]
        words += ["--url", server, "--token", sample_data.make_token(people[DEV])]
        return CliRunner().invoke(main.main, words, env={})

    refused = export("acme/none")

    assert (refused.exit_code, "404 Project Not Found" in refused.output, file.exists()) == (1, True, False)
    assert export(project.full_path).exit_code == 0
    assert [line.split(",")[5] for line in file.read_text().splitlines()] == [
        "Vulnerability",
        "Found by A.",
        "Found by B.",
    ]
