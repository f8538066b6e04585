"""Forms: CSRF tokens, errors, and values that are never shown."""

from __future__ import annotations

import datetime as dt
import html
import re

import pytest

from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.areas.variables.models import FILE, Variable
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.memberships import Membership
from project_service.domain.namespaces import Group
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedBranch, ProtectedTag
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.sample_data import MAX, OLIVE
from tests.support.visitors import addresses, store

CI_CD, OPERATIONS = "/acme/shop/-/settings/ci_cd", "/acme/shop/-/settings/operations"
LIST = "/dashboard/projects"
VARIABLES, REPOSITORY = f"{CI_CD}/variables", "/acme/shop/-/settings/repository"
TAGS, MEMBERS, TOKENS = (
    f"{REPOSITORY}/protected_tags",
    "/acme/shop/-/project_members",
    "/-/profile/personal_access_tokens",
)
TRACKING = f"{OPERATIONS}/error_tracking"
TABLES = (
    Group,
    Project,
    Membership,
    PersonalAccessToken,
    Variable,
    ProtectedTag,
    ProtectedBranch,
    ErrorTrackingSetting,
)
DSN = "https://93.184.215.14/api/0/projects/acme/shop"


def everything():
    """All rows of the tables that forms change."""
    return [(table, row.id, getattr(row, "value", None)) for table in TABLES for row in db.session.query(table)]


@pytest.fixture
def token_id(people):
    """The id of a token of max and of olive."""
    sample_data.make_token(people[MAX])
    sample_data.make_token(people[OLIVE])
    return {row.user_id: row.id for row in db.session.query(PersonalAccessToken)}


@pytest.mark.parametrize("forged", [{}, {"csrf_token": ""}, {"csrf_token": "IjEi.YQ.forged"}])
def test_every_form_needs_its_csrf_token(forged, app, visit, values, people, token_id):
    forms = addresses(app, "POST", values | {"token_id": token_id[people[OLIVE].id]})
    visitor, before = visit(OLIVE), everything()
    visitor.csrf_token()

    responses = {rule: visitor.open("POST", address, data=forged).status_code for rule, address in forms.items()}

    assert responses == dict.fromkeys(forms, 400)
    assert everything() == before


def test_a_csrf_token_of_another_session_is_refused(app, visit, project):
    stolen = visit(MAX).csrf_token()
    visitor = visit(OLIVE)
    visitor.csrf_token()

    response = visitor.open("POST", VARIABLES, data={"csrf_token": stolen, "key": "A", "value": "b"})

    assert response.status_code == 400


@pytest.mark.parametrize("broken", ["%00", "%ff", "a%00=b", "%C3%28=b"])
def test_every_form_refuses_invalid_text(broken, app, visit, values, people, token_id):
    forms = addresses(app, "POST", values | {"token_id": token_id[people[OLIVE].id]})
    visitor, before = visit(OLIVE), everything()
    body = f"csrf_token={visitor.csrf_token()}&search={broken}"
    options = {"data": body, "content_type": "application/x-www-form-urlencoded"}

    responses = {rule: visitor.open("POST", address, **options).status_code for rule, address in forms.items()}

    assert responses == dict.fromkeys(forms, 400)
    assert everything() == before


@pytest.mark.parametrize("broken", ["%00", "%ff"])
def test_every_page_refuses_invalid_text(broken, app, visit, values):
    pages = addresses(app, "GET", values)
    visitor = visit(OLIVE)

    responses = {rule: visitor.get(f"{address}?search={broken}").status_code for rule, address in pages.items()}

    assert responses == dict.fromkeys(pages, 400)


def test_an_empty_form_causes_no_internal_error(app, visit, values, people, token_id):
    own = sample_data.make_personal_notifications(people[OLIVE])
    forms = addresses(app, "POST", values | own | {"token_id": token_id[people[OLIVE].id]})
    # pages without a form to fill in, and endpoints for programs
    left_out = ("/revoke", "/delete", "session_id>/end", "merged_id>/undo", "/unprotect", "/promote", "token>")
    left_out += ("/preview", "/tasks", "/uploads", "/vulnerability_feedback")
    asks = {rule: address for rule, address in forms.items() if not rule.endswith(left_out)}
    # administrators' forms are tested with their area; there is no to-do item
    asks = {rule: address for rule, address in asks.items() if not rule.startswith(("/admin/", "/dashboard/todos/"))}
    visitor = visit(OLIVE)

    responses = {rule: visitor.send(address).status_code for rule, address in asks.items() if "sign_out" not in rule}

    assert {rule: status for rule, status in responses.items() if status not in (302, 422)} == {}


