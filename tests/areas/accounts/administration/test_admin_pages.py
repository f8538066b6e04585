"""Users in the administration area."""

from __future__ import annotations

import re

import pytest

from project_service.domain.accounts.users import BLOCKED, User, user_by
from project_service.kit.db.session import db
from tests.areas.accounts.sign_in.test_sessions import is_signed_in, sign_in
from tests.support.sample_data import ADA, MAX, SAM, reload

USERS = "/admin/users"
PASSWORD_SHOWN = re.compile(r'id="new-password" value="([^"]+)"')


@pytest.fixture
def administrator(visit):
    return visit(ADA)


def page_of(user):
    return f"{USERS}/{user.id}"


def test_a_new_user_signs_in_with_the_password_shown_and_chooses_another(administrator, visitor):
    response = administrator.send(f"{USERS}/new", name="Nina", username="nina", email="nina@example.org")
    first = PASSWORD_SHOWN.search(response.text)[1]
    sign_in(visitor, "nina", first)

    home_page = visitor.get("/")
    changed = visitor.send(
        "/-/profile/password", current_password=first, new_password="green-tea-4711", repeated="green-tea-4711"
    )

    assert (response.status_code, user_by("nina").admin) == (201, False)
    assert (home_page.status_code, home_page.location) == (302, "/-/profile/password")
    assert (changed.status_code, changed.location) == (302, "/")
    assert is_signed_in(visitor)
    assert first not in administrator.get(page_of(user_by("nina"))).text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"username": "max", "email": "m@example.org"}, "Username has already been taken"),
        ({"username": "new", "email": "none"}, "is invalid"),
        ({"username": "", "email": "m@example.org"}, "Username"),
    ],
)
def test_an_invalid_user_shows_the_error_at_its_field(fields, text, administrator, people):
    response = administrator.send(f"{USERS}/new", name="New", **fields)

    assert response.status_code == 422
    assert text in response.text
    assert user_by("new") is None


def test_blocked_users_are_signed_out_until_they_are_unblocked(administrator, visit, people):
    visitor = visit(MAX)

    administrator.send(f"{page_of(people[MAX])}/block")
    blocked = reload(people[MAX]).state, is_signed_in(visitor)
    administrator.send(f"{page_of(people[MAX])}/unblock")

    assert blocked == (BLOCKED, False)
    assert reload(people[MAX]).state == "active"


def test_administrator_rights_are_granted_and_removed(administrator, people):
    administrator.send(f"{page_of(people[SAM])}/make_admin")
    granted = reload(people[SAM]).admin
    administrator.send(f"{page_of(people[SAM])}/remove_admin")

    assert (granted, reload(people[SAM]).admin) == (True, False)


@pytest.mark.parametrize("action", ["block", "remove_admin", "reset_password", "delete"])
def test_administrators_cannot_change_their_own_account(action, administrator, people):
    assert administrator.send(f"{page_of(people[ADA])}/{action}", typed_username=ADA).status_code == 403
    assert (reload(people[ADA]).state, reload(people[ADA]).admin) == ("active", True)


def test_an_action_that_does_not_exist_is_not_found(administrator, people):
    assert administrator.send(f"{page_of(people[MAX])}/promote").status_code == 404


def test_a_reset_password_ends_sessions_and_has_to_be_replaced(administrator, visitor, paula, people):
    sign_in(visitor)

    response = administrator.send(f"{page_of(paula)}/reset_password")

    assert not is_signed_in(visitor)
    sign_in(visitor, "paula", PASSWORD_SHOWN.search(response.text)[1])
    assert visitor.get("/").location == "/-/profile/password"


def test_deleting_a_user_needs_the_typed_username(administrator, people, run_jobs):
    refused = administrator.send(f"{page_of(people[SAM])}/delete", typed_username="max")
    accepted = administrator.send(f"{page_of(people[SAM])}/delete", typed_username="sam")
    run_jobs()

    assert (refused.status_code, accepted.location) == (422, USERS)
    assert "has to be sam" in refused.text
    assert db.session.get(User, people[SAM].id) is None


def test_users_are_found_by_name_and_state(administrator, people):
    administrator.send(f"{page_of(people[MAX])}/block")

    blocked = administrator.get(f"{USERS}?state=blocked").text
    results = administrator.get(f"{USERS}?search=sam").text

    assert ("@max" in blocked, "@sam" in blocked) == (True, False)
    assert ("@max" in results, "@sam" in results) == (False, True)
