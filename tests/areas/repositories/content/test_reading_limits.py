"""What one request may spend on reading a repository, whatever the repository is."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import zlib

import pytest

from project_service.areas.repositories.code_reading import TOO_SLOW
from project_service.domain.projects import Project
from project_service.domain.repositories import models, restoring
from project_service.domain.repositories.reading import budget, processes
from project_service.kit.db.session import db
from tests.support.sample_data import RITA

PAGE = "/acme/shop/-"
ENTRIES, DEPTH = 100_000, 10
PATH = "/".join(["d"] * DEPTH + ["f000000"])
API_READS = [
    "tree",
    "tree?recursive=1",
    "files/app.py?ref=main",
    "files/app.py/raw?ref=main",
    "files/app.py/blame?ref=main",
    "commits",
    "commits?author=ada&path=app.py",
    "commits/main",
    "commits/main/diff",
    "commits/main/refs",
    "commits/main/sequence",
    "compare?from=v1.0&to=main",
    "contributors",
    "merge_base?refs[]=main&refs[]=v1.0",
    "branches",
    "branches/main",
    "tags",
    "tags/v1.0",
    "archive",
    "archive.zip?path=docs",
]
PAGES = [
    "tree/main/docs",
    "blob/main/app.py",
    "raw/main/app.py",
    "blame/main/app.py",
    "commits/main",
    "commit/main",
    "commit/main.patch",
    "compare/v1.0...main",
    "branches",
    "tags",
    "tags/v1.0",
    "archive/main/shop.zip",
]


def write_object(folder, kind, content):
    data = b"%s %d\0" % (kind.encode(), len(content)) + content
    object_id = hashlib.sha1(data).hexdigest()
    path = folder / "objects" / object_id[:2] / object_id[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(data, 1))
    return object_id


def store(project, folder, tree):
    """Give a project a repository whose branch main has a tree."""
    content = f"tree {tree}\nauthor Ada <a@b> 1600000000 +0000\ncommitter Ada <a@b> 1600000000 +0000\n\nx\n".encode()
    (folder / "refs/heads/main").write_text(write_object(folder, "commit", content) + "\n")
    restoring.add_repository(project.id, models.CODE, restoring.store_content(project.id, folder, None))
    db.session.get_one(Project, project.id).default_branch = "main"
    db.session.commit()


@pytest.fixture
def bare(tmp_path):
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", tmp_path / "bare.git"], check=True)
    return tmp_path / "bare.git"


@pytest.fixture
def nested(project, bare):
    """A project with nested folders that have very many entries, from a repository of few bytes."""
    blob = bytes.fromhex(write_object(bare, "blob", b"hello\n"))
    files = b"".join(b"100644 f%06d\0" % number + blob for number in range(ENTRIES))
    tree = write_object(bare, "tree", files)
    for _ in range(DEPTH):
        tree = write_object(bare, "tree", b"40000 d\0" + bytes.fromhex(tree) + files)
    store(project, bare, tree)
    return project


def test_a_file_below_very_wide_folders_costs_the_web_process_nothing(nested, as_maintainer):
    address = f"/projects/{nested.id}/repository/files/{PATH.replace('/', '%2F')}/raw?ref=main"
    as_maintainer.get(address)
    before = resource.getrusage(resource.RUSAGE_SELF)

    response = as_maintainer.get(address)

    after = resource.getrusage(resource.RUSAGE_SELF)
    assert response.data == b"hello\n"
    assert after.ru_utime - before.ru_utime < 0.25


@pytest.mark.parametrize("limit", ["REQUEST_SECONDS", "REQUEST_BYTES"])
def test_every_reading_of_the_api_has_the_budget_of_its_request(limit, as_maintainer, code, monkeypatch):
    monkeypatch.setattr(budget, limit, 0)

    statuses = {path: as_maintainer.get(f"{code}/{path}").status_code for path in API_READS}

    assert statuses == dict.fromkeys(API_READS, 503)
    assert as_maintainer.get(f"{code}/tree").json == {"message": TOO_SLOW}


def test_every_page_of_a_repository_has_the_budget_of_its_request(visit, code, monkeypatch):
    monkeypatch.setattr(budget, "REQUEST_SECONDS", 0)
    visitor = visit(RITA)

    responses = {page: visitor.get(f"{PAGE}/{page}") for page in PAGES}

    assert {page: response.status_code for page, response in responses.items()} == dict.fromkeys(PAGES, 503)
    assert [page for page, response in responses.items() if "clone it" not in response.text] == []
    home = visitor.get("/acme/shop")
    assert (home.status_code, "too large" in home.text) == (200, True)


def test_git_is_killed_at_the_deadline_of_the_request(as_maintainer, code, monkeypatch, tmp_path):
    (tmp_path / "git").write_text('#!/bin/sh\ncase "$*" in *rev-list*) sleep 60;; esac\nexec /usr/bin/git "$@"\n')
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(budget, "REQUEST_SECONDS", 0.5)

    assert as_maintainer.get(f"{code}/commits").json == {"message": TOO_SLOW}


@pytest.mark.parametrize(
    ("author", "count"),
    [("Ada", 5), ("ADA@EXAMPLE", 5), ("A.a", 0), ("(a+)+$", 0), ("(((((((((.*)*)*)*)*)*)*)*)*)*x", 0)],
)
def test_authors_are_compared_literally(author, count, as_maintainer, code):
    found = as_maintainer.get(f"{code}/commits", query_string={"author": author})

    assert (found.status_code, len(found.json)) == (200, count)


def test_a_long_search_is_refused(as_maintainer, code):
    assert as_maintainer.get(f"{code}/commits?author={'a' * 256}").status_code == 400


def test_git_has_a_limited_address_space_and_is_told_apart_from_a_missing_file(
    project, bare, as_maintainer, monkeypatch
):
    # the smaller one is stored as a difference from the larger one, and needs the memory of both
    blob, larger = (write_object(bare, "blob", bytes(size)) for size in (12 << 20, (12 << 20) + 1))
    rows = b"100644 big\0" + bytes.fromhex(blob) + b"100644 larger\0" + bytes.fromhex(larger)
    store(project, bare, write_object(bare, "tree", rows))
    code = f"/projects/{project.id}/repository"
    monkeypatch.setattr(processes, "MAX_MEMORY_BYTES", 30 << 20)

    assert as_maintainer.get(f"{code}/blobs/{blob}/raw").json == {"message": TOO_SLOW}
    assert as_maintainer.get(f"{code}/tree").json[0]["name"] == "big"
    monkeypatch.undo()
    assert len(as_maintainer.get(f"{code}/blobs/{blob}/raw").data) == 12 << 20
