"""The repository on the page of its project, and the commands for an empty one."""

from __future__ import annotations

import html
import os
import re
import subprocess

import pytest

from project_service.areas.repositories.content import home
from project_service.domain.repositories.reading import history
from project_service.domain.repositories.reading.budget import ReadingFailed
from tests.areas.repositories.conftest import AUTHOR
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import DEV, GUS, MAX, RITA, make_token

HOME = "/acme/shop"


def test_the_page_of_a_project_shows_its_repository(visit, code):
    text = visit(RITA).get(HOME).text

    assert 'value="http://localhost/acme/shop.git" readonly' in text
    assert re.findall(r">(\d+ (?:commits?|branch(?:es)?|tags?))</a>", text) == ["5 commits", "3 branches", "2 tags"]
    assert "Change a type and add a submodule" in text
    assert '<a href="/acme/shop/-/tree/main/docs">docs/</a>' in text


def test_links_and_images_of_a_readme_use_the_same_revision(visit, code):
    for address, revision in ((HOME, "main"), (f"{HOME}/-/tree/v1.0", "v1.0")):
        text = visit(RITA).get(address).text
        assert f'<img src="/acme/shop/-/raw/{revision}/img/logo.png" alt="logo"' in text
        assert (
            f'<a href="/acme/shop/-/blob/{revision}/docs/guide.md" rel="nofollow noopener noreferrer">guide</a>' in text
        )
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("readme.txt", b"# no <Markdown>", '<div class="text"># no &lt;Markdown&gt;</div>'),
        ("README.md", b"\0\1\2", "This file is no text, or too large"),
        ("README.md", b"a" * (300 << 10), "This file is no text, or too large"),
        ("docs.md", b"# Docs", None),
    ],
)
def test_any_readme_content_is_handled(name, content, expected, visit, project, tmp_path):
    keep_repository(project, tmp_path / "git", files={name: content})

    text = visit(RITA).get(HOME).text

    assert (expected in text) if expected else "readme-title" not in text


def test_long_histories_are_counted_up_to_a_limit(visit, code, monkeypatch):
    monkeypatch.setattr(home, "MAX_COUNTED_COMMITS", 3)

    assert ">3+ commits</a>" in visit(RITA).get(HOME).text


@pytest.mark.parametrize("error", [ReadingFailed("rev-list"), FileNotFoundError("x.pack")])
def test_a_project_page_works_while_its_repository_cannot_be_read(error, visit, code, monkeypatch):
    def fail(*_):
        raise error

    monkeypatch.setattr(history, "commit_ids", fail)

    response = visit(RITA).get(HOME)

    assert (response.status_code, "cannot be read at the moment" in response.text) == (200, True)


def test_callers_who_cannot_read_code_see_none(visit, code):
    text = visit(GUS).get(HOME).text

    assert "clone-address" not in text
    assert "Change a type" not in text


@pytest.mark.parametrize("address", [HOME, f"{HOME}/-/tree"])
@pytest.mark.parametrize(("person", "shown"), [(DEV, True), (RITA, False)])
def test_commands_are_shown_to_users_who_may_push(address, person, shown, visit, project):
    text = visit(person).get(address).text

    assert "The repository is empty." in text
    assert ("git push" in text) is shown


@pytest.mark.parametrize("number", range(3), ids=["new repository", "existing folder", "existing repository"])
def test_the_commands_for_an_empty_repository_work_as_printed(
    number, visit, project, people, address, git_of, tmp_path
):
    text = visit(MAX).get(HOME).text
    commands = html.unescape(re.findall(r"<pre[^>]*><code>(.*?)</code></pre>", text, re.DOTALL)[number])
    (tmp_path / "existing_folder").mkdir()
    (tmp_path / "existing_folder/file.txt").write_text("content")
    existing = git_of(None)
    existing.commit("First", a="text")
    existing.run("tag", "v1")
    existing.folder.rename(tmp_path / "existing_repository")
    server = f"http://git:{make_token(people[MAX])}@{address}/"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **AUTHOR, "GIT_CONFIG_COUNT": "1"}
    environment |= {"GIT_CONFIG_KEY_0": f"url.{server}.insteadOf", "GIT_CONFIG_VALUE_0": "http://localhost/"}

    result = subprocess.run(
        ["/bin/sh", "-ec", commands], cwd=tmp_path, env=environment, capture_output=True, check=False
    )

    assert result.returncode == 0, result.stderr
    assert "http://localhost/acme/shop.git" in commands
    shown = visit(MAX).get(HOME).text
    assert ">1 commit</a>" in shown
    assert (">1 tag</a>" in shown) is (number == 2)


def test_a_default_branch_that_was_not_pushed_is_an_empty_repository(visit, project, as_maintainer):
    as_maintainer.put(f"/projects/{project.id}", json={"default_branch": "trunk"})

    folder, commits = (visit(MAX).get(f"{HOME}/-/{page}") for page in ("tree", "commits"))

    assert (folder.status_code, commits.status_code) == (200, 200)
    assert "git push --set-upstream origin trunk" in html.unescape(folder.text)


def test_pushes_in_the_activity_feed_link_to_their_pages(visit, project, people, git_of):
    client = git_of(people[MAX])
    first = client.commit("First", a="1")
    client.push(project.full_path, "main")
    second = client.commit("Second", a="2")
    client.push(project.full_path, "main")
    client.commit("Third", a="3")
    fourth = client.commit("Fourth", a="4")
    client.push(project.full_path, "main")

    text = visit(RITA).get(HOME).text

    pages = [f"compare/{second}...{fourth}", f"commit/{second}", "tree/main"]
    assert [f'<a href="/acme/shop/-/{page}">main</a>' in text for page in pages] == [True] * 3
    assert [visit(RITA).get(f"/acme/shop/-/{page}").status_code for page in pages] == [200] * 3
    assert first not in pages[0]
