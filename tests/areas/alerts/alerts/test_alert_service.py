"""Effects of alerts: incidents, mails, and the order of the list on both databases."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import select

from project_service.areas.alerts.alerts import listing, service
from project_service.areas.alerts.alerts.listing import AlertFilter, AlertOrder
from project_service.areas.alerts.models import Alert, Status
from project_service.domain.accounts.users import User
from project_service.domain.projects import DISABLED, Project
from project_service.domain.tracker import issue_rules
from project_service.domain.tracker.issues import ISSUE, Issue
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid
from tests.areas.alerts.receivers.test_alert_receivers import (
    END,
    IDENTIFIER,
    KEY,
    PLAIN,
    alerts,
    make_integration,
    notes,
)
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import DEV, MAX

RECOVERY = PLAIN | {"end_time": END}


@pytest.fixture
def post(app, project):
    """Send alerts to an endpoint of the shop, as a monitoring tool does."""
    make_integration(project)

    def send(*bodies, project=project):
        db.session.remove()
        client = app.test_client(use_cookies=False)
        path = f"/{project.full_path}/alerts/notify/x/{IDENTIFIER}.json"
        return [client.post(path, json=body, headers={"Authorization": f"Bearer {KEY}"}).status_code for body in bodies]

    return send


def set_up(project, **fields):
    """Store the alert settings; options that are not passed are off."""
    with unit_of_work():
        names = ("create_issue", "auto_close_incident")
        settings = dict.fromkeys(names, False) | {"issue_template_key": None} | fields
        service.save_incident_setting(project, **settings)


def incidents():
    db.session.remove()
    return list(db.session.scalars(select(Issue).order_by(Issue.iid)))


def test_a_firing_alert_opens_one_incident(post, project):
    set_up(project, create_issue=True)

    responses = post(PLAIN, PLAIN)

    [issue] = incidents()
    assert responses == [200, 200]
    assert (issue.title, issue.issue_type, list(issue.labels)) == (PLAIN["title"], "incident", ["incident"])
    assert (issue.author.name, alerts()[0].issue_id) == ("Alert Bot", issue.id)
    assert notes(alerts()[0])[-1] == ("Alert Bot", "created issue #1 for this alert", True)
    assert issue.description.split("  \n") == [
        "**Start time:** 04 March 2026, 5:06AM (UTC)",
        "**Severity:** high",
        "**Service:** postgresql",
        "**Monitoring tool:** Nagios",
        "**Hosts:** db-2.internal.example db-2-replica.internal.example",
        "**GitLab alert:** http://localhost/acme/shop/-/alert_management/1/details",
    ]


@pytest.mark.parametrize(
    ("severity", "expected"),
    [("critical", "critical"), ("high", "high"), ("medium", "medium"), ("low", "low"), ("info", "unknown")]
    + [("unknown", "unknown")],
)
def test_an_incident_has_the_severity_of_its_alert(severity, expected, post, project, as_):
    set_up(project, create_issue=True)

    post({"title": "Hot", "severity": severity})

    [issue] = incidents()
    assert issue.severity == expected
    assert as_(DEV).get(f"/projects/{project.id}/issues/1").json["severity"] == expected.upper()


def test_an_incident_description_ends_with_the_chosen_template(post, project, tmp_path):
    keep_repository(project, tmp_path / "git", files={".gitlab/issue_templates/Outage.md": b"## Who is on call?\n"})
    set_up(project, create_issue=True, issue_template_key="Outage")

    post(PLAIN)

    [issue] = incidents()
    assert issue.description.endswith("\n\n---\n\n## Who is on call?\n")


@pytest.mark.parametrize(
    "files",
    [
        {},
        {".gitlab/issue_templates/Outage.txt": b"x"},
        {".gitlab/issue_templates/Outage.md": b"x" * (65 << 10)},
        {".gitlab/issue_templates/Outage.md/Outage.md": b"x"},
        {".gitlab/issue_templates": b"x"},
    ],
    ids=["no file", "no Markdown", "too large", "a folder", "no folder"],
)
def test_a_missing_template_is_not_found(files, project, tmp_path):
    keep_repository(project, tmp_path / "git", files=files)

    with pytest.raises(Invalid) as refusal:
        set_up(project, issue_template_key="Outage")

    assert refusal.value.message == {"issue_template_key": ["not found"]}


def test_an_incident_describes_query_and_annotations_of_prometheus(post, project):
    set_up(project, create_issue=True)
    element = {
        "status": "firing",
        "labels": {"alertname": "Latency"},
        "annotations": {"description": "Slow", "gitlab_incident_markdown": "Look at **p99**"},
        "startsAt": "2026-03-04T05:06:07Z",
        "generatorURL": "http://prom.example/graph?g0.expr=vector%281%29",
    }
    keys = ("groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")

    post(dict.fromkeys(keys, "x") | {"version": "4", "alerts": [element]})

    facts, words = incidents()[0].description.split("\n\n---\n\n")
    assert words == "Look at **p99**"
    assert facts.split("  \n")[1:5] == [
        "**Severity:** critical",
        "**full_query:** `vector(1)`",
        "**Monitoring tool:** Prometheus",
        "**Description:** Slow",
    ]


@pytest.mark.parametrize("words", ["\0", "x" * 1_000_000])
def test_an_unusual_incident_text_does_not_lose_its_alert(words, post, project):
    set_up(project, create_issue=True)
    annotations = {"gitlab_incident_markdown": words}
    address = "http://prom.example/graph?g0.expr=%00"

    assert post({"title": "A", "annotations": annotations, "generatorURL": address}) == [200]

    [issue] = incidents()
    assert issue.description.endswith("\ufffd" if words == "\0" else "x")


def test_incidents_of_untitled_alerts_are_numbered(post, project):
    set_up(project, create_issue=True)

    post({}, {"title": "New: Alert in the shop"}, {})

    titles = [issue.title for issue in incidents()]
    assert titles == ["New: Incident 1", "New: Alert in the shop", "New: Incident 3"]


def test_incidents_are_opened_only_when_enabled(post, project):
    post(PLAIN)
    set_up(project, create_issue=True)
    post({"title": "Over", "end_time": END})
    with unit_of_work():
        db.session.get_one(Project, project.id).issues_access_level = DISABLED
    post({"title": "Without issues"})

    assert ([alert.issue_id for alert in alerts()], incidents()) == ([None, None, None], [])


@pytest.mark.parametrize(("closes", "state"), [(True, "closed"), (False, "opened")])
def test_a_recovery_closes_the_incident_only_when_enabled(closes, state, post, project):
    set_up(project, create_issue=True, auto_close_incident=closes)

    post(PLAIN, RECOVERY)

    assert [issue.state for issue in incidents()] == [state]
    assert [alert.status for alert in alerts()] == [Status.RESOLVED]


def test_a_recovery_closes_only_incidents(post, project):
    set_up(project, create_issue=True, auto_close_incident=True)
    post(PLAIN)
    with unit_of_work():
        db.session.query(Issue).one().issue_type = ISSUE

    post(RECOVERY)

    assert [issue.state for issue in incidents()] == ["opened"]


def test_a_recovery_without_an_incident_resolves_the_alert(post, project):
    set_up(project, auto_close_incident=True)

    assert post(PLAIN, RECOVERY) == [200, 200]
    assert ([alert.status for alert in alerts()], incidents()) == ([Status.RESOLVED], [])


def test_a_closed_incident_resolves_only_its_alert(post, project, people):
    set_up(project, create_issue=True)
    post(PLAIN, {"title": "Other"})

    with unit_of_work():
        issue = db.session.query(Issue).filter_by(iid=1).one()
        issue_rules.close_issue(db.session.get_one(User, people[MAX].id), issue)

    first, second = alerts()
    assert (first.status, first.ended_at is None, second.status) == (Status.RESOLVED, False, Status.TRIGGERED)
    assert notes(first)[-1] == ("Max", "changed the status to **Resolved** by closing issue #1", True)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("sort", "titles"), [("desc", ["Later", "Early", "Open"]), ("asc", ["Early", "Later", "Open"])]
)
def test_open_alerts_come_last_when_ordered_by_end(sort, titles, project):
    day = dt.datetime(2026, 3, 4, tzinfo=dt.UTC)
    ends = {"Open": None, "Later": day + dt.timedelta(days=1), "Early": day}
    with unit_of_work():
        db.session.add_all(
            Alert(project_id=project.id, iid=iid, title=title, started_at=day, ended_at=end)
            for iid, (title, end) in enumerate(ends.items(), start=1)
        )

    ordered = db.session.scalars(listing.alerts_matching(project, AlertFilter()).ordered(AlertOrder("ended_at", sort)))

    assert [alert.title for alert in ordered] == titles
