"""Users through HTTP (supporting resources reference, sections 2 and 3)."""

from __future__ import annotations

import datetime as dt
import secrets
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import func, select

from project_service.domain.accounts.users import BLOCKED, DEACTIVATED, User
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    RITA,
    SAM,
    make_project,
    make_user,
    reload,
)

BASIC = {"id", "name", "username", "state", "avatar_url", "web_url"}
USER = BASIC | {
    *("created_at", "bio", "bio_html", "location", "public_email", "skype", "linkedin", "twitter", "website_url"),
    *("organization", "job_title", "pronouns", "discord", "github", "bot", "work_information"),
    *("followers", "following", "is_followed", "local_time"),
}
PUBLIC = USER | {
    *("last_sign_in_at", "confirmed_at", "last_activity_on", "email", "theme_id", "color_scheme_id", "projects_limit"),
    *("current_sign_in_at", "identities", "can_create_group", "can_create_project", "two_factor_enabled", "external"),
    "private_profile",
}
ADMIN = PUBLIC | {"is_admin", "note", "namespace_id"}
DETAILS = ADMIN | {"current_sign_in_ip", "last_sign_in_ip", "sign_in_count"}
NEW = {"email": "new@example.org", "name": "New One", "username": "new", "password": "long enough"}
UNAUTHORIZED = {"message": "401 Unauthorized"}
FORBIDDEN = {"message": "403 Forbidden"}
USERNAME = "can contain only letters, digits, '_', '-' and '.'. Cannot start with '-' or end in '.', '.git' or '.atom'."
TAKEN = "has already been taken"


def new(**changes):
    return {name: value for name, value in (NEW | changes).items() if value is not None}


def usernames(response):
    return [user["username"] for user in response.json]


@pytest.fixture
def other(people):
    """The user that the tests change."""
    return make_user("other")


@pytest.mark.parametrize(
    ("method", "path", "json", "statuses"),
    [
        ("GET", "/user", None, "200 200 200 200 200 200 200 401"),
        ("GET", "/users", None, "200 200 200 200 200 200 200 403"),
        ("GET", "/users?username=other", None, "200 200 200 200 200 200 200 200"),
        ("GET", "/users/{}", None, "200 200 200 200 200 200 200 200"),
        ("POST", "/users", new(password="short"), "400 403 403 403 403 403 403 401"),
        ("POST", "/users", {}, "400 400 400 400 400 400 400 401"),
        ("PUT", "/users/{}", {"bio": "hello"}, "200 403 403 403 403 403 403 401"),
        ("DELETE", "/users/{}", None, "412 403 403 403 403 403 403 401"),
        ("POST", "/users/{}/block", None, "201 403 403 403 403 403 403 401"),
        ("POST", "/users/{}/unblock", None, "201 403 403 403 403 403 403 401"),
        ("GET", "/users/999999", None, "404 404 404 404 404 404 404 404"),
        ("PUT", "/users/999999", {"bio": "hello"}, "404 403 403 403 403 403 403 401"),
        ("DELETE", "/users/999999", None, "404 403 403 403 403 403 403 401"),
        ("POST", "/users/999999/block", None, "404 403 403 403 403 403 403 401"),
        ("POST", "/users/999999/unblock", None, "404 403 403 403 403 403 403 401"),
    ],
)
def test_permissions_of_users_by_role(method, path, json, statuses, other, as_):
    unchanged = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"} if method == "DELETE" else {}

    responses = [
        as_(name).open(method, path.format(other.id), json=json, headers=unchanged) for name in (*PEOPLE, NOBODY)
    ]

    assert " ".join(str(response.status_code) for response in responses) == statuses
    assert all(response.json == UNAUTHORIZED for response in responses if response.status_code == 401)
    assert all(
        response.json == {"message": "404 User Not Found"} for response in responses if response.status_code == 404
    )
    assert all(response.json == FORBIDDEN for response in responses if response.status_code == 403 and path != "/users")


@pytest.mark.parametrize(("person", "keys"), [(ADA, ADMIN), (SAM, PUBLIC)])
def test_users_see_themselves_with_the_keys_of_their_role(person, keys, as_):
    response = as_(person).get("/user")

    assert (response.status_code, set(response.json)) == (200, keys)


