"""Signing in and out, and the validity of sessions."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from project_service.access.identity import SESSION_KEY
from project_service.domain.accounts.sign_ins import MAX_FAILURES_OF_ACCOUNT
from project_service.domain.accounts.tokens import BrowserSession
from project_service.domain.accounts.users import DEACTIVATED
from project_service.domain.rate_limits import RateLimitWindow
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.security import key_ring, passwords
from tests.conftest import SQLITE, make_app
from tests.support import sample_data
from tests.support.sample_data import ADA, MAX, PASSWORD, SAM

HOME, SIGN_IN, SIGN_OUT = "/", "/users/sign_in", "/users/sign_out"
COOKIE = "project_service"
WRONG = "Invalid login or password."


def sign_in(visitor, login="paula", password=PASSWORD, address=SIGN_IN):
    return visitor.send(address, login=login, password=password)


def is_signed_in(visitor):
    return visitor.get(HOME).status_code == 200


@pytest.mark.parametrize("login", ["paula", "paula@example.org", "PAULA", " paula "])
def test_users_sign_in_with_username_or_email(login, visitor, paula):
    response = sign_in(visitor, login)

    assert (response.status_code, response.location) == (302, HOME)
    assert is_signed_in(visitor)


@pytest.mark.parametrize(("login", "password"), [("paula", "wrong"), ("nobody", PASSWORD), ("max", ""), ("max", "x")])
def test_a_refused_sign_in_does_not_reveal_the_reason(login, password, visitor, paula, people):
    response = sign_in(visitor, login, password)

    assert response.status_code == (401 if password else 422)
    assert (WRONG in response.text) is bool(password)
    assert not is_signed_in(visitor)


def test_a_refused_form_keeps_its_values_except_the_password(visitor, paula):
    text = sign_in(visitor, "paula", "hunter two").text

    assert 'value="paula"' in text
    assert "hunter two" not in text


def test_after_ten_failures_the_right_password_is_refused_too(visitor, paula):
    failures = [sign_in(visitor, password="wrong").status_code for _ in range(MAX_FAILURES_OF_ACCOUNT)]

    response = sign_in(visitor)

    assert failures == [401] * MAX_FAILURES_OF_ACCOUNT
    assert (response.status_code, "Try again in 10 minutes." in response.text) == (429, True)
    assert not is_signed_in(visitor)


def test_failed_sign_ins_expire(visitor, paula):
    for _ in range(MAX_FAILURES_OF_ACCOUNT):
        sign_in(visitor, password="wrong")
    db.session.query(RateLimitWindow).update({"until": clock.now()})
    db.session.commit()

    assert sign_in(visitor).status_code == 302


def test_trying_many_accounts_from_one_address_is_limited(visitor, paula):
    subject = "sign_in:address:127.0.0.1"
    db.session.add(RateLimitWindow(subject=subject, calls=50, until=clock.now() + dt.timedelta(minutes=1)))
    db.session.commit()

    assert sign_in(visitor).status_code == 429


def test_signing_in_starts_a_new_session(visitor, paula):
    with visitor.cookies.session_transaction() as session:
        session.update({SESSION_KEY: "planted by somebody else", "planted": "too"})

    sign_in(visitor)

    with visitor.cookies.session_transaction() as session:
        assert session[SESSION_KEY] != "planted by somebody else"
        assert "planted" not in session


def test_each_sign_in_creates_its_own_session(app, visitor, paula):
    for _ in range(2):
        sign_in(visitor)
        visitor.cookies.delete_cookie(COOKIE)

    assert len({row.digest for row in db.session.query(BrowserSession)}) == 2


def test_a_cookie_is_invalid_after_signing_out(visitor, paula):
    sign_in(visitor)
    cookie = visitor.cookies.get_cookie(COOKIE).value

    response = visitor.send(SIGN_OUT)
    visitor.cookies.set_cookie(COOKIE, cookie)

    assert (response.status_code, response.location) == (302, SIGN_IN)
    assert not is_signed_in(visitor)


def test_signing_out_keeps_other_sessions(visitor, visit, paula):
    sign_in(visitor)
    other = type(visitor)(visitor.cookies.application)
    sign_in(other)

    visitor.send(SIGN_OUT)

    assert is_signed_in(other)


@pytest.mark.parametrize(
    ("method", "path", "fields"),
    [
        ("post", "block", {}),
        ("put", "", {"password": "another long password"}),
        ("delete", "", {}),
    ],
)
def test_blocking_or_a_new_password_ends_sessions_at_once(method, path, fields, visitor, paula, as_):
    sign_in(visitor)
    assert is_signed_in(visitor)

    response = getattr(as_(ADA), method)(f"/users/{paula.id}/{path}".rstrip("/"), json=fields)

    assert response.status_code < 300
    assert not is_signed_in(visitor)


def test_a_session_expires(visit, people):
    visitor = visit(SAM)
    db.session.query(BrowserSession).update({"expires_at": clock.now()})
    db.session.commit()

    assert not is_signed_in(visitor)


def test_signing_in_reactivates_a_deactivated_user(visitor, paula):
    paula.state = DEACTIVATED
    db.session.commit()

    sign_in(visitor)

    assert is_signed_in(visitor)


def test_a_blocked_user_cannot_sign_in(visitor, paula, as_):
    as_(ADA).post(f"/users/{paula.id}/block")

    assert sign_in(visitor).status_code == 401


@pytest.mark.parametrize("target", ["/acme/shop", "/-/profile/personal_access_tokens?page=2", "/?search=a%20b"])
def test_signing_in_returns_to_the_requested_page(target, visitor, paula):
    response = sign_in(visitor, address=f"{SIGN_IN}?next={target.replace('%', '%25')}")

    assert response.location == target


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example",
        "//evil.example",
        "///evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/%09/evil.example",
        "%0a//evil.example",
        "javascript:alert(1)",
        "http:evil.example",
        "evil.example",
        "/a%0d%0aSet-Cookie:%20b=c",
    ],
)
def test_signing_in_does_not_redirect_to_another_site(target, visitor, visit, paula):
    signing_in = sign_in(visitor, address=f"{SIGN_IN}?next={target}")
    signed_in = visitor.get(f"{SIGN_IN}?next={target}")

    assert (signing_in.location, signed_in.location) == (HOME, HOME)


def test_the_cookie_is_host_only_and_http_only(visitor, paula):
    sign_in(visitor)
    cookie = visitor.cookies.get_cookie(COOKIE)

    assert (cookie.http_only, cookie.same_site, cookie.path, cookie.secure) == (True, "Lax", "/", False)
    assert cookie.domain in ("localhost", "")


@pytest.mark.parametrize(("minutes", "is_sent"), [(0, False), (4, False), (6, True)])
def test_the_cookie_is_renewed_after_some_minutes(minutes, is_sent, visitor, paula, monkeypatch):
    sign_in(visitor)
    visitor.open("GET", HOME)  # the first page sets the CSRF token
    later = clock.now() + dt.timedelta(minutes=minutes)
    monkeypatch.setattr(clock, "now", lambda: later)

    response = visitor.open("GET", HOME)

    assert (response.status_code, COOKIE in response.headers.get("Set-Cookie", "")) == (200, is_sent)


def test_during_a_key_rotation_every_page_renews_the_cookie(visitor, paula, monkeypatch):
    sign_in(visitor)
    visitor.open("GET", HOME)
    keys = key_ring.keyring().keys
    monkeypatch.setattr(key_ring, "keyring", lambda: key_ring.KeyRing(["n" * 32, *keys]))
    visitor.open("GET", HOME)
    monkeypatch.setattr(key_ring, "keyring", lambda: key_ring.KeyRing(["n" * 32]))

    assert visitor.open("GET", HOME).status_code == 200


def test_behind_https_the_cookie_is_secure(tmp_path):
    app = make_app(SQLITE, tmp_path, EXTERNAL_URL="https://projects.example.org")

    header = app.test_client().get(SIGN_IN).headers["Set-Cookie"]

    assert re.fullmatch(r"__Host-project_service=[^;]+; Secure; HttpOnly; Path=/; SameSite=Lax", header)


def test_a_forged_cookie_is_ignored(visitor, visit, people):
    signed = visit(MAX).cookies.get_cookie(COOKIE).value
    visitor.cookies.set_cookie(COOKIE, ("A" if signed[0] != "A" else "B") + signed[1:])

    assert not is_signed_in(visitor)


def test_a_session_authenticates_pages_but_not_the_api(visit, people):
    assert visit(MAX).get("/api/v4/user").status_code == 401


def test_a_token_authenticates_the_api_but_not_pages(visitor, people):
    token = sample_data.make_token(people[MAX])

    assert visitor.get(HOME, headers={"PRIVATE-TOKEN": token}).status_code == 302


def test_passwords_are_stored_as_argon2id():
    assert passwords.hash_password(PASSWORD).startswith("$argon2id$")


def test_cookies_signed_with_a_new_key_by_another_process_are_accepted(app, visitor):
    token = visitor.csrf_token()
    app.config.update(SECRET_KEY=b"that of before", SECRET_KEY_FALLBACKS=[], WTF_CSRF_SECRET_KEY=[b"that of before"])

    response = visitor.open(
        "POST", "/users/sign_in", data={"csrf_token": token, "login": "nobody", "password": "wrong"}
    )

    assert "Invalid login or password" in response.text


def test_a_form_opened_before_a_key_rotation_is_accepted(visitor, monkeypatch):
    token, keys = visitor.csrf_token(), key_ring.keyring().keys
    fields = {"login": "nobody", "password": "wrong"}

    def post(*keys):
        monkeypatch.setattr(key_ring, "keyring", lambda: key_ring.KeyRing([*keys]))
        return visitor.open("POST", "/users/sign_in", data={"csrf_token": token, **fields})

    rotated, forgotten = post("n" * 32, "m" * 32, *keys), post("n" * 32, "m" * 32)

    assert "Invalid login or password" in rotated.text
    assert forgotten.status_code == 400


def test_a_new_form_is_signed_with_the_newest_key(visitor, monkeypatch):
    keys = key_ring.keyring().keys
    monkeypatch.setattr(key_ring, "keyring", lambda: key_ring.KeyRing(["n" * 32, *keys]))
    token = visitor.csrf_token()
    monkeypatch.setattr(key_ring, "keyring", lambda: key_ring.KeyRing(["n" * 32]))

    response = visitor.open(
        "POST", "/users/sign_in", data={"csrf_token": token, "login": "nobody", "password": "wrong"}
    )

    assert "Invalid login or password" in response.text