REFUSED = [
    ("/projects/new", {"name": "", "description": "About <shops>"}, "can't be blank"),
    ("/projects/new", {"name": "Shop", "path": "no spaces", "description": "About <shops>"}, "Project slug"),
    ("/groups/new", {"name": "Crew", "path": "acme", "description": "About <shops>"}, "has already been taken"),
    ("/groups/new", {"name": "", "path": "crew", "description": "About <shops>"}, "can't be blank"),
    (VARIABLES, {"key": "REGION", "value": "About <shops>"}, "(REGION) has already been taken"),
    (VARIABLES, {"key": "no-dash", "value": "About <shops>"}, "can contain only letters"),
    (VARIABLES, {"key": "A", "value": "About <shops>", "masked": "y"}, "not allowed in a masked"),
    (VARIABLES, {"key": "A", "value": "b", "environment_scope": "About <shops>"}, "can contain only letters"),
    (VARIABLES, {"key": "A", "value": "About <shops>", "variable_type": "pipe"}, "Not a valid choice"),
    (TAGS, {"name": "v*", "create_access_level": "40"}, "Name has already been taken"),
    (TAGS, {"name": " ", "create_access_level": "40"}, "Name can't be blank"),
    (TAGS, {"name": "About <shops>", "create_access_level": "50"}, "Not a valid choice"),
    (MEMBERS, {"username": "About <shops>", "access_level": "30"}, "belongs to no user"),
    (MEMBERS, {"username": "dev", "access_level": "30"}, "Member already exists"),
    (MEMBERS, {"username": "sam", "access_level": "50"}, "Not a valid choice"),
    (MEMBERS, {"username": "sam", "access_level": "30", "expires_at": "2001-01-01"}, "cannot be a date in the past"),
    (MEMBERS, {"username": "sam", "access_level": "30", "expires_at": "soon"}, "Not a valid date value"),
    (TOKENS, {"name": "About <shops>"}, "Scopes can't be blank"),
    (TOKENS, {"name": "", "scopes": "api"}, "Name can't be blank"),
    (TOKENS, {"name": "About <shops>", "scopes": "everything"}, "not a valid choice"),
    (TRACKING, {"enabled": "y", "backend": "sentry", "api_url": "ftp://About <shops>"}, "is blocked: URI is invalid"),
    (TRACKING, {"enabled": "y", "backend": "sentry", "api_url": DSN}, "is a required field"),
    (TRACKING, {"backend": "sentry", "api_url": "http://127.0.0.1/api/0/projects/a/b"}, "is blocked"),
]


CHOSEN = {"access_level", "create_access_level", "scopes", "variable_type"}


@pytest.mark.parametrize(("address", "fields", "message"), REFUSED)
def test_a_refused_form_keeps_its_values_and_changes_nothing(
    address, fields, message, visit, project, variable, protected_tag, people
):
    visitor, before = visit(OLIVE), everything()
    chosen = {"namespace_id": people[OLIVE].namespace_id, "visibility": "private"}
    chosen |= {"variable_type": "env_var", "environment_scope": "*"}

    response = visitor.send(address, **chosen | fields)

    shown = html.unescape(response.text)
    assert response.status_code == 422
    assert message in shown
    assert all(typed in shown for name, typed in fields.items() if name not in CHOSEN)
    assert everything() == before


def test_an_error_is_shown_at_its_field_and_linked_to_it(maintainer, variable):
    text = maintainer.send(VARIABLES, key="REGION", value="b", variable_type="env_var", environment_scope="*").text

    assert 'id="key-wrong">Key (REGION) has already been taken</p>' in text
    assert 'aria-invalid="true"' in text
    assert 'aria-describedby="key-help key-wrong"' in text


def test_a_project_cannot_be_created_in_a_namespace_without_permission(visit, project, group, people):
    response = visit("dev").send("/projects/new", name="Mine", namespace_id=group.id, visibility="private")

    assert response.status_code == 422
    assert db.session.query(Project).count() == 1


def test_a_maintainer_cannot_add_an_owner(maintainer, project, people):
    fields = {"username": "sam", "access_level": "50"}

    assert maintainer.send(MEMBERS, **fields).status_code == 422


