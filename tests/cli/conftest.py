"""Fixtures for commands that run on a service of their own."""

from __future__ import annotations

import logging
import shutil
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

from project_service.cli import main
from project_service.factory import create_app
from project_service.kit.db.session import db
from project_service.kit.security import key_ring
from project_service.settings import Settings
from tests.conftest import SQLITE
from tests.support import sample_data


@contextmanager
def process_restored():
    """Put logs and keys back as other tests have them: every command configures them."""
    root, keys = logging.getLogger(), key_ring._Current
    handlers, level = root.handlers[:], root.level
    before = {name: getattr(keys, name) for name in ("keyring", "settings", "changed_at")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, value in before.items():
        setattr(keys, name, value)


@pytest.fixture(autouse=True)
def _process_restored(applications):
    applications(SQLITE)  # the application of all tests reads its keys before the commands read theirs
    with process_restored():
        yield


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory):
    """A data directory with the project ``shop/till``, made once: an upgrade of the database takes seconds."""
    directory = tmp_path_factory.mktemp("prepared") / "var"
    found = {"PROJECT_SERVICE_DATA_DIR": str(directory), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
    with process_restored():
        assert CliRunner().invoke(main.main, ["db", "upgrade"], env=found).exit_code == 0
        _fill(Settings.from_environment(found))
    return directory


def _fill(settings):
    with create_app(settings).app_context():
        sample_data.make_project("till", sample_data.make_group("shop"))
        db.session.remove()
        db.engine.dispose()


@pytest.fixture
def environment(prepared_data, tmp_path):
    """A service of its own with the project ``shop/till``."""
    shutil.copytree(prepared_data, tmp_path / "var")
    return {"PROJECT_SERVICE_DATA_DIR": str(tmp_path / "var"), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
