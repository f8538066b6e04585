"""Authentication of the API (common reference, section 6)."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.accounts.tokens import PersonalAccessToken, digest_of
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, MAX, NOBODY, reload

UNAUTHORIZED = {"message": "401 Unauthorized"}
EXPIRED = "Token is expired. You can either do re-authorization or token refresh."
REVOKED = "Token was revoked. You have to re-authorize from the user."
BLOCKED = "403 Forbidden - Your account has been blocked."
DEACTIVATED = (
    "403 Forbidden - Your account has been deactivated by your administrator. "
    "Please log back in from a web browser to reactivate your account at http://localhost"
)
TODAY, YESTERDAY, TOMORROW = (clock.today() + dt.timedelta(days=days) for days in (0, -1, 1))


def insufficient(scopes):
    text = "The request requires higher privileges than provided by the access token."
    return {"error": "insufficient_scope", "error_description": text, "scope": scopes}


def invalid_token(text):
    return {"error": "invalid_token", "error_description": text}


def told(response):
    return response.status_code, response.json


@pytest.fixture
def token(people, client_of):
    """The text of a valid token of max."""
    return client_of(people["max"]).token


def test_a_token_is_accepted_in_every_documented_place(token, as_):
    nobody = as_(NOBODY)

    for options in (
        {"headers": {"PRIVATE-TOKEN": token}},
        {"headers": {"private-token": token}},
        {"headers": {"Authorization": f"Bearer {token}"}},
        {"headers": {"Authorization": f"bearer  {token}"}},
        {"query_string": {"private_token": token}},
        {"query_string": {"access_token": token}},
        {"query_string": {"private_token": token}, "headers": {"PRIVATE-TOKEN": "other"}},
        {"headers": {"PRIVATE-TOKEN": token, "Authorization": "Bearer other"}},
        {"headers": {"PRIVATE-TOKEN": token, "Authorization": "Basic b3RoZXI6"}},
        {"query_string": {"private_token": ""}, "headers": {"PRIVATE-TOKEN": "", "Authorization": f"Bearer {token}"}},
    ):
        assert nobody.get("/user", **options).json["username"] == "max"


def test_a_token_may_be_in_a_body(token, project, as_):
    pair = {"key": "A", "value": "1"}

    for name, scope in (("private_token", "a"), ("access_token", "b")):
        body = pair | {name: token, "environment_scope": scope}
        assert as_(NOBODY).post(f"/projects/{project.id}/variables", json=body).status_code == 201


def test_bearer_and_access_token_together_are_refused(token, as_):
    response = as_(NOBODY).get(f"/user?access_token={token}", headers={"Authorization": f"Bearer {token}"})

    assert (response.status_code, response.json["error"]) == (400, "invalid_request")


def test_a_request_without_a_token_is_anonymous(token, as_):
    for options in (
        {},
        {"headers": {"PRIVATE-TOKEN": ""}},
        {"headers": {"Authorization": "Bearer "}},
        {"headers": {"Authorization": "Bearer"}},
        {"headers": {"Authorization": token}},
        {"headers": {"Authorization": f"Basic {token}"}},
        {"query_string": "private_token=&access_token="},
    ):
        needed, open_to_all = as_(NOBODY).get("/user", **options), as_(NOBODY).get("/projects", **options)
        assert (told(needed), open_to_all.status_code) == ((401, UNAUTHORIZED), 200)
        assert "WWW-Authenticate" not in needed.headers


@pytest.mark.parametrize("path", ["/user", "/projects", "/groups", "/projects/1"])
def test_an_unknown_token_is_refused_on_public_routes(path, people, as_):
    response = as_(NOBODY).get(path, headers={"PRIVATE-TOKEN": "unknown"})

    assert told(response) == (401, UNAUTHORIZED)
    assert "WWW-Authenticate" not in response.headers


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"expires_at": YESTERDAY}, EXPIRED),
        ({"expires_at": TODAY}, EXPIRED),
        ({"revoked": True}, REVOKED),
        ({"revoked": True, "expires_at": TODAY}, EXPIRED),
    ],
)
def test_expired_and_revoked_tokens_are_refused_with_the_reason(fields, text, people, client_of):
    response = client_of(people["max"], "read_registry", **fields).get("/projects")

    challenge = f'Bearer realm="Protected by OAuth 2.0", error="invalid_token", error_description="{text}"'
    assert told(response) == (401, invalid_token(text))
    assert response.headers["WWW-Authenticate"] == challenge


def test_a_token_is_valid_until_its_expiry_date(people, client_of):
    assert client_of(people["max"], expires_at=TOMORROW).get("/user").status_code == 200


@pytest.mark.parametrize(("state", "text"), [("blocked", BLOCKED), ("deactivated", DEACTIVATED)])
def test_blocked_users_get_the_reason_before_scope_errors(state, text, people, client_of):
    people["max"].state = state
    db.session.commit()

    response = client_of(people["max"], "read_registry").get("/projects")

    assert told(response) == (403, {"message": text})
    assert "WWW-Authenticate" not in response.headers


def test_the_token_of_a_deleted_user_is_unknown(people, client_of, as_admin):
    client = client_of(people["sam"])
    as_admin.delete(f"/users/{people['sam'].id}")

    assert told(client.get("/user")) == (401, UNAUTHORIZED)


def test_a_read_only_token_is_sufficient_for_reading(group, people, client_of):
    reader = client_of(people["olive"], "read_api")

    refusals = [told(reader.open(method, f"/groups/{group.id}")) for method in ("PUT", "DELETE")]

    assert (reader.get("/groups").status_code, reader.head("/groups").status_code) == (200, 200)
    assert refusals == [(403, insufficient("api read_api"))] * 2
    assert told(reader.post("/groups", json={})) == (403, insufficient("api read_api"))


@pytest.mark.parametrize("path", ["/user", "/users", "/users/{}", "/version", "/metadata"])
def test_a_read_user_token_reads_nothing_else(path, people, client_of):
    reader = client_of(people["max"], "read_user")
    address = path.format(people["max"].id)

    assert (reader.get(address).status_code, reader.head(address).status_code) == (200, 200)
    assert told(reader.get("/groups")) == (403, insufficient("api read_api"))
    assert told(reader.post("/groups", json={})) == (403, insufficient("api read_api"))
    assert told(reader.post("/users", json={})) == (403, insufficient("read_user api read_api"))


@pytest.mark.parametrize("scope", ["read_repository", "write_repository", "read_registry", "write_registry", "sudo"])
def test_other_scopes_grant_nothing(scope, people, client_of):
    client = client_of(people["ada"], scope)

    assert told(client.get("/projects")) == (403, insufficient("api read_api"))
    assert told(client.get("/user")) == (403, insufficient("read_user api read_api"))


def test_every_token_may_show_and_revoke_itself(people, client_of):
    client = client_of(people["max"], "read_registry")

    found = [client.get("/personal_access_tokens/self").status_code]
    found += [client.delete("/personal_access_tokens/self").status_code]

    assert (found, told(client.get("/user"))) == ([200, 204], (401, invalid_token(REVOKED)))


@pytest.mark.parametrize("wanted", ["max", "MAX", "id"])
def test_an_administrator_acts_for_another_user_with_sudo(wanted, people, client_of):
    admin = client_of(people["ada"], "api", "sudo")
    wanted = people["max"].id if wanted == "id" else wanted

    as_parameter, as_header = admin.get(f"/user?sudo={wanted}"), admin.get("/user", headers={"Sudo": str(wanted)})

    assert (as_parameter.json["username"], as_header.json["username"]) == ("max", "max")
    assert told(admin.get(f"/features?sudo={wanted}")) == (403, {"message": "403 Forbidden"})


@pytest.mark.parametrize(
    ("person", "scopes", "wanted", "refusal"),
    [
        (MAX, ("api", "sudo"), "ada", (403, {"message": "403 Forbidden - Must be admin to use sudo"})),
        (ADA, ("api",), "max", (403, insufficient("sudo"))),
        (ADA, ("api", "sudo"), "123456", (404, {"message": "404 User with ID or username '123456' Not Found"})),
        (ADA, ("api", "sudo"), "no-one", (404, {"message": "404 User with ID or username 'no-one' Not Found"})),
    ],
)
def test_sudo_is_refused_in_these_cases(person, scopes, wanted, refusal, people, client_of):
    client = client_of(people[person], *scopes)

    assert told(client.get(f"/user?sudo={wanted}")) == refusal
    assert told(client.get("/user", headers={"Sudo": wanted})) == refusal


def test_anonymous_callers_cannot_use_sudo(people, as_):
    assert told(as_(NOBODY).get("/user?sudo=ada")) == (401, UNAUTHORIZED)


def test_every_request_counts_as_activity_of_today(people, client_of):
    client = client_of(people["max"], last_used_at=None)
    people["max"].last_activity_on = None
    db.session.commit()

    client.get("/projects/999")

    used = db.session.query(PersonalAccessToken).filter_by(digest=digest_of(client.token)).one().last_used_at
    assert reload(people["max"]).last_activity_on == TODAY
    assert clock.now() - used < dt.timedelta(minutes=1)


@pytest.mark.both_databases
def test_the_last_use_is_updated_at_intervals(people, client_of, count_queries):
    client = client_of(people["max"])
    client.get("/user")

    with count_queries() as queries:
        client.get("/user")

    assert not [query for query in queries if query.startswith("UPDATE")]


def test_a_refused_request_does_not_count_as_activity(people, client_of):
    db.session.query(User).update({"last_activity_on": None})
    db.session.commit()

    client_of(people["max"], revoked=True).get("/user")

    assert reload(people["max"]).last_activity_on is None
