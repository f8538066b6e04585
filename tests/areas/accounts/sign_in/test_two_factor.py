"""Two-factor authentication: setup, sign-in, replay, guessing, recovery codes, and requirement."""

from __future__ import annotations

import datetime as dt
import re
from concurrent.futures import ThreadPoolExecutor

import pyotp
import pytest
from click.testing import CliRunner

from project_service.areas.accounts.sign_in import two_factor
from project_service.areas.accounts.sign_in.models import RecoveryCode, TwoFactorSecret
from project_service.cli import accounts as commands
from project_service.domain import instance_settings
from project_service.domain.accounts.tokens import BrowserSession
from project_service.domain.accounts.users import User
from project_service.domain.audit.models import AuditEvent
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import ADA, MAX, PASSWORD, add_member, make_token
from tests.support.visitors import Visitor

SIGN_IN, SECOND_STEP, SETUP = "/users/sign_in", "/users/sign_in/two_factor", "/-/profile/two_factor_auth"
KEY = re.compile(r"<code>([A-Z2-7 ]+)</code>")
CODES = re.compile(r"[a-z0-9]{5}(?:-[a-z0-9]{5}){4}")
STEP = dt.timedelta(seconds=30)


@pytest.fixture
def _frozen(monkeypatch):
    """A fixed clock, so that a test does not cross a time step."""
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)


pytestmark = pytest.mark.usefixtures("_frozen")


def code_at(secret, steps=0):
    return pyotp.TOTP(secret).at(clock.now() + steps * STEP)


def sign_in(visitor, password=PASSWORD):
    return visitor.send(SIGN_IN, login="paula", password=password)


def is_signed_in(visitor):
    return visitor.get("/").status_code == 200


def names_of_events():
    return [one.event_name for one in db.session.scalars(db.select(AuditEvent).order_by(AuditEvent.id))]


@pytest.fixture
def secret(paula):
    """The secret of paula, who has two-factor authentication; its current code is unused."""
    text = pyotp.random_base32()
    with unit_of_work():
        two_factor.enable(db.session.get(User, paula.id), text, code_at(text, -1))
    return text


@pytest.fixture
def recovery_codes(secret, paula):
    with unit_of_work():
        return two_factor.replace_recovery_codes(db.session.get(User, paula.id))


def test_the_setup_shows_key_and_recovery_codes_once(visitor, app, paula):
    sign_in(visitor)
    other = Visitor(app)
    sign_in(other)
    page = visitor.get(SETUP)
    secret = KEY.search(page.text).group(1).replace(" ", "")
    assert (
        KEY.search(visitor.get(SETUP).text).group(1).replace(" ", "") == secret
    )  # unchanged until the setup is finished

    response = visitor.send(SETUP, code=code_at(secret), current_password=PASSWORD)

    codes = CODES.findall(response.text)
    assert (response.status_code, len(set(codes))) == (200, two_factor.RECOVERY_CODES)
    assert "<svg" in page.text
    assert "style=" not in page.text
    assert not CODES.search(visitor.get(SETUP).text)
    assert is_signed_in(visitor)
    assert not is_signed_in(other)
    stored = db.session.execute(db.text("SELECT secret FROM two_factor_secrets")).scalar_one()
    assert secret not in stored
    assert not {one.digest for one in db.session.scalars(db.select(RecoveryCode))} & set(codes)
    assert names_of_events()[-1] == "user_enable_two_factor"


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"code": "000000", "current_password": PASSWORD}, "is not right"),
        ({"code": "right", "current_password": "wrong"}, "is not right"),
        ({"code": "", "current_password": PASSWORD}, "is missing"),
    ],
)
def test_the_setup_needs_code_and_password(fields, text, visitor, paula):
    sign_in(visitor)
    secret = KEY.search(visitor.get(SETUP).text).group(1).replace(" ", "")
    fields["code"] = code_at(secret) if fields["code"] == "right" else fields["code"]

    response = visitor.send(SETUP, **fields)

    assert (response.status_code, text in response.text) == (422, True)
    assert db.session.scalar(db.select(TwoFactorSecret)) is None