def test_projects_and_groups_are_created(visit, people):
    visitor = visit("sam")

    group = visitor.send("/groups/new", name="Crew", path="crew", visibility="private")
    crew = db.session.query(Group).one()
    subgroup = visitor.send(f"/groups/new?parent_id={crew.id}", name="Deck", path="deck", visibility="private")
    project = visitor.send("/projects/new", name="The Boat", namespace_id=crew.id, visibility="private")

    assert [response.location for response in (group, subgroup, project)] == ["/crew", "/crew/deck", "/crew/the-boat"]
    assert [visitor.get(path).status_code for path in ("/crew", "/crew/deck", "/crew/the-boat")] == [200] * 3


def test_members_are_added_updated_and_removed(maintainer, project, people):
    sam = people["sam"].id
    added = maintainer.send(MEMBERS, username="sam", access_level="20", expires_at="2099-01-31")
    changed = maintainer.send(f"{MEMBERS}/{sam}/edit", access_level="30", expires_at="")
    membership = db.session.query(Membership).filter_by(user_id=sam).one()
    assert (membership.access_level, membership.expires_at) == (30, None)

    removed = maintainer.send(f"{MEMBERS}/{sam}/remove")

    assert {response.location for response in (added, changed, removed)} == {MEMBERS}
    assert db.session.query(Membership).filter_by(user_id=sam).count() == 0


def test_a_variable_is_created_updated_and_deleted(maintainer, project):
    fields = {"variable_type": FILE, "environment_scope": "production", "raw": "y", "description": "Where"}
    maintainer.send(VARIABLES, key="REGION", value="one\r\ntwo", **fields)
    variable = db.session.query(Variable).one()
    edit, remove = (f"{VARIABLES}/{variable.id}/{word}" for word in ("edit", "delete"))
    assert (variable.value, variable.variable_type, variable.raw) == ("one\ntwo", FILE, True)

    maintainer.send(edit, value="three", variable_type=FILE, environment_scope="*")
    variable = db.session.query(Variable).one()
    assert (variable.value, variable.environment_scope, variable.raw) == ("three", "*", False)

    maintainer.send(remove)

    assert db.session.query(Variable).count() == 0


@pytest.mark.parametrize("value", ["a\r\nb\r\n", "a\rb", "a\n\r\nb", "\n\na", "", None])
def test_an_untouched_value_is_kept_exactly(value, maintainer, project):
    variable = store(Variable(project_id=project.id, key="REGION", value=value))
    address = f"{VARIABLES}/{variable.id}/edit"
    shown = re.search(r"<textarea[^>]*>\r?\n?(.*?)</textarea>", maintainer.get(address).text, re.DOTALL)[1]
    sent = re.sub(r"\r\n?|\n", "\r\n", html.unescape(shown))  # as a browser does

    fields = {"value": sent, "variable_type": "env_var", "environment_scope": "*", "description": "Where it runs"}
    response = maintainer.send(address, **fields)

    stored = db.session.query(Variable).one()
    assert (response.status_code, stored.value, stored.description) == (302, value, "Where it runs")


def test_a_token_is_shown_once(visit, people):
    visitor = visit("sam")

    shown = visitor.send(TOKENS, name="laptop", scopes=["api", "read_user"], expires_at="2099-01-31")
    secret = html.unescape(shown.text.split('id="created-token" value="')[1].split('"')[0])
    listed = visitor.get(TOKENS).text

    assert shown.status_code == 201
    assert len(secret) >= 20
    assert secret not in listed
    assert "laptop" in listed
    assert visitor.get("/api/v4/user", headers={"PRIVATE-TOKEN": secret}).json["username"] == "sam"


def test_a_revoked_token_is_not_listed(visit, people, token_id):
    visitor, number = visit(MAX), token_id[people[MAX].id]

    visitor.send(f"{TOKENS}/{number}/revoke")

    text = visitor.get(TOKENS).text
    assert f"/{number}/revoke" not in text
    assert "1 revoked or expired." in text


def test_an_expired_token_is_counted_and_not_listed(visit, people):
    sample_data.make_token(people[MAX], expires_at=clock.today() - dt.timedelta(days=1))

    assert "1 revoked or expired." in visit(MAX).get(TOKENS).text


