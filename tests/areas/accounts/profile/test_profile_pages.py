"""A user's own settings: profile, password, sessions."""

from __future__ import annotations

import re

import pytest

from project_service.domain.accounts.bots import ALERT_BOT, bot
from project_service.domain.accounts.sign_ins import MAX_FAILURES_OF_ACCOUNT
from project_service.domain.accounts.tokens import BrowserSession
from project_service.kit.db.session import db
from project_service.kit.security.passwords import password_matches
from tests.areas.accounts.sign_in.test_sessions import is_signed_in, sign_in
from tests.support.sample_data import ADA, MAX, PASSWORD, SAM, reload
from tests.support.visitors import Visitor

PROFILE, SESSIONS = "/-/profile", "/-/profile/sessions"
CHOSEN = "green-tea-4711"


def choose(visitor, current=PASSWORD, new=CHOSEN, repeated=None):
    fields = {"current_password": current, "new_password": new, "repeated": new if repeated is None else repeated}
    return visitor.send("/-/profile/password", **fields)


@pytest.fixture
def signed_in(visitor, paula):
    sign_in(visitor)
    return visitor


def test_a_profile_is_changed_and_the_theme_is_used(maintainer, people):
    response = maintainer.send(PROFILE, name="Max M.", email=people[MAX].email, bio="Likes tests.", theme="dark")

    user = reload(people[MAX])
    assert response.location == PROFILE
    assert (user.name, user.bio, user.theme) == ("Max M.", "Likes tests.", "dark")
    assert '<html lang="en" data-theme="dark">' in maintainer.get("/").text


def test_pages_show_times_in_the_zone_of_the_reader(visit, people):
    ada = visit(ADA)
    ada.send(PROFILE, name="Ada", email=people[ADA].email, theme="light", time_zone="Asia/Kathmandu")

    times = re.findall(r'title="[^"]+ UTC">[^<]+ \+0545</time>', ada.get("/-/styleguide").text)

    assert len(times) == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [("name", ""), ("email", "none"), ("email", "sam@example.org"), ("theme", "pink"), ("time_zone", "Mars")],
)
def test_an_invalid_profile_is_refused(field, value, maintainer, people):
    before = people[MAX].name, people[MAX].email
    fields = {"name": "Max", "email": "max@example.org", "bio": "", "theme": "light"} | {field: value}

    response = maintainer.send(PROFILE, **fields)

    user = reload(people[MAX])
    assert response.status_code == 422
    assert (user.name, user.email, user.theme) == (*before, "system")


@pytest.mark.parametrize(
    ("password", "text", "email"),
    [
        (PASSWORD, "", "p@example.org"),
        ("wrong", "is not right", "paula@example.org"),
        ("", "is missing", "paula@example.org"),
    ],
)
def test_a_new_email_address_needs_the_current_password(password, text, email, signed_in, paula):
    fields = {"name": "Paula", "bio": "", "theme": "light", "current_password": password}

    response = signed_in.send(PROFILE, email="p@example.org", **fields)

    assert response.status_code == (422 if text else 302)
    assert text in response.text
    assert reload(paula).email == email


def test_wrong_passwords_for_a_new_email_address_count_as_failed_sign_ins(signed_in, paula):
    fields = {"name": "Paula", "bio": "", "theme": "light", "email": "p@example.org", "current_password": "wrong"}
    for _ in range(MAX_FAILURES_OF_ACCOUNT):
        signed_in.send(PROFILE, **fields)

    assert "wrong too often" in signed_in.send(PROFILE, **fields).text


def test_a_new_password_ends_the_other_sessions(app, signed_in, paula):
    other = Visitor(app)
    sign_in(other)

    response = choose(signed_in)

    assert response.status_code == 302
    assert (is_signed_in(signed_in), is_signed_in(other)) == (True, False)
    assert password_matches(reload(paula).password_hash, CHOSEN)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"current": "wrong"}, "is not right"),
        ({"new": "short"}, "too short"),
        ({"repeated": "another-one"}, "is another one"),
        ({"new": PASSWORD}, "has to differ"),
        ({"current": ""}, "is missing"),
    ],
)
def test_an_invalid_password_is_refused(changes, text, signed_in, paula):
    response = choose(signed_in, **changes)

    assert response.status_code == 422
    assert text in response.text
    assert password_matches(reload(paula).password_hash, PASSWORD)


def test_wrong_current_passwords_count_as_failed_sign_ins(signed_in, paula):
    for _ in range(MAX_FAILURES_OF_ACCOUNT):
        choose(signed_in, current="wrong")

    assert "wrong too often" in choose(signed_in).text


def test_sessions_are_listed_and_ended(app, signed_in, paula):
    other = Visitor(app)
    other.cookies.environ_base["HTTP_USER_AGENT"] = "Lynx"
    sign_in(other)
    ended = db.session.query(BrowserSession.id).filter_by(agent="Lynx").scalar()

    listed = signed_in.get(SESSIONS).text
    signed_in.send(f"{SESSIONS}/{ended}/end")

    assert ("Lynx" in listed, "this browser" in listed) == (True, True)
    assert (is_signed_in(signed_in), is_signed_in(other)) == (True, False)


def test_all_other_sessions_are_ended_at_once(app, signed_in, paula):
    other = Visitor(app)
    sign_in(other)

    signed_in.send(f"{SESSIONS}/end_others")

    assert (is_signed_in(signed_in), is_signed_in(other)) == (True, False)


def test_sessions_of_other_users_cannot_be_ended(visit, signed_in, paula):
    stranger = visit(SAM)
    session_id = db.session.query(BrowserSession.id).filter_by(user_id=paula.id).scalar()

    stranger.send(f"{SESSIONS}/{session_id}/end")

    assert is_signed_in(signed_in)


def test_a_bot_has_a_page_like_every_author(signed_in):
    bot(ALERT_BOT)
    db.session.commit()

    assert "Alert Bot" in signed_in.get("/alert-bot").text
    assert signed_in.get("/nobody-of-this-name").status_code == 404
