"""Permissions are read from the database for each request: a change takes effect on the next one, also for a 304."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import BLOCKED, User
from project_service.domain.memberships import Membership
from project_service.kit.db.session import db, unit_of_work
from tests.support.sample_data import DEV, GUS, MAX, OLIVE

pytestmark = pytest.mark.both_databases
CHANGES = {
    "the token is revoked": (update(PersonalAccessToken).values(revoked=True), PersonalAccessToken.user_id, 401),
    "the role is lowered": (update(Membership).values(access_level=10), Membership.user_id, 403),
    "the user is blocked": (update(User).values(state=BLOCKED), User.id, 403),
}


@pytest.fixture
def variables(project, as_):
    """The address of a list that the maintainer has read."""
    address = f"/projects/{project.id}/variables"
    as_(MAX).post(address, json={"key": "A", "value": "1"})
    return address


@pytest.mark.parametrize(("change", "column", "status"), CHANGES.values(), ids=CHANGES)
def test_a_revocation_takes_effect_on_the_next_request(change, column, status, variables, people, as_):
    client = as_(MAX)
    tag = client.get(variables).headers["ETag"]
    assert client.get(variables, headers={"If-None-Match": tag}).status_code == 304
    with unit_of_work():
        db.session.execute(change.where(column == people[MAX].id))

    statuses = [client.get(variables, headers=headers).status_code for headers in ({}, {"If-None-Match": tag})]

    assert statuses == [status, status]


def test_each_user_gets_their_own_response(variables, as_):
    assert [as_(name).get(variables).status_code for name in (MAX, MAX, GUS, MAX, GUS)] == [200, 200, 403, 200, 403]


def test_a_refused_token_is_refused_again(project, as_):
    client, address = as_(MAX), f"/projects/{project.id}/issues"
    tokens = ({"PRIVATE-TOKEN": "none"}, {}, {"PRIVATE-TOKEN": "none"})

    assert [client.get(address, headers=headers).status_code for headers in tokens] == [401, 200, 401]


def test_a_list_and_its_total_follow_every_commit(project, as_):
    address = f"/projects/{project.id}/issues"

    def totals():
        return [as_(name).get(f"{address}?per_page=2").headers["X-Total"] for name in (MAX, GUS)]

    for number in range(3):
        as_(MAX).post(address, json={"title": f"Till {number}", "confidential": number == 0})
    before = totals()
    as_(OLIVE).delete(f"{address}/3")
    fewer = totals()
    as_(DEV).post(address, json={"title": "One more"})

    assert (before, fewer, totals()) == (["3", "2"], ["2", "1"], ["3", "2"])
