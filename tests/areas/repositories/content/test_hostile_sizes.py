"""Objects and requests above the size limits."""

from __future__ import annotations

import os
import tracemalloc

import pytest
import requests

from project_service.areas.repositories.transport import push_facts, receiving
from project_service.areas.repositories.transport.pkt_lines import FLUSH, encode_line
from project_service.areas.repositories.transport.push_facts import PushFacts
from project_service.domain.repositories.reading import blame, diffs, history, objects, trees
from project_service.domain.repositories.reading.repository import code_of
from project_service.domain.repositories.refs import ZERO, RefChange
from tests.support.sample_data import MAX, RITA

SHOP, PROJECT_PAGE = "acme/shop", "/acme/shop"
LONG = "x" * (4 << 20)
UPLOAD = {"Content-Type": "application/x-git-upload-pack-request"}


@pytest.fixture
def client(git_of, people, project):
    """A maintainer who has pushed a commit and a tag with messages of 4 MiB."""
    found = git_of(people[MAX])
    (found.folder / "message").write_text(LONG)
    (found.folder / "file").write_text("one\ntwo\n")
    found.run("add", "file")
    found.run("commit", "--quiet", "-F", "message")
    found.run("tag", "-a", "-F", "message", "v1")
    found.push(SHOP, "main", "v1")
    return found


def test_long_messages_are_truncated_in_every_response(client, as_maintainer, project, visit):
    code = f"/projects/{project.id}/repository"
    [commit], [tag] = as_maintainer.get(f"{code}/commits").json, as_maintainer.get(f"{code}/tags").json
    [event] = as_maintainer.get(f"/projects/{project.id}/events?action=pushed&per_page=1").json

    assert len(commit["message"]) == len(tag["message"]) == objects.MAX_MESSAGE_BYTES
    assert (tag["commit"]["id"], tag["created_at"]) == (commit["id"], commit["created_at"])
    assert event["push_data"]["commit_title"] == "x" * 67 + "..."
    for page in ("", "/-/commits", "/-/tags", "/-/commit/v1", "/-/branches"):
        assert visit(RITA).get(f"{PROJECT_PAGE}{page}").status_code == 200


def test_reading_the_title_of_a_push_needs_constant_memory(client, project):
    tip = client.output("rev-parse", "main")
    with code_of(project) as code:
        facts = PushFacts(code.folder)
        facts.read_types([change := RefChange("refs/heads/main", ZERO, tip)])
        tracemalloc.start()
        facts.read_figures(change, None, is_first_default=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()

    assert facts.figures[change.name].count == 1
    assert peak < 16 * push_facts.MAX_TITLE_BYTES


def test_messages_of_a_list_share_a_size_limit(client, project, monkeypatch):
    monkeypatch.setattr(history, "MAX_MESSAGES_LENGTH", 100_000)
    client.run("commit", "--quiet", "--allow-empty", "-F", "message")
    client.push(SHOP, "main")
    with code_of(project) as code:
        found = history.commits(code, history.HistoryFilter(revisions=[code.resolve("main").id]), 0, 10)

    assert [len(commit.message) for commit in found] == [objects.MAX_MESSAGE_BYTES, objects.MAX_CUT_MESSAGE_LENGTH]


def test_blame_does_not_repeat_long_messages_per_line(client, as_maintainer, project, visit, monkeypatch):
    address = f"/projects/{project.id}/repository/files/file/blame?ref=main"
    monkeypatch.setattr(blame, "MAX_MESSAGES_LENGTH", 1000)

    [group] = as_maintainer.get(address).json
    assert (len(group["commit"]["message"]), group["lines"]) == (objects.MAX_CUT_MESSAGE_LENGTH, ["one", "two"])

    monkeypatch.setattr(blame, "MAX_GROUPS", 0)
    assert as_maintainer.get(address).status_code == 503
    assert visit(RITA).get(f"{PROJECT_PAGE}/-/blame/main/file").status_code == 200


def test_a_folder_with_too_many_entries_is_truncated_with_a_message(client, as_maintainer, project, visit, monkeypatch):
    monkeypatch.setattr(trees, "MAX_ENTRIES", 0)
    code = f"/projects/{project.id}/repository"

    assert (
        as_maintainer.get(f"{code}/tree").status_code
        == as_maintainer.get(f"{code}/tree?recursive=1").status_code
        == 503
    )
    assert "too large" in visit(RITA).get(PROJECT_PAGE).text
    assert visit(RITA).get(f"{PROJECT_PAGE}/-/tree/main").status_code == 503
    assert visit(RITA).get(f"{PROJECT_PAGE}/-/blob/main/file").status_code == 200


@pytest.mark.parametrize("partial_output", ["", r":100644 100644 a b M\0"])
def test_a_diff_that_git_did_not_finish_has_no_patches(partial_output, client, project, monkeypatch, tmp_path):
    (tmp_path / "git").write_text(f"#!/bin/sh\nprintf '{partial_output}'\nkill -9 $$\n")
    (tmp_path / "git").chmod(0o755)
    file = diffs.FileDiff("file", "file", 0, 0, "", "", "M", (b"file",))
    with code_of(project) as code:
        tip = code.resolve("main")
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        diffs.add_patches(code, diffs.TreeDifference(tip.id, tip.id, [file]), [file])

    assert (file.too_large, file.patch) == (True, "")


def test_a_push_of_too_many_refs_is_refused_and_not_stored(client, monkeypatch):
    monkeypatch.setattr(receiving, "MAX_REFS", 3)
    names = [f"main:refs/heads/b{number}" for number in range(9)]

    refused = client.push(SHOP, *names, check=False)

    assert "remote: GitLab: You cannot push more than 3 refs at once." in refused.stderr
    assert client.run("ls-remote", "--heads", client.url(SHOP)).stdout.count("refs/heads/") == 1
    client.push(SHOP, *names[:3])


@pytest.mark.parametrize("body", [b"", b"\xff" * 99, encode_line(b"want nonsense\n") + FLUSH])
def test_a_malformed_fetch_is_refused_with_a_message(body, client):
    response = requests.post(f"{client.url(SHOP)}/git-upload-pack", body, headers=UPLOAD, timeout=20)

    assert response.content == encode_line("ERR upload-pack: the request is not valid")
