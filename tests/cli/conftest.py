"""Fixtures for commands that run on a service of their own."""

from __future__ import annotations

import logging
import shutil

import pytest
from click.testing import CliRunner

from project_service.cli import main
from project_service.factory import create_app
from project_service.kit.db.session import db
from project_service.settings import Settings
from tests.support import sample_data


@pytest.fixture(autouse=True)
def _quiet_again():
    """Put the logs back as the tests have them: every command configures them."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture(scope="session")
def prepared_data(tmp_path_factory):
    """A data directory with the project ``shop/till``, made once: an upgrade of the database takes seconds."""
    directory = tmp_path_factory.mktemp("prepared") / "var"
    found = {"PROJECT_SERVICE_DATA_DIR": str(directory), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
    assert CliRunner().invoke(main.main, ["db", "upgrade"], env=found).exit_code == 0
    with create_app(Settings.from_environment(found)).app_context():
        sample_data.make_project("till", sample_data.make_group("shop"))
        db.session.remove()
        db.engine.dispose()
    return directory


@pytest.fixture
def environment(prepared_data, tmp_path):
    """A service of its own with the project ``shop/till``."""
    shutil.copytree(prepared_data, tmp_path / "var")
    return {"PROJECT_SERVICE_DATA_DIR": str(tmp_path / "var"), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
