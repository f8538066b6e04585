"""Fixtures shared by the tests of imports and exports."""

from __future__ import annotations

import pytest

from project_service.kit.storage import storage
from tests.support.archives import send
from tests.support.sample_data import MAX


@pytest.fixture
def empty_storage(app):
    """The files of the storage are not rows: those of the test before are still there."""
    for name in storage().names("imports") + storage().names("projects"):
        storage().delete(name)


@pytest.fixture
def bring(empty_storage, as_, run_jobs):
    """Imports an archive; returns the state of the import."""

    def run(archive, person=MAX, **fields):
        response = send(as_(person), archive, **fields)
        assert response.status_code == 201, response.text
        run_jobs()
        return as_(person).get(f"/projects/{response.json['id']}/import").json

    return run


@pytest.fixture
def settings(as_admin):
    """Changes application settings."""

    def change(**values):
        assert as_admin.put("/application/settings", json=values).status_code == 200

    return change
