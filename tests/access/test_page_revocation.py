"""Pages read permissions for each request: a change takes effect on the next one."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.memberships import Membership
from project_service.domain.tracker.issues import Issue
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, GUS
from tests.support.visitors import store

LIST = "/acme/shop/-/issues"


@pytest.fixture
def reader(visit, project):
    """A signed-in browser that has read the list."""
    visitor = visit(DEV)
    assert visitor.get(LIST).status_code == 200
    return visitor


def test_a_page_shows_the_last_commit(reader, project):
    store(Issue(project_id=project.id, iid=1, title="It is cold"))

    page = reader.get(LIST)

    assert ("It is cold" in page.text, page.headers["Cache-Control"]) == (True, "no-store")


def test_each_session_gets_its_own_page(reader, visit):
    other = visit(GUS)

    assert [("/dev" in one.get(LIST).text, "/gus" in one.get(LIST).text) for one in (reader, other)] == [
        (True, False),
        (False, True),
    ]
    assert visit(None).get(LIST).status_code == 302


def test_a_cookie_is_refused_after_signing_out(reader):
    cookie = reader.cookies.get_cookie("project_service").value
    reader.send("/users/sign_out")
    reader.cookies.set_cookie("project_service", cookie)

    assert reader.get(LIST).status_code == 302


def test_a_page_is_hidden_when_the_membership_is_removed(reader, people):
    with unit_of_work():
        for membership in db.session.query(Membership).filter_by(user_id=people[DEV].id):
            db.session.delete(membership)

    assert reader.get(LIST).status_code == 404


def test_a_session_ends_when_it_expires(reader, monkeypatch):
    later = clock.now() + dt.timedelta(days=400)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert reader.get(LIST).status_code == 302
