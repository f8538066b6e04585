"""Pages of repository files, to which findings link."""

from __future__ import annotations

import html
import re

import pytest

from project_service.domain.access_levels import Visibility
from project_service.domain.projects import DISABLED
from project_service.domain.repositories.reading import blame
from project_service.domain.repositories.reading.budget import ReadingTooLarge
from project_service.kit.db.session import db
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import GUS, MAX, NOBODY, RITA, SAM

BLOB_PAGE = "/acme/shop/-/blob"
FILES = {
    "app/a.py": "one = 1\nif one < 2:\n    print('é')\n".encode(),
    "empty.txt": b"",
    "odd.txt": "one\x0ctwo\u2028\r\n\r\nthree".encode(),
    "picture.png": b"\x89PNG\0\0",
    "large.txt": b"x" * (2 << 20),
    "lines.txt": b"\n" * 20_000,
    "hostile.txt": b"<script>alert('1')</script>",
    "docs/a.md": b"[code](../app/a.py)",
    "logo.png": b"\x89PNG\r\n\x1a\n\0",
    "order.py": "a = '\u202e'".encode(),
    "long.py": b"x = [1, 2, (3 + 4) * 'abc', {5: 6}] # c\n" * 10_000,
}


@pytest.fixture(autouse=True)
def _repository(request, project, tmp_path):
    if "code" not in request.fixturenames:  # has another repository
        keep_repository(project, tmp_path / "git", "v1/rc", files=FILES)


def test_a_file_is_shown_line_by_line(visit):
    page = html.unescape(re.sub("</?span[^>]*>", "", visit(RITA).get(f"{BLOB_PAGE}/main/app/a.py").text))
    lines = visit(RITA).get(f"{BLOB_PAGE}/main/app/a.py").text

    for number, line in enumerate(["one = 1", "if one < 2:", "    print('é')"], 1):
        assert f'id="L{number}"' in lines
        assert line in page


def test_line_numbers_match_editors(visit):
    page = visit(RITA).get(f"{BLOB_PAGE}/main/odd.txt").text

    assert re.findall(r'id="L(\d+)"', page) == ["1", "2", "3"]


def test_file_content_is_escaped(visit):
    text = visit(RITA).get(f"{BLOB_PAGE}/main/hostile.txt").text

    assert "&lt;script&gt;alert(&#39;1&#39;)" in text
    assert "<script>alert" not in text


def test_code_is_highlighted(visit):
    assert '<span class="hl-k">if</span>' in visit(RITA).get(f"{BLOB_PAGE}/main/app/a.py").text


def test_markdown_is_rendered_with_a_link_to_its_source(visit):
    formatted, source = (visit(RITA).get(f"{BLOB_PAGE}/main/docs/a.md{query}").text for query in ("", "?plain=1"))

    assert '<a href="/acme/shop/-/blob/main/app/a.py" rel="nofollow noopener noreferrer">code</a>' in formatted
    assert 'href="/acme/shop/-/blob/main/docs/a.md?plain=1">Source</a>' in formatted
    assert ('id="L1"' in formatted, 'id="L1"' in source) == (False, True)


def test_a_symbolic_link_is_shown_and_not_followed(visit, code):
    assert "A symbolic link to <code>../../etc/passwd</code>" in visit(RITA).get(f"{BLOB_PAGE}/v1.0/link").text


def test_an_image_is_shown_from_its_raw_content(visit):
    assert (
        '<img class="picture" src="/acme/shop/-/raw/main/logo.png"'
        in visit(RITA).get(f"{BLOB_PAGE}/main/logo.png").text
    )


def test_bidirectional_control_characters_are_marked(visit):
    assert "bidirectional control characters" in visit(RITA).get(f"{BLOB_PAGE}/main/order.py").text


def test_code_that_highlights_too_slowly_is_shown_plain(visit):
    text = visit(RITA).get(f"{BLOB_PAGE}/main/long.py").text

    assert re.search("Only the first [0-9,]+ lines are highlighted|Not highlighted", text)
    assert 'id="L10000"' in text


def test_blame_shows_the_commit_of_each_line(visit, code):
    text = visit(RITA).get("/acme/shop/-/blame/main/app.py").text

    assert re.findall(r"<td><a [^>]*>(.*?)</a>", text) == ["First commit", "Feature change"]
    assert 'id="L3"' in text
    assert "This file is no text" in visit(RITA).get("/acme/shop/-/blame/main/img/logo.png").text
    assert visit(RITA).get("/acme/shop/-/blame/main/docs").status_code == 404


def test_blame_reports_a_history_that_is_too_long(visit, code, monkeypatch):
    def fail(*_):
        raise ReadingTooLarge("blame")

    monkeypatch.setattr(blame, "blame", fail)

    assert "too long to find" in visit(RITA).get("/acme/shop/-/blame/main/app.py").text


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("empty.txt", "This file is empty."),
        ("picture.png", "This file is no text"),
        ("large.txt", "too large to be shown here"),
        ("lines.txt", "too large to be shown here"),
    ],
)
def test_files_that_cannot_be_shown_have_a_message(path, message, visit):
    response = visit(RITA).get(f"{BLOB_PAGE}/main/{path}")

    assert (response.status_code, message in response.text) == (200, True)


def test_a_tag_with_a_slash_is_a_revision_too(visit):
    assert visit(RITA).get(f"{BLOB_PAGE}/v1/rc/app/a.py").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "main/nothing.py",
        "main/app/../app/a.py",
        "nowhere/app/a.py",
        f"{'ab' * 20}/app/a.py",
        "-x/a",
        "/".join("x" * 200),
    ],
)
def test_unknown_paths_and_revisions_are_not_found(path, visit):
    assert visit(RITA).get(f"{BLOB_PAGE}/{path}").status_code == 404


def test_the_address_of_a_folder_redirects_to_its_tree(visit):
    assert visit(RITA).get(f"{BLOB_PAGE}/main/app").location == "/acme/shop/-/tree/main/app"


@pytest.mark.parametrize(
    ("visibility", "person", "status"),
    [
        (Visibility.PUBLIC, NOBODY, 200),
        (Visibility.INTERNAL, SAM, 200),
        (Visibility.INTERNAL, NOBODY, 302),
        (Visibility.PRIVATE, GUS, 403),
        (Visibility.PRIVATE, RITA, 200),
        (Visibility.PRIVATE, SAM, 404),
    ],
)
def test_visibility_and_role_decide_who_reads_code(visibility, person, status, visit, project, group):
    project.visibility = group.visibility = visibility
    db.session.commit()

    assert visit(person).get(f"{BLOB_PAGE}/main/app/a.py").status_code == status


def test_a_project_without_repository_has_no_code_pages(visit, project):
    project.repository_access_level = DISABLED
    db.session.commit()

    assert visit(MAX).get(f"{BLOB_PAGE}/main/app/a.py").status_code == 403