def test_the_password_alone_does_not_sign_in(visitor, secret):
    response = sign_in(visitor)

    assert (response.status_code, response.location) == (302, SECOND_STEP)
    assert not is_signed_in(visitor)
    assert db.session.scalar(db.select(BrowserSession)) is None
    assert visitor.send(SECOND_STEP, code="12345").status_code == 401
    assert visitor.send(SECOND_STEP, code=code_at(secret)).status_code == 302
    assert is_signed_in(visitor)
    assert names_of_events()[-2:] == ["login_failed_with_otp_authentication", "authenticated_with_two_factor"]


@pytest.mark.parametrize(("steps", "status"), [(-3, 401), (-2, 401), (0, 302), (1, 302), (2, 401)])
def test_clocks_may_differ_by_one_step(steps, status, visitor, secret):
    sign_in(visitor)

    assert visitor.send(SECOND_STEP, code=code_at(secret, steps)).status_code == status


def test_a_code_works_once(app, secret):
    responses = []
    for steps in (0, 0, -1):
        visitor = Visitor(app)
        sign_in(visitor)
        responses.append(visitor.send(SECOND_STEP, code=code_at(secret, steps)).status_code)

    assert responses == [302, 401, 401]


def test_without_a_password_there_is_no_second_step(visitor, secret):
    assert visitor.get(SECOND_STEP).location.startswith(SIGN_IN)
    response = visitor.send(SECOND_STEP, code=code_at(secret))

    assert (response.status_code, is_signed_in(visitor)) == (302, False)


def test_a_change_of_the_password_ends_the_second_step(visitor, secret, paula):
    sign_in(visitor)
    db.session.get(User, paula.id).password_hash = "another"
    db.session.commit()

    assert visitor.send(SECOND_STEP, code=code_at(secret)).location.startswith(SIGN_IN)


def test_the_second_step_expires(visitor, secret, monkeypatch):
    sign_in(visitor)
    later = clock.now() + dt.timedelta(minutes=11)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert visitor.send(SECOND_STEP, code=code_at(secret)).location.startswith(SIGN_IN)


def test_codes_cannot_be_guessed(app, secret):
    responses = []
    for number in range(two_factor.ATTEMPTS.calls + 1):
        visitor = Visitor(app)  # a new session and the right password do not reset the limit
        sign_in(visitor)
        responses.append(visitor.send(SECOND_STEP, code=f"{number:06}").status_code)

    last = visitor.send(SECOND_STEP, code=code_at(secret))
    assert responses == [401] * two_factor.ATTEMPTS.calls + [429]
    assert (last.status_code, is_signed_in(visitor)) == (429, False)


def test_a_recovery_code_works_once(app, recovery_codes):
    responses = []
    for text in (recovery_codes[0], recovery_codes[0].upper(), f" {recovery_codes[1].upper()} "):
        visitor = Visitor(app)
        sign_in(visitor)
        responses.append(visitor.send(SECOND_STEP, code=text).status_code)

    assert responses == [302, 401, 302]
    assert "8 recovery codes left" in visitor.get(SETUP).text


@pytest.mark.both_databases
@pytest.mark.parametrize("kind", ["code", "recovery code"])
def test_only_one_of_several_concurrent_uses_of_a_code_is_accepted(kind, app, secret, recovery_codes, paula):
    text = code_at(secret) if kind == "code" else recovery_codes[0]
    db.session.remove()

    def use(_):
        with app.app_context(), unit_of_work():
            return two_factor.verify(db.session.get(User, paula.id), text)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(use, range(4))) == [False, False, False, True]


def test_new_recovery_codes_replace_the_old(visitor, secret, recovery_codes):
    sign_in(visitor)
    visitor.send(SECOND_STEP, code=code_at(secret))
    refused = visitor.send(f"{SETUP}/codes", **{"codes-current_password": "wrong"})

    response = visitor.send(f"{SETUP}/codes", **{"codes-current_password": PASSWORD})

    assert (refused.status_code, CODES.findall(refused.text)) == (422, [])
    assert not set(CODES.findall(response.text)) & set(recovery_codes)
    visitor.send("/users/sign_out")
    sign_in(visitor)
    assert visitor.send(SECOND_STEP, code=recovery_codes[0]).status_code == 401


def test_users_disable_two_factor_with_their_password(visitor, secret, paula):
    sign_in(visitor)
    visitor.send(SECOND_STEP, code=code_at(secret))
    refused = visitor.send(f"{SETUP}/disable", **{"disable-current_password": "wrong"})
    visitor.send(f"{SETUP}/disable", **{"disable-current_password": PASSWORD})

    assert refused.status_code == 422
    assert not db.session.get(User, paula.id).two_factor_enabled
    assert db.session.scalar(db.select(TwoFactorSecret)) is None
    assert sign_in(visitor).location == "/"


