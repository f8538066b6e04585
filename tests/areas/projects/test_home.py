"""The home page, the page of a group and the wall: what needs the reader now, across projects."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.alerts.models import Alert, Severity, Status
from project_service.domain.access_levels import Role
from project_service.domain.tracker import issue_rules
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, MAX, RITA, SAM, add_member, make_error, make_project
from tests.support.security_reports import ingest_report, report, vulnerability
from tests.support.visitors import store


def add_alert(project, title, **fields):
    iid = len(db.session.query(Alert).filter_by(project_id=project.id).all()) + 1
    return store(Alert(project_id=project.id, iid=iid, title=title, started_at=clock.now(), **fields))


@pytest.fixture
def till(people):
    """A second project of max and dev."""
    project = make_project("till")
    for name in (MAX, DEV):
        add_member(project, people[name], Role.DEVELOPER)
    return project


def test_the_home_page_has_what_is_open_in_all_projects(visit, project, till):
    add_alert(project, "Checkout is slow", severity=Severity.HIGH)
    add_alert(till, "Paper is out")
    add_alert(till, "Paper was out", status=Status.RESOLVED)
    make_error(project, "KeyError: 4711")
    ingest_report(project, report(vulnerability()))

    text = visit(DEV).get("/").text

    shown = ["Checkout is slow", "Paper is out", "KeyError: 4711", "New findings of the last week"]
    assert [title for title in shown if title in text] == shown
    assert "Paper was out" not in text


def test_the_newest_alerts_can_be_those_of_one_severity(visit, project, till):
    add_alert(project, "Checkout is slow", severity=Severity.HIGH)
    add_alert(till, "Paper is out")

    text = visit(DEV).get("/?severity=high").text

    assert ("Checkout is slow" in text, "Paper is out" in text) == (True, False)


def test_the_list_of_projects_has_their_marks(visit, project):
    add_alert(project, "Checkout is slow")

    assert "<strong>1</strong> alert" in visit(DEV).get("/dashboard/projects").text


@pytest.mark.parametrize("address", ["/", "/-/overview", "/acme"])
@pytest.mark.parametrize(("person", "seen"), [(DEV, "alert error"), (RITA, "error"), (SAM, "")])
def test_panels_show_only_what_the_reader_may_see(address, person, seen, visit, project):
    project.visibility = project.namespace.visibility = 20
    add_alert(project, "Checkout is slow")
    make_error(project, "KeyError: 4711")
    db.session.commit()

    text = visit(person).get(address).text

    shown = {"alert": "Checkout is slow", "error": "KeyError: 4711"}
    assert " ".join(name for name, title in shown.items() if title in text) == seen


def test_an_error_that_is_neither_new_nor_rising_is_left_out(visit, project):
    long_ago = clock.now() - dt.timedelta(days=30)
    make_error(project, "KeyError: 4711", first_seen=long_ago, last_seen=long_ago)

    assert "KeyError: 4711" not in visit(DEV).get("/").text


def test_assigned_issues_are_on_the_home_page_of_the_assignee(visit, project, people):
    issue = issue_rules.create_issue(people[MAX], project, title="The till is open")
    issue.assignees = [people[DEV]]
    db.session.commit()

    assert "The till is open" in visit(DEV).get("/").text
    assert "Assigned to you" not in visit(MAX).get("/").text


def test_visited_projects_have_health_marks_that_lead_to_their_lists(visit, project):
    add_alert(project, "Checkout is slow")
    visitor = visit(DEV)
    visitor.get("/acme/shop")

    text = visitor.get("/").text

    assert "Visited last" in text
    assert 'href="/acme/shop/-/alert_management"><strong>1</strong> alert</a>' in text


def test_the_wall_of_a_group_leaves_out_other_projects_and_refreshes_itself(visit, project, till):
    add_alert(project, "Checkout is slow")
    add_alert(till, "Paper is out")

    text = visit(DEV).get("/-/overview?group=acme").text

    assert 'data-refreshes="30"' in text
    assert ("Checkout is slow" in text, "Paper is out" in text) == (True, False)
    assert visit(SAM).get("/-/overview?group=acme").status_code == 404