@pytest.mark.parametrize(("person", "keys"), [(ADA, ADMIN), (SAM, BASIC)])
def test_lists_of_users_have_the_keys_of_the_callers_role(person, keys, as_):
    response = as_(person).get("/users")

    assert {frozenset(user) for user in response.json} == {frozenset(keys)}


@pytest.mark.parametrize(("person", "keys"), [(ADA, DETAILS), (SAM, USER), (NOBODY, USER)])
def test_a_user_has_the_keys_of_the_callers_role(person, keys, people, as_):
    assert set(as_(person).get(f"/users/{people[SAM].id}").json) == keys


def test_a_user_has_the_documented_keys(people, client_of):
    signed_in = dt.datetime(2021, 1, 19, 7, 11, 2, tzinfo=dt.UTC)
    user = make_user("lin", name="Lin Tao", bio="A <b>", provider="ldap", extern_uid="7", last_sign_in_at=signed_in)

    response = client_of(user).get("/user")

    assert response.json == {
        "id": user.id,
        "name": "Lin Tao",
        "username": "lin",
        "state": "active",
        "avatar_url": f"http://localhost/-/avatars/user/{user.id}",
        "web_url": "http://localhost/lin",
        "created_at": clock.isoformat(user.created_at),
        "bio": "A <b>",
        "bio_html": "<p>A &lt;b&gt;</p>",
        "location": None,
        "public_email": "",
        "skype": "",
        "linkedin": "",
        "twitter": "",
        "website_url": "",
        "organization": None,
        "job_title": "",
        "pronouns": None,
        "discord": "",
        "github": "",
        "bot": False,
        "work_information": None,
        "followers": 0,
        "following": 0,
        "is_followed": False,
        "local_time": None,
        "last_sign_in_at": "2021-01-19T07:11:02.000Z",
        "confirmed_at": clock.isoformat(user.confirmed_at),
        "last_activity_on": clock.today().isoformat(),
        "email": "lin@example.org",
        "theme_id": 1,
        "color_scheme_id": 1,
        "projects_limit": 100000,
        "current_sign_in_at": None,
        "identities": [{"provider": "ldap", "extern_uid": "7"}],
        "can_create_group": True,
        "can_create_project": True,
        "two_factor_enabled": False,
        "external": False,
        "private_profile": False,
    }


@pytest.mark.parametrize("path", ["/users/root", "/users/1ASDF", "/users/-1", "/users/1.5", "/users/%D9%A1"])
def test_an_id_that_is_not_a_number_is_an_unknown_route(path, as_admin):
    response = as_admin.get(path)

    assert (response.status_code, response.json) == (404, {"error": "404 Not Found"})


def test_an_id_of_a_hundred_digits_is_not_found(as_admin):
    assert as_admin.get("/users/" + "9" * 100).json == {"message": "404 User Not Found"}


def test_anonymous_callers_have_to_name_a_user(as_):
    response = as_(NOBODY).get("/users")

    assert response.json == {"message": "403 Forbidden - Not authorized to access /api/v4/users"}


@pytest.mark.both_databases
@pytest.mark.parametrize(("username", "expected"), [("sam", [SAM]), ("SaM", [SAM]), ("sa", []), ("nosuch", [])])
def test_anonymous_callers_find_one_user_by_name_in_any_case(username, expected, as_):
    response = as_(NOBODY).get(f"/users?username={username}")

    assert (response.status_code, usernames(response)) == (200, expected)


@pytest.mark.both_databases
def test_users_are_listed_newest_first(as_stranger):
    assert usernames(as_stranger.get("/users")) == [SAM, GUS, RITA, DEV, MAX, OLIVE, ADA]


FILTERED = [
    ("search=blu", ["blue"]),
    ("search=Indigo", ["blue"]),
    ("search=BLUE@example.org", ["blue"]),
    ("search=example.org", []),
    ("search=%25", []),
    ("active=true&search=blue", ["blue"]),
    ("blocked=true", ["barred"]),
    ("blocked=true&active=true", []),
    ("blocked=false&username=barred", ["barred"]),
    ("exclude_internal=true&username=blue", ["blue"]),
    ("order_by=name&sort=asc&username=blue&created_after=2100-01-01", ["blue"]),
    ("two_factor=enabled&username=blue", ["blue"]),
    ("without_projects=true&username=max", ["max"]),
]


