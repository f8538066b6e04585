"""Pages of a repository whose names, authors and messages are hostile."""

from __future__ import annotations

import subprocess

import pytest

from project_service.domain.projects import Project
from project_service.domain.repositories import models, restoring
from project_service.kit.db.session import db
from tests.support.git_repositories import bundle_of
from tests.support.sample_data import RITA

HTML = "<img src=x onerror=alert(1)>"
BRANCH = "<script>alert(1)</script>"
PROJECT_PAGES = "/acme/shop/-"


def git(folder, *arguments, data=None):
    return subprocess.run(["git", *arguments], cwd=folder, input=data, check=True, capture_output=True).stdout.strip()


@pytest.fixture
def hostile(project, tmp_path):
    """The commit of a repository with names that git refuses, written object by object."""
    folder = tmp_path / "git"
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", ".")
    blob = git(folder, "hash-object", "-w", "--stdin", data=b"<script>alert(1)</script>\n").decode()
    names = [b".git", b"..", b"a\nb", b"bad\xff", HTML.encode(), b"\xe2\x80\xaetxt.exe", b"\"quote's"]
    rows = {name: b"100644 " + name + b"\0" + bytes.fromhex(blob) for name in names}
    link = git(folder, "hash-object", "-w", "--stdin", data=b"/etc/passwd").decode()
    rows |= {b"zlink": b"120000 zlink\0" + bytes.fromhex(link), b"zsub": b"160000 zsub\0" + bytes.fromhex("ab" * 20)}
    tree = git(
        folder,
        "hash-object",
        "-t",
        "tree",
        "-w",
        "--literally",
        "--stdin",
        data=b"".join(rows[name] for name in sorted(rows)),
    ).decode()
    person = f"{HTML.replace('<', '').replace('>', '')} \\<b> <{'x' * 300}> 99999999999999 +9999"
    content = f"tree {tree}\nauthor {person}\ncommitter {person}\n\n{HTML}\n\n{HTML}\x07\n".encode() + b"\xff\xfe"
    commit = git(folder, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", data=content).decode()
    for name in ("refs/heads/main", f"refs/heads/{BRANCH}", f"refs/tags/{BRANCH}"):
        git(folder, "update-ref", name, commit)
    git(folder, "symbolic-ref", "HEAD", "refs/heads/main")
    (folder / "all.bundle").write_bytes(bundle_of(folder, without="ab" * 20))
    bare = folder / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(folder), str(bare))
    content = restoring.store_content(project.id, bare, folder / "all.bundle")
    restoring.add_repository(project.id, models.CODE, content)
    db.session.get_one(Project, project.id).default_branch = "main"
    db.session.commit()
    return commit


def test_hostile_names_are_escaped_on_every_page(visit, hostile):
    visitor, branch = visit(RITA), "%3Cscript%3Ealert(1)%3C/script%3E"
    pages = ["tree", f"tree/{branch}", "commits", f"commits/{branch}", "branches", "tags", f"commit/{hostile}"]
    pages += [f"compare/{branch}...main", f"tree/{hostile}", "blob/main/%3Cimg%20src=x%20onerror=alert(1)%3E"]
    pages += ["blob/main/.git", "blob/main/zlink", "blame/main/.git"]

    responses = {page: visitor.get(f"{PROJECT_PAGES}/{page}") for page in pages} | {"": visitor.get("/acme/shop")}

    assert {page: response.status_code for page, response in responses.items()} == dict.fromkeys(responses, 200)
    assert [page for page, response in responses.items() if HTML in response.text or BRANCH in response.text] == []


def test_entries_without_a_valid_url_are_listed_without_a_link(visit, hostile):
    text = visit(RITA).get(f"{PROJECT_PAGES}/tree/main").text

    assert 'bad\ufffd <span class="badge">name is not UTF-8</span>' in text
    assert '.. <span class="badge">unusual name</span>' in text
    assert 'a\nb <span class="badge">unusual name</span>' in text
    assert 'zsub @ <code>abababab</code> <span class="badge">submodule</span>' in text
    assert "A symbolic link to <code>/etc/passwd</code>" in visit(RITA).get(f"{PROJECT_PAGES}/blob/main/zlink").text


@pytest.mark.parametrize("page", ["blob", "raw", "blame", "tree", "commits"])
@pytest.mark.parametrize(
    "path",
    [
        "main/../../../etc/passwd",
        "main/zlink/passwd",
        "main/zsub/x",
        "main/zsub",
        "-x",
        "--output=x",
        "main/.git/config",
    ],
)
def test_paths_outside_the_repository_are_not_reached(page, path, visit, hostile):
    response = visit(RITA).get(f"{PROJECT_PAGES}/{page}/{path}")

    assert response.status_code in (404, 308) or (page == "commits" and response.status_code == 200)
    assert "root:" not in response.text


@pytest.mark.parametrize(
    "range", ["-x...main", "main...--output=x", "main..-c", "^main...main", "...", "main...", "a..b..c"]
)
def test_a_comparison_of_invalid_revisions_is_not_found(range, visit, hostile):
    assert visit(RITA).get(f"{PROJECT_PAGES}/compare/{range}").status_code == 404


def test_raw_content_of_a_hostile_name_has_safe_headers(visit, hostile):
    response = visit(RITA).get(f"{PROJECT_PAGES}/raw/main/%3Cimg%20src=x%20onerror=alert(1)%3E")

    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Content-Disposition"] == 'inline; filename="blob"'
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Content-Security-Policy"] == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert "Set-Cookie" not in response.headers
