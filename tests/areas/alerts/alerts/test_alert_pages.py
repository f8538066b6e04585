"""Pages of alerts: status, assignees, comments, incidents."""

from __future__ import annotations

import html
import re

import pytest

from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.models import OPSGENIE, TARGET, Alert, AlertIntegration, Status
from project_service.domain.projects import DISABLED
from project_service.domain.todos import Todo
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
    assert db.session.query(Todo).one().user_id == max_id
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


def test_each_status_has_a_button_of_its_own(visit, alert):
    page = visit(DEV).get(f"{ONE}/details").text

    buttons = re.findall(r'<button name="status" value="(\w+)" aria-pressed="(true|false)"( disabled)?>', page)
    assert buttons == [
        ("triggered", "true", " disabled"),
        ("acknowledged", "false", ""),
        ("resolved", "false", ""),
        ("ignored", "false", ""),
    ]


def test_episodes_of_an_identity_lead_to_each_other(visit, project):
    fields = {"project_id": project.id, "title": "Twin", "started_at": clock.now(), "fingerprint": "a" * 40}
    for iid in range(1, 8):
        store(Alert(iid=iid, status=Status.RESOLVED, ended_at=clock.now(), **fields))
    store(Alert(iid=8, **fields | {"fingerprint": "b" * 40}))
    developer = visit(DEV)

    first, last, only = (developer.get(f"{LIST}/{iid}/details").text for iid in (1, 7, 8))

    link = rf'<a href="{LIST}/(\d+)/details">#'
    assert ("Episode 1 of this problem" in first, re.findall(link, first)) == (True, ["7"])
    assert ("Episode 7 of this problem" in last, re.findall(link, last)) == (True, ["6", "5", "4", "3", "2"])
    assert ("and others" in last, "Episode" in only) == (True, False)


@pytest.mark.parametrize(("mapping", "is_named"), [({}, True), ({"start_time": {"path": ["at"]}}, False)])
def test_ignored_times_are_named_while_they_would_be_ignored(mapping, is_named, visit, project):
    source = store(
        AlertIntegration(project_id=project.id, name="A", endpoint_identifier="1f", token="t", mapping=mapping)
    )
    fields = {"payload": {"start_time": "soon", "at": "2026-03-04T05:06:07Z"}, "integration_id": source.id}
    times = {"start_time": {"path": "start_time", "value": "soon"}}
    store(Alert(project_id=project.id, iid=1, title="T", started_at=clock.now(), unreadable_times=times, **fields))

    assert ("cannot be read as a time" in visit(DEV).get(f"{ONE}/details").text) is is_named


def test_the_tab_of_metrics_needs_a_query(visit, alert, project):
    payload = {"generatorURL": "http://prometheus.example.org/graph?g0.expr=up", "startsAt": "2026-03-04T05:06:07Z"}
    store(Alert(project_id=project.id, iid=2, title="T", started_at=clock.now(), payload=payload))
    developer = visit(DEV)

    has_tab = ["details/metrics" in developer.get(f"{LIST}/{iid}/details").text for iid in (1, 2)]

    assert has_tab == [False, True]
    assert "details/metrics" not in developer.get(f"{ONE}/details/metrics").text


def test_pages_of_grafana_are_linked_where_they_are_http_addresses(visit, project):
    payload = {"dashboardURL": "https://graf.example/d/1", "panelURL": "javascript:alert(1)", "silenceURL": ""}
    store(Alert(project_id=project.id, iid=1, title="Hot", started_at=clock.now(), payload=payload))

    page = visit(DEV).get(f"{ONE}/details").text

    assert re.findall(r'<dt>Grafana</dt><dd><a href="([^"]+)"[^>]*>(\w+)</a></dd>', page) == [
        ("https://graf.example/d/1", "Dashboard")
    ]
    assert 'href="javascript' not in page
