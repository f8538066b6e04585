"""Password resets by mail."""

from __future__ import annotations

import datetime as dt
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from project_service.areas.accounts.sign_in import password_resets
from project_service.areas.accounts.sign_in.models import PasswordReset
from project_service.domain.accounts.users import BLOCKED, User
from project_service.domain.audit.models import AuditEvent
from project_service.kit import clock, mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid
from project_service.kit.jobs import Task
from tests.support.mails import queued_mails
from tests.support.sample_data import PASSWORD
from tests.support.visitors import Visitor

REQUEST, RESET, SIGN_IN = "/users/password/new", "/users/password/edit", "/users/sign_in"
NEW = "a wholly new password"
TOKEN = re.compile(r"reset_password_token=(\S+)")


@pytest.fixture(autouse=True)
def _mail_is_on(monkeypatch):
    monkeypatch.setattr(mail, "is_on", lambda: True)


def run_requests():
    """Run the job of each request."""
    for task in list(db.session.scalars(db.select(Task).where(Task.name == password_resets.send_reset.name))):
        with unit_of_work():
            password_resets.send_reset(*task.arguments)
            db.session.delete(task)


def mails():
    return queued_mails()


@pytest.fixture
def token(visitor, paula):
    """Return the token of the mail to paula."""
    visitor.send(REQUEST, email=" PAULA@example.org ")
    run_requests()
    return TOKEN.search(mails()[-1].body).group(1)


def reset(visitor, token, password=NEW, repeated=None):
    fields = {"new_password": password, "repeated": repeated or password}
    return visitor.send(RESET, reset_password_token=token, **fields)


def can_sign_in(app, password):
    return Visitor(app).send(SIGN_IN, login="paula", password=password).status_code == 302


def test_a_mailed_link_sets_a_new_password_and_ends_the_sessions(app, visitor, paula, token):
    signed_in = Visitor(app)
    signed_in.send(SIGN_IN, login="paula", password=PASSWORD)
    assert token in visitor.get(f"{RESET}?reset_password_token={token}").text

    response = reset(visitor, token)

    assert (response.status_code, response.location) == (302, SIGN_IN)
    assert signed_in.get("/").status_code == 302
    assert (can_sign_in(app, PASSWORD), can_sign_in(app, NEW)) == (False, True)
    assert mails()[-1].subject == "Your password was changed"
    names = [one.event_name for one in db.session.scalars(db.select(AuditEvent).order_by(AuditEvent.id))]
    assert names[0] == "password_reset_requested"
    assert "user_password_updated" in names


def test_a_link_works_once(app, visitor, token):
    assert [reset(visitor, token).status_code, reset(visitor, token, "another one").status_code] == [302, 422]
    assert can_sign_in(app, NEW)


def test_a_new_password_invalidates_all_links(visitor, token, paula):
    visitor.send(REQUEST, email="paula@example.org")
    run_requests()
    reset(visitor, token)

    assert reset(visitor, TOKEN.search(mails()[1].body).group(1)).status_code == 422


@pytest.mark.both_databases
def test_only_one_of_several_concurrent_uses_of_a_link_is_accepted(app, token, paula):
    db.session.remove()

    def use(number):
        with app.app_context():
            try:
                with unit_of_work():
                    password_resets.reset_password(token, f"password number {number}", None)
            except Invalid:
                return False
            return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(use, range(4))) == [False, False, False, True]


def test_a_changed_email_address_invalidates_the_links(visitor, token, paula, as_admin):
    as_admin.put(f"/users/{paula.id}", json={"email": "new@example.org"})

    assert reset(visitor, token).status_code == 422
    assert (mails()[-1].recipient, mails()[-1].subject) == ("paula@example.org", "Your e-mail address was changed")


def test_a_link_expires_after_an_hour(app, visitor, token, monkeypatch):
    later = clock.now() + dt.timedelta(minutes=61)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert reset(visitor, token).status_code == 422
    assert can_sign_in(app, PASSWORD)
    with unit_of_work():
        password_resets.prune()
    assert db.session.scalar(db.select(PasswordReset)) is None


@pytest.mark.parametrize(("password", "repeated"), [("short", None), (NEW, "another"), ("x" * 129, None)])
def test_a_refused_password_leaves_the_link_valid(password, repeated, visitor, token):
    assert reset(visitor, token, password, repeated).status_code == 422
    assert reset(visitor, token).status_code == 302


def test_the_response_does_not_reveal_whether_an_address_is_known(visitor, paula):
    def request(email):
        response = visitor.send(REQUEST, email=email)
        return response.status_code, response.location, "If an account has" in visitor.get(SIGN_IN).text

    known, unknown = request("paula@example.org"), request("nobody@example.org")
    tasks = list(db.session.scalars(db.select(Task).order_by(Task.id)))
    run_requests()

    assert known == unknown == (302, SIGN_IN, True)
    assert [task.arguments[0] for task in tasks] == ["paula@example.org", "nobody@example.org"]
    assert [one.recipient for one in mails()] == ["paula@example.org"]


def test_blocked_users_get_no_mail(visitor, paula):
    db.session.get(User, paula.id).state = BLOCKED
    db.session.commit()
    visitor.send(REQUEST, email="paula@example.org")
    run_requests()

    assert mails() == []


def test_the_token_is_not_stored(token):
    assert db.session.scalar(db.select(PasswordReset).where(PasswordReset.digest == token)) is None


def test_mails_to_one_address_are_limited_per_hour(visitor, paula):
    responses = [visitor.send(REQUEST, email="paula@example.org").status_code for _ in range(5)]
    run_requests()

    assert (responses, len(mails())) == ([302] * 5, password_resets.MAILS.calls)


def test_requests_of_one_client_are_limited_per_hour(visitor, app):
    numbers = range(password_resets.REQUESTS.calls + 1)

    assert [visitor.send(REQUEST, email=f"{number}@example.org").status_code for number in numbers][-2:] == [302, 429]


def test_tokens_cannot_be_guessed(visitor, token):
    for number in range(password_resets.ATTEMPTS.calls):
        reset(visitor, f"guess {number}")

    response = reset(visitor, token)
    assert (response.status_code, "Too many attempts" in response.text) == (422, True)


def test_without_mail_the_page_refers_to_an_administrator(visitor, paula, monkeypatch):
    monkeypatch.setattr(mail, "is_on", lambda: False)

    assert "sends no mail" in visitor.get(REQUEST).text
    assert "Forgot your password" not in visitor.get(SIGN_IN).text
    assert visitor.send(REQUEST, email="paula@example.org").status_code == 422