@pytest.mark.both_databases
def test_users_are_filtered_for_ordinary_callers(project, as_stranger):
    make_user("blue", name="Indigo Carmine")
    make_user("barred", state=BLOCKED)

    results = [(query, usernames(as_stranger.get(f"/users?{query}"))) for query, _ in FILTERED]

    assert results == FILTERED


FILTERED_FOR_ADMINISTRATORS = [
    ("external=true", ["guest"]),
    ("provider=ldap&extern_uid=7", ["guest"]),
    ("provider=saml&extern_uid=7", []),
    ("order_by=username&sort=asc&search=example&created_after=2000-01-01", []),
    ("created_before=2001-01-01", ["guest"]),
    ("created_after=2000-01-01&created_before=2001-01-01", ["guest"]),
    ("two_factor=enabled", []),
    ("without_projects=true&order_by=username&sort=asc", [ADA, "guest", OLIVE, SAM]),
    ("order_by=username&sort=desc&per_page=2", [SAM, RITA]),
    ("order_by=name&sort=asc&per_page=2", ["guest", ADA]),
    ("order_by=created_at&sort=asc&per_page=1", ["guest"]),
    ("order_by=updated_at&per_page=1", ["guest"]),
]


@pytest.mark.both_databases
def test_users_are_filtered_for_administrators(project, as_admin):
    make_user(
        "guest",
        name="AAA",
        external=True,
        provider="ldap",
        extern_uid="7",
        created_at=dt.datetime(2000, 6, 1, tzinfo=dt.UTC),
        updated_at=clock.now() + dt.timedelta(hours=1),
    )

    results = [(query, usernames(as_admin.get(f"/users?{query}"))) for query, _ in FILTERED_FOR_ADMINISTRATORS]

    assert results == FILTERED_FOR_ADMINISTRATORS


@pytest.mark.parametrize("query", ["external=true", "extern_uid=7&provider=ldap"])
def test_some_filters_are_refused_to_ordinary_callers(query, as_stranger):
    response = as_stranger.get(f"/users?{query}")

    assert (response.status_code, response.json) == (403, FORBIDDEN)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("extern_uid=7", "extern_uid, provider provide all or none of parameters"),
        ("provider=ldap", "extern_uid, provider provide all or none of parameters"),
        ("order_by=email", "order_by does not have a valid value"),
        ("sort=up", "sort does not have a valid value"),
        ("active=perhaps", "active is invalid"),
        ("created_after=never", "created_after is invalid"),
        ("page=a&per_page=b", "page is invalid, per_page is invalid"),
        ("per_page=0", "per_page has a value not allowed"),
    ],
)
def test_invalid_filters_are_refused(query, text, as_admin):
    response = as_admin.get(f"/users?{query}")

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.both_databases
@pytest.mark.parametrize("person", [ADA, SAM])
def test_the_list_of_users_takes_a_constant_number_of_queries(person, people, as_, count_queries):
    client = as_(person)
    counts = []
    for size in (2, 1, 6):  # the first marks the token as used
        with count_queries() as queries:
            client.get(f"/users?per_page={size}")
        counts.append(len(queries))

    assert counts[1] == counts[2] <= 6


def test_a_new_user_has_a_personal_namespace_and_the_defaults(as_admin):
    response = as_admin.post("/users", json=new(username="New.One"))

    namespace = db.session.get(User, response.json["id"])
    shown = {"username", "name", "email", "state", "is_admin", "can_create_group", "external", "projects_limit", "note"}
    assert (response.status_code, set(response.json)) == (201, ADMIN)
    assert {name: response.json[name] for name in shown} == {
        "username": "New.One",
        "name": "New One",
        "email": "new@example.org",
        "state": "active",
        "is_admin": False,
        "can_create_group": True,
        "external": False,
        "projects_limit": 100000,
        "note": None,
    }
    assert namespace.namespace_id == response.json["namespace_id"]


def test_a_new_user_takes_all_documented_fields(as_admin):
    fields = {
        "admin": True,
        "can_create_group": False,
        "external": True,
        "private_profile": True,
        "projects_limit": 3,
        "bio": "b" * 255,
        "location": "Aachen",
        "public_email": "public@example.org",
        "organization": "Org",
        "job_title": "Smith",
        "note": "noted",
        "skype": "s",
        "linkedin": "l",
        "twitter": "t",
        "website_url": "https://example.org",
        "theme_id": 2,
        "color_scheme_id": 3,
    }

    response = as_admin.post("/users", json=new(**fields))

    fields["is_admin"] = fields.pop("admin")
    assert (response.status_code, {name: response.json[name] for name in fields}) == (201, fields)


