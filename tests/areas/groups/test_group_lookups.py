"""The groups around projects and groups, and the users of a project, through HTTP."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.domain.access_levels import Role
from project_service.kit.db.session import unit_of_work
from tests.support.sample_data import (
    ADA,
    DEV,
    GUS,
    MAX,
    NOBODY,
    OLIVE,
    RITA,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    reload,
    share,
)

pytestmark = pytest.mark.both_databases


def ids(response):
    return [row["id"] for row in response.json]


def test_the_groups_of_a_project_are_those_above_it_and_those_it_is_shared_with(group, people, as_):
    below = make_group(parent=group)
    project, team, hidden = make_project(namespace=below), make_group("team", visibility="public"), make_group("hidden")
    share(project, team, Role.DEVELOPER)
    share(project, hidden, Role.GUEST)
    path, client = f"/projects/{project.id}/groups", as_(OLIVE)

    assert ids(client.get(path)) == [below.id, group.id]
    assert ids(client.get(f"{path}?with_shared=true")) == [hidden.id, team.id, below.id, group.id]
    assert ids(client.get(f"{path}?with_shared=true&shared_visible_only=true")) == [team.id, below.id, group.id]
    assert ids(client.get(f"{path}?with_shared=true&shared_min_access_level=30")) == [team.id, below.id, group.id]
    assert ids(client.get(f"{path}?skip_groups[]={below.id}")) == [group.id]
    assert ids(client.get(f"{path}?search={below.path}")) == [below.id]
    keys = ["id", "web_url", "name", "avatar_url", "full_name", "full_path"]
    assert list(client.get(path).json[0]) == keys
    assert as_(SAM).get(path).status_code == 404


def test_a_personal_project_has_no_groups(people, as_admin):
    project = make_project(namespace=people[DEV])

    assert as_admin.get(f"/projects/{project.id}/groups").json == []


def test_invited_groups_are_those_of_shares_that_the_caller_sees(group, project, as_):
    direct, inherited = make_group("direct", visibility="public"), make_group("inherited", visibility="public")
    share(project, direct, Role.GUEST)
    share(group, inherited, Role.GUEST)
    share(group, make_group("hidden"), Role.GUEST)
    below, client = make_group(parent=group), as_(OLIVE)
    path = f"/projects/{project.id}/invited_groups"

    assert ids(client.get(path)) == [inherited.id, direct.id]
    assert ids(client.get(f"{path}?relation[]=direct")) == [direct.id]
    assert ids(client.get(f"{path}?relation[]=inherited")) == [inherited.id]
    assert ids(client.get(f"{path}?min_access_level=10")) == []
    assert ids(client.get(f"/groups/{group.id}/invited_groups")) == [inherited.id]
    assert ids(client.get(f"/groups/{below.id}/invited_groups?relation=inherited")) == [inherited.id]
    assert ids(client.get(f"/groups/{inherited.id}/groups/shared")) == [group.id]
    assert ids(client.get(f"/groups/{inherited.id}/groups/shared?visibility=public")) == []


def test_projects_shared_with_a_group_are_listed(group, project, people, as_):
    team, ended, shared_id = make_group("team"), make_project(), project.id
    add_member(team, people[SAM], Role.MAINTAINER)
    share(project, team, Role.REPORTER)
    expired = share(ended, team, Role.REPORTER)
    with unit_of_work():
        reload(expired).expires_at = dt.date(2020, 1, 1)
    path = f"/groups/{reload(team).id}/projects/shared"
    sam, rita = as_(SAM), as_(RITA)

    assert ids(sam.get(path)) == [shared_id]
    assert rita.get(path).status_code == 404


def test_the_users_of_a_project_have_a_role_in_it_however_they_got_it(group, project, people, as_):
    team, helper = make_group("team"), make_user("helper")
    add_member(team, helper, Role.MAINTAINER)
    share(project, team, Role.GUEST)
    path = f"/projects/{project.id}/users"

    users = as_(GUS).get(path)

    names = (OLIVE, MAX, DEV, RITA, GUS)
    assert ids(users) == sorted([*(people[name].id for name in names), helper.id])
    assert list(users.json[0]) == ["id", "name", "username", "state", "avatar_url", "web_url"]
    assert ids(as_(GUS).get(f"{path}?search=HELPER@example.org")) == [helper.id]
    skipped = f"{path}?search=e&skip_users[]={helper.id}"
    assert helper.id not in ids(as_(GUS).get(skipped))
    assert [as_(person).get(path).status_code for person in (ADA, SAM, NOBODY)] == [200, 404, 401]


def test_the_owner_of_a_personal_project_is_one_of_its_users(people, as_admin):
    project = make_project(namespace=people[DEV])

    assert ids(as_admin.get(f"/projects/{project.id}/users")) == [people[DEV].id]
