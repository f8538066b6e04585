"""Visibility: hidden resources look like missing ones (common reference, section 7.1)."""

from __future__ import annotations

import pytest

from project_service.domain.access_levels import Role
from project_service.kit import clock
from tests.support.sample_data import add_member, make_group, make_project, make_user, share

HIDDEN = (404, {"message": "404 Project Not Found"})
FORBIDDEN = (403, {"message": "403 Forbidden"})
UNAUTHORIZED = (401, {"message": "401 Unauthorized"})


@pytest.fixture
def clients(people, client_of):
    """A client for each kind of caller; the member is a developer of every project made for it."""
    kinds = {"stranger": make_user(), "external": make_user(external=True), "member": make_user()}
    return {"anonymous": client_of(None)} | {kind: client_of(user) for kind, user in kinds.items()} | {"users": kinds}


def told(response):
    return response.status_code, response.json


def status(response):
    return response.status_code


@pytest.fixture
def place(clients):
    """Makes a project of this visibility, with its member."""

    def make(visibility):
        project = make_project(namespace=make_group(visibility=visibility), visibility=visibility)
        add_member(project, clients["users"]["member"], Role.DEVELOPER)
        return project

    return make


@pytest.mark.parametrize(
    ("visibility", "expected"),
    [
        ("private", {"anonymous": 404, "stranger": 404, "external": 404, "member": 200}),
        ("internal", {"anonymous": 404, "stranger": 200, "external": 404, "member": 200}),
        ("public", {"anonymous": 200, "stranger": 200, "external": 200, "member": 200}),
    ],
)
def test_visibility_of_a_project_and_its_group(visibility, expected, clients, place):
    project = place(visibility)

    shown = {kind: status(clients[kind].get(f"/projects/{project.id}")) for kind in expected}
    group = {kind: status(clients[kind].get(f"/groups/{project.namespace_id}")) for kind in expected}
    listed = {kind: 200 if clients[kind].get("/projects").json else 404 for kind in expected}

    assert (shown, group, listed) == (expected, expected, expected)


@pytest.mark.parametrize(
    ("visibility", "stranger", "external"),
    [("private", HIDDEN, HIDDEN), ("internal", FORBIDDEN, HIDDEN), ("public", FORBIDDEN, FORBIDDEN)],
)
def test_hidden_resources_are_404_and_visible_ones_403(visibility, stranger, external, clients, place):
    path = f"/projects/{place(visibility).id}/variables"

    assert told(clients["anonymous"].get(path)) == UNAUTHORIZED
    assert told(clients["stranger"].get(path)) == stranger
    assert told(clients["external"].get(path)) == external
    assert told(clients["member"].get(path)) == FORBIDDEN


def test_hidden_and_missing_resources_look_the_same(clients, place):
    project = place("private")

    hidden, missing = (clients["stranger"].get(f"/projects/{number}") for number in (project.id, 10**9))

    assert told(hidden) == told(missing) == HIDDEN


def test_a_hidden_group_is_not_found(clients, place):
    group_id = place("private").namespace_id

    response = clients["stranger"].get(f"/groups/{group_id}")

    assert told(response) == (404, {"message": "404 Group Not Found"})


def test_a_project_being_deleted_is_not_found(clients, place, as_admin):
    project = place("public")

    response = as_admin.delete(f"/projects/{project.id}")

    assert told(response) == (202, {"message": "202 Accepted"})
    assert told(as_admin.get(f"/projects/{project.id}")) == HIDDEN


def test_a_role_is_inherited_and_shared(client_of):
    person, parent, invited = make_user(), make_group(), make_group()
    project = make_project(namespace=make_group(parent=parent))
    add_member(invited, person, Role.OWNER)
    client, path = client_of(person), f"/projects/{project.id}/variables"

    found = [status(client.get(path))]
    share(parent, invited, Role.REPORTER)
    found += [status(client.get(path))]
    add_member(parent, person, Role.MAINTAINER)
    found += [status(client.get(path))]

    assert found == [404, 403, 200]


def test_an_expired_membership_does_not_count(clients, place, client_of):
    person, project = make_user(), place("private")
    add_member(project, person, Role.MAINTAINER, expires_at=clock.today())

    assert told(client_of(person).get(f"/projects/{project.id}")) == HIDDEN


def test_variables_are_refused_without_builds_or_when_archived(project, as_admin):
    path = f"/projects/{project.id}"

    for off, on in (
        (lambda: as_admin.put(path, json={"builds_access_level": "disabled"}), {"builds_access_level": "enabled"}),
        (
            lambda: as_admin.put(path, json={"repository_access_level": "disabled"}),
            {"repository_access_level": "enabled"},
        ),
        (lambda: as_admin.post(f"{path}/archive"), {}),
    ):
        off()
        assert told(as_admin.get(f"{path}/variables")) == FORBIDDEN
        as_admin.put(path, json=on or {"description": "kept"})
