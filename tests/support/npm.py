"""Programs and libraries from npm, in folders that the next run finds again."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / ".cache" / "foreign"
INSTALL_SECONDS = 240


def installed(name: str, *packages: str) -> Path:
    """Return the folder ``node_modules`` with these packages.

    Without npm the test is skipped, but in the build it fails. ``name`` has the versions of the packages in it.
    """
    folder = FOLDER / name
    if not (folder / "complete").exists():
        npm = shutil.which("npm")
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        command = [npm or "", "install", *options, *packages]
        done = npm and subprocess.run(command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if not done or done.returncode:
            why = done.stderr.strip()[-500:] if done else "npm is not installed"
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"npm cannot install {name}: {why}")
        (folder / "complete").touch()
    return folder / "node_modules"
