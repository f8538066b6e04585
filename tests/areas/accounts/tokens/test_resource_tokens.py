"""Access tokens of projects and groups, and their bots."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.accounts.sign_in import sessions
from project_service.areas.accounts.tokens import jobs
from project_service.areas.namespaces.queries import billable_members
from project_service.domain.access_levels import Role
from project_service.domain.accounts import resource_bots
from project_service.domain.accounts.resource_bots import ResourceBot
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.domain.audit.models import AuditEvent
from project_service.domain.namespaces import Group
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import ADA, DEV, MAX, NOBODY, OLIVE, SAM, add_member, make_user

KEYS = ["id", "name", "description", "revoked", "created_at", "scopes", "user_id", "last_used_at", "active"]
KEYS += ["expires_at", "access_level"]
ABOVE = "400 Bad request - Could not provision owner access to project access token"
FIELDS = {"name": "deploy", "scopes": ["api"]}


@pytest.fixture
def tokens(project):
    return f"/projects/{project.id}/access_tokens"


@pytest.fixture
def group_tokens(group):
    return f"/groups/{group.id}/access_tokens"


@pytest.fixture
def with_token(as_):
    """A client that sends a token."""

    def send(token, method, path, **options):
        return as_(NOBODY).open(method, path, headers={"PRIVATE-TOKEN": token}, **options)

    return send


def day(days):
    return (clock.today() + dt.timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("person", "in_project", "in_group"),
    [(ADA, 0, 0), (OLIVE, 0, 0), (MAX, 0, 403), (DEV, 403, 403), (SAM, 404, 404), (NOBODY, 401, 401)],
)
def test_maintainers_manage_tokens_of_a_project_and_owners_those_of_a_group(
    person, in_project, in_group, as_, as_admin, tokens, group_tokens
):
    for path, refusal in ((tokens, in_project), (group_tokens, in_group)):
        token_id = as_admin.post(path, json=FIELDS).json["id"]
        client, one = as_(person), f"{path}/{token_id}"

        statuses = [
            client.get(path).status_code,
            client.post(path, json=FIELDS).status_code,
            client.get(one).status_code,
            client.post(f"{one}/rotate").status_code,
            client.delete(one).status_code,
        ]

        assert statuses == ([refusal] * 5 if refusal else [200, 201, 200, 200, 204])


def test_the_bot_of_a_token_is_a_member_without_a_seat(as_maintainer, tokens, project, group):
    before = billable_members([db.session.get_one(Group, group.id)])

    created = as_maintainer.post(tokens, json=FIELDS | {"access_level": 30, "expires_at": day(9)}).json

    assert list(created) == [*KEYS, "token"]
    assert (created["access_level"], created["expires_at"], created["active"]) == (30, day(9), True)
    member = as_maintainer.get(f"/projects/{project.id}/members/{created['user_id']}").json
    assert (member["access_level"], member["name"]) == (30, f"{project.name} bot: deploy")
    assert member["username"].startswith(f"project_{project.id}_bot_")
    assert billable_members([db.session.get_one(Group, group.id)]) == before
    assert as_maintainer.get(f"{tokens}/{created['id']}").json == {key: created[key] for key in KEYS}


def test_a_bot_has_its_role_in_its_project_only(as_admin, as_maintainer, tokens, project, with_token):
    token = as_maintainer.post(tokens, json=FIELDS | {"access_level": 30}).json["token"]
    as_admin.post("/projects", json={"name": "internal", "visibility": "internal"})

    assert with_token(token, "POST", f"/projects/{project.id}/issues", json={"title": "Broken"}).status_code == 201
    assert with_token(token, "GET", f"/projects/{project.id}/variables").status_code == 403
    assert [one["id"] for one in with_token(token, "GET", "/projects").json] == [project.id]
    assert with_token(token, "POST", "/groups", json={"name": "g", "path": "g"}).status_code == 403
    assert with_token(token, "POST", "/projects", json={"name": "g"}).status_code in (400, 403, 404)
    assert with_token(token, "GET", "/personal_access_tokens/self").json["name"] == "deploy"


def test_a_bot_cannot_sign_in_or_create_tokens(as_admin, tokens, with_token, people):
    created = as_admin.post(tokens, json=FIELDS | {"access_level": 40}).json
    as_admin.put(f"/users/{created['user_id']}", json={"password": "correct horse battery"})
    bot = db.session.get_one(User, created["user_id"])

    assert bot.password_hash is not None
    assert not sessions.may_have_session(bot)
    assert with_token(created["token"], "POST", tokens, json=FIELDS).status_code == 403


def test_a_bot_is_a_member_only_through_its_token(as_admin, tokens, project, group):
    bot = as_admin.post(tokens, json=FIELDS).json["user_id"]
    member = f"/projects/{project.id}/members/{bot}"

    added = as_admin.post(f"/groups/{group.id}/members", json={"user_id": bot, "access_level": 10})

    assert added.json == {"message": {"user": ["project bots cannot be added to other groups / projects"]}}
    assert as_admin.put(member, json={"access_level": 10}).status_code == as_admin.delete(member).status_code == 403


@pytest.mark.parametrize(
    ("fields", "status", "body"),
    [
        ({"name": None}, 400, {"message": "400 Bad request - Name can't be blank"}),
        ({"scopes": []}, 400, {"message": "400 Bad request - Scopes can't be blank"}),
        ({"scopes": ["sudo"]}, 400, {"error": "scopes does not have a valid value"}),
        ({"access_level": 60}, 400, {"error": "access_level does not have a valid value"}),
        (
            {"access_level": 50},
            400,
            {"message": ABOVE},
        ),
        ({"expires_at": "2020-01-01"}, 400, {"message": "400 Bad request - Expiration date must be in the future"}),
        ({"expires_at": day(366)}, 400, {"message": f"400 Bad request - Expiration date must not be after {day(365)}"}),
    ],
)
def test_invalid_fields_are_refused_and_create_no_bot(fields, status, body, as_maintainer, tokens):
    response = as_maintainer.post(tokens, json=FIELDS | fields)

    assert (response.status_code, response.json) == (status, body)
    assert db.session.query(ResourceBot).count() == 0


def test_the_list_is_filtered_by_state_and_foreign_tokens_are_not_found(as_admin, tokens, group_tokens):
    first, second = (as_admin.post(tokens, json=FIELDS).json for _ in range(2))
    rotated = as_admin.post(f"{tokens}/{first['id']}/rotate").json

    assert [one["id"] for one in as_admin.get(tokens).json] == [first["id"], second["id"], rotated["id"]]
    assert [one["id"] for one in as_admin.get(f"{tokens}?state=active").json] == [second["id"], rotated["id"]]
    assert [one["id"] for one in as_admin.get(f"{tokens}?state=inactive").json] == [first["id"]]
    missing = as_admin.get(f"{group_tokens}/{first['id']}")
    text = f"404 Could not find group access token with token_id: {first['id']} Not Found"
    assert (missing.status_code, missing.json) == (404, {"message": text})


def test_rotation_keeps_bot_scopes_and_role(as_maintainer, tokens, with_token):
    old = as_maintainer.post(tokens, json=FIELDS | {"access_level": 20}).json

    new = as_maintainer.post(f"{tokens}/{old['id']}/rotate", json={"expires_at": day(30)}).json

    assert {name: new[name] for name in ("user_id", "scopes", "access_level", "name")} == {
        name: old[name] for name in ("user_id", "scopes", "access_level", "name")
    }
    assert (new["expires_at"], with_token(new["token"], "GET", "/user").status_code) == (day(30), 200)
    assert with_token(old["token"], "GET", "/user").json["error"] == "invalid_token"
    repeated = as_maintainer.post(f"{tokens}/{old['id']}/rotate")
    assert repeated.json == {"message": "400 Bad request - Token already revoked"}


def test_a_maintainer_cannot_rotate_the_token_of_an_owner_role(as_admin, as_maintainer, tokens):
    of_owner = as_admin.post(tokens, json=FIELDS | {"access_level": 50}).json

    assert as_maintainer.post(f"{tokens}/{of_owner['id']}/rotate").status_code == 400
    assert as_maintainer.delete(f"{tokens}/{of_owner['id']}").status_code == 204


@pytest.mark.parametrize("path", ["/personal_access_tokens/self/rotate", "{tokens}/self/rotate"])
def test_rotating_an_old_token_again_revokes_its_family(path, as_maintainer, tokens, with_token, run_jobs):
    first = as_maintainer.post(tokens, json=FIELDS | {"access_level": 10}).json["token"]
    path = path.format(tokens=tokens)
    second = with_token(first, "POST", path).json["token"]
    third = with_token(second, "POST", path).json["token"]
    assert with_token(first, "GET", "/user").status_code == 401
    assert with_token(third, "GET", "/user").status_code == 200

    assert with_token(first, "POST", path).status_code == 401

    assert with_token(third, "GET", "/user").status_code == 401
    run_jobs()
    assert as_maintainer.get(tokens).json == []


def test_a_token_rotates_only_itself_as_self(as_maintainer, tokens, group_tokens, as_admin, with_token):
    token = as_maintainer.post(tokens, json=FIELDS).json["token"]

    assert with_token(token, "POST", f"{group_tokens}/self/rotate").status_code in (404, 405)
    assert as_maintainer.post(f"{tokens}/self/rotate").status_code == 405


def test_a_token_is_shown_and_revoked_as_self(as_maintainer, tokens, group_tokens, with_token):
    created = as_maintainer.post(tokens, json=FIELDS | {"scopes": ["read_api"]}).json
    token = created.pop("token")

    shown = with_token(token, "GET", f"{tokens}/self")

    assert (shown.status_code, shown.json | {"last_used_at": None}) == (200, created)
    assert with_token(token, "GET", f"{group_tokens}/self").status_code == 404
    assert as_maintainer.get(f"{tokens}/self").json == {"message": "404 Access Token Not Found"}
    assert as_maintainer.delete(f"{tokens}/self").status_code == 404
    assert with_token(token, "DELETE", f"{tokens}/self").status_code == 403
    writing = as_maintainer.post(tokens, json=FIELDS).json["token"]
    assert with_token(writing, "DELETE", f"{tokens}/self").status_code == 204
    assert with_token(writing, "GET", f"{tokens}/self").status_code == 401


def test_the_list_of_users_excludes_bots(as_admin, as_maintainer, tokens):
    bot = as_maintainer.post(tokens, json=FIELDS).json["user_id"]

    ids = {
        query: {user["id"] for user in as_admin.get(f"/users?{query}=true&per_page=100").json}
        for query in ("humans", "without_project_bots", "exclude_humans", "active")
    }

    assert ids["humans"] == ids["without_project_bots"] == ids["active"] - {bot}
    assert ids["exclude_humans"] == {bot}


def test_a_bot_is_removed_with_its_last_token(as_maintainer, tokens, project, with_token, run_jobs):
    created = as_maintainer.post(tokens, json=FIELDS).json
    issue = with_token(created["token"], "POST", f"/projects/{project.id}/issues", json={"title": "Broken"}).json

    assert as_maintainer.delete(f"{tokens}/{created['id']}").status_code == 204

    assert as_maintainer.get(f"/projects/{project.id}/members/{created['user_id']}").status_code == 404
    assert with_token(created["token"], "GET", "/user").status_code == 401
    run_jobs()
    db.session.expire_all()
    assert db.session.get(User, created["user_id"]) is None
    shown = as_maintainer.get(f"/projects/{project.id}/issues/{issue['iid']}").json
    assert shown["author"]["username"] == "ghost"


def test_bots_of_expired_tokens_and_deleted_projects_are_removed(as_admin, tokens, group_tokens, project, run_jobs):
    ids = [as_admin.post(path, json=FIELDS).json["user_id"] for path in (tokens, group_tokens)]
    with unit_of_work():
        of_group = db.session.query(PersonalAccessToken).filter_by(user_id=ids[1]).one()
        of_group.expires_at = clock.today()
    as_admin.delete(f"/projects/{project.id}")
    run_jobs()

    with unit_of_work():
        resource_bots.prune.defer()
    run_jobs()

    db.session.expire_all()
    assert [db.session.get(User, one) for one in ids] == [None, None]


def test_a_group_token_reaches_subgroups_and_projects(as_admin, group_tokens, project, with_token):
    token = as_admin.post(group_tokens, json=FIELDS | {"access_level": 40}).json["token"]

    assert with_token(token, "GET", f"/projects/{project.id}/variables").status_code == 200
    assert with_token(token, "GET", "/groups").json[0]["path"] == "acme"


def test_a_role_is_at_most_that_of_the_caller(people, group, client_of, tokens, project):
    member = make_user()
    add_member(project, member, Role.MAINTAINER)

    assert client_of(member, "api").post(tokens, json=FIELDS | {"access_level": 40}).status_code == 201


def test_managers_of_a_token_are_mailed_before_it_expires(as_admin, tokens, group_tokens, run_jobs, monkeypatch):
    sent = []
    monkeypatch.setattr(jobs.mail, "is_on", lambda: True)
    monkeypatch.setattr(jobs.mail, "queue", lambda to, subject, body: sent.append((sorted(to), subject, body)))
    for path in (tokens, group_tokens):
        as_admin.post(path, json=FIELDS | {"expires_at": day(7)})
        as_admin.post(path, json=FIELDS | {"expires_at": day(8)})

    for _ in range(2):
        with unit_of_work():
            jobs.mail_expiring_tokens.defer()
        run_jobs()

    assert [(to, subject) for to, subject, _ in sent] == [
        (["max@example.org", "olive@example.org"], "The access token deploy of acme/shop expires soon"),
        (["olive@example.org"], "The access token deploy of acme expires soon"),
    ]
    assert f"expires on {day(7)}" in sent[0][2]
    assert "/acme/shop/-/settings/access_tokens" in sent[0][2]


@pytest.mark.parametrize("kind", ["project", "group"])
def test_token_changes_are_audited_in_their_project_or_group(kind, as_admin, tokens, group_tokens, project, group):
    path, resource = (tokens, project) if kind == "project" else (group_tokens, group)
    token = as_admin.post(path, json=FIELDS | {"name": "{deploy}", "access_level": 30}).json
    rotated = as_admin.post(f"{path}/{token['id']}/rotate").json
    as_admin.delete(f"{path}/{rotated['id']}")
    as_admin.delete(f"{path}/{rotated['id']}")

    events = db.session.query(AuditEvent).filter_by(entity_id=resource.id, entity_type=kind.title())
    texts = [event.details["custom_message"] for event in events if "access token" in event.details["custom_message"]]

    assert texts == [
        f"Created {kind} access token {{deploy}} with the role Developer",
        f"Rotated {kind} access token {{deploy}}",
        f"Revoked {kind} access token {{deploy}}",
    ]
    assert token["token"] not in str([event.details for event in events])


def test_tokens_of_a_bot_expire_and_have_its_scopes_on_every_route(as_admin, as_maintainer, tokens, with_token):
    created = as_maintainer.post(tokens, json=FIELDS).json
    bot, far = f"/users/{created['user_id']}", {"expires_at": "2999-01-01"}

    own = with_token(created["token"], "POST", "/personal_access_tokens/self/rotate", json=far)
    by_id = as_admin.post(f"/personal_access_tokens/{created['id']}/rotate", json=far)
    by_admin = as_admin.post(f"{bot}/personal_access_tokens", json=FIELDS)
    sudo = as_admin.post(f"{bot}/personal_access_tokens", json={"name": "sudo", "scopes": ["sudo"]})
    admin = as_admin.put(bot, json={"admin": True})

    assert [one.status_code for one in (own, by_id, by_admin, sudo, admin)] == [400, 400, 201, 422, 400]
    assert own.json["message"].startswith("400 Bad request - Expiration date must not be after ")
    assert by_admin.json["expires_at"] == day(365)
    assert admin.json == {"message": {"admin": ["cannot be set for bots"]}}


def test_a_failing_token_does_not_block_mails_or_removal_of_others(as_admin, tokens, run_jobs, monkeypatch):
    bots = [as_admin.post(tokens, json=FIELDS | {"name": name, "expires_at": day(5)}).json["user_id"] for name in "ab"]
    sent, remove_bot = [], resource_bots.remove_bot

    def queue(_to, subject, _body):
        if "token a " in subject:
            raise LookupError("bad row")
        sent.append(subject)

    def remove(user):
        if user.id == bots[0]:
            raise LookupError("bad row")
        remove_bot(user)

    monkeypatch.setattr(jobs.mail, "is_on", lambda: True)
    monkeypatch.setattr(jobs.mail, "queue", queue)
    monkeypatch.setattr(resource_bots, "remove_bot", remove)
    with unit_of_work():
        jobs.mail_expiring_tokens.defer()
    run_jobs()
    monkeypatch.setattr(clock, "now", lambda: dt.datetime.now(dt.UTC) + dt.timedelta(days=6))
    with unit_of_work():
        resource_bots.prune.defer()
    run_jobs()

    assert sent == ["The access token b of acme/shop expires soon"]
    with unit_of_work():
        assert [
            db.session.get(User, bot) is None or bool(db.session.get(User, bot).deleting_since) for bot in bots
        ] == [
            False,
            True,
        ]
