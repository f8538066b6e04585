"""Reports that scanners really wrote are ingested unchanged: ruff and bandit always, semgrep and ESLint nightly."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.test_semgrep import ALONE, semgrep  # noqa: F401  # the same scanner
from tests.support import npm

ESLINT_PACKAGES = ("eslint@8.57.1", "@microsoft/eslint-formatter-sarif@3.1.0", "eslint-plugin-security@1.7.1")
SOURCE = """import hashlib
import pickle
import subprocess

def load(raw):
    assert raw
    return pickle.loads(raw)

def run(name):
    subprocess.run("ls " + name, shell=True)  # nosec B607
    return hashlib.md5(name.encode()).hexdigest()
"""
SCRIPT = """const child = require("child_process");
module.exports = (name) => {
  eval(name); // eslint-disable-line no-eval -- for operators only
  child.exec("ls " + name);
};
"""
RULES = """rules:
  - id: shell
    languages: [python]
    severity: ERROR
    message: A shell runs what `$X` says.
    pattern: subprocess.run($X, ..., shell=True, ...)
    metadata: {cwe: ["CWE-78: OS Command Injection"], confidence: HIGH}
"""
ESLINT_RULES = {
    "root": True,
    "env": {"node": True},
    "parserOptions": {"ecmaVersion": 2020},
    "plugins": ["security"],
    "extends": ["plugin:security/recommended"],
    "rules": {"no-eval": "error"},
}


@pytest.fixture
def sources(tmp_path):
    """A folder with source code to scan."""
    folder = tmp_path / "src" / "häuser"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(SOURCE)
    (folder / "app.js").write_text(SCRIPT)
    (tmp_path / "rules.yaml").write_text(RULES)
    return tmp_path


def run(*command, cwd, **environment):
    """Run a scanner, whose exit status may report findings."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=os.environ | environment, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr.decode()
    return done.stdout


def upload(gl, project, raw, **fields):
    summary = gl.http_post(
        f"/projects/{project.id}/security_reports",
        post_data={"branch": "main", **fields},
        files={"file": ("whatever", raw, "application/octet-stream")},
    )
    assert summary["found"] == summary["merged"] + summary["dropped"] + summary["left"]["total"]
    listed = gl.http_list(f"/projects/{project.id}/vulnerability_findings", get_all=True, query_data={"scope": "all"})
    assert len(listed) == summary["merged"] > 0
    assert {one["location"]["file"].rpartition("/")[0] for one in listed} == {"src/häuser"}
    return summary, listed


def test_a_sarif_report_of_ruff_is_ingested(sources, gl, project):
    command = ("ruff", "check", "--isolated", "--select", "S", "--output-format", "sarif")
    raw = run(sys.executable, "-m", *command, "src", cwd=sources)

    summary, listed = upload(gl, project, raw, source_root=str(sources))

    assert (summary["format"], summary["reports"][0]["scanner"]["name"], summary["warnings"]) == ("sarif", "ruff", [])
    assert summary["found"] == len(json.loads(raw)["runs"][0]["results"])
    assert {"S101", "S301", "S324", "S602"} <= {one["identifiers"][0]["external_id"] for one in listed}


def test_both_formats_of_bandit_give_the_same_findings(sources, gl, project):
    command = (sys.executable, "-m", "bandit", "-q", "-r", "src", "-f")
    summary, of_json = upload(gl, project, run(*command, "json", cwd=sources))
    sarif_summary, of_sarif = upload(gl, project, run(*command, "sarif", cwd=sources))

    assert (summary["format"], sarif_summary["format"]) == ("bandit", "sarif")
    assert [one["uuid"] for one in of_json] == [one["uuid"] for one in of_sarif]
    assert Counter(one["severity"] for one in of_json) == Counter(one["severity"] for one in of_sarif)
    shell = next(one for one in of_json if one["identifiers"][0]["external_id"] == "B602")
    assert (shell["severity"], shell["location"]["start_line"]) == ("high", 10)


@pytest.mark.nightly
def test_a_report_of_semgrep_is_ingested(semgrep, sources, gl, project):  # noqa: F811  # the fixture
    command = ("scan", "--metrics=off", "--disable-version-check", "--no-git-ignore", "--sarif", "--quiet")
    raw = run(semgrep, *command, "--config", "rules.yaml", "src", cwd=sources, HOME=str(sources), **ALONE)

    summary, listed = upload(gl, project, raw)

    assert (summary["reports"][0]["scanner"]["external_id"], len(listed)) == ("semgrep", 1)
    assert (listed[0]["severity"], listed[0]["confidence"], listed[0]["location"]["start_line"]) == ("high", "high", 10)
    assert [one["external_id"] for one in listed[0]["identifiers"]][1:] == ["78"]
    assert listed[0]["name"].startswith("A shell runs what")


@pytest.fixture(scope="session")
def eslint():
    """The folder with ESLint and its formatter for SARIF."""
    return npm.installed("eslint-8.57.1", *ESLINT_PACKAGES)


@pytest.mark.nightly
def test_a_sarif_report_of_eslint_is_ingested(eslint, sources, gl, project):
    (sources / ".eslintrc.json").write_text(json.dumps(ESLINT_RULES))
    formatter = Path(eslint, "@microsoft", "eslint-formatter-sarif", "sarif.js")
    plugins = ("--resolve-plugins-relative-to", eslint.parent)
    raw = run(
        eslint / ".bin" / "eslint",
        "-f",
        formatter,
        *plugins,
        "src",
        cwd=sources,
        SARIF_ESLINT_IGNORE_SUPPRESSED="",
        ESLINT_USE_FLAT_CONFIG="false",
    )

    summary, listed = upload(gl, project, raw, source_root=str(sources))

    assert (summary["reports"][0]["scanner"]["name"], summary["warnings"]) == ("ESLint", [])
    states = {one["identifiers"][0]["external_id"]: one["state"] for one in listed}
    assert (states["no-eval"], states["security/detect-child-process"]) == ("dismissed", "detected")
    assert summary["suppressed"] == 1
