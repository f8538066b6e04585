"""The quick starts for scanners, run unchanged against a started service, in a checkout with a new finding."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
import yaml

from tests.contract.service import git

REPOSITORY = Path(__file__).parents[2]
QUICK_STARTS = (REPOSITORY / "docs/scanner-quick-starts.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MESSAGE = "1 new finding of high or above since main."
CLEAN, HARMFUL = "print(1)\n", "import subprocess\nsubprocess.run(input(), shell=True)\n"

pytestmark = pytest.mark.skipif(which("jq") is None, reason="there is no jq")


class Checkout:
    """A clone with the branches ``main`` and ``feature``, and what the steps of a job are run with."""

    def __init__(self, folder: Path, project: Any, url: str, token: str) -> None:
        self.folder, self.url, self.path = folder, url, project.path_with_namespace
        self.token = token
        git(folder, "init", "--quiet", "--initial-branch", "main")
        (folder / "src").mkdir()
        self.commit(CLEAN)

    def commit(self, source: str) -> str:
        (self.folder / "src" / "shop.py").write_text(source)
        git(self.folder, "add", "src")
        git(
            self.folder,
            "-c",
            "user.name=A",
            "-c",
            "user.email=a@example.org",
            "commit",
            "--quiet",
            "--message",
            "Change",
        )
        return git(self.folder, "rev-parse", "HEAD").stdout.strip()

    def block(self, heading: str) -> str:
        """Return the code of a section, for this service and project."""
        section = QUICK_STARTS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        [(_, text)] = BLOCK.findall(section)
        text = text.replace("acme%2Fshop", quote(self.path, safe="")).replace("acme/shop", self.path)
        return text.replace("https://git.example.org", self.url)

    def run(self, script: str, **environment: str) -> tuple[int, str]:
        """Run a script; return its exit status and output."""
        path = os.pathsep.join((str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"))
        known = {"PATH": path, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "PYTHONPATH": str(REPOSITORY)}
        command = ["bash", "-euo", "pipefail", "-c", script]
        ran = subprocess.run(
            command, env=known | environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        return ran.returncode, ran.stdout + ran.stderr

    def job(self, kind: str, branch: str, commit: str) -> tuple[int, str]:
        """Run the steps of a quick start as its system does; return the exit status and output of the last one."""
        document = yaml.load(self.block(kind), yaml.BaseLoader)
        if kind == "GitLab CI":
            values = {**document["security"]["variables"], "PROJECT_SERVICE_TOKEN": self.token}
            values |= {"CI_COMMIT_REF_NAME": branch, "CI_COMMIT_SHA": commit}
            return self.run("\n".join(document["security"]["script"]), **values)
        values = {"GITHUB_REF_NAME": branch, "GITHUB_SHA": commit}
        steps = [step for step in document["jobs"]["scan"]["steps"] if "run" in step and "pipx" not in step["run"]]
        found = (0, "")
        for step in steps:
            given = dict.fromkeys(step.get("env", {}), self.token)
            found = self.run(step["run"], **values, **given)
        return found


@pytest.fixture
def checkout(tmp_path: Path, project: Any, service: Any) -> Checkout:
    token = project.access_tokens.create({"name": "scans", "scopes": ["api"], "access_level": 30}).token
    return Checkout(tmp_path, project, service.url, token)


def test_the_steps_of_a_shell_and_of_both_systems_judge_what_is_new(checkout: Checkout, project: Any) -> None:
    secrets = {"TOKEN": checkout.token}
    before = checkout.run(checkout.block("Shell"), **secrets)
    git(checkout.folder, "checkout", "--quiet", "-b", "feature")
    commit = checkout.commit(HARMFUL)

    checked = checkout.run(checkout.block("The command"), **secrets)
    shell, actions = checkout.run(checkout.block("Shell"), **secrets), checkout.job("GitHub Actions", "feature", commit)
    ci = checkout.job("GitLab CI", "feature", commit)

    assert (before[0], before[1].startswith("passed: No new findings of high or above")) == (0, True)
    assert [one[0] for one in (checked, shell, actions, ci)] == [1, 1, 1, 1]
    assert all(f"failed: {MESSAGE}" in one[1] for one in (checked, shell, actions))
    assert "::error::high src/shop.py:2 " in actions[1]
    [failure] = ElementTree.parse(checkout.folder / "security.xml").iter("failure")
    assert failure.get("type") == "high"
    assert project.manager.gitlab.http_get(f"/projects/{project.id}/tracked_findings?branch=feature&severity=high")
