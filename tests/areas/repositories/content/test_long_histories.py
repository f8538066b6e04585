"""Pages do not read the complete history of a repository."""

from __future__ import annotations

import subprocess
import time

import pytest

from project_service.domain.projects import Project
from project_service.domain.repositories import models, restoring
from project_service.kit.db.session import db
from tests.support.git_repositories import bundle_of
from tests.support.sample_data import ADA, make_project

MAX_RATIO = 3.0
ROUNDS = 7
PAGES = ("", "/-/commits", "/-/branches", "/-/tags", "/-/commit/main", "/-/compare/main~5...main", "/-/tree/main/src")


def store_history(project, folder, count):
    """Give a project a repository with a number of commits."""
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", "."], cwd=folder, check=True)
    commits = (
        b"commit refs/heads/main\ncommitter A <a@example.org> %d +0000\ndata 6\nChange\n"
        b"M 100644 inline src/d%d/f%d\ndata %d\n%d\n"
        % (1_500_000_000 + number, number % 9, number % 99, len(str(number)), number)
        for number in range(count)
    )
    subprocess.run(["git", "fast-import", "--quiet"], cwd=folder, input=b"".join(commits), check=True)
    (folder / "all.bundle").write_bytes(bundle_of(folder))
    content = restoring.store_content(project.id, folder, folder / "all.bundle")
    restoring.add_repository(project.id, models.CODE, content)
    db.session.get_one(Project, project.id).default_branch = "main"
    db.session.commit()


def shortest_seconds(visitor, addresses):
    """The shortest time of each page after a warm-up. Pages take turns, so that a busy machine delays all equally."""
    for address in addresses:
        assert visitor.get(address).status_code == 200
    found = {address: [] for address in addresses}
    for address in addresses * ROUNDS:
        start = time.perf_counter()
        visitor.get(address)
        found[address].append(time.perf_counter() - start)
    return [min(found[address]) for address in addresses]


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_page_of_a_long_history_takes_constant_time(count, visit, project, group, tmp_path):
    long = make_project("long", group)
    store_history(project, tmp_path / "short", 1000)
    store_history(long, tmp_path / "long", count)
    visitor = visit(ADA)

    ratios = {}
    for page in PAGES:
        in_long, in_short = shortest_seconds(visitor, [f"/acme/long{page}", f"/acme/shop{page}"])
        ratios[page] = in_long / in_short

    assert {page: ratio for page, ratio in ratios.items() if ratio > MAX_RATIO} == {}
