"""Pages that are kept while nothing changes, and never longer."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.memberships import Membership
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.pages.conftest import store
from tests.worlds import DEV, GUS

LIST = "/acme/shop/-/issues"


@pytest.fixture
def reader(visit, project):
    """Somebody who has seen the list: the first time the token of the forms was made, the second time it was kept."""
    visitor = visit(DEV)
    visitor.get(LIST)
    visitor.get(LIST)
    return visitor


def test_a_page_that_has_not_changed_takes_no_statement(reader, count_queries):
    with count_queries() as sent:
        again = reader.get(LIST)

    assert (again.status_code, sent) == (200, [])
    assert again.headers["Cache-Control"] == "no-store"


def test_what_anybody_commits_is_seen_at_once(reader, project):
    store(Issue(project_id=project.id, iid=1, title="It is cold"))

    assert "It is cold" in reader.get(LIST).text


def test_pages_are_those_of_one_browser(reader, visit):
    other = visit(GUS)

    assert [("/dev" in one.get(LIST).text, "/gus" in one.get(LIST).text) for one in (reader, other)] == [
        (True, False),
        (False, True),
    ]
    assert visit(None).get(LIST).status_code == 302


def test_who_has_signed_out_sees_nothing_more(reader, visit):
    kept = reader.get(LIST)
    cookie = reader.cookies.get_cookie("project_service").value
    reader.send("/users/sign_out")
    reader.cookies.set_cookie("project_service", cookie)

    assert (kept.status_code, reader.get(LIST).status_code) == (200, 302)


def test_who_is_no_member_any_more_sees_nothing_more(reader, project, people):
    with unit_of_work():
        for membership in db.session.query(Membership).filter_by(user_id=people[DEV].id):
            db.session.delete(membership)

    assert reader.get(LIST).status_code == 404


def test_a_session_that_ends_in_the_meantime_ends_what_was_kept(reader, monkeypatch):
    later = clock.now() + dt.timedelta(days=400)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert reader.get(LIST).status_code == 302
