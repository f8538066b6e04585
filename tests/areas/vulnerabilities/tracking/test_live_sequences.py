"""A project that is changed step by step and scanned by bandit and semgrep: what is new, known and gone in each run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.areas.vulnerabilities.tracking.test_tracking import states, upload
from tests.contract.test_semgrep import ALONE, semgrep  # noqa: F401  # a fixture
from tests.support.sample_data import DEV

pytestmark = pytest.mark.nightly

SHELL = 'def run(name):\n    subprocess.run("ls " + name, shell=True)\n'
DIGEST = "def digest(name):\n    return hashlib.md5(name.encode()).hexdigest()\n"
LOAD = "def load(raw):\n    return pickle.loads(raw)\n"
SAFE_DIGEST = DIGEST.replace("md5", "sha256")
HEAD = "import hashlib\nimport pickle\nimport subprocess\n\n"
MOVED = f"{HEAD}# a comment\n# and another\n\n"
RULES = """rules:
  - {id: shell, languages: [python], severity: ERROR, message: Shell, pattern: "subprocess.run(..., shell=True)"}
  - {id: digest, languages: [python], severity: WARNING, message: Digest, pattern: hashlib.md5(...)}
  - {id: load, languages: [python], severity: ERROR, message: Load, pattern: pickle.loads(...)}
"""
# a step: what is told of it, the files, and new, reappeared, known, moved, resolved findings
STEPS = (
    ("first scan", {"app.py": HEAD + SHELL + DIGEST}, (2, 0, 0, 0, 0)),
    ("again", {"app.py": HEAD + SHELL + DIGEST}, (0, 0, 2, 0, 0)),
    ("lines are moved", {"app.py": MOVED + SHELL + DIGEST}, (0, 0, 2, 2, 0)),
    ("one is fixed", {"app.py": MOVED + SHELL + SAFE_DIGEST}, (0, 0, 1, 0, 1)),
    ("one is added", {"app.py": MOVED + LOAD + SHELL + SAFE_DIGEST}, (1, 0, 1, 1, 0)),
    ("one comes back", {"app.py": HEAD + LOAD + SHELL + DIGEST}, (0, 1, 2, 2, 0)),
    ("a second one of a kind", {"app.py": HEAD + LOAD + SHELL + DIGEST, "b.py": HEAD + DIGEST}, (1, 0, 3, 0, 0)),
    ("the functions change places", {"app.py": HEAD + DIGEST + SHELL + LOAD, "b.py": HEAD + DIGEST}, (0, 0, 4, 2, 0)),
    ("a file is renamed", {"app.py": HEAD + DIGEST + SHELL + LOAD, "c.py": HEAD + DIGEST}, (1, 0, 3, 0, 1)),
    ("everything is fixed", {"app.py": HEAD + SAFE_DIGEST}, (0, 0, 0, 0, 4)),
)


@pytest.fixture
def dev(as_, project):
    return as_(DEV)


@pytest.fixture(params=["bandit.json", "bandit.sarif", "semgrep.sarif"])
def scan(request, tmp_path):
    """Writes files and scans them."""
    program = request.getfixturevalue("semgrep") if request.param.startswith("semgrep") else None

    def run(files):
        folder = tmp_path / "src"
        folder.mkdir(exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            (folder / name).write_text(text)
        report = tmp_path / request.param
        (tmp_path / "rules.yaml").write_text(RULES)
        if program is None:
            words = [sys.executable, "-m", "bandit", "-q", "-r", "src", "-t", "B602,B324,B301", "--exit-zero"]
            words += ["-f", report.suffix[1:], "-o", report]
        else:
            words = [program, "scan", "--metrics=off", "--disable-version-check", "--no-git-ignore", "--jobs", "1"]
            words += ["--config", "rules.yaml", "--sarif", "--output", report, "src"]
        environment = {**os.environ, **ALONE, "HOME": str(tmp_path)}
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return report.read_bytes()

    return run


def test_each_step_has_the_states_that_a_person_expects(scan, dev, project):
    found = [(told, upload(dev, project, scan(files))) for told, files, _ in STEPS]

    assert found == [(told, counts) for told, _, counts in STEPS]
    assert set(states().values()) == {"resolved"}


def test_a_branch_and_a_broken_scan_leave_the_default_branch_as_it_is(scan, dev, project):
    upload(dev, project, scan({"app.py": HEAD + SHELL}))
    feature = upload(dev, project, scan({"app.py": MOVED + LOAD + SHELL}), ref="feature")
    broken = upload(dev, project, scan({"app.py": "def (:\n"}))

    assert feature == (1, 0, 1, 1, 0)
    assert len(states("feature")) == 2
    assert len(states()) == 1
    assert (broken[4] == 0) == ("detected" in states().values())
