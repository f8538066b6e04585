"""Deleting projects, groups and users through HTTP, and what the jobs leave behind: nothing."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from project_service.domain import removal
from project_service.domain.access_levels import Role
from project_service.domain.events.models import Action
from project_service.domain.events.recording import record
from project_service.kit.db.base import Base
from project_service.kit.db.session import db
from tests.support.sample_data import (
    ADA,
    MAX,
    NOBODY,
    OLIVE,
    PEOPLE,
    SAM,
    add_member,
    make_group,
    make_project,
    make_user,
    share,
)

pytestmark = pytest.mark.both_databases

ACCEPTED = {"message": "202 Accepted"}
STALE = {"If-Unmodified-Since": "Mon, 01 Jan 1990 00:00:00 GMT"}
NEW = {"email": "other@example.org", "name": "Other", "username": "other", "password": "long enough"}


def rows():
    """How many rows each table has, without audit events, which stay."""
    db.session.rollback()
    tables = [table for table in Base.metadata.sorted_tables if table.name != "audit_events"]
    return {table.name: db.session.scalar(select(func.count()).select_from(table)) for table in tables}


def fill(project, people, client):
    """Give a project a bit of everything."""
    client.post(f"/projects/{project.id}/variables", json={"key": "KEY", "value": "value"})
    client.post(f"/projects/{project.id}/members", json={"user_id": people[SAM].id, "access_level": 30})
    client.post(f"/projects/{project.id}/protected_tags", json={"name": "v*"})
    client.post(f"/projects/{project.id}/issues", json={"title": "Broken"})
    share(project, make_group(), Role.DEVELOPER)


@pytest.fixture
def other(people):
    return make_user("other")


def test_a_deleted_project_is_not_found_at_once(project, group, people, as_, as_admin):
    client = as_(OLIVE)

    response = client.delete(f"/projects/{project.id}")

    assert (response.status_code, response.json) == (202, ACCEPTED)
    for path in (f"/projects/{project.id}", "/projects/acme%2Fshop", f"/projects/{project.id}/members"):
        assert (client.get(path).status_code, as_admin.get(path).status_code) == (404, 404)
    for path in ("/projects", f"/groups/{group.id}/projects", "/projects?membership=true"):
        assert client.get(path).json == []
    assert client.get(f"/groups/{group.id}").json["projects"] == []
    assert client.delete(f"/projects/{project.id}").json == {"message": "404 Project Not Found"}


def test_the_name_and_path_of_a_deleted_project_are_free(project, group, as_, run_jobs):
    as_(OLIVE).delete(f"/projects/{project.id}")

    again = as_(OLIVE).post("/projects", json={"name": "shop", "path": "SHOP", "namespace_id": group.id})

    assert again.status_code == 201
    run_jobs()
    assert as_(OLIVE).get("/projects/acme%2Fshop").json["id"] == again.json["id"]


def test_a_deleted_project_leaves_no_rows(group, people, as_, as_admin, run_jobs):
    client = as_(OLIVE)
    invited = rows()
    project = make_project("tool", group)
    fill(project, people, client)
    filled = rows()

    client.delete(f"/projects/{project.id}")
    ran = run_jobs()

    assert filled["variables"] == filled["memberships"] - invited["memberships"] == filled["shares"] == 1
    assert (ran, {table for table, count in rows().items() if count != invited[table]}) == (
        1,
        {"namespaces", "namespace_ancestors", "routes"},
    )
    assert rows()["namespaces"] == invited["namespaces"] + 1


def test_a_project_that_changed_since_is_not_deleted(project, as_):
    response = as_(OLIVE).delete(f"/projects/{project.id}", headers=STALE)

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert as_(OLIVE).get(f"/projects/{project.id}").status_code == 200


@pytest.mark.parametrize("moment", ["Fri, 01 Jan 2100 00:00:00 GMT", "some day", ""])
def test_an_unchanged_project_is_deleted(moment, project, as_):
    response = as_(OLIVE).delete(f"/projects/{project.id}", headers={"If-Unmodified-Since": moment})

    assert response.status_code == 202


def test_the_job_ignores_a_project_that_is_not_marked(project, people, as_):
    fill(project, people, as_(OLIVE))
    before = rows()

    removal.remove_project(project.id)
    removal.remove_namespace(project.namespace_id)
    removal.remove_user(people[MAX].id)

    assert rows() == before


def test_the_jobs_may_run_twice(project, people, as_, as_admin, run_jobs):
    as_(OLIVE).delete(f"/projects/{project.id}")
    as_admin.delete(f"/users/{people[SAM].id}")
    run_jobs()
    before = rows()

    removal.remove_project(project.id)
    removal.remove_user(people[SAM].id)

    assert rows() == before


def test_a_deleted_group_and_its_contents_are_not_found_at_once(project, group, people, as_):
    below = make_group("below", group)
    deep = make_project("deep", below)
    add_member(below, people[SAM], Role.OWNER)

    response = as_(OLIVE).delete(f"/groups/{group.id}")

    assert (response.status_code, response.json) == (202, ACCEPTED)
    places = [
        *(f"/groups/{group.id}", "/groups/acme", f"/groups/{below.id}", "/groups/acme%2Fbelow"),
        *(f"/projects/{project.id}", f"/projects/{deep.id}", "/projects/acme%2Fbelow%2Fdeep"),
    ]
    assert {as_(name).get(path).status_code for name in (ADA, OLIVE, SAM) for path in places} == {404}
    assert [as_(name).get(path).json for name in (ADA, OLIVE, SAM) for path in ("/groups", "/projects")] == [[]] * 6


def test_paths_below_a_deleted_group_are_free(group, as_stranger, as_):
    make_project("deep", make_group("below", group))
    as_(OLIVE).delete(f"/groups/{group.id}")

    again = as_stranger.post("/groups", json={"name": "Acme", "path": "ACME"}).json["id"]
    below = as_stranger.post("/groups", json={"name": "Below", "path": "below", "parent_id": again})
    deep = as_stranger.post("/projects", json={"name": "deep", "namespace_id": below.json["id"]})

    assert (below.status_code, deep.status_code) == (201, 201)


def test_a_deleted_group_leaves_no_rows(people, as_, run_jobs):
    client, friends = as_(OLIVE), make_group("friends")
    before = rows()
    made = client.post("/groups", json={"name": "Top", "path": "top"}).json["id"]
    below = client.post("/groups", json={"name": "Below", "path": "below", "parent_id": made}).json["id"]
    for place in (made, below):
        project = client.post("/projects", json={"name": "tool", "namespace_id": place}).json["id"]
        client.post(f"/projects/{project}/variables", json={"key": "KEY", "value": "value"})
        client.post(f"/groups/{place}/members", json={"user_id": people[SAM].id, "access_level": 30})
        client.post(f"/projects/{project}/share", json={"group_id": made, "group_access": 30})
    friends.visibility = 20
    db.session.merge(friends)
    db.session.commit()
    client.post(f"/groups/{made}/share", json={"group_id": friends.id, "group_access": 30})

    client.delete(f"/groups/{made}")
    run_jobs()

    assert rows() == before


def test_a_group_that_changed_since_is_not_deleted(group, as_):
    response = as_(OLIVE).delete(f"/groups/{group.id}", headers=STALE)

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert as_(OLIVE).get(f"/groups/{group.id}").status_code == 200


def test_shares_with_a_deleted_group_end_at_once(project, people, as_, as_stranger):
    friends = make_group("friends")
    add_member(friends, people[SAM], Role.OWNER)
    share(project, friends, Role.DEVELOPER)

    as_stranger.delete(f"/groups/{friends.id}")

    assert as_stranger.get(f"/projects/{project.id}").status_code == 404
    assert as_stranger.get("/projects").json == []
    assert SAM not in [member["username"] for member in as_(OLIVE).get(f"/projects/{project.id}/members/all").json]
    assert as_(OLIVE).get(f"/projects/{project.id}").json["shared_with_groups"] == []


@pytest.mark.parametrize(("person", "status"), [(ADA, 204), (OLIVE, 403), (SAM, 403), (NOBODY, 401)])
def test_callers_that_may_delete_a_user(person, status, other, as_):
    response = as_(person).delete(f"/users/{other.id}")

    assert (response.status_code, response.data == b"") == (status, status == 204)


def test_a_deleted_user_is_not_found_at_once(other, project, group, as_admin, client_of, as_):
    make_project("tool", other, visibility="public")
    add_member(project, other, Role.DEVELOPER)
    add_member(group, other, Role.DEVELOPER)
    theirs = client_of(other)

    as_admin.delete(f"/users/{other.id}")

    assert (theirs.get("/user").status_code, theirs.get("/user").json) == (401, {"message": "401 Unauthorized"})
    assert as_admin.get(f"/users/{other.id}").json == {"message": "404 User Not Found"}
    assert as_admin.get("/users?username=other").json == []
    assert as_admin.get("/users/other/projects").status_code == 404
    assert as_admin.get("/projects/other%2Ftool").status_code == 404
    for place in (f"/projects/{project.id}", f"/groups/{group.id}"):
        for path in ("members", "members/all"):
            assert "other" not in [member["username"] for member in as_(OLIVE).get(f"{place}/{path}").json]
        for path in (f"members/{other.id}", f"members/all/{other.id}"):
            assert as_(OLIVE).get(f"{place}/{path}").json == {"message": "404 Not found"}
        added = as_(OLIVE).post(f"{place}/members", json={"user_id": other.id, "access_level": 40})
        assert added.json == {"message": "404 User Not Found"}
    assert [token["user_id"] for token in as_admin.get("/personal_access_tokens").json].count(other.id) == 0
    again = as_admin.delete(f"/users/{other.id}")
    assert (again.status_code, again.json) == (404, {"message": "404 User Not Found"})


def test_the_name_and_address_of_a_deleted_user_are_free(other, as_admin, run_jobs):
    make_project("tool", other)
    as_admin.delete(f"/users/{other.id}")

    again = as_admin.post("/users", json=NEW)

    assert again.status_code == 201
    run_jobs()
    assert as_admin.get("/users?username=other").json[0]["id"] == again.json["id"]


def test_a_deleted_user_leaves_no_rows(project, group, people, as_admin, client_of, run_jobs):
    before = rows()
    other = make_user("other")
    theirs = client_of(other)
    theirs.post("/projects", json={"name": "tool"})
    theirs.post("/groups", json={"name": "Own", "path": "own"})
    add_member(project, other, Role.DEVELOPER)
    add_member(group, other, Role.DEVELOPER)
    record(other, Action.JOINED, project)
    db.session.commit()

    response = as_admin.delete(f"/users/{other.id}?hard_delete=true")
    run_jobs()

    assert (response.status_code, rows()) == (204, before)


def test_group_projects_of_a_deleted_user_are_kept(group, other, as_admin, client_of, run_jobs):
    add_member(group, other, Role.DEVELOPER)
    made = client_of(other).post("/projects", json={"name": "tool", "namespace_id": group.id}).json["id"]

    as_admin.delete(f"/users/{other.id}")
    run_jobs()

    shown = as_admin.get(f"/projects/{made}").json
    assert (shown["path_with_namespace"], shown["creator_id"]) == ("acme/tool", None)


def test_a_user_who_changed_since_is_not_deleted(other, as_admin):
    response = as_admin.delete(f"/users/{other.id}", headers=STALE)

    assert (response.status_code, response.json) == (412, {"message": "412 Precondition Failed"})
    assert as_admin.get(f"/users/{other.id}").status_code == 200


def test_the_only_owner_of_a_group_is_not_deleted(group, people, as_admin):
    response = as_admin.delete(f"/users/{people[OLIVE].id}")

    text = "User cannot be removed while is the sole-owner of a group"
    assert (response.status_code, response.json) == (409, {"message": text})
    assert as_admin.get(f"/users/{people[OLIVE].id}").status_code == 200


def test_a_hard_delete_of_the_only_owner_removes_the_group(project, group, people, as_admin, run_jobs):
    response = as_admin.delete(f"/users/{people[OLIVE].id}?hard_delete=true")

    assert response.status_code == 204
    gone = [f"/groups/{group.id}", f"/projects/{project.id}"]
    assert [as_admin.get(path).status_code for path in gone] == [404, 404]
    run_jobs()
    assert (rows()["projects"], rows()["namespaces"]) == (0, len(PEOPLE) - 1)


def test_one_of_two_owners_is_deleted_and_then_the_other_is_the_only_one(group, people, as_admin):
    add_member(group, people[MAX], Role.OWNER)

    first = as_admin.delete(f"/users/{people[OLIVE].id}")
    second = as_admin.delete(f"/users/{people[MAX].id}")

    assert (first.status_code, second.status_code) == (204, 409)
    assert as_admin.get(f"/groups/{group.id}").status_code == 200


def test_the_only_owner_of_a_deleted_group_is_deleted(group, people, as_, as_admin):
    as_(OLIVE).delete(f"/groups/{group.id}")

    assert as_admin.delete(f"/users/{people[OLIVE].id}").status_code == 204
