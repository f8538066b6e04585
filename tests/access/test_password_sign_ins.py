"""Sign-ins with a password, at the page and by git: equal for all who are refused, and limited by account."""

from __future__ import annotations

import contextvars
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from project_service.domain.accounts.sign_ins import MAX_FAILURES_OF_ACCOUNT
from project_service.domain.accounts.tokens import BrowserSession
from project_service.domain.accounts.users import BLOCKED, User
from project_service.domain.rate_limits import RateLimitWindow
from project_service.kit.db.session import db
from project_service.kit.security import passwords
from tests.support.sample_data import PASSWORD, make_user
from tests.support.visitors import Visitor

SIGN_IN, RESET = "/users/sign_in", "/users/password/new"
REFS = "/acme/shop.git/info/refs?service=git-upload-pack"
WRONG = "not the password"
VARYING = re.compile(r'name="csrf_token"[^>]*>|value="[^"]*"')
LOGINS = ("nobody", "nobody@example.org", "paula", "paula@example.org", "quiet@example.org", "blocked", "robot", "none")


@pytest.fixture
def accounts(paula, project, as_maintainer):
    """Paula may sign in; her e-mail address is hidden. Others may not: blocked, a bot, one without a password."""
    hashed = passwords.hash_password(PASSWORD)
    make_user("quiet", password_hash=hashed, public_email="shown@example.org")
    make_user("blocked", password_hash=hashed, state=BLOCKED)
    make_user("none")
    fields = {"name": "ci", "scopes": ["api"], "access_level": 30}
    bot_id = as_maintainer.post(f"/projects/{project.id}/access_tokens", json=fields).json["user_id"]
    bot = db.session.get_one(User, bot_id)
    bot.username, bot.password_hash = "robot", hashed
    db.session.commit()


@pytest.fixture
def verifications(monkeypatch):
    """Count the verifications of password hashes."""
    calls = []
    verify = passwords.argon2.PasswordHasher.verify
    monkeypatch.setattr(
        passwords.argon2.PasswordHasher, "verify", lambda *given: calls.append(given[1]) or verify(*given)
    )
    return calls


def by_page(app, login, password):
    visitor = Visitor(app)
    token = visitor.csrf_token()
    return visitor.open("POST", SIGN_IN, data={"csrf_token": token, "login": login, "password": password})


def by_git(app, login, password):
    db.session.remove()
    return contextvars.Context().run(app.test_client().get, REFS, auth=(login, password))


def shape_of(response):
    return response.status_code, VARYING.sub("", response.text)


@pytest.mark.both_databases
@pytest.mark.parametrize("send", [by_page, by_git])
def test_refusals_are_the_same_for_unknown_known_blocked_and_bot_users(
    send, app, accounts, verifications, count_queries
):
    send(app, "the first", WRONG)  # makes the hash that stands for missing ones
    seen = {}
    for login in LOGINS:
        verifications.clear()
        with count_queries() as statements:
            response = send(app, login, WRONG)
        seen[login] = (*shape_of(response), len(verifications), len(statements))

    assert {kind[0] for kind in seen.values()} == {401}
    assert len(set(seen.values())) == 1, {login: (kind[0], *kind[2:]) for login, kind in seen.items()}
    assert seen["nobody"][2] == 1


@pytest.mark.parametrize("login", ["blocked", "robot"])
@pytest.mark.parametrize("send", [by_page, by_git])
def test_the_right_password_of_a_user_who_may_not_sign_in_is_like_a_wrong_one(send, login, app, accounts):
    answers = [send(app, login, password) for password in [WRONG, PASSWORD] + [PASSWORD] * 8 + [WRONG, PASSWORD]]

    assert shape_of(answers[0]) == shape_of(answers[1])
    assert [answer.status_code for answer in answers] == [401] * MAX_FAILURES_OF_ACCOUNT + [429] * 2


@pytest.mark.parametrize("logins", [("paula", "PAULA", "paula@example.org", " Paula@Example.org "), ("x", "X", " x ")])
def test_spellings_of_a_login_are_one_account(logins, app, paula, project):
    names = (logins * MAX_FAILURES_OF_ACCOUNT)[: MAX_FAILURES_OF_ACCOUNT + 2]
    ways = (by_page, by_git) * MAX_FAILURES_OF_ACCOUNT

    statuses = [send(app, login, WRONG).status_code for send, login in zip(ways, names, strict=False)]

    assert statuses == [401] * MAX_FAILURES_OF_ACCOUNT + [429] * 2