@pytest.mark.parametrize("way", [{"reset_password": True}, {"force_random_password": True}])
def test_a_new_user_needs_no_password_when_another_way_is_named(way, as_admin):
    assert as_admin.post("/users", json=new(password=None, **way)).status_code == 201


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"email": None}, "email is missing"),
        ({"email": None, "name": None}, "email is missing, name is missing"),
        ({"username": None}, "username is missing"),
        ({"password": None}, "password, reset_password are missing, at least one parameter must be provided"),
        ({"projects_limit": "many"}, "projects_limit is invalid"),
        ({"admin": "perhaps"}, "admin is invalid"),
        ({"name": ["a"]}, "name is invalid"),
        ({"provider": "ldap"}, "extern_uid, provider provide all or none of parameters"),
    ],
)
def test_invalid_parameters_of_a_new_user_are_refused(fields, text, as_admin):
    response = as_admin.post("/users", json=new(**fields))

    assert (response.status_code, response.json) == (400, {"error": text})


@pytest.mark.parametrize(
    ("fields", "messages"),
    [
        ({"password": "7 chars"}, {"password": ["is too short (minimum is 8 characters)"]}),
        ({"password": ""}, {"password": ["can't be blank"]}),
        ({"password": "x" * 129}, {"password": ["is too long (maximum is 128 characters)"]}),
        ({"email": "nobody"}, {"email": ["is invalid"]}),
        ({"email": ""}, {"email": ["is invalid"]}),
        ({"name": " "}, {"name": ["can't be blank"]}),
        ({"name": "n" * 256}, {"name": ["is too long (maximum is 255 characters)"]}),
        ({"bio": "b" * 256}, {"bio": ["is too long (maximum is 255 characters)"]}),
        ({"projects_limit": -1}, {"projects_limit": ["must be greater than or equal to 0"]}),
        ({"public_email": "nobody"}, {"public_email": ["is invalid"]}),
        ({"username": ""}, {"username": ["can't be blank"]}),
        ({"username": "a"}, {"username": ["is too short (minimum is 2 characters)"]}),
        ({"username": "u" * 256}, {"username": ["is too long (maximum is 255 characters)"]}),
        ({"username": "-dash"}, {"username": [USERNAME]}),
        ({"username": "dot."}, {"username": [USERNAME]}),
        ({"username": "a b"}, {"username": [USERNAME]}),
        ({"username": "müller"}, {"username": [USERNAME]}),
        ({"username": "new\n"}, {"username": [USERNAME]}),
        ({"username": "x.Git"}, {"username": [USERNAME]}),
        ({"username": "x.atom"}, {"username": [USERNAME]}),
        ({"username": "Admin"}, {"username": ["Admin is a reserved name"]}),
        ({"username": "robots.txt"}, {"username": ["robots.txt is a reserved name"]}),
        (
            {"email": "x", "projects_limit": -2, "username": "api"},
            {
                "email": ["is invalid"],
                "username": ["api is a reserved name"],
                "projects_limit": ["must be greater than or equal to 0"],
            },
        ),
    ],
)
def test_a_new_user_that_breaks_a_rule_is_refused(fields, messages, as_admin):
    response = as_admin.post("/users", json=new(**fields))

    assert (response.status_code, response.json) == (400, {"message": messages})
    assert db.session.scalar(select(func.count()).select_from(User)) == len(PEOPLE)


@pytest.mark.parametrize(
    "fields",
    [
        {"username": "u" * 255},
        {"username": "_a.B-9"},
        {"username": "12345"},
        {"name": "Ünï 名前 🦊 <&>"},
        {"name": "n" * 255},
        {"projects_limit": 2**40},
    ],
)
def test_unusual_but_valid_users_are_created(fields, as_admin):
    response = as_admin.post("/users", json=new(**fields))

    assert (response.status_code, response.json | fields) == (201, response.json)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"email": "sam@example.org"}, "Email has already been taken"),
        ({"email": "SAM@Example.org"}, "Email has already been taken"),
        ({"email": "sam@example.org", "username": "sam"}, "Email has already been taken"),
        ({"username": "sam"}, "Username has already been taken"),
        ({"username": "SAM"}, "Username has already been taken"),
    ],
)
def test_a_taken_username_or_address_is_refused(fields, text, as_admin):
    response = as_admin.post("/users", json=new(**fields))

    assert (response.status_code, response.json) == (409, {"message": text})


