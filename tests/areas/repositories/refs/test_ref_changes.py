"""Tags and branches created and deleted by API: the rules of pushes (repositories reference, sections 2 and 4)."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV, OLIVE, RITA

FIRST = "v1.0"
CONFLICT = "Failed to create tag '{}': Tag name conflicts with existing tag hierarchy."


@pytest.fixture
def tags(code):
    return f"{code}/tags"


@pytest.mark.both_databases
def test_tags_are_created_fetched_by_git_and_deleted(as_, tags, project, git_of, people):
    created = as_(DEV).post(tags, json={"tag_name": "v9", "ref": FIRST, "message": "Release 9"})
    light = as_(DEV).post(tags, json={"tag_name": "light", "ref": "main"})

    assert (created.status_code, created.json["message"], created.json["protected"]) == (201, "Release 9", False)
    assert created.json["target"] != created.json["commit"]["id"]
    assert (light.json["message"], light.json["target"]) == (None, light.json["commit"]["id"])
    client = git_of(people[RITA])
    client.run("fetch", "--quiet", client.url("acme/shop"), "v9:refs/tags/v9")
    assert client.output("cat-file", "tag", "v9").endswith("\n\nRelease 9")
    assert as_(DEV).delete(f"{tags}/v9").status_code == 204
    assert as_(DEV).get(f"{tags}/v9").status_code == 404
    events = as_(DEV).get(f"/projects/{project.id}/events?action=pushed").json
    assert [(one["action_name"], one["push_data"]["ref"]) for one in events] == [
        ("deleted", "v9"),
        ("pushed new", "light"),
        ("pushed new", "v9"),
    ]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"tag_name": FIRST, "ref": "main"}, f"Tag {FIRST} already exists"),
        ({"tag_name": "a..b", "ref": "main"}, "Tag name invalid"),
        ({"tag_name": "new", "ref": "nothing"}, "Target nothing is invalid"),
        ({"tag_name": "main", "ref": "main"}, "You cannot use default branch name to create a tag"),
        ({"tag_name": f"{FIRST}/below", "ref": "main"}, CONFLICT.format(f"{FIRST}/below")),
    ],
)
def test_invalid_tags_are_refused(as_, tags, fields, text):
    response = as_(DEV).post(tags, json=fields)

    assert (response.status_code, response.json) == (400, {"message": text})


def test_protected_tags_are_created_by_allowed_roles_and_deleted_by_maintainers(as_, as_maintainer, tags, project):
    as_maintainer.post(f"/projects/{project.id}/protected_tags", json={"name": "v*", "create_access_level": 40})
    fields = {"tag_name": "v9", "ref": "main"}

    refused = as_(DEV).post(tags, json=fields)

    assert (refused.status_code, refused.json) == (
        400,
        {"message": "You are not allowed to create this tag as it is protected."},
    )
    assert as_maintainer.post(tags, json=fields).json["protected"] is True
    assert as_(DEV).delete(f"{tags}/v9").status_code == 403
    assert as_maintainer.delete(f"{tags}/v9").status_code == 204


def test_branches_except_the_default_one_are_created_and_deleted(as_, as_maintainer, code):
    branches = f"{code}/branches"
    created = as_(DEV).post(branches, json={"branch": "topic", "ref": FIRST})
    again = as_(DEV).post(branches, json={"branch": "topic", "ref": FIRST})
    below = as_(DEV).post(branches, json={"branch": "topic/below", "ref": FIRST})

    assert (created.status_code, created.json["name"]) == (201, "topic")
    assert again.json == {"message": "Branch already exists"}
    assert "conflicts with existing branch hierarchy" in below.json["message"]
    assert as_(DEV).delete(f"{branches}/topic").status_code == 204
    assert as_(DEV).delete(f"{branches}/topic").json == {"message": "404 Branch Not Found"}
    assert as_maintainer.delete(f"{branches}/main").json == {
        "message": "The default branch of a project cannot be deleted."
    }


def test_merged_branches_are_deleted_except_protected_ones(as_, as_maintainer, code, project, run_jobs):
    for name in ("done", "kept/1"):
        as_maintainer.post(f"{code}/branches", json={"branch": name, "ref": "main"})
    as_maintainer.post(f"/projects/{project.id}/protected_branches", json={"name": "kept/*"})
    assert as_(RITA).delete(f"{code}/merged_branches").status_code == 403

    response = as_(DEV).delete(f"{code}/merged_branches")
    run_jobs()

    assert (response.status_code, response.json) == (202, {"message": "202 Accepted"})
    assert [branch["name"] for branch in as_maintainer.get(f"{code}/branches").json] == ["kept/1", "main", "other"]
    [event] = as_(DEV).get(f"/projects/{project.id}/events?per_page=1").json
    assert (event["author_username"], event["push_data"]["action"]) == (DEV, "removed")


def test_merged_branches_are_not_deleted_if_the_user_may_no_longer_push(as_, as_maintainer, code, project, run_jobs):
    as_(DEV).delete(f"{code}/merged_branches")
    assert as_(OLIVE).post(f"/projects/{project.id}/archive").status_code == 201
    run_jobs()

    assert "feature/x" in [branch["name"] for branch in as_maintainer.get(f"{code}/branches").json]
