"""The API of errors: lists, events, status, issues (error collection reference, sections 14, 16 and 17)."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, RITA, SAM
from tests.support.sentry_requests import Sender, track_errors

FRAMES = {
    "frames": [
        {"filename": "lib/x.py", "function": "run", "lineno": 5, "in_app": False},
        {
            "filename": "app/shop.py",
            "function": "price_of",
            "lineno": 12,
            "in_app": True,
            "pre_context": ["def price_of(x):"],
            "context_line": "    return 1 / x  # ```",
            "post_context": ["", "# end"],
            "vars": {"x": 0, "password": "hunter2"},
        },
    ]
}
CRASH = {"exception": {"values": [{"type": "ZeroDivisionError", "value": "by zero", "stacktrace": FRAMES}]}}


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


@pytest.fixture
def errors(project):
    """The path of the list."""
    return f"/projects/{project.id}/error_tracking/errors"


def ago(**time):
    return (clock.now() - dt.timedelta(**time)).isoformat()


@pytest.mark.both_databases
def test_an_error_shows_data_of_its_events(sender, errors, as_):
    sender.event(**CRASH, timestamp=ago(hours=3), release="1", environment="staging", user={"id": 7})
    sender.event(**CRASH, timestamp=ago(hours=1), release="2", level="fatal", logger="shop")

    [error] = as_(RITA).get(errors).json

    assert as_(RITA).get(f"{errors}/{error['id']}").json == error
    hours = error.pop("frequency")
    assert (len(hours), [count for _, count in hours if count], hours[-1][0] % 3600) == (24, [1, 1], 0)
    assert error.pop("first_seen") < error.pop("last_seen")
    assert error.pop("web_url").endswith(f"/acme/shop/-/error_tracking/{error['id']}/details")
    assert error == {
        "id": error["id"],
        "project_id": sender.project_id,
        "title": "ZeroDivisionError: by zero",
        "type": "ZeroDivisionError",
        "message": "by zero",
        "culprit": "app/shop.py in price_of",
        "level": "fatal",
        "logger": "shop",
        "platform": None,
        "status": "unresolved",
        "count": 2,
        "user_count": 1,
        "first_release": "1",
        "last_release": "2",
        "environments": ["production", "staging"],
        "resolved_at": None,
        "resolved_in_next_release": False,
        "regressed_at": None,
        "assignee": None,
        "issue_iid": None,
        "integrated": True,
        "external_url": None,
    }


@pytest.mark.both_databases
def test_lists_are_filtered_and_ordered(sender, errors, as_):
    sender.event(message="Größe of A", environment="staging", timestamp=ago(hours=2))
    sender.event(message="half of B", level="info", release="7", timestamp=ago(hours=3))
    sender.event(message="third of C", logger="shop_100%", timestamp=ago(hours=1))
    sender.event(message="third of C", logger="shop_100%", timestamp=ago(hours=4))
    reader = as_(RITA)

    def titles(query=""):
        return [error["title"][-1] for error in reader.get(f"{errors}?{query}").json]

    as_(DEV).put(f"{errors}/{reader.get(f'{errors}?search=half').json[0]['id']}", json={"status": "ignored"})
    assert titles() == ["C", "A", "B"]
    assert titles("order_by=count") == ["C", "B", "A"]
    assert titles("order_by=first_seen&sort=asc") == ["C", "B", "A"]
    assert titles("status=ignored") == ["B"]
    assert titles("status[]=ignored&status[]=unresolved") == ["C", "A", "B"]
    assert titles("search=GRÖSSE") + titles("search=größe") + titles("search=100%25") == ["A", "C"]
    assert titles("environment=staging") + titles("release=7") + titles("level=info") == ["A", "B", "B"]
    assert reader.get(f"{errors}?per_page=1").headers["X-Total"] == "3"
    assert reader.get(f"{errors}?status=open").json == {"error": "status does not have a valid value"}


def test_events_are_listed_newest_first_and_shown_in_full(sender, errors, as_):
    first = sender.event(**CRASH, timestamp=ago(hours=2), tags={"shop": "north"}, user={"id": 7}).json["id"]
    last = sender.event(**CRASH, timestamp=ago(hours=1), extra={"a": [1]}).json["id"]
    reader = as_(RITA)
    one = f"{errors}/{reader.get(errors).json[0]['id']}"

    listed = reader.get(f"{one}/events").json
    shown = reader.get(f"{one}/events/latest").json

    assert [event["id"] for event in listed] == [last, first]
    assert (listed[1]["tags"], listed[1]["user"]) == ([{"key": "shop", "value": "north"}], {"id": "7"})
    assert (
        reader.get(f"{one}/events/oldest").json["id"] == reader.get(f"{one}/events/{first.upper()}").json["id"] == first
    )
    assert shown.keys() - listed[0].keys() == {
        "exceptions",
        "breadcrumbs",
        "request",
        "contexts",
        "extra",
        "modules",
        "sdk",
        "fingerprint",
        "truncated",
        "debug_ids",
        "source_map_problems",
    }
    assert shown["exceptions"][0]["frames"][1] == {
        "filename": "app/shop.py",
        "abs_path": None,
        "module": None,
        "function": "price_of",
        "lineno": 12,
        "colno": None,
        "in_app": True,
        "context": [[11, "def price_of(x):"], [12, "    return 1 / x  # ```"], [13, ""], [14, "# end"]],
        "vars": {"x": 0, "password": "[Filtered]"},
    }
    assert (shown["extra"], shown["truncated"], shown["request"]) == ({"a": [1]}, False, None)
    assert reader.get(f"{one}/events/{'0' * 32}").json == {"message": "404 Event Not Found"}


@pytest.mark.both_databases
def test_resolving_closes_the_issue_and_a_later_event_reopens_it(sender, errors, as_, project):
    sender.event(message="low", timestamp=ago(hours=2))
    developer = as_(DEV)
    one = f"{errors}/{developer.get(errors).json[0]['id']}"
    created = developer.post(f"{one}/issue")

    resolved = developer.put(one, json={"status": "resolved"})
    repeated = developer.put(one, json={"status": "resolved"})

    assert (created.status_code, created.json["issue_iid"], resolved.json["closed_issue_iid"]) == (201, 1, 1)
    assert (repeated.status_code, repeated.json["closed_issue_iid"]) == (200, None)
    assert developer.get(f"/projects/{project.id}/issues/1").json["state"] == "closed"
    sender.event(message="low", timestamp=ago(hours=1))  # older than the change of the status
    assert (late := developer.get(one).json)["status"] == "resolved"
    sender.event(message="low")
    reopened = developer.get(one).json
    assert (reopened["status"], late["count"], reopened["count"]) == ("unresolved", 2, 3)
    assert reopened["regressed_at"] is not None
    assert developer.get(f"/projects/{project.id}/issues/1").json["state"] == "closed"
    db.session.expire_all()
    notes = [note.body for note in db.session.query(Note).order_by(Note.id)]
    assert notes == ["resolved the corresponding error and closed the issue", "the error has come back"]


def test_an_ignored_error_counts_and_stays_ignored(sender, errors, as_):
    sender.event(message="low")
    developer = as_(DEV)
    one = f"{errors}/{developer.get(errors).json[0]['id']}"
    developer.put(one, json={"status": "ignored"})

    sender.event(message="low")

    assert (developer.get(one).json["status"], developer.get(one).json["count"]) == ("ignored", 2)
    assert developer.put(one).json == {"error": "status is missing"}
    assert developer.put(one, json={"status": "open"}).json == {"error": "status does not have a valid value"}


def test_the_issue_of_an_error_escapes_markdown(sender, errors, as_, project):
    sender.event(**CRASH, transaction="# `@all` <script>\n/close", release="1`2")
    developer = as_(DEV)
    one = f"{errors}/{developer.get(errors).json[0]['id']}"

    developer.post(f"{one}/issue")

    issue = developer.get(f"/projects/{project.id}/issues/1").json
    assert issue["title"] == "ZeroDivisionError: by zero"
    lines = issue["description"].splitlines()
    assert lines[0] == "### Error Details"
    assert "* Culprit: ``# `@all` <script> /close``" in lines
    assert "* Release: ``1`2``" in lines
    assert lines[-4:] == ["````", "app/shop.py:12 in price_of", "    return 1 / x # ```", "````"]


def test_errors_and_issues_are_linked_one_to_one(sender, errors, as_, project):
    for number in ("one", "two"):
        sender.event(message=number)
    developer = as_(DEV)
    one, two = (f"{errors}/{error['id']}" for error in developer.get(errors).json)
    developer.post(f"/projects/{project.id}/issues", json={"title": "known"})

    assert developer.post(f"{one}/issue", json={"issue_iid": 9}).json == {"message": "404 Issue Not Found"}
    assert developer.post(f"{one}/issue", json={"issue_iid": 1}).json["issue_iid"] == 1
    assert developer.post(f"{two}/issue", json={"issue_iid": 1}).status_code == 409
    assert developer.post(f"{one}/issue").status_code == 409
    assert developer.delete(f"{one}/issue").status_code == 204
    assert developer.delete(f"{one}/issue").json == {"message": "404 Issue Not Found"}
    assert developer.post(f"{two}/issue", json={"issue_iid": 1}).status_code == 201
    with_link = db.session.get_one(Issue, developer.get(f"/projects/{project.id}/issues/1").json["id"])
    as_(sample_data.OLIVE).delete(f"/projects/{project.id}/issues/{with_link.iid}")
    assert developer.get(two).json["issue_iid"] is None


@pytest.mark.both_databases
def test_an_event_after_removal_creates_a_new_error(sender, errors, as_):
    sender.event(message="low")
    one = f"{errors}/{as_(MAX).get(errors).json[0]['id']}"

    assert as_(DEV).delete(one).status_code == 403
    assert as_(MAX).delete(one).status_code == 204
    assert as_(MAX).get(one).json == {"message": "404 Error Not Found"}
    sender.event(message="low")
    assert [error["count"] for error in as_(MAX).get(errors).json] == [1]


def test_errors_of_other_projects_are_not_found(sender, errors, as_, app):
    other = Sender(app, track_errors(sample_data.make_project()))
    other.event(message="theirs")
    foreign = as_(sample_data.ADA).get(f"/projects/{other.project_id}/error_tracking/errors").json[0]["id"]

    for error_id in (foreign, "0", "x", "9" * 30):
        for path in ("", "/events", "/events/latest"):
            response = as_(DEV).get(f"{errors}/{error_id}{path}")
            assert (response.status_code, response.json) == (404, {"message": "404 Error Not Found"})


def test_without_settings_there_are_no_errors(errors, as_):
    assert as_(RITA).get(errors).json == {"message": "404 Error Tracking Setting Not Found"}


@pytest.mark.parametrize(
    ("person", "reads", "changes"), [(RITA, 200, 403), (GUS, 403, 403), (SAM, 404, 404), (NOBODY, 401, 401)]
)
def test_roles_that_read_and_change_errors(sender, errors, as_, person, reads, changes):
    sender.event(message="low")
    one = f"{errors}/{as_(MAX).get(errors).json[0]['id']}"

    assert [as_(person).get(path).status_code for path in (errors, one, f"{one}/events")] == [reads] * 3
    assert as_(person).put(one, json={"status": "ignored"}).status_code == changes
    assert as_(person).post(f"{one}/issue").status_code == changes
    assert as_(person).delete(one).status_code == changes
