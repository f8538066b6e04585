"""What each kind of process loads: what one never does is no memory of its."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("exporting.exporter", "importing.importer", "exporting.lines", "importing.publishing", "importing.rows")


@pytest.mark.parametrize(("module", "loads"), [("runtime.wsgi", False), ("runtime.worker_processes", True)])
def test_only_workers_load_what_imports_and_exports_do(module, loads, tmp_path):
    told = f"import sys, project_service.{module}; print(*sys.modules)"
    env = {"PROJECT_SERVICE_DATA_DIR": str(tmp_path)}

    ended = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True, env=env, timeout=60
    )

    loaded = set(ended.stdout.split())
    assert {name: f"project_service.transfers.{name}" in loaded for name in HEAVY} == dict.fromkeys(HEAVY, loads)
