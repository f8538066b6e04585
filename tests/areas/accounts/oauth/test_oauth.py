"""Tokens for passwords: ``/oauth/token`` and what its tokens may do."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.accounts.oauth.jobs import delete_old_oauth_tokens
from project_service.areas.accounts.sign_in import sessions
from project_service.domain import instance_settings
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import OAuthToken
from project_service.domain.accounts.users import BLOCKED, User
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import PASSWORD, add_member, make_token, reload

TOKEN, INFO, REVOKE = "/oauth/token", "/oauth/token/info", "/oauth/revoke"
RIGHT = {"grant_type": "password", "username": "paula", "password": PASSWORD}
ME = "/api/v4/user"


@pytest.fixture
def client(app, paula):
    """An anonymous client of a server that gives tokens for passwords."""
    with unit_of_work():
        instance_settings.change_settings({"ropc_without_client_credentials": True})
    return app.test_client()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def issued(client, **more):
    response = client.post(TOKEN, data=RIGHT | more)
    assert response.status_code == 200, response.text
    return response.json


def test_a_password_is_exchanged_for_a_token(client, paula):
    response = client.post(TOKEN, json=RIGHT | {"username": paula.email}, headers={"Origin": "https://a.example"})

    answer = response.json
    assert list(answer) == ["access_token", "token_type", "expires_in", "refresh_token", "scope", "created_at"]
    assert (answer["token_type"], answer["expires_in"], answer["scope"]) == ("Bearer", 7200, "api")
    assert (len(answer["access_token"]), len(answer["refresh_token"])) == (64, 64)
    headers = [response.headers[name] for name in ("Cache-Control", "Pragma", "Access-Control-Allow-Origin")]
    assert headers == ["no-store", "no-cache", "*"]
    assert client.get(ME, headers=bearer(answer["access_token"])).json["username"] == "paula"
    assert client.get(f"{ME}?access_token={answer['access_token']}").status_code == 200


def test_a_token_is_no_personal_access_token(client):
    token = issued(client)["access_token"]

    answers = [
        client.get(ME, headers={"PRIVATE-TOKEN": token}),
        client.get(f"{ME}?private_token={token}"),
        client.post("/api/v4/personal_access_tokens/self/rotate", headers=bearer(token)),
    ]

    assert [answer.status_code for answer in answers] == [401, 401, 405]


def test_scopes_limit_a_token(client):
    token = issued(client, scope="read_user read_api")["access_token"]

    refused = client.post("/api/v4/projects", json={"name": "x"}, headers=bearer(token))

    assert (refused.status_code, refused.json["error"]) == (403, "insufficient_scope")


@pytest.mark.parametrize(
    ("fields", "status", "error"),
    [
        ({"password": "wrong"}, 400, "invalid_grant"),
        ({"password": ""}, 400, "invalid_grant"),
        ({"username": "nobody"}, 400, "invalid_grant"),
        ({"scope": "api all"}, 400, "invalid_scope"),
        ({"client_id": "a"}, 401, "invalid_client"),
        ({"grant_type": "authorization_code"}, 400, "unsupported_grant_type"),
        ({"grant_type": ""}, 400, "invalid_request"),
        ({"grant_type": "refresh_token", "refresh_token": "a"}, 400, "invalid_grant"),
    ],
    ids=["wrong", "empty", "unknown", "scope", "client", "grant", "no-grant", "refresh"],
)
def test_requests_are_refused_as_clients_expect(fields, status, error, client):
    response = client.post(TOKEN, data=RIGHT | fields)

    assert (response.status_code, response.json["error"]) == (status, error)
    assert response.headers["WWW-Authenticate"].startswith(f'Bearer realm="Doorkeeper", error="{error}", error_desc')


@pytest.mark.parametrize(
    "change",
    [{"two_factor_enabled": True}, {"password_expired": True}, {"state": BLOCKED}],
    ids=["two-factor", "expired-password", "blocked"],
)
def test_a_password_that_is_not_enough_is_refused_like_a_wrong_one(change, client, paula):
    wrong = client.post(TOKEN, data=RIGHT | {"password": "wrong"})
    with unit_of_work():
        db.session.execute(db.update(User).where(User.id == paula.id).values(change))

    refused = client.post(TOKEN, data=RIGHT)

    assert (refused.status_code, refused.json, refused.headers["WWW-Authenticate"]) == (
        400,
        wrong.json,
        wrong.headers["WWW-Authenticate"],
    )


@pytest.mark.parametrize("name", ["ropc_without_client_credentials", "password_authentication_enabled_for_git"])
def test_either_setting_switches_it_off(name, client):
    refresh = issued(client)["refresh_token"]
    with unit_of_work():
        instance_settings.change_settings({name: False})

    answers = [
        client.post(TOKEN, data=RIGHT),
        client.post(TOKEN, data={"grant_type": "refresh_token", "refresh_token": refresh}),
    ]

    text = f"Switch on {name} in the application settings, or use an access token."
    expected = {"error": "unsupported_grant_type", "error_description": text}
    assert [(answer.status_code, answer.json) for answer in answers] == [(400, expected)] * 2


def test_it_is_off_by_default(app, paula):
    assert app.test_client().post(TOKEN, data=RIGHT).json["error"] == "unsupported_grant_type"


def test_failures_are_limited_together_with_those_of_pages(client, visitor):
    for _ in range(5):
        client.post(TOKEN, data=RIGHT | {"password": "wrong"})
        visitor.send("/users/sign_in", login="paula", password="wrong")

    refused = client.post(TOKEN, data=RIGHT)

    assert (refused.status_code, refused.json["error"], "Retry-After" in refused.headers) == (
        429,
        "too_many_requests",
        True,
    )


def test_a_token_is_renewed_once(client):
    first = issued(client, scope="read_api")
    renewal = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}

    second, again = (client.post(TOKEN, data=renewal) for _ in range(2))

    assert (second.status_code, second.json["scope"], again.json["error"]) == (200, "read_api", "invalid_grant")
    assert client.get(ME, headers=bearer(second.json["access_token"])).status_code == 200
    assert client.get(ME, headers=bearer(first["access_token"])).json["error"] == "invalid_token"


def test_info_tells_what_a_token_may_do(client, paula):
    token = issued(client)["access_token"]

    shown, anonymous = client.get(INFO, headers=bearer(token)), client.get(INFO)
    personal = client.get(INFO, headers=bearer(make_token(paula, "api")))
    revoked = client.post(REVOKE, data={"token": token})
    ended = client.get(f"{INFO}?access_token={token}")

    assert shown.json["resource_owner_id"] == paula.id
    assert (shown.json["scope"], shown.json["scopes"], shown.json["application"]) == (["api"], ["api"], {"uid": None})
    assert 7190 < shown.json["expires_in"] == shown.json["expires_in_seconds"] <= 7200
    invalid = {"error": "invalid_token", "error_description": "The access token is invalid"}
    assert [(answer.status_code, answer.json) for answer in (anonymous, personal)] == [(401, invalid)] * 2
    assert (revoked.status_code, revoked.json) == (200, {})
    assert ended.json["error_description"] == "The access token was revoked"


def test_a_token_expires_after_two_hours_and_can_then_be_renewed(client, monkeypatch):
    first = issued(client)
    later = clock.now() + dt.timedelta(hours=2)
    monkeypatch.setattr(clock, "now", lambda: later)

    used, shown = (client.get(path, headers=bearer(first["access_token"])) for path in (ME, INFO))
    renewed = client.post(TOKEN, data={"grant_type": "refresh_token", "refresh_token": first["refresh_token"]})

    assert (used.status_code, used.json["error"]) == (401, "invalid_token")
    assert (shown.json["error_description"], renewed.status_code) == ("The access token expired", 200)


def test_tokens_end_with_the_sessions_of_a_user(client, paula):
    token = issued(client)["access_token"]
    with unit_of_work():
        sessions.end_sessions(reload(paula))

    assert client.get(ME, headers=bearer(token)).status_code == 401


def test_git_accepts_a_token_as_password(client, project, paula):
    add_member(project, paula, Role.DEVELOPER)
    whole, narrow = issued(client)["access_token"], issued(client, scope="read_user")["access_token"]

    answers = [
        client.get("/acme/shop.git/info/refs?service=git-upload-pack", auth=("oauth2", token))
        for token in (whole, narrow)
    ]

    assert [answer.status_code for answer in answers] == [200, 403]


def test_old_tokens_are_deleted(client, monkeypatch):
    issued(client)
    later = clock.now() + dt.timedelta(days=31)
    monkeypatch.setattr(clock, "now", lambda: later)

    delete_old_oauth_tokens()

    assert db.session.scalar(db.select(db.func.count()).select_from(OAuthToken)) == 0
