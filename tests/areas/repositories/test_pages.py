"""Pages of the content of a repository."""

from __future__ import annotations

import pytest

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
    ],
)
def test_a_page_shows(address, expected, visit, code, project):

    assert expected in visit(MAX).get(f"/{project.full_path}/-/{address}").text


def test_raw_pages_never_run(visit, code, project):

    answer = visit(MAX).get(f"/{project.full_path}/-/raw/main/page.html")

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")
    assert answer.headers["Content-Security-Policy"].endswith("sandbox")
