"""Findings and errors as hooks are told of them (webhooks reference, sections 13.6 and 18)."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.error_tracking.collection.follow_ups import follow_up
from project_service.areas.error_tracking.errors.models import ErrorStatus, TrackedError
from project_service.areas.error_tracking.errors.service import change_status
from project_service.areas.vulnerabilities.findings.service import undo_dismissal
from project_service.areas.vulnerabilities.models import DISMISSAL, Feedback
from project_service.domain.accounts.users import User
from project_service.domain.projects import Project
from project_service.kit import deliveries
from project_service.kit.db.session import db, unit_of_work
from tests.areas.vulnerabilities.findings.test_vulnerability_feedback import feedback_on, send_feedback
from tests.areas.webhooks.test_hook_deliveries import check_sample
from tests.support import sample_data, security_reports
from tests.support.sample_data import MAX


def attributes(receiver, *names):
    return [tuple(body["object_attributes"][name] for name in names) for body in receiver.bodies]


def test_new_findings_and_their_feedback_have_the_keys_of_the_sample(as_admin, make_hook, project, receiver):
    make_hook(vulnerability_events=True, push_events=False)
    report = security_reports.report(security_reports.vulnerability())
    for _ in range(2):  # the second report finds nothing new
        security_reports.ingest(as_admin, project, report)
    [finding] = as_admin.get(f"/projects/{project.id}/vulnerability_findings").json
    for kind in ("issue", "dismissal"):
        assert send_feedback(as_admin, feedback_on(finding, kind)).status_code < 300
    with unit_of_work():
        dismissal = db.session.scalars(select(Feedback).where(Feedback.feedback_type == DISMISSAL)).one()
        undo_dismissal(db.session.get_one(Project, project.id), dismissal)
    deliveries.send_all_due()

    states = ("detected", "detected", "dismissed", "detected")
    assert attributes(receiver, "state", "uuid") == [(state, finding["uuid"]) for state in states]
    for body in receiver.bodies:
        check_sample("vulnerability", body)
    assert [len(body["object_attributes"]["issues"]) for body in receiver.bodies] == [0, 1, 1, 1]
    assert set(receiver.header("X-Gitlab-Event")) == {"Vulnerability Hook"}


def test_errors_are_told_when_they_are_new_come_back_or_change_their_status(make_hook, people, project, receiver):
    make_hook(error_events=True, push_events=False)
    error = sample_data.make_error(project, "The till is stuck")
    for regressed in (False, True):
        with unit_of_work():
            follow_up(error.id, environment=None, regressed=regressed)
    for status in (ErrorStatus.RESOLVED, ErrorStatus.RESOLVED, ErrorStatus.IGNORED):
        with unit_of_work():
            change_status(db.session.get_one(User, people[MAX].id), db.session.get_one(TrackedError, error.id), status)
    db.session.remove()
    deliveries.send_all_due()

    assert attributes(receiver, "action", "id") == [
        (action, str(error.id)) for action in ("open", "reopen", "resolve", "ignore")
    ]
    assert [body.get("user", {}).get("username") for body in receiver.bodies] == [None, None, "max", "max"]
    assert receiver.bodies[0]["object_attributes"]["url"].endswith(f"/-/error_tracking/{error.id}/details")
