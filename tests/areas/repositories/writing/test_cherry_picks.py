"""Cherry-picking and reverting commits through HTTP."""

from __future__ import annotations

import pytest

from tests.support.sample_data import DEV, MAX, RITA

REASON = (
    "Can't perform this action automatically. It may have already been done, or a more recent commit may have updated "
    "some of this content. Please perform this action locally."
)


def commits(project, tail=""):
    return f"/projects/{project.id}/repository/commits{tail}"


def commit(client, project, branch, content, kind="update", **fields):
    actions = [{"action": kind, "file_path": "a.txt", "content": content}]
    about = {"branch": branch, "commit_message": "Change a line", "actions": actions}
    response = client.post(commits(project), json=about | fields)
    assert response.status_code == 201, response.text
    return response.json["id"]


def content_of(client, project, ref):
    return client.get(f"/projects/{project.id}/repository/files/a.txt/raw?ref={ref}").text


@pytest.fixture
def change(project, as_):
    """A commit on the branch ``topic`` of another author, whose parent is on ``main``."""
    client = as_(MAX)
    commit(client, project, "main", "1\n2\n3\n4\n5\n", "create")
    return commit(client, project, "topic", "1\n2\n3\n4\nfive\n", start_branch="main", author_email="eve@example.org")


def test_a_change_is_picked_and_reverted(project, as_, change):
    client = as_(MAX)
    commit(client, project, "main", "one\n2\n3\n4\n5\n")

    tried = client.post(commits(project, f"/{change}/cherry_pick"), json={"branch": "main", "dry_run": True})
    picked = client.post(commits(project, f"/{change}/cherry_pick"), json={"branch": "main"})
    content = content_of(client, project, "main")
    reverted = client.post(commits(project, f"/{picked.json['id']}/revert"), json={"branch": "main"})

    assert (tried.status_code, tried.json, picked.status_code) == (200, {"dry_run": "success"}, 201)
    assert content == "one\n2\n3\n4\nfive\n"
    assert picked.json["message"] == (
        f"Change a line\n\n(cherry picked from commit {change})\n\nCo-authored-by: Max <eve@example.org>"
    )
    assert (picked.json["author_name"], "stats" in picked.json) == ("Max", False)
    assert (reverted.status_code, reverted.json["title"]) == (201, 'Revert "Change a line"')
    assert reverted.json["message"].endswith(f"\n\nThis reverts commit {picked.json['id']}")
    assert content_of(client, project, "main") == "one\n2\n3\n4\n5\n"


def test_a_change_that_does_not_fit_is_refused(project, as_, change):
    client = as_(MAX)
    tip = commit(client, project, "main", "1\n2\n3\n4\nFIVE\n")

    conflict = client.post(commits(project, f"/{change}/cherry_pick"), json={"branch": "main"})
    tried = client.post(commits(project, f"/{change}/revert"), json={"branch": "main", "dry_run": True})
    empty = client.post(commits(project, f"/{change}/cherry_pick"), json={"branch": "topic"})

    text = f"Commit cherry-pick failed: {REASON}"
    assert (conflict.status_code, conflict.json) == (400, {"message": text, "error_code": "conflict"})
    assert tried.json == {"message": f"Commit revert failed: {REASON}", "error_code": "conflict", "dry_run": "error"}
    assert (empty.status_code, empty.json["error_code"]) == (400, "empty")
    assert client.get(commits(project)).json[0]["id"] == tip


@pytest.mark.parametrize(
    ("person", "sha", "fields", "status", "body"),
    [
        (MAX, None, {}, 400, {"error": "branch is missing, branch is empty"}),
        (MAX, "f" * 40, {"branch": "main"}, 404, {"message": "404 Commit Not Found"}),
        (MAX, None, {"branch": "none"}, 404, {"message": "404 Branch Not Found"}),
        (
            DEV,
            "f" * 40,
            {"branch": "main"},
            403,
            {"message": "403 Forbidden - You are not allowed to push into this branch"},
        ),
        (RITA, None, {"branch": "topic"}, 403, {"message": "403 Forbidden"}),
    ],
    ids=["no-branch", "no-commit", "unknown-branch", "protected", "reporter"],
)
def test_refusals_come_in_order(person, sha, fields, status, body, project, as_, change):
    answers = [
        as_(person).post(commits(project, f"/{sha or change}/{kind}"), json=fields)
        for kind in ("cherry_pick", "revert")
    ]

    assert [(answer.status_code, answer.json) for answer in answers] == [(status, body)] * 2
