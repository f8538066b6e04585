"""Reports of a real scanner are accepted as it writes them: a stored one, and nightly one of a scan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
STORED_REPORT = Path(__file__).with_name("semgrep-report.json")
PLACE = REPOSITORY / ".cache" / "semgrep"
RULES = Path(__file__).parent / "rules.yaml"
SCANNED = ("project_service/runtime", "project_service/domain/repositories/git.py")
# without telemetry and version checks
ALONE = {"SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"}


@pytest.fixture(scope="session")
def semgrep():
    """The scanner in a virtual environment; the test is skipped if it cannot be installed."""
    program = PLACE / "bin" / "semgrep"
    if not program.exists():
        install = [PLACE / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q", "install", "semgrep"]
        for command in ([sys.executable, "-m", "venv", PLACE], install):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"semgrep cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
    return program


@pytest.fixture
def new_report(semgrep, tmp_path):
    """A new report of the scanner about a part of this program, by the rules of ``rules.yaml``."""
    written = tmp_path / "gl-sast-report.json"
    words = [
        "scan",
        "--metrics=off",
        "--disable-version-check",
        "--gitlab-sast",
        "--no-git-ignore",
        "--jobs",
        "1",
        "--timeout",
        "0",
    ]
    done = subprocess.run(
        [semgrep, *words, "--config", RULES, "--output", written, *SCANNED],
        cwd=REPOSITORY,
        env={**os.environ, **ALONE, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return written.read_bytes()


def test_a_stored_report_of_a_real_scanner_is_accepted_and_listed(gl, project):
    check_report(STORED_REPORT.read_bytes(), gl, project)


@pytest.mark.nightly
def test_a_new_report_of_a_real_scanner_is_accepted_and_listed(new_report, gl, project):
    check_report(new_report, gl, project)


def check_report(report, gl, project):
    entries = json.loads(report)["vulnerabilities"]
    summary = gl.http_post(
        f"/projects/{project.id}/security_reports",
        post_data={"report_type": "sast"},
        files={"file": ("gl-sast-report.json", report, "application/json")},
    )

    listed = gl.http_list(f"/projects/{project.id}/vulnerability_findings", get_all=True)

    assert len(entries) > 1
    assert (summary["found"], summary["merged"]) == (len(entries), len(entries))
    places = {(one["location"]["file"], one["location"]["start_line"]) for one in entries}
    assert {(one["location"]["file"], one["location"]["start_line"]) for one in listed} == places
    assert {one["scanner"]["name"] for one in listed} == {"Semgrep"}
    assert {one["severity"] for one in listed} <= {"high", "medium"}
    assert len({one["uuid"] for one in listed}) == len(entries)
    assert all(one["blob_path"].startswith(f"/{project.path_with_namespace}/-/blob/main/") for one in listed)
