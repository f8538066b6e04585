"""Trees, blobs, files, archives and comparisons, read through the API."""

from __future__ import annotations

import base64
import io
import tarfile
import zipfile

import pytest

from project_service.kit.http import raw_content as raw
from tests.support.sample_data import DEV, GUS, NOBODY, RITA, SAM


@pytest.mark.parametrize(("person", "status"), [(DEV, 200), (RITA, 200), (GUS, 403), (SAM, 404), (NOBODY, 404)])
def test_reporters_and_higher_roles_read_a_repository(person, status, as_, code):
    for path in ("tree", "commits", "files/README.md?ref=main", "archive"):
        assert as_(person).get(f"{code}/{path}").status_code == status


def test_folders_come_before_files_and_submodules(as_maintainer, code):
    response = as_maintainer.get(f"{code}/tree?per_page=100")

    assert [(row["name"], row["type"], row["mode"]) for row in response.json] == [
        ("a b", "tree", "040000"),
        ("docs", "tree", "040000"),
        ("img", "tree", "040000"),
        ("README.md", "blob", "100644"),
        ("app.py", "blob", "100755"),
        ("bad\ufffd.txt", "blob", "100644"),
        ("link", "blob", "100644"),
        ("page.html", "blob", "100644"),
        ("x.svg", "blob", "100644"),
        ("sub", "commit", "160000"),
    ]
    assert response.headers["X-Total"] == "10"


def test_a_tree_is_listed_below_a_path_recursively(as_maintainer, code):
    rows = as_maintainer.get(f"{code}/tree?recursive=true&path=docs&ref=v1.1").json

    assert [row["path"] for row in rows] == ["docs/guide.md"]


def test_a_tree_supports_keyset_pagination(as_maintainer, code):
    first = as_maintainer.get(f"{code}/tree?pagination=keyset&per_page=6")
    second = as_maintainer.get(f"{code}/tree?pagination=keyset&per_page=6&page_token={first.json[-1]['id']}")

    assert (len(first.json), len(second.json)) == (6, 4)
    assert f"page_token={first.json[-1]['id']}" in first.headers["Link"]
    assert "Link" not in second.headers


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("ref=nothing", "404 Tree Not Found"),
        ("path=nothing", "404 invalid revision or path Not Found"),
        ("path=app.py", "404 invalid revision or path Not Found"),
    ],
)
def test_a_path_that_is_not_a_folder_is_not_found(query, message, as_maintainer, code):
    response = as_maintainer.get(f"{code}/tree?{query}")

    assert (response.status_code, response.json) == (404, {"message": message})


def test_a_file_is_shown_with_its_content(as_maintainer, code):
    response = as_maintainer.get(f"{code}/files/docs%2Fmanual.md?ref=main")

    assert base64.b64decode(response.json["content"]) == b"guide\n"
    assert response.json["file_name"] == "manual.md"
    assert response.json["file_path"] == "docs/manual.md"
    assert response.headers["X-Gitlab-Blob-Id"] == response.json["blob_id"]
    assert response.headers["X-Gitlab-Execute-Filemode"] == "false"
    head = as_maintainer.head(f"{code}/files/docs%2Fmanual.md?ref=main")
    assert (head.status_code, head.headers["X-Gitlab-Content-Sha256"]) == (200, response.json["content_sha256"])


def test_files_with_unusual_names_are_found(as_maintainer, code):
    response = as_maintainer.get(f"{code}/files/a%20b%2Fc%3Fd%23e%25.txt/raw")

    assert (response.data, response.headers["X-Gitlab-File-Path"]) == (b"odd\n", "a b/c?d#e%.txt")


@pytest.mark.parametrize(
    ("path", "status", "body"),
    [
        ("files/app.py", 400, {"error": "ref is missing, ref is empty"}),
        ("files/app.py?ref=nothing", 404, {"message": "404 Commit Not Found"}),
        ("files/nothing?ref=main", 404, {"message": "404 File Not Found"}),
        ("files/docs?ref=main", 404, {"message": "404 File Not Found"}),
        ("files/docs%2F..%2Fapp.py?ref=main", 400, {"error": "file_path should be a valid file path"}),
        ("files/sub?ref=main", 404, {"message": "404 File Not Found"}),
        ("blobs/0123456789012345678901234567890123456789", 404, {"message": "404 Blob Not Found"}),
        ("blobs/HEAD/raw", 404, {"message": "404 Blob Not Found"}),
        ("archive.rar", 404, {"message": "404 File Not Found"}),
        ("archive?sha=nothing", 404, {"message": "404 File Not Found"}),
        ("compare?from=main&to=nothing", 404, {"message": "404 Ref Not Found"}),
        ("merge_base?refs[]=main", 400, {"message": "Provide at least 2 refs"}),
        ("merge_base?refs[]=main&refs[]=a&refs[]=b", 400, {"message": "Could not find refs: a, b"}),
    ],
)
def test_unknown_files_and_revisions_are_not_found(path, status, body, as_maintainer, code):
    response = as_maintainer.get(f"{code}/{path}")

    assert (response.status_code, response.json) == (status, body)


