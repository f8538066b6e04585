"""Pages of access tokens of projects and groups, and the page for leaked tokens."""

from __future__ import annotations

import datetime as dt
import re

import pytest

from project_service.areas.accounts.tokens.resource_token_pages import LEAKED_TOKENS, NOT_REVOKED
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.memberships import Membership
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import ADA, DEV, MAX, OLIVE, SAM, make_bot_token, make_token, reload

PROJECT, GROUP, LEAKED = (
    "/acme/shop/-/settings/access_tokens",
    "/groups/acme/-/settings/access_tokens",
    "/-/profile/leaked_token",
)
FIELDS = {"name": "deploy", "scopes": ["read_api", "read_repository"], "access_level": "20"}
SECRET = re.compile(r'id="created-token" value="([^"]+)"')


@pytest.mark.parametrize("page", [PROJECT, GROUP])
def test_a_token_is_shown_once_and_listed(page, visit, project, group):
    owner, day = visit(OLIVE), clock.today() + dt.timedelta(days=9)

    response = owner.send(page, **FIELDS, expires_at=day.isoformat())

    assert response.status_code == 201
    secret, listed = SECRET.search(response.text)[1], owner.get(page).text
    assert (secret in listed, "deploy" in listed, "read_api, read_repository" in listed) == (False, True, True)
    token = db.session.query(PersonalAccessToken).one()
    member = db.session.query(Membership).filter_by(user_id=token.user_id).one()
    assert (token.expires_at, member.access_level) == (day, Role.REPORTER)
    used = owner.get("/api/v4/user", headers={"PRIVATE-TOKEN": secret})
    assert used.json["name"] == f"{(project if page == PROJECT else group).name} bot: deploy"
    assert "just now" in owner.get(page).text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"name": ""}, "Name can&#39;t be blank"),
        ({"scopes": []}, "Scopes can&#39;t be blank"),
        ({"expires_at": "2020-01-01"}, "Expiration date must be in the future"),
        ({"access_level": "50"}, "Not a valid choice"),  # a maintainer cannot grant the owner role
    ],
)
def test_a_refused_token_shows_the_error_in_the_form(fields, text, maintainer, project):
    response = maintainer.send(PROJECT, **FIELDS | fields)

    assert (response.status_code, text in response.text, "400 Bad request" in response.text) == (422, True, False)
    assert db.session.query(PersonalAccessToken).count() == 0


def test_a_rotated_token_keeps_its_lifetime(maintainer, project):
    token = make_bot_token(project, expires_at=clock.today() + dt.timedelta(days=90), created_at=clock.now())
    form = maintainer.get(f"{PROJECT}/{token.id}/rotate").text
    day = re.search(r'name="expires_at"[^>]* value="([^"]+)"', form)[1]
    assert day == (clock.today() + dt.timedelta(days=90)).isoformat()

    response = maintainer.send(f"{PROJECT}/{token.id}/rotate", expires_at=day)

    assert (response.status_code, len(SECRET.findall(response.text))) == (200, 1)
    assert reload(token).revoked
    assert "Revoked" in maintainer.get(f"{PROJECT}?state=inactive").text
    repeated = maintainer.send(f"{PROJECT}/{token.id}/rotate", expires_at=day)
    assert (repeated.status_code, "Token already revoked" in repeated.text) == (422, True)


@pytest.mark.parametrize("page", [PROJECT, GROUP])
def test_a_token_is_revoked(page, visit, project, group):
    token = make_bot_token(project if page == PROJECT else group)
    owner = visit(OLIVE)
    assert "Revoke the token “test”?" in owner.get(f"{page}/{token.id}/revoke").text

    assert owner.send(f"{page}/{token.id}/revoke").location == page

    assert reload(token).revoked
    assert "There are no active access tokens." in owner.get(page).text


def test_foreign_tokens_cannot_be_revoked_in_a_project(maintainer, project, group, people):
    make_token(people[OLIVE])
    personal = db.session.query(PersonalAccessToken).one()

    for token in (personal, make_bot_token(group)):
        assert maintainer.get(f"{PROJECT}/{token.id}/revoke").status_code == 404
        assert maintainer.send(f"{PROJECT}/{token.id}/revoke").status_code == 404
        assert not reload(token).revoked


@pytest.fixture
def leaked(project, group, people):
    """Text and row of tokens of a project, of its group, and of dev, by name."""
    tokens = {}
    for name, resource in (("project", project), ("group", group), ("dev", None)):
        user = people[DEV] if resource is None else make_bot_token(resource).user
        text = make_token(user, name=f"leaked-{name}")
        tokens[name] = text, db.session.query(PersonalAccessToken).filter_by(name=f"leaked-{name}").one()
    return tokens


@pytest.mark.parametrize(
    ("person", "revocable"),
    [
        (ADA, {"project", "group", "dev"}),
        (OLIVE, {"project", "group"}),
        (MAX, {"project"}),
        (DEV, {"dev"}),
        (SAM, set()),
    ],
)
def test_roles_that_can_revoke_a_leaked_token(person, revocable, visit, leaked):
    visitor = visit(person)

    for name, (text, token) in leaked.items():
        response = visitor.send(LEAKED, secret=f" {text}\n")

        assert (response.status_code, reload(token).revoked) == ((302, True) if name in revocable else (422, False))
        assert (NOT_REVOKED in response.text) is (name not in revocable)
        assert text not in response.text


def test_unknown_revoked_and_foreign_tokens_get_the_same_response(visit, leaked):
    sam, olive = visit(SAM), visit(OLIVE)
    olive.send(LEAKED, secret=leaked["group"][0])

    texts = [
        visitor.send(LEAKED, secret=secret).text
        for visitor, secret in ((sam, "unknown"), (sam, leaked["project"][0]), (sam, leaked["group"][0]))
    ]

    same = {re.sub(r'(value|Request) ?="?[^">]+', "", text) for text in texts}
    assert len(same) == 1


def test_checks_of_leaked_tokens_are_rate_limited(visit, leaked):
    sam = visit(DEV)
    for _ in range(LEAKED_TOKENS.calls):
        assert sam.send(LEAKED, secret="unknown").status_code == 422

    response = sam.send(LEAKED, secret=leaked["dev"][0])

    assert (response.status_code, "Too many tokens. Try again in 10 minutes." in response.text) == (429, True)
    assert not reload(leaked["dev"][1]).revoked


@pytest.mark.parametrize(
    ("members", "page"), [("/acme/shop/-/project_members", PROJECT), ("/groups/acme/-/group_members", GROUP)]
)
def test_bots_in_the_list_of_members_link_to_their_tokens(members, page, visit, project, group):
    bot = make_bot_token(project if page == PROJECT else group).user

    text = visit(OLIVE).get(members).text

    assert re.search(rf'href="/{bot.username}">[^<]+</a> <span class="badge">Bot</span>', text)
    assert (f"{members}/{bot.id}/edit" in text, f'href="{page}">Access tokens' in text) == (False, True)
