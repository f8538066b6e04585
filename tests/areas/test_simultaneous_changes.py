"""Concurrent changes of the same rows: the later one gets the response that it would get after the earlier one.

The test makes the earlier change and has not committed it when a request that has loaded the same rows begins.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

import pytest
from sqlalchemy import delete, select

from project_service.access.identity import ANONYMOUS
from project_service.areas.accounts.administration import service as accounts
from project_service.areas.accounts.tokens import service as token_service
from project_service.areas.instance import service as instance
from project_service.areas.projects import service as projects
from project_service.areas.variables.models import Variable
from project_service.domain.access_levels import Role
from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.domain.events.models import Event
from project_service.domain.memberships import Membership, Share
from project_service.domain.namespaces import Group, namespace_of
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.domain.repositories.protected_refs import ProtectedTag
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.milestones import Milestone
from project_service.kit.db.session import db
from project_service.transfers.exporting import exporter
from project_service.transfers.models import ProjectExport
from tests.support.sample_data import ADA, DEV, SAM, make_group, make_token, make_user, share

pytestmark = pytest.mark.both_databases

RECORD_NOT_FOUND = {"message": "404 Not found"}
INVALID_NAMESPACE = 400, {"message": {"namespace": ["is not valid"], "limit_reached": []}}


def not_found(resource):
    return {"message": f"404 {resource} Not Found"}


def send_before_commit(app, request):
    """Send a request that has to wait until the changes of the test are committed; return its status and body."""

    def send_in_context():
        with app.app_context():
            return request()

    db.session.flush()
    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(send_in_context)
        assert not wait([pending], timeout=0.3).done
        db.session.commit()
        response = pending.result()
    return response.status_code, response.json


@pytest.fixture
def filled_project(project, people, as_admin):
    """The project with one row of each kind that can be removed."""
    path = f"/projects/{project.id}"
    for address, fields in (
        ("variables", {"key": "KEY", "value": "1"}),
        ("protected_tags", {"name": "v1"}),
        ("environments", {"name": "production"}),
        ("milestones", {"title": "Opening"}),
        ("issues", {"title": "Closed"}),
    ):
        assert as_admin.post(f"{path}/{address}", json=fields).status_code == 201
    share(db.session.get_one(Project, project.id), make_group("friends"), Role.GUEST)
    return project


@pytest.mark.parametrize(
    ("model", "method", "path", "body"),
    [
        (Variable, "DELETE", "variables/KEY", None),
        (Variable, "PUT", "variables/KEY", {"value": "2"}),
        (ProtectedTag, "DELETE", "protected_tags/v1", None),
        (Environment, "DELETE", "environments/{id}", None),
        (Milestone, "DELETE", "milestones/{id}", None),
        (Milestone, "PUT", "milestones/{id}", {"title": "Closing"}),
        (Issue, "DELETE", "issues/{iid}", None),
        (Issue, "PUT", "issues/{iid}", {"state_event": "close"}),
        (Share, "DELETE", "share/{group_id}", None),
    ],
)
def test_concurrently_removed_rows_are_not_found(model, method, path, body, app, filled_project, as_admin):
    row = db.session.scalars(select(model)).one()
    address = f"/projects/{filled_project.id}/{path.format(**row.__dict__)}"
    db.session.execute(delete(model))

    status, _ = send_before_commit(app, lambda: as_admin.open(method, address, json=body))

    assert status == 404


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PUT", {"access_level": 20})])
def test_a_membership_is_removed_once(method, body, app, project, people, as_admin):
    address = f"/projects/{project.id}/members/{people[DEV].id}"
    db.session.execute(delete(Membership).where(Membership.user_id == people[DEV].id))

    assert send_before_commit(app, lambda: as_admin.open(method, address, json=body)) == (404, RECORD_NOT_FOUND)
    assert db.session.scalars(select(Event)).all() == []


@pytest.mark.parametrize(("method", "body"), [("DELETE", None), ("PUT", {"path": "till"})])
def test_changes_of_a_concurrently_deleted_project_are_not_found(method, body, app, project, as_admin):
    path_registry.start_deleting_project(db.session.get_one(Project, project.id))

    response = send_before_commit(app, lambda: as_admin.open(method, f"/projects/{project.id}", json=body))

    assert response == (404, not_found("Project"))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", "/groups/{}", None),
        ("PUT", "/groups/{}", {"path": "moved"}),
        ("POST", "/groups?parent_id={}", {"path": "late", "name": "Late"}),
        ("POST", "/projects?namespace_id={}", {"path": "late"}),
    ],
)
@pytest.mark.parametrize("below", [False, True])
def test_changes_in_a_concurrently_deleted_group_are_refused(method, path, body, below, app, group, as_admin):
    target = make_group("below", group) if below else group
    path_registry.start_deleting_namespace(db.session.get_one(Group, target.id))

    response = send_before_commit(app, lambda: as_admin.open(method, path.format(target.id), json=body))

    assert response == (INVALID_NAMESPACE if "namespace_id" in path else (404, not_found("Group")))


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("DELETE", "", None), ("PUT", "", {"bio": "late"}), ("POST", "/block", None), ("POST", "/unblock", None)],
)
def test_changes_of_a_concurrently_deleted_user_are_not_found(method, path, body, app, people, as_admin):
    accounts.delete_user(db.session.get_one(User, people[SAM].id))

    response = send_before_commit(app, lambda: as_admin.open(method, f"/users/{people[SAM].id}{path}", json=body))

    assert response == (404, not_found("User"))


def test_creations_in_the_namespace_of_a_concurrently_deleted_user_are_refused(app, people, as_stranger):
    path_registry.start_deleting_namespace(namespace_of(people[SAM]))

    response = send_before_commit(app, lambda: as_stranger.post("/projects", json={"path": "late"}))

    assert response == INVALID_NAMESPACE


def test_a_user_is_blocked_once(app, people, as_admin):
    accounts.block_user(people[ADA].id, db.session.get_one(User, people[SAM].id))

    assert send_before_commit(app, lambda: as_admin.post(f"/users/{people[SAM].id}/block")) == (201, None)


def test_a_token_is_rotated_once(app, people, as_admin):
    make_token(people[SAM], name="ci")
    token = db.session.scalars(select(PersonalAccessToken).filter_by(name="ci")).one()
    token_service.rotate_token(token)

    response = send_before_commit(app, lambda: as_admin.post(f"/personal_access_tokens/{token.id}/rotate"))

    assert response == (400, {"message": "400 Bad request - Token already revoked"})
    assert [one.active for one in db.session.scalars(select(PersonalAccessToken).filter_by(name="ci"))].count(True) == 1


def test_concurrent_creations_respect_the_project_limit(app, client_of):
    user = make_user("frugal", projects_limit=1)
    client = client_of(user)
    owner = db.session.get_one(User, user.id)
    projects.create_project(owner, namespace_of(owner), path="first")

    status, body = send_before_commit(app, lambda: client.post("/projects", json={"path": "second"}))

    assert (status, list(body)) == (403, ["error"])


def test_a_feature_has_one_percentage(app, as_admin):
    instance.set_feature("sails", value="30")

    status, body = send_before_commit(app, lambda: as_admin.post("/features/sails", json={"value": 40}))

    gates = [{"key": "boolean", "value": False}, {"key": "percentage_of_time", "value": 40}]
    assert (status, body["gates"]) == (201, gates)


def test_concurrent_changes_leave_a_feature_either_on_or_off(app, as_admin):
    instance.set_feature("sails", value="true")

    status, body = send_before_commit(app, lambda: as_admin.post("/features/sails", json={"value": "false"}))

    assert (status, body["state"]) == (201, "off")
    assert as_admin.get("/features").json == [body]


@pytest.mark.parametrize("resource", ["projects", "groups"])
def test_sharing_with_a_concurrently_deleted_group_is_refused(resource, app, project, group, as_admin):
    other = make_group("friends", make_group("above"))
    path_registry.start_deleting_namespace(db.session.get_one(Group, other.id))
    address = f"/{resource}/{project.id if resource == 'projects' else group.id}/share"

    response = send_before_commit(
        app, lambda: as_admin.post(address, json={"group_id": other.id, "group_access": Role.GUEST})
    )

    assert response == (404, not_found("Group"))


def test_concurrent_changes_of_different_settings_are_both_stored(app, project, as_admin):
    projects.update_project(ANONYMOUS, db.session.get_one(Project, project.id), merge_method="ff")

    status, body = send_before_commit(app, lambda: as_admin.put(f"/projects/{project.id}", json={"build_timeout": 900}))

    assert (status, body["merge_method"], body["build_timeout"]) == (200, "ff", 900)


def test_of_two_concurrent_exports_the_later_one_keeps_its_file(app, people, project, monkeypatch):
    first, second = (ProjectExport(project_id=project.id, user_id=people[ADA].id, state="started") for _ in range(2))
    db.session.add_all([first, second])
    db.session.commit()
    ids = first.id, second.id
    db.session.remove()
    barrier = threading.Barrier(2)

    def wait_for_the_other_export(*_arguments):
        with suppress(threading.BrokenBarrierError):  # when a lock makes one export wait for the other
            barrier.wait(0.5)
        return "shop.tar.gz"

    monkeypatch.setattr(exporter, "file_name", wait_for_the_other_export)

    def finish(export_id):
        with app.app_context():
            exporter._finish(export_id, f"projects/{export_id}.tar.gz", 1)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(finish, ids))

    rows = db.session.execute(select(ProjectExport.id, ProjectExport.storage_name).order_by(ProjectExport.id)).all()
    assert [tuple(row) for row in rows] == [(ids[0], None), (ids[1], f"projects/{ids[1]}.tar.gz")]
