"""Projects, groups and users as hooks of groups and of the instance are told of them (webhooks reference, 13.7)."""

from __future__ import annotations

from project_service.kit import deliveries
from tests.support.sample_data import OLIVE


def names(receiver, path):
    bodies = zip(receiver.requests, receiver.bodies, strict=True)
    return [body["event_name"] for (sent_to, _, _), body in bodies if sent_to == path]


def test_projects_and_groups_are_told_to_hooks_of_groups_and_of_the_instance(
    as_, as_admin, group, local_hooks, receiver
):
    olive = as_(OLIVE)
    as_admin.post("/hooks", json={"url": f"{receiver.url}/system"})
    flags = {"project_events": True, "subgroup_events": True}
    olive.post(f"/groups/{group.id}/hooks", json={"url": f"{receiver.url}/group"} | flags)
    sub = olive.post("/groups", json={"name": "Web", "path": "web", "parent_id": group.id}).json
    shop = olive.post("/projects", json={"name": "Till", "namespace_id": sub["id"]}).json
    olive.put(f"/projects/{shop['id']}", json={"path": "tills"})
    olive.delete(f"/projects/{shop['id']}")
    olive.delete(f"/groups/{sub['id']}")
    deliveries.send_all_due()

    of_group, of_system = names(receiver, "/hook/group"), names(receiver, "/hook/system")
    assert of_group == ["subgroup_create", "project_create", "project_destroy", "subgroup_destroy"]
    assert of_system == [
        "subgroup_create",
        "project_create",
        "project_rename",
        "project_destroy",
        "subgroup_destroy",
    ]
    rename = next(body for body in receiver.bodies if body["event_name"] == "project_rename")
    assert (rename["old_path_with_namespace"], rename["path_with_namespace"]) == ("acme/web/Till", "acme/web/tills")
    assert (rename["owner_name"], rename["project_visibility"]) == ("Web", "private")


def test_users_are_told_to_hooks_of_the_instance_without_their_addresses(as_admin, local_hooks, receiver):
    as_admin.post("/hooks", json={"url": receiver.url})
    fields = {"email": "nora@example.org", "name": "Nora", "username": "nora", "password": "correct horse battery"}
    user = as_admin.post("/users", json=fields).json
    as_admin.put(f"/users/{user['id']}", json={"username": "norah"})
    as_admin.delete(f"/users/{user['id']}")
    deliveries.send_all_due()

    told = [(body["event_name"], body["username"], body["email"]) for body in receiver.bodies]
    assert told == [
        ("user_create", "nora", "[REDACTED]"),
        ("user_rename", "norah", "[REDACTED]"),
        ("user_destroy", "norah", "[REDACTED]"),
    ]
    assert set(receiver.header("X-Gitlab-Event")) == {"System Hook"}
