"""Personal access tokens through HTTP, and their validity (supporting resources reference, section 4; common reference,
section 6)."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.accounts.tokens import SCOPES, PersonalAccessToken
from project_service.domain.accounts.users import BLOCKED
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    ROLES,
    SAM,
    add_member,
    make_group,
    make_token,
    make_user,
)

TOKEN = {
    "id",
    "name",
    "description",
    "revoked",
    "created_at",
    "scopes",
    "user_id",
    "last_used_at",
    "active",
    "expires_at",
}
UNAUTHORIZED = {"message": "401 Unauthorized"}
FORBIDDEN = {"message": "403 Forbidden"}
NOT_FOUND = {"message": "404 Not found"}
TODAY = clock.today()
TOMORROW, YESTERDAY = TODAY + dt.timedelta(days=1), TODAY - dt.timedelta(days=1)
NEW = {"name": "ci", "scopes": ["api", "read_user"]}

# Every endpoint of users, tokens, groups, projects and members. {p}, {g}, {h}, {u} and {t} are a project, its group,
# another group, a user and a token.
READ = [
    "/user",
    "/users",
    "/users/{u}",
    "/users/{u}/projects",
    "/personal_access_tokens",
    "/personal_access_tokens/self",
    "/personal_access_tokens/{t}",
    "/groups",
    "/groups/{g}",
    "/groups/{g}/projects",
    "/groups/{g}/subgroups",
    "/groups/{g}/descendant_groups",
    "/groups/{g}/members",
    "/groups/{g}/members/all",
    "/groups/{g}/members/{u}",
    "/groups/{g}/members/all/{u}",
    "/projects",
    "/projects/{p}",
    "/projects/{p}/members",
    "/projects/{p}/members/all",
    "/projects/{p}/members/{u}",
    "/projects/{p}/members/all/{u}",
]
WRITE = [
    ("POST", "/users"),
    ("PUT", "/users/{u}"),
    ("DELETE", "/users/{u}"),
    ("POST", "/users/{u}/block"),
    ("POST", "/users/{u}/unblock"),
    ("POST", "/users/{u}/personal_access_tokens"),
    ("DELETE", "/personal_access_tokens/{t}"),
    ("POST", "/personal_access_tokens/{t}/rotate"),
    ("POST", "/personal_access_tokens/self/rotate"),
    ("POST", "/groups"),
    ("PUT", "/groups/{g}"),
    ("DELETE", "/groups/{g}"),
    ("POST", "/groups/{g}/share"),
    ("DELETE", "/groups/{g}/share/{h}"),
    ("POST", "/groups/{g}/members"),
    ("PUT", "/groups/{g}/members/{u}"),
    ("DELETE", "/groups/{g}/members/{u}"),
    ("POST", "/projects"),
    ("POST", "/projects/user/{u}"),
    ("PUT", "/projects/{p}"),
    ("DELETE", "/projects/{p}"),
    ("POST", "/projects/{p}/archive"),
    ("POST", "/projects/{p}/unarchive"),
    ("POST", "/projects/{p}/share"),
    ("DELETE", "/projects/{p}/share/{h}"),
    ("POST", "/projects/{p}/members"),
    ("PUT", "/projects/{p}/members/{u}"),
    ("DELETE", "/projects/{p}/members/{u}"),
]
ALL = [("GET", path) for path in READ] + WRITE


def invalid(description):
    return {"error": "invalid_token", "error_description": description}


def insufficient(scopes):
    text = "The request requires higher privileges than provided by the access token."
    return {"error": "insufficient_scope", "error_description": text, "scope": scopes}


@pytest.fixture
def endpoint(people, group, project):
    """Fill in the IDs of the path of an endpoint."""
    add_member(group, people[MAX], ROLES[MAX])
    make_token(people[MAX])
    token = db.session.query(PersonalAccessToken).filter_by(user_id=people[MAX].id).one()
    ids = {"p": project.id, "g": group.id, "h": make_group().id, "u": people[MAX].id, "t": token.id}
    return lambda path: path.format(**ids)


def test_no_endpoint_accepts_a_blocked_user(endpoint, client_of):
    blocked = client_of(make_user("barred", admin=True, state=BLOCKED))

    responses = {(method, path): blocked.open(method, endpoint(path)) for method, path in ALL}

    refused = {"message": "403 Forbidden - Your account has been blocked."}
    assert [
        request for request, response in responses.items() if (response.status_code, response.json) != (403, refused)
    ] == []


def test_no_endpoint_accepts_an_expired_token(endpoint, people, client_of):
    late = client_of(people[ADA], expires_at=TODAY)

    responses = {(method, path): late.open(method, endpoint(path)) for method, path in ALL}

    expired = invalid("Token is expired. You can either do re-authorization or token refresh.")
    assert [
        request for request, response in responses.items() if (response.status_code, response.json) != (401, expired)
    ] == []
    assert responses["GET", "/user"].headers["WWW-Authenticate"] == (
        'Bearer realm="Protected by OAuth 2.0", error="invalid_token", '
        'error_description="Token is expired. You can either do re-authorization or token refresh."'
    )


def test_no_endpoint_accepts_a_revoked_token(endpoint, people, client_of):
    gone = client_of(people[ADA], revoked=True)

    responses = {(method, path): gone.open(method, endpoint(path)) for method, path in ALL}

    revoked = invalid("Token was revoked. You have to re-authorize from the user.")
    assert [
        request for request, response in responses.items() if (response.status_code, response.json) != (401, revoked)
    ] == []


def test_no_endpoint_accepts_an_unknown_token(endpoint, as_):
    responses = {
        (method, path): as_(NOBODY).open(method, endpoint(path), headers={"PRIVATE-TOKEN": "made up"})
        for method, path in ALL
    }

    assert [
        request
        for request, response in responses.items()
        if (response.status_code, response.json) != (401, UNAUTHORIZED)
    ] == []
    assert "WWW-Authenticate" not in responses["GET", "/user"].headers


def test_no_endpoint_writes_without_a_token(endpoint, as_):
    responses = {(method, path): as_(NOBODY).open(method, endpoint(path)) for method, path in WRITE}

    assert [
        request
        for request, response in responses.items()
        if (response.status_code, response.json) != (401, UNAUTHORIZED)
    ] == []


def test_a_read_api_token_reads_everything_and_writes_nothing(endpoint, people, client_of):
    reader = client_of(people[ADA], "read_api")

    read = {path: reader.get(endpoint(path)) for path in READ} | {
        f"HEAD {path}": reader.head(endpoint(path)) for path in READ
    }
    written = {(method, path): reader.open(method, endpoint(path)) for method, path in WRITE}

    assert [path for path, response in read.items() if response.status_code != 200] == []
    refused = {
        request: insufficient("read_user api read_api" if request[1].startswith("/users") else "api read_api")
        for request in written
    }
    refused["POST", "/personal_access_tokens/self/rotate"] = insufficient("api self_rotate")
    assert {request: response.status_code for request, response in written.items()} == dict.fromkeys(written, 403)
    assert {request: response.json for request, response in written.items()} == refused


def test_a_read_user_token_reads_users_only(endpoint, people, client_of):
    reader = client_of(people[ADA], "read_user")

    statuses = {path: reader.get(endpoint(path)).status_code for path in READ}

    allowed = {"/user", "/users", "/users/{u}", "/personal_access_tokens/self"}
    assert {path for path, status in statuses.items() if status == 200} == allowed
    assert set(statuses.values()) == {200, 403}
    assert reader.post("/users").json == insufficient("read_user api read_api")
    assert reader.post("/groups").json == insufficient("api read_api")


@pytest.mark.parametrize("scope", ["read_repository", "write_repository", "read_registry", "write_registry", "sudo"])
def test_other_scopes_open_only_the_token_itself(scope, people, client_of):
    client = client_of(people[SAM], scope)

    refused = client.get("/user")

    assert (refused.status_code, refused.json) == (403, insufficient("read_user api read_api"))
    assert client.get("/personal_access_tokens/self").json["scopes"] == [scope]
    assert client.delete("/personal_access_tokens/self").status_code == 204
    assert client.get("/personal_access_tokens/self").status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "json", "statuses"),
    [
        ("POST", "/users/{sam}/personal_access_tokens", NEW, "201 403 403 403 403 403 403 401"),
        ("POST", "/users/{sam}/personal_access_tokens", {}, "400 403 403 403 403 403 403 401"),
        ("POST", "/users/999999/personal_access_tokens", NEW, "404 403 403 403 403 403 403 401"),
        ("GET", "/personal_access_tokens", None, "200 200 200 200 200 200 200 401"),
        ("GET", "/personal_access_tokens?user_id={sam}", None, "200 401 401 401 401 401 200 401"),
        ("GET", "/personal_access_tokens?user_id=999999", None, "404 401 401 401 401 401 401 401"),
        ("GET", "/personal_access_tokens/{token}", None, "200 401 401 401 401 401 200 401"),
        ("GET", "/personal_access_tokens/999999", None, "404 401 401 401 401 401 401 401"),
        ("POST", "/personal_access_tokens/{token}/rotate", None, "200 401 401 401 401 401 400 401"),
        ("POST", "/personal_access_tokens/999999/rotate", None, "404 401 401 401 401 401 401 401"),
        ("DELETE", "/personal_access_tokens/{token}", None, "204 400 400 400 400 400 204 401"),
        ("DELETE", "/personal_access_tokens/999999", None, "404 404 404 404 404 404 404 401"),
        ("GET", "/personal_access_tokens/self", None, "200 200 200 200 200 200 200 401"),
        ("POST", "/personal_access_tokens/self/rotate", None, "200 200 200 200 200 200 200 401"),
        ("DELETE", "/personal_access_tokens/self", None, "204 204 204 204 204 204 204 401"),
    ],
)
def test_permissions_of_tokens_by_role(method, path, json, statuses, people, as_):
    make_token(people[SAM])
    token = db.session.query(PersonalAccessToken).filter_by(user_id=people[SAM].id).one()
    filled = path.format(sam=people[SAM].id, token=token.id)

    responses = [as_(name).open(method, filled, json=json) for name in (*PEOPLE, NOBODY)]

    assert " ".join(str(response.status_code) for response in responses) == statuses
    assert all(response.json == UNAUTHORIZED for response in responses if response.status_code == 401)
    assert all(response.json == FORBIDDEN for response in responses if response.status_code == 403)


def test_a_new_token_is_shown_once_and_works(people, as_admin, as_):
    response = as_admin.post(
        f"/users/{people[SAM].id}/personal_access_tokens",
        json=NEW | {"expires_at": TOMORROW.isoformat(), "description": "for builds"},
    )

    assert (response.status_code, set(response.json)) == (201, TOKEN | {"token"})
    shown = {"name", "description", "revoked", "scopes", "user_id", "active", "expires_at", "last_used_at"}
    assert {name: response.json[name] for name in shown} == {
        "name": "ci",
        "description": "for builds",
        "revoked": False,
        "scopes": ["api", "read_user"],
        "user_id": people[SAM].id,
        "active": True,
        "expires_at": TOMORROW.isoformat(),
        "last_used_at": None,
    }
    user_response = as_(NOBODY).get("/user", headers={"PRIVATE-TOKEN": response.json["token"]})
    assert user_response.json["username"] == SAM
    assert set(as_admin.get(f"/personal_access_tokens/{response.json['id']}").json) == TOKEN


def test_a_token_without_a_last_day_never_expires(people, as_admin):
    response = as_admin.post(f"/users/{people[SAM].id}/personal_access_tokens", json=NEW)

    assert (response.json["expires_at"], response.json["active"], len(response.json["token"]) >= 20) == (
        None,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("fields", "status", "body"),
    [
        ({}, 400, {"error": "name is missing, scopes is missing"}),
        ({"name": "ci"}, 400, {"error": "scopes is missing"}),
        ({"name": "ci", "scopes": ["root"]}, 400, {"error": "scopes does not have a valid value"}),
        ({"name": "ci", "scopes": ["api", "root"]}, 400, {"error": "scopes does not have a valid value"}),
        (NEW | {"expires_at": "never"}, 400, {"error": "expires_at is invalid"}),
        (NEW | {"expires_at": "2021-02-30"}, 400, {"error": "expires_at is invalid"}),
        (NEW | {"name": ""}, 422, {"message": "Name can't be blank"}),
        (NEW | {"scopes": []}, 422, {"message": "Scopes can't be blank"}),
        ({"name": " ", "scopes": []}, 422, {"message": "Name can't be blank and Scopes can't be blank"}),
    ],
)
def test_invalid_tokens_are_refused(fields, status, body, people, as_admin):
    response = as_admin.post(f"/users/{people[SAM].id}/personal_access_tokens", json=fields)

    assert (response.status_code, response.json) == (status, body)


@pytest.mark.parametrize("scopes", ["scopes=api,read_user", "scopes[]=api&scopes[]=read_user"])
def test_scopes_are_an_array_or_a_text(scopes, people, as_admin):
    response = as_admin.post(f"/users/{people[SAM].id}/personal_access_tokens?name=ci&{scopes}")

    assert (response.status_code, response.json["scopes"]) == (201, ["api", "read_user"])


def test_every_scope_is_accepted(people, as_admin):
    response = as_admin.post(
        f"/users/{people[SAM].id}/personal_access_tokens", json={"name": "all", "scopes": list(SCOPES)}
    )

    assert response.json["scopes"] == list(SCOPES)


@pytest.mark.parametrize("person", [OLIVE, SAM])
def test_users_list_their_own_tokens(person, people, client_of):
    for name in (OLIVE, SAM):
        make_token(people[name])
    client = client_of(people[person])

    response = client.get("/personal_access_tokens")

    assert {token["user_id"] for token in response.json} == {people[person].id}
    assert [set(token) for token in response.json] == [TOKEN, TOKEN]


@pytest.mark.both_databases
def test_administrators_list_all_tokens_oldest_first(people, as_admin):
    for name in (SAM, OLIVE, SAM):
        make_token(people[name])

    tokens = as_admin.get("/personal_access_tokens").json

    assert [token["user_id"] for token in tokens] == [people[name].id for name in (ADA, SAM, OLIVE, SAM)]
    assert [token["id"] for token in tokens] == sorted(token["id"] for token in tokens)
    only = as_admin.get(f"/personal_access_tokens?user_id={people[SAM].id}").json
    assert [token["user_id"] for token in only] == [people[SAM].id] * 2


@pytest.mark.parametrize("query", ["user_id=999999", "user_id="])
def test_tokens_of_an_unknown_user_are_not_found(query, as_admin):
    response = as_admin.get(f"/personal_access_tokens?{query}")

    assert (response.status_code, response.json) == (404, {"message": "404 Not Found"})


FILTERED = [
    ("", ["old", "dead", "late", "used"]),
    ("revoked=true", ["dead"]),
    ("revoked=false", ["old", "late", "used"]),
    ("state=active", ["old", "used"]),
    ("state=inactive", ["dead", "late"]),
    ("created_before=2020-01-02", ["old"]),
    ("created_after=2020-01-02", ["dead", "late", "used"]),
    ("last_used_after=2030-01-01", ["used"]),
    ("last_used_before=2001-01-01", ["dead"]),
    (f"expires_before={TODAY}", ["late"]),
    (f"expires_after={TODAY}", ["used"]),
    ("search=ate", ["late"]),
    ("search=LATE", ["late"]),
    ("sort=name_asc", ["dead", "late", "old", "used"]),
    ("sort=name_desc&per_page=1", ["used"]),
    ("sort=created_asc&per_page=1", ["old"]),
    ("sort=last_used_desc&last_used_after=2029-01-01", ["used"]),
]


@pytest.mark.both_databases
def test_tokens_are_filtered(people, as_admin):
    now = clock.now()
    for name, fields in {
        "old": {"created_at": dt.datetime(2020, 1, 1, tzinfo=dt.UTC)},
        "dead": {"revoked": True, "last_used_at": dt.datetime(2000, 1, 1, tzinfo=dt.UTC)},
        "late": {"expires_at": YESTERDAY},
        "used": {"expires_at": TOMORROW, "last_used_at": dt.datetime(2031, 1, 1, tzinfo=dt.UTC)},
    }.items():
        make_token(people[SAM], **({"name": name, "last_used_at": now} | fields))

    results = [
        (
            query,
            [token["name"] for token in as_admin.get(f"/personal_access_tokens?user_id={people[SAM].id}&{query}").json],
        )
        for query, _ in FILTERED
    ]

    assert results == FILTERED


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("user_id=me", "user_id is invalid"),
        ("state=dead", "state does not have a valid value"),
        ("sort=up", "sort does not have a valid value"),
        ("created_after=never", "created_after is invalid"),
    ],
)
def test_invalid_filters_of_tokens_are_refused(query, text, as_stranger):
    response = as_stranger.get(f"/personal_access_tokens?{query}")

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.both_databases
def test_the_list_of_tokens_takes_a_constant_number_of_queries(people, client_of, count_queries):
    client = client_of(people[SAM])
    counts = []
    for more in (1, 1, 5):  # the first marks the token as used
        for _ in range(more):
            make_token(people[SAM])
        with count_queries() as queries:
            client.get("/personal_access_tokens")
        counts.append(len(queries))

    assert counts[1] == counts[2]


def test_a_token_shows_that_it_is_revoked_or_expired(people, client_of):
    make_token(people[SAM], name="late", expires_at=TODAY)
    make_token(people[SAM], name="dead", revoked=True)

    tokens = client_of(people[SAM]).get("/personal_access_tokens").json

    assert {token["name"]: token["active"] for token in tokens} == {"late": False, "dead": False, "test": True}


def test_a_revoked_token_stops_working(people, client_of):
    client = client_of(people[SAM])
    own = client.get("/personal_access_tokens/self").json["id"]

    response = client.delete(f"/personal_access_tokens/{own}")

    assert (response.status_code, response.data, response.content_type) == (204, b"", None)
    assert client.get("/user").json == invalid("Token was revoked. You have to re-authorize from the user.")


def test_revoking_without_permission_is_refused(people, as_, as_stranger):
    other_token_id = as_(OLIVE).get("/personal_access_tokens/self").json["id"]

    foreign, missing = (as_stranger.delete(f"/personal_access_tokens/{token}") for token in (other_token_id, 999999))

    assert (foreign.status_code, foreign.json) == (400, {"message": "400 Bad request"})
    assert (missing.status_code, missing.json) == (404, NOT_FOUND)


@pytest.mark.parametrize("reference", ["self", "id"])
def test_rotating_replaces_a_token(reference, people, client_of, as_):
    old = client_of(people[SAM], "api", "read_user", name="ci", description="d")
    own = old.get("/personal_access_tokens/self").json["id"]

    response = old.post(f"/personal_access_tokens/{own if reference == 'id' else reference}/rotate")

    in_a_week = (TODAY + dt.timedelta(days=7)).isoformat()
    shown = ("name", "description", "scopes", "revoked", "active", "expires_at")
    assert (response.status_code, set(response.json)) == (200, TOKEN | {"token"})
    assert [response.json[name] for name in shown] == ["ci", "d", ["api", "read_user"], False, True, in_a_week]
    assert response.json["id"] != own
    assert old.get("/user").status_code == 401
    assert as_(NOBODY).get("/user", headers={"PRIVATE-TOKEN": response.json["token"]}).json["username"] == SAM


def test_a_rotated_token_expires_when_asked_to(people, client_of):
    response = client_of(people[SAM]).post(f"/personal_access_tokens/self/rotate?expires_at={TOMORROW}")

    assert (response.status_code, response.json["expires_at"]) == (200, TOMORROW.isoformat())


@pytest.mark.parametrize(
    ("query", "status", "body"),
    [
        ("expires_at=never", 400, {"error": "expires_at is invalid"}),
        (f"expires_at={TODAY}", 400, {"message": "400 Bad request - Expiration date must be in the future"}),
    ],
)
def test_a_token_that_cannot_be_rotated_stays(query, status, body, people, client_of):
    client = client_of(people[SAM])

    response = client.post(f"/personal_access_tokens/self/rotate?{query}")

    assert (response.status_code, response.json) == (status, body)
    assert client.get("/user").status_code == 200


def test_a_revoked_token_cannot_be_rotated(people, as_admin):
    make_token(people[SAM], revoked=True)
    token = db.session.query(PersonalAccessToken).filter_by(revoked=True).one()

    response = as_admin.post(f"/personal_access_tokens/{token.id}/rotate")

    assert (response.status_code, response.json) == (400, {"message": "400 Bad request - Token already revoked"})


@pytest.mark.parametrize(
    ("headers", "query", "status"),
    [
        ({"PRIVATE-TOKEN": "{}"}, "", 200),
        ({"private-token": "{}"}, "", 200),
        ({"Authorization": "Bearer {}"}, "", 200),
        ({}, "private_token={}", 200),
        ({}, "access_token={}", 200),
        ({"PRIVATE-TOKEN": ""}, "private_token={}", 200),
        ({"PRIVATE-TOKEN": "wrong"}, "private_token={}", 200),
        ({"PRIVATE-TOKEN": "{}"}, "private_token=wrong", 401),
        ({"PRIVATE-TOKEN": ""}, "", 401),
        ({"Authorization": "Basic {}"}, "", 401),
        ({"Authorization": "Bearer {}"}, "access_token={}", 400),
    ],
)
def test_tokens_are_read_from_headers_and_parameters(headers, query, status, people, as_):
    token = make_token(people[SAM])

    response = as_(NOBODY).get(
        f"/user?{query.format(token)}", headers={name: value.format(token) for name, value in headers.items()}
    )

    assert response.status_code == status


def test_the_last_use_of_a_token_is_updated_at_intervals(people, client_of):
    stale = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    client = client_of(people[SAM], last_used_at=stale)

    first, second = (client.get("/personal_access_tokens/self").json["last_used_at"] for _ in range(2))

    assert first == second > "2020-01-02"


def test_tokens_are_stored_as_digests_only(people, as_admin):
    secret = as_admin.post(f"/users/{people[SAM].id}/personal_access_tokens", json=NEW).json["token"]

    stored = db.session.query(PersonalAccessToken).filter_by(name="ci").one()

    assert all(secret not in str(getattr(stored, column.key)) for column in PersonalAccessToken.__table__.columns)


def test_a_token_for_its_own_rotation_can_do_nothing_else(people, client_of):
    client = client_of(people[SAM], "self_rotate")

    refused = [client.get(path).status_code for path in ("/user", "/projects", "/personal_access_tokens")]
    rotated = client.post("/personal_access_tokens/self/rotate")

    assert refused == [403, 403, 403]
    assert (rotated.status_code, rotated.json["scopes"]) == (200, ["self_rotate"])
    reader = client_of(people[SAM], "read_api").post("/personal_access_tokens/self/rotate")
    assert (reader.status_code, reader.json) == (403, insufficient("api self_rotate"))
