"""Pages that create, edit, upload and delete files."""

from __future__ import annotations

import html
import io

import pytest

from tests.support.sample_data import DEV, MAX, RITA

ABOUT = {"commit_message": "Write it", "target_branch": "main"}


def content_of(client, project, path, branch="main"):
    response = client.get(f"/projects/{project.id}/repository/files/{path}/raw?ref={branch}")
    return response.data if response.status_code == 200 else response.status_code


@pytest.fixture
def repository_of(project, as_):
    """The project with a file on its default branch, to which only maintainers may push."""
    actions = [{"action": "create", "file_path": "docs/a.md", "content": "one\r\ntwo\r\n"}]
    body = {"branch": "main", "commit_message": "Begin", "actions": actions}
    assert as_(MAX).post(f"/projects/{project.id}/repository/commits", json=body).status_code == 201
    return project


def test_the_first_file_of_an_empty_repository_is_written_on_a_page(visit, as_, project):
    fields = ABOUT | {"file_path": "README.md", "content": "# Shop\r\n"}

    empty = visit(MAX).get("/acme/shop/-/tree")
    created = visit(MAX).send("/acme/shop/-/new/main", **fields)

    assert "/acme/shop/-/new/main" in empty.text
    assert (created.status_code, created.location) == (302, "/acme/shop/-/blob/main/README.md")
    assert content_of(as_(MAX), project, "README.md") == b"# Shop\n"


def test_a_file_is_edited_with_its_line_ends_and_moved(visit, as_, repository_of):
    page = visit(MAX).get("/acme/shop/-/edit/main/docs/a.md")
    known = page.text.split('name="last_commit_id"')[1].split('value="')[1].split('"')[0]
    fields = ABOUT | {"file_path": "docs/b.md", "content": "three\r\nfour\r\n", "last_commit_id": known}

    saved = visit(MAX).send("/acme/shop/-/edit/main/docs/a.md", **fields)

    assert ("one" in page.text, saved.status_code) == (True, 302)
    assert content_of(as_(MAX), repository_of, "docs%2Fb.md") == b"three\r\nfour\r\n"
    assert content_of(as_(MAX), repository_of, "docs%2Fa.md") == 404


def test_a_preview_commits_nothing(visit, as_, repository_of):
    fields = ABOUT | {"file_path": "docs/a.md", "content": "**bold**", "preview": "1"}

    shown = visit(MAX).send("/acme/shop/-/edit/main/docs/a.md", **fields)

    assert (shown.status_code, "<strong>bold</strong>" in shown.text) == (200, True)
    assert content_of(as_(MAX), repository_of, "docs%2Fa.md") == b"one\r\ntwo\r\n"


def test_files_are_uploaded_replaced_and_deleted(visit, as_, repository_of):
    address, binary = "/acme/shop/-/upload_file/main/docs", bytes(range(256))

    def send(content, **more):
        return visit(MAX).send(address, file=(io.BytesIO(content), "x.bin"), **ABOUT, **more)

    uploaded, again, replaced = send(b"1"), send(binary), send(binary, replace="y")
    content = content_of(as_(MAX), repository_of, "docs%2Fx.bin")
    deleted = visit(MAX).send("/acme/shop/-/delete_file/main/docs/x.bin", **ABOUT)

    assert [response.status_code for response in (uploaded, again, replaced, deleted)] == [302, 422, 302, 302]
    assert ("A file with this name already exists" in again.text, content) == (True, binary)
    assert content_of(as_(MAX), repository_of, "docs%2Fx.bin") == 404


def test_a_protected_branch_is_refused_at_its_field_and_a_new_branch_offered(visit, as_, repository_of):
    page = visit(DEV).get("/acme/shop/-/edit/main/docs/a.md")
    fields = ABOUT | {"file_path": "docs/a.md", "content": "changed"}

    refused = visit(DEV).send("/acme/shop/-/edit/main/docs/a.md", **fields)
    saved = visit(DEV).send("/acme/shop/-/edit/main/docs/a.md", **fields | {"target_branch": "dev-patch-1"})

    assert ('value="dev-patch-1"' in page.text, refused.status_code, saved.status_code) == (True, 422, 302)
    wrong = 'id="target_branch-wrong">Target branch is protected. You are not allowed to push into this branch'
    assert wrong in html.unescape(refused.text)
    assert content_of(as_(DEV), repository_of, "docs%2Fa.md", "dev-patch-1") == b"changed"


def test_a_change_of_others_is_not_overwritten(visit, as_, repository_of):
    page = visit(MAX).get("/acme/shop/-/edit/main/docs/a.md")
    known = page.text.split('name="last_commit_id"')[1].split('value="')[1].split('"')[0]
    body = {"branch": "main", "commit_message": "Meanwhile", "content": "theirs"}
    as_(MAX).put(f"/projects/{repository_of.id}/repository/files/docs%2Fa.md", json=body)
    fields = ABOUT | {"file_path": "docs/a.md", "content": "mine", "last_commit_id": known}

    refused = visit(MAX).send("/acme/shop/-/edit/main/docs/a.md", **fields)

    assert (refused.status_code, "has changed since you started editing it" in refused.text) == (422, True)
    assert "mine" in refused.text


@pytest.mark.parametrize("page", ["new/main", "edit/main/docs/a.md", "upload_file/main", "delete_file/main/docs/a.md"])
def test_reporters_get_no_page(page, visit, repository_of):
    reader, writer = visit(RITA), visit(MAX)

    assert (reader.get(f"/acme/shop/-/{page}").status_code, writer.get(f"/acme/shop/-/{page}").status_code) == (
        403,
        200,
    )
    shown = [visitor.get("/acme/shop/-/blob/main/docs/a.md").text for visitor in (reader, writer)]
    assert ["/-/edit/main/docs/a.md" in text for text in shown] == [False, True]


@pytest.mark.parametrize("page", ["new/none/x", "edit/main/docs", "edit/main/none", "delete_file/none/x"])
def test_unknown_places_are_not_found(page, visit, repository_of):
    assert visit(MAX).get(f"/acme/shop/-/{page}").status_code == 404
