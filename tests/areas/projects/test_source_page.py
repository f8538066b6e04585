"""A file of the repository, at the address that findings name it by."""

from __future__ import annotations

import html
import re

import pytest

from project_service.domain.access_levels import Visibility
from project_service.domain.projects import DISABLED
from project_service.kit.db.session import db
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import GUS, MAX, NOBODY, RITA, SAM

HERE = "/acme/shop/-/blob"
FILES = {
    "app/a.py": "one = 1\nif one < 2:\n    print('é')\n".encode(),
    "empty.txt": b"",
    "odd.txt": "one\x0ctwo\u2028\r\n\r\nthree".encode(),
    "picture.png": b"\x89PNG\0\0",
    "large.txt": b"x" * (2 << 20),
    "lines.txt": b"\n" * 20_000,
}


@pytest.fixture(autouse=True)
def _repository(project, tmp_path):
    keep_repository(project, tmp_path / "git", "v1/rc", files=FILES)


def test_a_file_is_shown_line_by_line(visit):
    page = html.unescape(visit(RITA).get(f"{HERE}/main/app/a.py").text)

    for number, line in enumerate(["one = 1", "if one < 2:", "    print('é')"], 1):
        assert f'id="L{number}"' in page
        assert line in page


def test_lines_are_numbered_as_editors_number_them(visit):
    page = visit(RITA).get(f"{HERE}/main/odd.txt").text

    assert re.findall(r'id="L(\d+)"', page) == ["1", "2", "3"]


def test_what_is_in_a_file_is_text_and_nothing_else(visit):
    assert "if one &lt; 2:" in visit(RITA).get(f"{HERE}/main/app/a.py").text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("empty.txt", "This file is empty."),
        ("picture.png", "This file is no text"),
        ("large.txt", "too large to be shown here"),
        ("lines.txt", "too large to be shown here"),
    ],
)
def test_what_cannot_be_shown_is_told(path, said, visit):
    answer = visit(RITA).get(f"{HERE}/main/{path}")

    assert (answer.status_code, said in answer.text) == (200, True)


def test_a_tag_with_a_slash_is_a_revision_too(visit):
    assert visit(RITA).get(f"{HERE}/v1/rc/app/a.py").status_code == 200


@pytest.mark.parametrize(
    "place",
    [
        "main/app",
        "main/nothing.py",
        "main/app/../app/a.py",
        "nowhere/app/a.py",
        f"{'ab' * 20}/app/a.py",
        "main",
        "-x/a",
        "HEAD/app/a.py",
        "/".join("x" * 200),
    ],
)
def test_what_is_not_there_is_not_found(place, visit):
    assert visit(RITA).get(f"{HERE}/{place}").status_code == 404


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
def test_who_reads_code(visibility, person, status, visit, project, group):
    project.visibility = group.visibility = visibility
    db.session.commit()

    assert visit(person).get(f"{HERE}/main/app/a.py").status_code == status


def test_without_a_repository_there_is_no_code(visit, project):
    project.repository_access_level = DISABLED
    db.session.commit()

    assert visit(MAX).get(f"{HERE}/main/app/a.py").status_code == 403
