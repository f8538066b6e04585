"""Removal of imports and their archives."""

from __future__ import annotations

import functools
import os

import pytest
from sqlalchemy import delete, func, select

from project_service.domain.memberships import Membership
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.jobs import Task
from project_service.kit.storage import storage
from project_service.transfers.archive import extraction
from project_service.transfers.importing import importer as importing
from tests.support.archives import send
from tests.support.git_repositories import make_bundle
from tests.support.sample_data import (
    ADA,
)
from tests.transfers.importing.support import (
    again,
    at_once,
    counts,
    difference,
    export,
    full_archive,
    known_projects,
    stored,
)


@pytest.mark.both_databases
def test_a_removed_project_leaves_no_files(as_, run_jobs, tmp_path):
    client = as_(ADA)
    before = counts()
    number = send(client, full_archive(files={"project.bundle": make_bundle(tmp_path / "git")})).json["id"]
    run_jobs()
    export(client, number, run_jobs)
    kept = len(stored())

    client.delete(f"/projects/{number}")
    run_jobs()

    left = {
        name for name in difference(before) if name not in ("personal_access_tokens", "rate_limits", "audit_events")
    }
    assert (kept > 0, stored(), left) == (True, [], set())
    assert not os.path.exists(storage().path(f"projects/{number}"))


@pytest.mark.both_databases
def test_removing_a_project_with_a_pending_import_succeeds(as_, run_jobs):
    client = as_(ADA)
    number = send(client, full_archive()).json["id"]

    client.delete(f"/projects/{number}")
    run_jobs()

    assert (stored(), known_projects()) == ([], 0)


@pytest.mark.both_databases
def test_removing_a_project_during_its_import_succeeds(as_, run_jobs, monkeypatch):
    client = as_(ADA)
    number = send(client, full_archive()).json["id"]
    real = importing.store_files

    def removed_meanwhile(*arguments):
        at_once(lambda: client.delete(f"/projects/{number}"))
        real(*arguments)

    monkeypatch.setattr(importing, "store_files", removed_meanwhile)
    run_jobs()
    again()
    run_jobs()

    assert (stored(), known_projects(), db.session.scalar(select(func.count()).select_from(Membership))) == ([], 0, 0)


@pytest.mark.parametrize("version", ["0.2.4", "9"])
def test_an_import_of_a_removed_project_ends(version, as_, run_jobs, monkeypatch):
    number = send(as_(ADA), full_archive(version=version)).json["id"]
    real = extraction.unpack

    def gone_meanwhile(*arguments, **options):
        at_once(functools.partial(_remove_at_once, number))
        return real(*arguments, **options)

    monkeypatch.setattr(extraction, "unpack", gone_meanwhile)
    run_jobs()

    db.session.rollback()
    assert list(db.session.scalars(select(Task).where(Task.attempts > 0))) == []


def _remove_at_once(number):
    with unit_of_work():
        db.session.execute(delete(Project).where(Project.id == number))
