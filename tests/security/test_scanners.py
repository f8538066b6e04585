"""bandit, semgrep with the rules of ``semgrep-rules.yaml``, and pip-audit: nothing is found that is not accepted here.

The scanners are installed into an environment of their own, in the versions of ``scanners.txt``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.version import Version

from tests.security.test_sources import REPOSITORY, locked_here

pytestmark = pytest.mark.nightly
HERE = Path(__file__).parent
PLACE = REPOSITORY / ".cache" / "scanners"
RULES = HERE / "semgrep-rules.yaml"
ALONE = {"SEMGREP_SEND_METRICS": "off", "SEMGREP_ENABLE_VERSION_CHECK": "0"}
RULE_ID = re.compile(r"^  - id: (\S+)$", re.MULTILINE)
# file and rule, and why it is no mistake
ACCEPTED = {
    (
        "project_service/kit/texts/markdown.py",
        "B704",
    ): "the output of the renderer, which escapes HTML",
    ("project_service/kit/texts/highlighting.py", "B704"): "the output of Pygments, which escapes HTML",
    ("project_service/runtime/serving.py", "B104"): "compared with the address that the operator chose",
    ("project_service/runtime/web_server.py", "B108"): "gunicorn unlinks its file there at once",
    ("project_service/settings.py", "B108"): "a private directory in /dev/shm",
    ("project_service/kit/db/base.py", "sql-from-text"): "names of columns in the source code",
    ("project_service/kit/db/locking.py", "sql-from-text"): "the name of a table in the source code",
    ("project_service/kit/db/sqlite.py", "sql-from-text"): "pragmas in the source code",
    ("project_service/runtime/backups/tables.py", "sql-from-text"): "the name of a sequence that the database returned",
    ("project_service/kit/logs.py", "predictable-secret"): "ids of requests are no secrets",
}


@pytest.fixture(scope="session")
def scanners():
    """The programs of the scanners; left out where they cannot be installed."""
    wanted = (HERE / "scanners.txt").read_text()
    installed = PLACE / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        install = [PLACE / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q", "install", "-r"]
        for command in ([sys.executable, "-m", "venv", PLACE], [*install, HERE / "scanners.txt"]):
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"the scanners cannot be installed: {done.stderr.strip().splitlines()[-1:]}")
        installed.write_text(wanted)
    return PLACE / "bin"


def run(command, **options):
    done = subprocess.run(
        command, cwd=REPOSITORY, check=False, capture_output=True, text=True, env={**os.environ, **ALONE}, **options
    )
    assert done.stdout.lstrip().startswith(("{", "[")), done.stderr[-2000:]
    return json.loads(done.stdout)


def scan(scanners, *places):
    """What semgrep finds, as pairs of file and rule."""
    options = ["--metrics=off", "--disable-version-check", "--no-git-ignore", "--json", "--quiet", "--config", RULES]
    report = run([scanners / "semgrep", "scan", *options, *places])
    assert report["errors"] == []
    return {(found["path"], found["check_id"].rpartition(".")[2]) for found in report["results"]}


def accepted_of(prefix):
    return {place for place in ACCEPTED if (place[1].startswith("B")) == (prefix == "B")}


def test_bandit_finds_nothing_new(scanners):
    report = run(
        [scanners / "bandit", "-q", "-r", "project_service", "-x", "project_service/migrations/versions"]
        + ["-ll", "-ii", "-f", "json"]  # at least medium severity and confidence; ruff checks the rest of its rules
    )

    assert {(found["filename"], found["test_id"]) for found in report["results"]} == accepted_of("B")
    assert report["errors"] == []


def test_semgrep_finds_nothing_new(scanners):
    found = scan(scanners, "project_service", "templates")

    unknown = {(path, rule) for path, rule in found if "/migrations/" not in path}
    assert unknown == accepted_of("")


def test_every_semgrep_rule_finds_its_example(scanners, tmp_path):
    code, page = HERE / "bad-code.txt", HERE / "bad-page.txt"
    shutil.copy(code, tmp_path / "code.py")
    shutil.copy(page, tmp_path / "page.html")

    found = {rule for _, rule in scan(scanners, tmp_path)}

    assert found == set(RULE_ID.findall(RULES.read_text()))


def test_no_locked_package_has_a_known_vulnerability(scanners):
    report = run(
        [scanners / "pip-audit", "--require-hashes", "--disable-pip", "-r", "requirements.lock"]
        + ["--format", "json", "--progress-spinner", "off"]
    )
    audited = [package for package in report["dependencies"] if "skip_reason" not in package]

    assert [package for package in audited if package["vulns"]] == []
    if not audited:
        check_that_no_fix_is_missing()


def check_that_no_fix_is_missing():
    """Compare with the newest versions, where no advisories can be fetched: no security release of ours is left out.

    A package index has all releases, also where the database of advisories cannot be reached.
    """
    report = run([sys.executable, "-m", "pip", "list", "--outdated", "--format", "json", "--disable-pip-version-check"])
    newest = {package["name"].lower().replace("_", "-"): package["latest_version"] for package in report}
    behind = {
        name: (version, newest[name])
        for name, version in locked_here("requirements.lock").items()
        if name in newest and Version(newest[name]).release[:2] == Version(version).release[:2]
    }

    assert behind == {}, "run make lock ARGS=--upgrade, or read the release notes of these"
