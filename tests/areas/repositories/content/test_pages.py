"""Pages of the content of a repository."""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import zipfile

import pytest

from project_service.domain.repositories.reading import diffs, history
from project_service.domain.repositories.reading.repository import code_of
from tests.support.sample_data import MAX


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("tree", "submodule"),
        ("tree/feature/x/docs", "manual.md"),
        ("tree/main", "name is not UTF-8"),
        ("commits/main/docs", "Feature change"),
        ("commits?search=second", "Second: ünï"),
        ("commit/v1.0", "+&lt;html&gt;&lt;script&gt;alert(1)"),
        ("branches", "merged"),
        ("tags", "Release 1.1"),
        ("find_file/main?search=man+DOCS", "docs/manual.md"),
        ("find_file/main?search=nowhere", "No file has this in its path."),
        ("graphs/main", "Contributors"),
    ],
)
def test_pages_show_the_content_of_the_repository(address, expected, visit, code, project):

    assert expected in visit(MAX).get(f"/{project.full_path}/-/{address}").text


def test_the_patch_of_a_commit_can_be_applied(visit, code, project, tmp_path):
    responses = {kind: visit(MAX).get(f"/{project.full_path}/-/commit/v1.0.{kind}") for kind in ("diff", "patch")}

    for kind, response in responses.items():
        assert (response.status_code, response.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
        (tmp_path / kind).write_bytes(response.data)
        git = ["git", "apply", "--check", "--exclude=*.png", kind]
        assert subprocess.run(git, cwd=tmp_path, capture_output=True, check=False).returncode == 0
    assert responses["diff"].text.startswith("diff --git ")
    assert responses["patch"].text.startswith("From ")
    assert visit(MAX).get(f"/{project.full_path}/-/commit/nothing.diff").status_code == 404


def test_an_archive_is_downloaded_from_the_page(visit, code, project):
    home = visit(MAX).get(f"/{project.full_path}/-/tree/feature/x/docs").text
    address = html.unescape(re.search(r'href="([^"]+-feature-x\.zip[^"]*)"', home)[1])

    response = visit(MAX).get(address)

    names = zipfile.ZipFile(io.BytesIO(response.data)).namelist()
    assert address == f"/{project.full_path}/-/archive/feature/x/shop-feature-x.zip?path=docs"
    assert all("/docs" in name for name in names[1:])
    for missing in ("main/shop.rar", "shop-main.zip", "nothing/x.zip"):
        assert visit(MAX).get(f"/{project.full_path}/-/archive/{missing}").status_code == 404


def test_branches_show_ahead_and_behind_counts(visit, code, project):
    text = visit(MAX).get(f"/{project.full_path}/-/branches").text

    assert text.count(" ahead, ") == 2
    assert re.search(r"0 ahead, \d+ behind", text)


def test_commits_are_searched_by_author(visit, code, project):
    commits = f"/{project.full_path}/-/commits"

    assert "Second" in visit(MAX).get(f"{commits}?author=ADA%40example").text
    assert "There are no commits here." in visit(MAX).get(f"{commits}?author=a.a").text


def test_a_page_of_a_history_that_is_too_long_is_partial(visit, code, project, monkeypatch):
    monkeypatch.setattr(history, "commits_in_time", lambda *_: ([], False))

    response = visit(MAX).get(f"/{project.full_path}/-/commits?search=x")

    assert (response.status_code, "found within 5 seconds" in response.text) == (200, True)


def test_reads_end_at_their_deadline_with_partial_results(code, project, monkeypatch, tmp_path):
    with code_of(project) as repository:
        tip = repository.resolve("main")
        slow = tmp_path / "git"
        slow.write_text(f"#!/bin/sh\necho {tip.id}\nexec sleep 9\n")
        slow.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        history_filter = history.HistoryFilter(revisions=[tip.id])
        found, complete = history.commits_in_time(repository, history_filter, 0, 10, seconds=0.5)
        difference = diffs.between(repository, tip.id, tip.id, seconds=0.5)

    assert ([commit.id for commit in found], complete) == ([tip.id], False)
    assert (difference.complete, difference.expired) == (False, True)


def test_raw_pages_have_headers_against_execution(visit, code, project):

    response = visit(MAX).get(f"/{project.full_path}/-/raw/main/page.html")

    assert (response.status_code, response.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert response.headers["Content-Security-Policy"].endswith("sandbox")


def test_raw_content_of_a_commit_is_cached_longer_than_that_of_a_branch(visit, as_maintainer, code, project):
    raw, commit = f"/{project.full_path}/-/raw", as_maintainer.get(f"{code}/commits/main").json["id"]
    responses = [visit(MAX).get(f"{raw}/{revision}/page.html") for revision in ("main", commit)]

    assert [response.headers["Cache-Control"] for response in responses] == [
        "private, max-age=60, must-revalidate",
        "private, max-age=3600, must-revalidate",
    ]
    again = visit(MAX).get(f"{raw}/main/page.html", headers={"If-None-Match": responses[0].headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_chosen_branch_leads_to_its_files(visit, code, project):
    response = visit(MAX).get(f"/{project.full_path}/-/tree?branch=feature/x")

    assert response.location == f"/{project.full_path}/-/tree/feature/x"
