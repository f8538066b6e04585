"""Pages of alerts: status, assignees, comments, incidents."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.models import OPSGENIE, TARGET, Alert, AlertIntegration, AlertTodo, Status
from project_service.domain.projects import DISABLED
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, MAX
from tests.support.visitors import store

LIST = "/acme/shop/-/alert_management"
ONE = f"{LIST}/1"


@pytest.fixture
def alert(project):
    return store(Alert(project_id=project.id, iid=1, title="The till is stuck", started_at=clock.now()))


def alert_now():
    db.session.remove()
    return db.session.query(Alert).order_by(Alert.id).first()


def notes():
    return [note.body for note in db.session.query(Note).filter(Note.noteable_type == TARGET).order_by(Note.id)]


def test_an_alert_changes_its_status(visit, alert):
    developer = visit(DEV)

    responses = [
        developer.send(f"{ONE}/status", status=word).status_code for word in ("resolved", "resolved", "ignored")
    ]

    assert responses == [302, 302, 302]
    assert (alert_now().status, alert_now().ended_at is None) == (Status.IGNORED, True)
    assert developer.send(f"{ONE}/status", status="forgotten").status_code == 422
    assert notes() == ["changed the status to **Resolved**", "changed the status to **Ignored**"]


def test_an_alert_reopens_only_without_an_open_duplicate(visit, alert, project):
    fields = {"project_id": project.id, "title": "Twin", "started_at": clock.now(), "fingerprint": "a" * 40}
    store(Alert(iid=2, status=Status.RESOLVED, ended_at=clock.now(), **fields))
    store(Alert(iid=3, **fields))

    response = visit(DEV).send(f"{LIST}/2/status", status="triggered")

    assert (response.status_code, "alert #3 with the same fingerprint" in response.text) == (422, True)


def test_an_alert_is_assigned_to_a_user_who_sees_it(visit, alert, people):
    max_id, rita_id = people[MAX].id, people["rita"].id
    developer = visit(DEV)
    status = developer.send(f"{ONE}/assignee", assignee_id=str(max_id)).status_code
    responses = [developer.send(f"{ONE}/assignee", assignee_id=word) for word in (str(rita_id), "²", "9" * 30)]

    assert (status, alert_now().assignee_id) == (302, max_id)
    assert [(one.status_code, "Assignee has no permissions" in one.text) for one in responses] == [(422, True)] * 3
    assert db.session.query(AlertTodo).one().user_id == max_id
    assert notes() == ["assigned to @max"]


def test_an_incident_is_created_once_and_closing_it_resolves_the_alert(visit, alert, people):
    developer = visit(DEV)
    first, second = developer.send(f"{ONE}/incident"), developer.send(f"{ONE}/incident")
    issue = db.session.query(Issue).one()
    issue_rules.close_issue(people[DEV], issue)
    db.session.commit()

    assert (first.status_code, second.status_code, "An issue already exists" in second.text) == (302, 422, True)
    assert (issue.title, issue.issue_type) == ("The till is stuck", "incident")
    assert alert_now().status == Status.RESOLVED
    assert notes() == ["created issue #1 for this alert", "changed the status to **Resolved** by closing issue #1"]


def test_no_incident_is_created_without_issues(visit, alert, project):
    project.issues_access_level = DISABLED
    db.session.commit()
    developer = visit(DEV)

    response = developer.send(f"{ONE}/incident")

    assert (response.status_code, "You have no permissions" in response.text) == (422, True)
    assert "Create incident" not in developer.get(f"{ONE}/details").text
    assert db.session.query(Issue).count() == 0


def test_the_list_and_the_details_show_the_alert(visit, alert, people):
    service.comment(people[DEV], db.session.merge(alert), "Looking into it")
    db.session.commit()
    developer = visit(DEV)

    assert "#1 The till is stuck" in developer.get(LIST).text
    assert "Looking into it" in developer.get(f"{ONE}/details/activity").text
    assert developer.get(f"{LIST}/2/details").status_code == 404


def test_the_feed_links_to_a_comment_on_an_alert(visit, alert, people):
    note = service.comment(people[DEV], db.session.merge(alert), "Looking into it")
    db.session.commit()

    page = visit(DEV).get("/acme/shop").text

    assert re.search(
        rf'commented on alert\s+<a href="{ONE}/details\?note={note.id}#note_{note.id}">The till is stuck</a>', page
    )


def test_opsgenie_refuses_test_alerts_and_incomplete_urls(maintainer, project):
    fields = {"name": "Ops", "type": OPSGENIE, "active": True, "target_url": "https://ops.example", "mapping": {}}
    row = store(AlertIntegration(project_id=project.id, endpoint_identifier="1f", token="t", **fields))
    one = f"/acme/shop/-/settings/operations/integrations/{row.id}"

    sent = maintainer.send(f"{one}/test", payload="{}")
    edited = maintainer.send(f"{one}/edit", type=OPSGENIE, name="Ops", active="y", target_url="https://[half")

    assert (sent.status_code, "Opsgenie receives no alerts here." in html.unescape(sent.text)) == (422, True)
    assert (edited.status_code, "is blocked" in edited.text) == (422, True)
    assert "View alerts in Opsgenie" in maintainer.get(LIST).text