@pytest.mark.parametrize("way", ["page", "api", "command"])
def test_administrators_reset_two_factor(way, visit, as_admin, visitor, secret, paula, people, app):
    sign_in(visitor)
    visitor.send(SECOND_STEP, code=code_at(secret))
    if way == "page":
        response = visit(ADA).send(f"/admin/users/{paula.id}/disable_two_factor")
        assert response.status_code == 302
    elif way == "api":
        path = f"/users/{paula.id}/disable_two_factor"
        assert [as_admin.patch(path).status_code for _ in range(2)] == [204, 400]
    else:
        with unit_of_work():
            two_factor.reset_for(db.session.get(User, paula.id))

    assert not is_signed_in(visitor)
    assert sign_in(visitor).location == "/"
    assert names_of_events().count("user_disable_two_factor") == 1


def test_only_administrators_reset_two_factor(as_, people, paula, secret):
    assert as_(MAX).patch(f"/users/{paula.id}/disable_two_factor").status_code == 403


def test_the_api_shows_and_filters_two_factor(as_admin, secret, paula):
    assert [user["username"] for user in as_admin.get("/users?two_factor=enabled").json] == ["paula"]
    assert "paula" not in {user["username"] for user in as_admin.get("/users?two_factor=disabled").json}
    assert as_admin.get(f"/users/{paula.id}").json["two_factor_enabled"] is True


def test_git_accepts_tokens_but_not_the_password(app, project, secret, paula):
    add_member(project, paula, 30)
    token = make_token(paula, "read_repository")

    def status(password):
        path = "/acme/shop.git/info/refs?service=git-upload-pack"
        return app.test_client().get(path, auth=("paula", password)).status_code

    assert (status(PASSWORD), status(code_at(secret)), status(token) != 401) == (401, 401, True)


def require(hours):
    with unit_of_work():
        instance_settings.change_settings({"require_two_factor_authentication": True, "two_factor_grace_period": hours})


def test_a_required_second_factor_is_set_up_before_the_end_of_the_grace_period(visitor, paula, monkeypatch):
    sign_in(visitor)
    require(hours=2)
    assert "Set up two-factor authentication</a> before" in visitor.get("/").text
    later = clock.now() + dt.timedelta(hours=2)
    monkeypatch.setattr(clock, "now", lambda: later)

    responses = [visitor.get("/"), visitor.send("/-/profile", name="Paula"), visitor.get("/-/profile/password")]

    assert {(response.status_code, response.location) for response in responses} == {(302, SETUP)}
    secret = KEY.search(visitor.get(SETUP).text).group(1).replace(" ", "")
    visitor.send(SETUP, code=code_at(secret), current_password=PASSWORD)
    assert is_signed_in(visitor)
    refused = visitor.send(f"{SETUP}/disable", **{"disable-current_password": PASSWORD})
    assert (refused.status_code, "requires two-factor" in refused.text) == (422, True)


def test_a_required_second_factor_disables_passwords_of_git(app, project, paula, monkeypatch):
    add_member(project, paula, 30)
    require(hours=2)

    def status():
        path = "/acme/shop.git/info/refs?service=git-upload-pack"
        return app.test_client().get(path, auth=("paula", PASSWORD)).status_code

    assert status() != 401  # the grace period begins
    later = clock.now() + dt.timedelta(hours=2)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert status() == 401


def test_the_grace_period_restarts_when_it_is_required_again(visitor, paula, as_admin):
    sign_in(visitor)
    require(hours=0)
    assert visitor.get("/").location == SETUP
    as_admin.put("/application/settings", json={"require_two_factor_authentication": False})
    assert is_signed_in(visitor)
    require(hours=1)
    assert is_signed_in(visitor)


def test_the_command_explains_its_errors(monkeypatch, app, paula):
    monkeypatch.setattr(commands, "create_app", lambda: app)

    unknown = CliRunner().invoke(commands.user, ["disable-two-factor", "nobody"])
    off = CliRunner().invoke(commands.user, ["disable-two-factor", "paula"])

    assert (unknown.exit_code, "there is no user nobody" in unknown.output) == (1, True)
    assert (off.exit_code, "not enabled" in off.output) == (1, True)