def test_values_are_shown_only_on_request(maintainer, variable):
    concealed, revealed = maintainer.get(CI_CD).text, maintainer.get(f"{CI_CD}?reveal=1").text

    assert variable.value not in concealed
    assert variable.value in revealed


def test_a_hidden_value_is_not_shown(maintainer, hidden_variable):
    edit = f"{VARIABLES}/{hidden_variable.id}/edit"
    pages = [CI_CD, f"{CI_CD}?reveal=1", edit, f"{VARIABLES}/{hidden_variable.id}/delete"]
    texts = [maintainer.get(page).text for page in pages]

    refused = maintainer.send(edit, value="", environment_scope="", variable_type="env_var", masked="y")

    assert refused.status_code == 422
    assert all("SIGNING" in text for text in [*texts, refused.text])
    assert not any("never-to-be-seen" in text for text in [*texts, refused.text])


def test_an_empty_field_keeps_a_hidden_value(maintainer, hidden_variable):
    edit = f"{VARIABLES}/{hidden_variable.id}/edit"

    response = maintainer.send(edit, value="", environment_scope="production", variable_type="env_var", masked="y")

    variable = sample_data.reload(hidden_variable)
    assert response.status_code == 302
    assert (variable.value, variable.environment_scope) == ("never-to-be-seen", "production")


def test_the_token_of_error_tracking_is_not_shown(maintainer, project):
    store(ErrorTrackingSetting(project_id=project.id, api_url=DSN, token="never-to-be-seen", enabled=True))

    shown = maintainer.get(OPERATIONS).text
    refused = maintainer.send(TRACKING, enabled="y", backend="sentry", api_url="nonsense", token="typed-just-now")

    assert "A token is stored." in shown
    assert refused.status_code == 422
    assert not any(secret in text for text in (shown, refused.text) for secret in ("never-to-be", "typed-just-now"))


def test_the_token_of_error_tracking_is_kept_until_the_url_changes(maintainer, project):
    store(ErrorTrackingSetting(project_id=project.id, api_url=DSN, token="secret", enabled=False))

    maintainer.send(TRACKING, backend="sentry", api_url=DSN, token="")
    kept_token = db.session.query(ErrorTrackingSetting).one().token
    maintainer.send(TRACKING, backend="sentry", api_url=DSN.replace("shop", "till"), token="")

    assert kept_token == "secret"
    assert db.session.query(ErrorTrackingSetting).one().token is None


def test_a_wildcard_can_be_previewed(maintainer, project):
    response = maintainer.send(TAGS, name="v*", create_access_level="40", preview="1")

    assert (response.status_code, "The repository has no tags yet." in response.text) == (200, True)
    assert db.session.query(ProtectedTag).count() == 0


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}"])
def test_user_texts_are_escaped(text, visit, project, people, group):
    project.name = project.description = group.name = group.description = people[MAX].name = text
    store(Variable(project_id=project.id, key="A", value=text, description=text))
    store(ProtectedTag(project_id=project.id, name=text, create_access_levels=[40]))
    sample_data.make_token(people[MAX], name=text)
    visitor = visit(MAX)

    pages = [
        "/",
        "/acme",
        "/acme/shop",
        f"{CI_CD}?reveal=1",
        REPOSITORY,
        MEMBERS,
        TOKENS,
        "/max",
        f"{LIST}?search={text}",
    ]
    texts = [visitor.get(page).text for page in pages]

    assert all(html.escape(text).replace("&quot;", "&#34;") in shown for shown in texts)
    assert not any(text in shown for shown in texts if "{{" not in text)


def test_a_search_finds_by_name(visit, people, project, group):
    sample_data.add_member(sample_data.make_project("till", group), people[MAX], sample_data.Role.GUEST)

    text = visit(MAX).get(f"{LIST}?search=TIL").text

    assert "/acme/till" in text
    assert "/acme/shop" not in text


def test_long_lists_are_paginated(maintainer, project):
    for number in range(51):
        db.session.add(Variable(project_id=project.id, key=f"KEY_{number:02}", value="v"))
    db.session.commit()

    first, second = maintainer.get(CI_CD).text, maintainer.get(f"{CI_CD}?page=2").text

    assert ("KEY_49" in first, "KEY_50" in first, "?page=2" in first) == (True, False, True)
    assert ("KEY_49" in second, "KEY_50" in second, "?page=1" in second) == (False, True, True)
