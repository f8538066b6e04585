"""Writing files and commits through HTTP."""

from __future__ import annotations

import base64

import pytest

from project_service.domain.repositories.protected_refs import ProtectedBranch
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, MAX, RITA, make_project

TOLD = {"branch": "main", "commit_message": "Change it"}


def files(project, name, query=""):
    return f"/projects/{project.id}/repository/files/{name}{query}"


def commits(project):
    return f"/projects/{project.id}/repository/commits"


def content_of(client, project, name, ref="main"):
    response = client.get(files(project, f"{name}/raw", f"?ref={ref}"))
    return response.data if response.status_code == 200 else response.status_code


@pytest.fixture
def started(project, as_):
    """The project with one file on its default branch, which only maintainers may push to."""
    response = as_(MAX).post(files(project, "a.txt"), json=TOLD | {"content": "one\n"})
    assert response.status_code == 201, response.text
    return project


@pytest.mark.both_databases
def test_a_file_is_created_changed_and_deleted(started, as_):
    client, binary = as_(MAX), bytes(range(256))
    encoded = {"content": base64.b64encode(binary).decode(), "encoding": "base64", "execute_filemode": True}

    created = client.post(files(started, "bin%2Frun"), json=TOLD | encoded)
    seen = client.get(files(started, "bin%2Frun", "?ref=main")).json
    updated = client.put(files(started, "a.txt"), json=TOLD | {"content": "two, three\n", "author_name": "Someone"})
    read = content_of(client, started, "bin%2Frun"), content_of(client, started, "a.txt")
    deleted = client.delete(files(started, "bin%2Frun", "?branch=main&commit_message=Drop"))

    written = {"file_path": "bin/run", "branch": "main", "commit_id": seen["last_commit_id"]}
    assert (created.status_code, created.json) == (201, written)
    assert (read, seen["execute_filemode"]) == ((binary, b"two, three\n"), True)
    assert (updated.status_code, deleted.status_code) == (200, 204)
    assert content_of(client, started, "bin%2Frun") == 404
    history = client.get(commits(started)).json
    assert [(row["message"], row["author_name"]) for row in history][:2] == [("Drop", "Max"), ("Change it", "Someone")]
    pushes = client.get(f"/projects/{started.id}/events?action=pushed").json
    assert [event["push_data"]["commit_count"] for event in pushes] == [1] * 4


def test_a_commit_applies_all_actions_or_none(started, as_):
    client = as_(MAX)
    actions = [
        {"action": "create", "file_path": "d/b.txt", "content": "b"},
        {"action": "move", "previous_path": "a.txt", "file_path": "c.txt"},
        {"action": "chmod", "file_path": "c.txt", "execute_filemode": True},
    ]
    about = {"branch": "topic", "start_branch": "main", "commit_message": "Move it"}

    created = client.post(commits(started), json=about | {"actions": actions})
    refused = client.post(
        commits(started), json=about | {"branch": "none", "actions": [*actions, {"action": "delete", "file_path": "x"}]}
    )

    assert (created.status_code, created.json["title"], created.json["stats"]["total"]) == (201, "Move it", 1)
    tree = client.get(f"/projects/{started.id}/repository/tree?ref=topic&recursive=true").json
    modes = {row["path"]: row["mode"] for row in tree if row["type"] == "blob"}
    assert modes == {"d/b.txt": "100644", "c.txt": "100755"}
    assert (refused.status_code, refused.json) == (400, {"message": "A file with this name doesn't exist"})
    assert client.get(f"/projects/{started.id}/repository/branches/none").status_code == 404


@pytest.mark.parametrize(
    ("action", "text"),
    [
        ({"action": "create", "file_path": "a.txt"}, "A file with this name already exists"),
        ({"action": "create", "file_path": "a.txt/b"}, "A file with this name already exists"),
        ({"action": "create", "file_path": "a/../b"}, "Path cannot include directory traversal"),
        ({"action": "create", "file_path": ".git/config"}, "invalid path: '.git/config'"),
        ({"action": "create", "file_path": "/"}, "You must provide a file path"),
        ({"action": "update", "file_path": "x", "content": ""}, "A file with this name doesn't exist"),
        (
            {"action": "update", "file_path": "a.txt"},
            "400 Bad request - actions[0][content] is required for update action",
        ),
        (
            {"action": "paint", "file_path": "a.txt"},
            "400 Bad request - actions[0][action] must be one of: create, update, move, delete, chmod",
        ),
        (
            {"action": "create", "file_path": "b", "content": "%", "encoding": "base64"},
            "400 Bad request - content is not valid base64",
        ),
    ],
)
def test_actions_that_do_not_fit_are_refused(action, text, started, as_):
    response = as_(MAX).post(commits(started), json=TOLD | {"actions": [action]})

    assert (response.status_code, response.json) == (400, {"message": text})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"branch": ""}, "400 Bad request - branch is required"),
        ({"commit_message": ""}, "400 Bad request - commit_message is required"),
        ({"branch": "new"}, "You can only create or edit files when you are on a branch"),
        (
            {"start_branch": "other"},
            "A branch called 'main' already exists. Switch to that branch in order to make changes",
        ),
    ],
)
def test_a_branch_and_a_message_are_needed(fields, text, started, as_):
    response = as_(MAX).post(files(started, "b.txt"), json=TOLD | {"content": "x"} | fields)

    assert (response.status_code, response.json) == (400, {"message": text})


