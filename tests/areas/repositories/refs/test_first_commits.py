"""First commits made by the service: READMEs of new projects and branches of empty ones (reference, 4.2)."""

from __future__ import annotations

import pytest

from project_service.domain.access_levels import Role
from project_service.kit.storage import storage
from tests.support.sample_data import ADA, DEV, MAX, add_member

NO_DEFAULT = "A default branch (e.g. main) does not yet exist for acme/fresh"


@pytest.mark.both_databases
def test_a_new_project_is_initialized_with_a_readme(as_, git_of, people):
    fields = {"name": "New one", "description": "What it does", "initialize_with_readme": True}

    created = as_(MAX).post("/projects", json=fields)

    assert (created.status_code, created.json["default_branch"], created.json["empty_repo"]) == (201, "main", False)
    number = created.json["id"]
    client = git_of(people[MAX])
    client.run("pull", "--quiet", client.url(created.json["path_with_namespace"]), "main")
    assert (client.folder / "README.md").read_text() == "# New one\n\nWhat it does\n"
    assert client.output("log", "--format=%s %an %ae") == f"Initial commit {people[MAX].name} {people[MAX].email}"
    client.run("fsck", "--strict")
    events = as_(MAX).get(f"/projects/{number}/events").json
    assert [(one["action_name"], one.get("push_data", {}).get("ref")) for one in events] == [
        ("pushed new", "main"),
        ("created", None),
    ]
    assert [one["name"] for one in as_(MAX).get(f"/projects/{number}/protected_branches").json] == ["main"]


def test_the_readme_is_on_the_chosen_default_branch(as_):
    fields = {"name": "Fresh", "initialize_with_readme": True, "default_branch": "trunk"}

    created = as_(MAX).post("/projects", json=fields).json

    branches = as_(MAX).get(f"/projects/{created['id']}/repository/branches").json
    assert [(one["name"], one["default"], one["protected"]) for one in branches] == [("trunk", True, True)]


@pytest.mark.parametrize("branch", ["a..b", "../../x", "a\nb", "f" * 40])
def test_an_invalid_default_branch_name_is_refused(branch, as_, as_maintainer, project):
    created = as_(MAX).post(
        "/projects", json={"name": "Fresh", "initialize_with_readme": True, "default_branch": branch}
    )
    changed = as_maintainer.put(f"/projects/{project.id}", json={"default_branch": branch})

    assert (created.status_code, created.json) == (400, {"message": {"default_branch": ["is invalid"]}})
    assert changed.status_code == 400
    assert f"branch '{branch}' does not exist" in changed.json["message"]["base"][0]


def test_an_administrator_initializes_the_project_of_a_user(as_, people):
    fields = {"name": "Fresh", "initialize_with_readme": True}

    created = as_(ADA).post(f"/projects/user/{people[DEV].id}", json=fields).json

    [commit] = as_(DEV).get(f"/projects/{created['id']}/repository/commits").json
    assert commit["author_email"] == people[DEV].email


def test_a_project_stays_empty_if_its_creator_may_not_push_the_first_commit(as_, visit, group, people):
    add_member(group, people[DEV], Role.DEVELOPER)
    fields = {"name": "fresh", "namespace_id": group.id}

    created = as_(DEV).post("/projects", json=fields | {"initialize_with_readme": True})
    visitor = visit(DEV)
    sent = visitor.send(
        "/projects/new", **fields | {"name": "fresh2"}, initialize_with_readme="y", visibility="private"
    )

    assert (created.status_code, created.json["default_branch"]) == (201, None)
    assert sent.location == "/acme/fresh2"
    page = visitor.get("/acme/fresh2").text
    assert "The project was created without a README. A default branch (e.g. main) does not yet exist" in page
    branches = f"/projects/{created.json['id']}/repository/branches"
    refused = as_(DEV).post(branches, json={"branch": "topic", "ref": "main"})
    assert (refused.status_code, refused.json["message"].splitlines()[0]) == (400, NO_DEFAULT)


def test_the_form_of_a_new_project_offers_a_readme(visit, people):
    page = visit(MAX)

    assert 'name="initialize_with_readme"' in page.get("/projects/new").text
    fields = {"name": "shown", "namespace_id": people[MAX].namespace_id, "visibility": "private"}
    sent = page.send("/projects/new", initialize_with_readme="y", **fields)
    assert "Initial commit" in page.get(sent.location).text


@pytest.mark.parametrize("ref", ["main", "HEAD", "refs/heads/main"])
def test_a_branch_of_an_empty_project_starts_with_a_readme(ref, as_maintainer, project):
    code = f"/projects/{project.id}/repository"

    created = as_maintainer.post(f"{code}/branches", json={"branch": "topic/x", "ref": ref})

    assert (created.status_code, created.json["commit"]["title"]) == (201, "Add README.md")
    branches = as_maintainer.get(f"{code}/branches").json
    assert [(one["name"], one["default"]) for one in branches] == [("main", True), ("topic/x", False)]
    assert as_maintainer.get(f"{code}/files/README.md?ref=topic/x").json["size"] == 0


def test_the_default_branch_of_an_empty_project_can_be_created(as_maintainer, project):
    branches = f"/projects/{project.id}/repository/branches"

    assert as_maintainer.post(branches, json={"branch": "main", "ref": "main"}).json["default"] is True
    assert as_maintainer.post(branches, json={"branch": "main", "ref": "main"}).status_code == 400


@pytest.mark.parametrize(
    ("branch", "ref", "text"),
    [
        ("topic", "nothing", "Failed to create branch 'topic': invalid reference name 'nothing'"),
        ("a..b", "main", "Branch name is invalid"),
        ("main/x", "main", "Failed to create branch 'main/x': Branch name conflicts with existing branch hierarchy."),
        ("a" * 40, "main", "You cannot create a branch with a SHA-1 or SHA-256 branch name."),
    ],
)
def test_a_refused_branch_leaves_an_empty_project_empty(branch, ref, text, as_maintainer, project):
    before = set(storage().names("repositories"))

    response = as_maintainer.post(f"/projects/{project.id}/repository/branches", json={"branch": branch, "ref": ref})

    assert (response.status_code, response.json) == (400, {"message": text})
    assert as_maintainer.get(f"/projects/{project.id}").json["empty_repo"] is True
    assert set(storage().names("repositories")) == before
