"""Fixtures shared by the tests of exports."""

from __future__ import annotations

import dataclasses

import pytest

from project_service.kit.db.session import db
from tests.support.archives import unpack
from tests.support.mails import queued_mails
from tests.transfers.exporting.support import ACCEPTED


@pytest.fixture(autouse=True)
def _empty_storage(empty_storage):
    """Begin each test without stored files."""


@pytest.fixture
def export(as_maintainer, project, run_jobs):
    """Exports the shop; returns the files of the archive."""

    def run(**fields):
        response = as_maintainer.post(f"/projects/{project.id}/export", json=fields)
        assert (response.status_code, response.json) == (202, ACCEPTED)
        run_jobs()
        return unpack(as_maintainer.get(f"/projects/{project.id}/export/download").data)

    return run


@pytest.fixture
def mails(app, monkeypatch):
    """Configures a mail server; returns the queued mails: recipients, subjects and texts."""
    monkeypatch.setitem(
        app.config, "SETTINGS", dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1", smtp_port=1)
    )

    def queued():
        db.session.rollback()
        return [(one.recipient, one.subject, one.body) for one in queued_mails()]

    return queued


@pytest.fixture
def upload(remote, as_maintainer, project, run_jobs, settings):
    """Exports the shop to a path of the remote server."""
    settings(outbound_local_requests_whitelist=[f"127.0.0.1:{remote.port}"])

    def run(path="/store", **fields):
        url = remote.url(path)
        form = {"upload[url]": url} | {f"upload[{name}]": value for name, value in fields.items()}
        assert as_maintainer.post(f"/projects/{project.id}/export", data=form).status_code == 202
        run_jobs()

    return run