def test_a_read_repository_token_reads_files_only(client_of, people, code):
    client = client_of(people[DEV], "read_repository")

    assert client.get(f"{code}/files/app.py?ref=main").status_code == 200
    assert client.get(f"{code}/tree").status_code == 403


@pytest.mark.parametrize(
    ("path", "content_type", "disposition"),
    [
        ("page.html", "text/plain; charset=utf-8", 'inline; filename="blob"'),
        ("app.py", "text/plain; charset=utf-8", 'inline; filename="app.py"'),
        ("img%2Flogo.png", "image/png", 'inline; filename="logo.png"'),
        ("x.svg", "image/svg+xml", 'attachment; filename="x.svg"'),
    ],
)
def test_raw_content_has_headers_against_execution(path, content_type, disposition, as_maintainer, code):
    headers = as_maintainer.get(f"{code}/files/{path}/raw").headers

    assert (headers["Content-Type"], headers["Content-Disposition"]) == (content_type, disposition)
    assert headers["Content-Security-Policy"].endswith("sandbox")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_raw_content_has_a_safe_content_type():
    assert raw.type_of(b"BMW is a car") == raw.TEXT
    assert raw.type_of(b"<?xml version='1.0'?><!-- x --><svg>") == raw.SVG
    assert raw.type_of(b"\0\0\0") == raw.BINARY
    assert raw.headers(b"text", "a.txt", inline=False)["Content-Type"] == raw.BINARY
    assert raw.disposition("inline", 'ü".txt') == "inline; filename=\"__.txt\"; filename*=UTF-8''%C3%BC%22.txt"


def test_blame_groups_lines_by_commit(as_maintainer, code):
    found = as_maintainer.get(f"{code}/files/app.py/blame?ref=main").json

    assert [(group["commit"]["message"], group["lines"]) for group in found] == [
        ("First commit\n\nIts body\n", ["def f(x):", "    return x + 1"]),
        ("Feature change\n", ["more"]),
    ]
    lines = as_maintainer.get(f"{code}/files/app.py/blame?ref=main&range[start]=3&range[end]=9").json
    assert [group["lines"] for group in lines] == [["more"]]
    response = as_maintainer.get(f"{code}/files/app.py/blame?ref=main&range[start]=3&range[end]=1")
    assert response.json == {"error": "range[start] must be less than or equal to range[end]"}


def names_in(content):
    if content.startswith(b"PK"):
        return zipfile.ZipFile(io.BytesIO(content)).namelist()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        return archive.getnames()


@pytest.mark.parametrize("kind", ["tar.gz", "tbz2", "tar", "zip"])
def test_equal_archives_have_equal_bytes(kind, as_maintainer, code, project):
    one, two = (as_maintainer.get(f"{code}/archive.{kind}?sha=v1.0").data for _ in range(2))
    names = names_in(one)

    assert one == two
    assert any(name.startswith(f"{project.path}-v1.0-") and name.endswith("/app.py") for name in names)


def test_an_archive_contains_one_folder(as_maintainer, code, project):
    response = as_maintainer.get(f"{code}/archive?path=docs")
    names = names_in(response.data)

    assert [name.partition("/")[2] for name in names] == ["", "docs", "docs/manual.md"]
    assert response.headers["Content-Disposition"].startswith(f'attachment; filename="{project.path}-main-')
    assert response.headers["Content-Disposition"].endswith('-docs.tar.gz"')


def test_compare_shows_commits_and_diffs(as_maintainer, code):
    found = as_maintainer.get(f"{code}/compare?from=v1.1&to=feature/x").json

    assert [commit["title"] for commit in found["commits"]] == ["Feature change"]
    assert found["commit"]["title"] == "Feature change"
    assert [diff["new_path"] for diff in found["diffs"]] == ["app.py", "docs/manual.md"]
    straight = as_maintainer.get(f"{code}/compare?from=v1.1&to=feature/x&straight=true").json
    assert "bad\ufffd.txt" in [diff["old_path"] for diff in straight["diffs"] if diff["deleted_file"]]
    assert as_maintainer.get(f"{code}/compare?from=main&to=main").json["compare_same_ref"] is True


def test_contributors_and_merge_base_are_returned(as_maintainer, code):
    [one] = as_maintainer.get(f"{code}/contributors").json
    base = as_maintainer.get(f"{code}/merge_base?refs[]=v1.1&refs[]=feature/x").json

    assert one == {"name": "Ada", "email": "ada@example.org", "commits": 4, "additions": 0, "deletions": 0}
    assert base["title"] == "First commit"


def test_an_empty_project_has_an_empty_tree(as_maintainer, project):
    paths = {"commits": 200, "tree": 404, "files/a?ref=main": 404, "archive": 404, "contributors": 404}

    assert {path: as_maintainer.get(f"/projects/{project.id}/repository/{path}").status_code for path in paths} == paths
