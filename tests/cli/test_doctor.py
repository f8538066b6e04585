"""The examination of an instance."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.instance import doctor
from project_service.areas.variables.models import Variable
from project_service.kit import clock, jobs
from project_service.kit.db import migrations
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import Delivery
from project_service.kit.jobs import Task
from project_service.kit.security import key_ring
from project_service.kit.storage import Storage
from tests.conftest import SQLITE, make_app
from tests.support import sample_data

PARTS = [
    "versions",
    "database",
    "migrations",
    "secrets",
    "redis",
    "storage",
    "worker",
    "jobs",
    "mails",
    "search",
    "notifications",
]


class Redis:
    """A Redis of some version, with a worker that has been seen."""

    def __init__(self, version="7.2.4"):
        self.version = version

    def ping(self):
        return True

    def info(self, _section):
        return {"redis_version": self.version}

    def scan_iter(self, **_options):
        return iter([b"project-service:worker:host-5"])


@pytest.fixture
def examine(app, monkeypatch):
    """Examines the instance with some Redis; the findings by part."""

    def look(connection=None):
        monkeypatch.setitem(app.extensions, "redis", connection or Redis())
        findings = doctor.examine(app.config["SETTINGS"])
        assert [finding.part for finding in findings] == PARTS
        return {finding.part: finding for finding in findings}

    return look


def unwell(findings):
    return [part for part, finding in findings.items() if not finding.well]


def test_a_healthy_instance_has_no_problems(examine):
    assert unwell(examine()) == []


def test_an_unreachable_redis_is_reported_with_advice(app):
    findings = {finding.part: finding for finding in doctor.examine(app.config["SETTINGS"])}

    assert unwell(findings) == ["redis", "worker"]
    assert "start it, or project-service serve" in findings["redis"].text


@pytest.mark.parametrize(("version", "well"), [("6.2.0", True), ("9.1.0", True), ("6.0.16", False), ("5.0.3", False)])
def test_an_old_redis_is_reported(version, well, examine):
    finding = examine(Redis(version))["redis"]

    assert (finding.well, version in finding.text) == (well, True)


def test_a_wrong_key_is_reported_with_advice(examine):
    project = sample_data.make_project()
    with unit_of_work():
        db.session.add(Variable(project_id=project.id, key="FOO", value="a value"))
    key_ring._Current.keyring = key_ring.KeyRing(["another key than that one, long enough"])

    finding = examine()["secrets"]

    assert not finding.well
    assert finding.text.startswith("variables.value: ")
    assert "set PROJECT_SERVICE_SECRET_KEY to the key it was written with" in finding.text


def test_the_stored_key_is_checked(examine):
    project = sample_data.make_project()
    with unit_of_work():
        db.session.add(Variable(project_id=project.id, key="FOO", value="a value"))

    finding = examine()["secrets"]

    assert (finding.well, "(1 tried)" in finding.text) == (True, True)


def test_an_unwritable_storage_is_reported(app, examine, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setitem(app.extensions, "storage", Storage.at(f"file://{tmp_path}/file"))

    findings = examine()

    assert unwell(findings) == ["storage"]
    assert str(tmp_path) in findings["storage"].text


def test_a_failed_task_is_reported(examine):
    with unit_of_work():
        db.session.add(Task(name="a.job", arguments=[], queue="default", failed_at=clock.now(), error="because"))

    findings = examine()

    assert unwell(findings) == ["jobs"]
    assert "1 tasks have failed for good" in findings["jobs"].text


def test_a_mail_that_was_set_aside_is_reported(examine):
    with unit_of_work():
        db.session.add(
            Delivery(
                receiver="mail:1", encoded_content="{}", idempotency_key="", failed_at=clock.now(), error="because"
            )
        )

    findings = examine()

    assert unwell(findings) == ["mails"]
    assert "1 mails were set aside" in findings["mails"].text


def test_pending_tasks_are_not_reported(examine):
    with unit_of_work():
        later = clock.now() + dt.timedelta(hours=1)
        db.session.add(Task(name="a.job", arguments=[], queue=jobs.QUEUES[0], run_at=later))

    finding = examine()["jobs"]

    assert (finding.well, finding.text) == (True, "1 tasks wait or run, none has failed")


def test_an_old_database_is_reported_with_advice(tmp_path):
    app = make_app(SQLITE, tmp_path)
    with app.app_context():
        migrations.downgrade("base")
        findings = {finding.part: finding for finding in doctor.examine(app.config["SETTINGS"])}
        db.engine.dispose()

    assert not findings["migrations"].well
    assert "run project-service db upgrade" in findings["migrations"].text
    assert findings["database"].well
    assert {"secrets", "jobs"} <= set(unwell(findings))