def test_a_right_password_counts_nothing(app, paula, project):
    statuses = [by_git(app, "paula", PASSWORD).status_code for _ in range(MAX_FAILURES_OF_ACCOUNT + 2)]

    assert set(statuses) == {404}  # authenticated; the project is hidden
    assert set(db.session.scalars(db.select(RateLimitWindow.calls))) == {0}


def test_a_right_password_of_git_does_not_forgive_failures_of_others(app, paula, project):
    for _ in range(MAX_FAILURES_OF_ACCOUNT - 1):
        by_git(app, "paula", WRONG)
    by_git(app, "paula", PASSWORD)

    assert [by_page(app, "paula", WRONG).status_code, by_page(app, "paula", PASSWORD).status_code] == [401, 429]


@pytest.mark.both_databases
def test_concurrent_sign_ins_check_no_password_above_the_limit(app, paula, verifications):
    visitors = [Visitor(app) for _ in range(24)]
    fields = [{"csrf_token": one.csrf_token(), "login": "paula", "password": WRONG} for one in visitors]

    def sign_in(number):
        return visitors[number].cookies.post(SIGN_IN, data=fields[number]).status_code

    db.session.remove()
    with ThreadPoolExecutor(8) as clients:
        statuses = list(clients.map(sign_in, range(len(visitors))))

    assert len(verifications) == statuses.count(401) <= MAX_FAILURES_OF_ACCOUNT
    assert set(statuses) <= {401, 429, 503}


def test_addresses_of_one_ipv6_network_count_as_one(app, paula):
    visitor = Visitor(app)
    token = visitor.csrf_token()
    for number in range(50):
        fields = {"csrf_token": token, "login": f"user{number}", "password": WRONG}
        visitor.open("POST", SIGN_IN, data=fields, environ_overrides={"REMOTE_ADDR": f"2001:db8::{number:x}"})

    fields = {"csrf_token": token, "login": "paula", "password": PASSWORD}
    statuses = [
        visitor.open("POST", SIGN_IN, data=fields, environ_overrides={"REMOTE_ADDR": address}).status_code
        for address in ("2001:db8::ffff", "2001:db8:0:1::1")
    ]
    assert statuses == [429, 302]


def test_a_password_changed_during_the_check_begins_no_session(app, paula, monkeypatch):
    matches = passwords.password_matches

    def change_meanwhile(stored, password):
        with db.engine.begin() as connection:
            connection.execute(db.update(User).where(User.id == paula.id).values(password_hash="other"))
        return matches(stored, password)

    monkeypatch.setattr(passwords, "password_matches", change_meanwhile)

    assert by_page(app, "paula", PASSWORD).status_code == 401
    assert db.session.scalar(db.select(BrowserSession.id)) is None


def test_passwords_are_checked_without_holding_up_writers(app, paula, monkeypatch):
    matches, written = passwords.password_matches, []

    def write_meanwhile(stored, password):
        with ThreadPoolExecutor(1) as other, app.app_context():
            other.submit(write).result(timeout=5)
        return matches(stored, password)

    def write():
        with app.app_context(), db.engine.begin() as connection:
            written.append(connection.execute(db.update(User).where(User.id == paula.id).values(bio="x")).rowcount)

    monkeypatch.setattr(passwords, "password_matches", write_meanwhile)

    assert by_page(app, "paula", PASSWORD).status_code == 302
    assert written == [1]


def test_requests_for_a_new_password_are_the_same_for_all(app, accounts, count_queries, monkeypatch):
    monkeypatch.setattr("project_service.kit.mail.is_on", lambda: True)
    seen = set()
    for email in ("nobody@example.org", "paula@example.org", "blocked@example.org"):
        visitor = Visitor(app)
        token = visitor.csrf_token()
        with count_queries() as statements:
            response = visitor.open("POST", RESET, data={"csrf_token": token, "email": email})
        seen.add((*shape_of(response), response.location, len(statements)))

    assert len(seen) == 1