@pytest.mark.parametrize("username", ["acme", "ACME"])
def test_a_username_that_is_the_path_of_a_group_is_refused(username, group, as_admin):
    response = as_admin.post("/users", json=new(username=username))

    assert (response.status_code, response.json) == (400, {"message": {"username": [TAKEN]}})


def test_a_user_is_created_from_form_data(as_admin):
    response = as_admin.post("/users", data=new(admin="1", projects_limit="7"))

    assert (response.status_code, response.json["is_admin"], response.json["projects_limit"]) == (201, True, 7)


def test_an_empty_change_is_accepted(other, as_admin):
    response = as_admin.put(f"/users/{other.id}", json={})

    assert (response.status_code, response.json["username"]) == (200, "other")


def test_a_change_is_returned_and_stored(other, as_admin):
    changes = {"name": "Another", "email": "another@example.org", "bio": "b", "location": "here", "external": True}

    response = as_admin.put(f"/users/{other.id}", json=changes)

    assert (response.status_code, response.json | changes) == (200, response.json)
    assert as_admin.get(f"/users/{other.id}").json | response.json == as_admin.get(f"/users/{other.id}").json


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"email": "SAM@example.org"}, 409, "Email has already been taken"),
        ({"username": "Sam"}, 409, "Username has already been taken"),
        ({"username": "Acme"}, 400, {"username": [TAKEN]}),
        (
            {"username": "-"},
            400,
            {"username": ["is too short (minimum is 2 characters)", USERNAME, "- is a reserved name"]},
        ),
        ({"password": "short"}, 400, {"password": ["is too short (minimum is 8 characters)"]}),
        ({"bio": "b" * 256}, 400, {"bio": ["is too long (maximum is 255 characters)"]}),
        ({"email": "x"}, 400, {"email": ["is invalid"]}),
    ],
)
def test_a_change_that_breaks_a_rule_changes_nothing(fields, status, message, group, other, as_admin):
    response = as_admin.put(f"/users/{other.id}", json=fields | {"note": "kept?"})

    stored = reload(other)
    assert (response.status_code, response.json) == (status, {"message": message})
    assert (stored.username, stored.email, stored.note) == ("other", "other@example.org", None)


@pytest.mark.both_databases
def test_a_user_may_change_the_case_of_name_and_address(other, as_admin):
    response = as_admin.put(f"/users/{other.id}", json={"username": "OTHER", "email": "Other@example.org"})

    assert (response.status_code, response.json["username"]) == (200, "OTHER")


@pytest.mark.both_databases
def test_personal_projects_follow_a_renamed_user(other, as_admin):
    project = make_project("Tool", other)

    as_admin.put(f"/users/{other.id}", json={"username": "another", "name": "Another"})

    moved = as_admin.get("/projects/another%2FTool")
    assert (moved.status_code, moved.json["id"], moved.json["name_with_namespace"]) == (
        200,
        project.id,
        "Another / Tool",
    )
    assert as_admin.get("/projects/other%2FTool").status_code == 404
    assert as_admin.post("/users", json=new(username="other")).status_code == 201


def test_a_blocked_user_is_refused_until_unblocked(other, client_of, as_admin):
    other_client = client_of(other)

    blocked = as_admin.post(f"/users/{other.id}/block")

    assert (blocked.status_code, blocked.json) == (201, True)
    refused = other_client.get("/user")
    assert (refused.status_code, refused.json) == (
        403,
        {"message": "403 Forbidden - Your account has been blocked."},
    )
    assert as_admin.get(f"/users/{other.id}").json["state"] == "blocked"
    repeated = as_admin.post(f"/users/{other.id}/block")
    assert (repeated.status_code, repeated.get_data(as_text=True)) == (201, "null")
    unblocked = as_admin.post(f"/users/{other.id}/unblock")
    assert (unblocked.status_code, unblocked.json) == (201, True)
    assert other_client.get("/user").status_code == 200