def test_a_file_that_changed_meanwhile_is_not_overwritten(started, as_):
    client = as_(MAX)
    known = client.get(commits(started)).json[0]["id"]
    fields = TOLD | {"content": "x", "last_commit_id": known}

    statuses = [client.put(files(started, "a.txt"), json=fields).status_code for _ in range(2)]
    refused = client.delete(files(started, "a.txt"), json=fields)

    assert statuses == [200, 400]
    text = "You are attempting to delete a file that has been previously updated."
    assert (refused.status_code, refused.json) == (400, {"message": text})


def test_roles_and_protected_branches_decide_who_writes(started, as_):
    body = {"content": "x", "commit_message": "m"}

    protected = as_(DEV).post(files(started, "b.txt"), json=body | {"branch": "main"})
    open_branch = as_(DEV).post(files(started, "b.txt"), json=body | {"branch": "dev", "start_branch": "main"})
    db.session.add(ProtectedBranch(project_id=started.id, name="frozen", push_access_level=0))
    db.session.commit()
    frozen = as_(MAX).post(commits(started), json=TOLD | {"branch": "frozen", "actions": [{"action": "create"}]})

    text = "403 Forbidden - You are not allowed to push into this branch"
    assert [(each.status_code, each.json) for each in (protected, frozen)] == [(403, {"message": text})] * 2
    assert open_branch.status_code == 201
    assert as_(RITA).post(files(started, "c.txt"), json=body | {"branch": "dev"}).status_code == 403


CREATE = [{"action": "create", "file_path": "n.txt", "content": "n"}]


def test_a_new_branch_begins_at_a_commit(started, as_):
    client = as_(MAX)
    first = client.get(commits(started)).json[0]["id"]
    client.put(files(started, "a.txt"), json=TOLD | {"content": "two\n"})
    body = TOLD | {"branch": "old", "start_sha": first, "actions": CREATE}

    created = client.post(commits(started), json=body | {"stats": False})

    assert (created.status_code, created.json["parent_ids"], "stats" in created.json) == (201, [first], False)
    assert content_of(client, started, "a.txt", "old") == b"one\n"


def test_force_sets_a_branch_onto_another_start(started, as_):
    client = as_(MAX)
    first = client.get(commits(started)).json[0]["id"]
    client.post(commits(started), json=TOLD | {"branch": "topic", "start_branch": "main", "actions": CREATE})
    body = TOLD | {"branch": "topic", "start_sha": first, "actions": CREATE}

    refused, forced = (client.post(commits(started), json=body | {"force": force}) for force in (False, True))
    client.put(files(started, "a.txt"), json=TOLD | {"content": "two\n"})
    protected = client.post(commits(started), json=body | {"branch": "main", "force": True})

    assert (refused.status_code, refused.json["message"][:29]) == (400, "A branch called 'topic' alrea")
    assert (forced.status_code, forced.json["parent_ids"]) == (201, [first])
    text = "You are not allowed to force push code to a protected branch on this project."
    assert (protected.status_code, protected.json["message"]) == (400, text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {"start_branch": "main", "start_sha": "a" * 40},
            "400 Bad request - start_branch, start_sha are mutually exclusive",
        ),
        ({"start_sha": "abc"}, "Invalid start_sha 'abc'"),
        ({"start_sha": "a" * 40}, f"Cannot find start_sha '{'a' * 40}'"),
        ({"actions": []}, "400 Bad request - Provide at least one action, or set allow_empty to true"),
    ],
    ids=["both", "short", "unknown", "nothing"],
)
def test_a_start_that_does_not_fit_is_refused(fields, text, started, as_):
    response = as_(MAX).post(commits(started), json=TOLD | {"branch": "new", "actions": CREATE} | fields)

    assert (response.status_code, response.json) == (400, {"message": text})


def test_a_commit_cannot_start_in_another_project(started, as_, group):
    other = make_project("other", namespace=group)
    client = as_(MAX)

    answers = [
        client.post(commits(started), json=TOLD | {"start_project": target, "actions": CREATE})
        for target in (other.id, 999_999, started.id)
    ]

    assert [answer.status_code for answer in answers] == [403, 404, 201]


def test_a_protected_file_is_not_deleted(started, as_):
    refused = as_(DEV).delete(files(started, "a.txt", "?branch=main&commit_message=Drop"))
    incomplete = as_(MAX).delete(files(started, "a.txt"))

    assert (refused.status_code, refused.json["message"]) == (400, "You are not allowed to push into this branch")
    assert incomplete.json == {
        "error": "branch is missing, branch is empty, commit_message is missing, commit_message is empty"
    }
