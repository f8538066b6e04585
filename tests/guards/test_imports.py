"""Importing a module has no effect."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import project_service

SCRIPT = """
import importlib, pkgutil, sys
from flask import Flask

built = []
Flask.__init__ = lambda self, *args, **options: built.append(args)
import project_service
for module in pkgutil.walk_packages(project_service.__path__, "project_service."):
    if not module.name.startswith("project_service.migrations") and module.name != "project_service.__main__":
        importlib.import_module(module.name)
assert built == [], built
print(len(sys.modules))
"""


def test_importing_every_module_writes_no_file_and_builds_no_application(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    environment = {"HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        cwd=work,
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert [*home.rglob("*"), *work.rglob("*")] == []


def test_an_application_does_not_load_alembic() -> None:
    script = "import sys, project_service.factory; sys.exit('alembic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60).returncode == 0


def test_an_application_knows_every_job(tmp_path: Path) -> None:
    """A module with a job that nothing imports would silently never run."""
    package = Path(project_service.__file__).parent
    with_jobs = {
        ".".join(path.relative_to(package.parent).with_suffix("").parts)
        for path in package.rglob("*.py")
        if re.search(r"^@jobs\.(job|periodic)\(", path.read_text(), re.MULTILINE)
    }
    script = "import sys, project_service.factory as f; f.create_app(); print(*sys.modules)"

    environment = {"PROJECT_SERVICE_DATA_DIR": str(tmp_path)}
    command = [sys.executable, "-c", script]

    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)

    assert len(with_jobs) > 10
    assert with_jobs - set(done.stdout.split()) == set()