def test_unblocking_an_active_user_returns_false(other, as_admin):
    response = as_admin.post(f"/users/{other.id}/unblock")

    assert (response.status_code, response.json) == (201, False)


def test_users_cannot_block_themselves(people, as_admin):
    response = as_admin.post(f"/users/{people[ADA].id}/block")

    assert (response.status_code, response.json) == (
        403,
        {"message": "403 Forbidden - The API initiating user cannot be blocked by the API"},
    )


def test_deactivated_users_get_a_message_how_to_reactivate(people, client_of, as_admin):
    deactivated = make_user("away", state=DEACTIVATED)

    assert client_of(deactivated).get("/user").json == {
        "message": "403 Forbidden - Your account has been deactivated by your administrator. "
        "Please log back in from a web browser to reactivate your account at http://localhost"
    }
    response = as_admin.post(f"/users/{deactivated.id}/unblock")
    assert (response.status_code, response.json) == (
        403,
        {"message": "403 Forbidden - Deactivated users cannot be unblocked by the API"},
    )


def test_a_request_updates_the_day_of_last_activity(people, client_of):
    user = make_user("idle")
    user.last_activity_on = dt.date(2020, 1, 1)
    db.session.commit()

    client_of(user).get("/user")

    assert reload(user).last_activity_on == clock.today()


@pytest.mark.parametrize("reference", ["sam", "SAM", "id"])
def test_an_administrator_acts_for_another_user_with_sudo(reference, people, client_of):
    sudo = people[SAM].id if reference == "id" else reference

    response = client_of(people[ADA], "api", "sudo").get(f"/user?sudo={sudo}")

    assert (response.json["username"], set(response.json)) == (SAM, PUBLIC)


@pytest.mark.parametrize(
    ("person", "scopes", "sudo", "status", "body"),
    [
        (SAM, ("api", "sudo"), "ada", 403, {"message": "403 Forbidden - Must be admin to use sudo"}),
        (ADA, ("api", "sudo"), "none", 404, {"message": "404 User with ID or username 'none' Not Found"}),
        (
            ADA,
            ("api",),
            "sam",
            403,
            {
                "error": "insufficient_scope",
                "error_description": "The request requires higher privileges than provided by the access token.",
                "scope": "sudo",
            },
        ),
    ],
)
def test_sudo_is_refused_to_these_callers(person, scopes, sudo, status, body, people, client_of):
    response = client_of(people[person], *scopes).get("/user", headers={"Sudo": sudo})

    assert (response.status_code, response.json) == (status, body)


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (lambda number: {"username": "same", "email": f"same{number}@example.org"}, "Username has already been taken"),
        (lambda number: {"username": f"same{number}", "email": "same@example.org"}, "Email has already been taken"),
    ],
)
def test_only_one_of_several_concurrent_users_gets_the_name(fields, text, app, as_admin):
    start = threading.Barrier(6)

    def create(number):
        with app.app_context():
            start.wait()
            return as_admin.post("/users", json=new(**fields(number)))

    with ThreadPoolExecutor(6) as pool:
        responses = list(pool.map(create, range(6)))

    assert sorted(response.status_code for response in responses) == [201] + [409] * 5
    assert {response.json["message"] for response in responses if response.status_code == 409} == {text}


@pytest.mark.both_databases
def test_a_concurrent_user_and_group_do_not_share_a_path(app, as_admin):
    start = threading.Barrier(2)

    def create(path, fields):
        with app.app_context():
            start.wait()
            return as_admin.post(path, json=fields).status_code

    with ThreadPoolExecutor(2) as pool:
        user = pool.submit(create, "/users", new(username="same"))
        pending_group = pool.submit(create, "/groups", {"name": "Same", "path": "Same"})

    assert sorted([user.result(), pending_group.result()]) in ([201, 400], [201, 409])


@pytest.mark.both_databases
@pytest.mark.parametrize("name", ["email", "public_email"])
def test_email_addresses_are_limited_to_the_size_of_an_index(name, people, as_admin):
    response = as_admin.put(f"/users/{people['sam'].id}", json={name: f"{secrets.token_hex(4000)}@example.org"})

    assert (response.status_code, response.json) == (
        400,
        {"message": {name: ["is too long (maximum is 255 characters)"]}},
    )
