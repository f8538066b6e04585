"""Fixtures for commands that run on a service of their own."""

from __future__ import annotations

import logging

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


@pytest.fixture
def environment(tmp_path):
    """A service of its own with the project ``shop/till``."""
    found = {"PROJECT_SERVICE_DATA_DIR": str(tmp_path / "var"), "PROJECT_SERVICE_LOG_LEVEL": "ERROR"}
    assert CliRunner().invoke(main.main, ["db", "upgrade"], env=found).exit_code == 0
    with create_app(Settings.from_environment(found)).app_context():
        sample_data.make_project("till", sample_data.make_group("shop"))
        db.session.remove()
        db.engine.dispose()
    return found
