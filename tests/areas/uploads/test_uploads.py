"""Uploads: the API, the addresses of pages, and what browsers may do with the bytes."""

from __future__ import annotations

import datetime as dt
import io

import pytest

from project_service.areas.uploads import service
from project_service.areas.uploads.routes import NO_UPLOAD
from project_service.domain.project_files import ProjectFile
from project_service.kit.db.session import db
from project_service.kit.storage import storage
from project_service.transfers.workdir import remove_leftovers
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, SAM, make_project

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


@pytest.fixture
def uploads(project):
    return f"/projects/{project.id}/uploads"


def upload(client, address, content=PNG, name="dk.png"):
    return client.post(address, data={"file": (io.BytesIO(content), name)})


def test_an_upload_has_the_documented_keys_and_is_read_by_its_addresses(as_, visit, uploads, project):
    made = upload(as_(GUS), uploads)
    secret = made.json["url"].split("/")[2]

    assert made.status_code == 201
    assert made.json == {
        "id": made.json["id"],
        "alt": "dk",
        "url": f"/uploads/{secret}/dk.png",
        "full_path": f"/-/project/{project.id}/uploads/{secret}/dk.png",
        "markdown": f"![dk](/uploads/{secret}/dk.png)",
    }
    assert as_(GUS).get(f"/projects/{project.id}{made.json['url']}").data == PNG
    for address in (made.json["full_path"], f"/acme/shop{made.json['url']}"):
        assert visit(GUS).get(address).data == PNG
        assert visit(SAM).get(address).status_code == 404
        assert "/users/sign_in" in visit(NOBODY).get(address).location


@pytest.mark.parametrize(
    ("name", "content", "kind", "shown", "markdown"),
    [
        ("a.png", PNG, "image/png", "inline", "![a]"),
        ("a.png", b"<script>", "application/octet-stream", "attachment", "![a]"),
        ("a.html", PNG, "application/octet-stream", "attachment", "[a.html]"),
        ("a.html", b"<!doctype html>", "application/octet-stream", "attachment", "[a.html]"),
        ("a.svg", b"<svg xmlns=''/>", "image/svg+xml", "attachment", "![a.svg]"),
        ("a.pdf", b"%PDF-1.4", "application/pdf", "inline", "[a.pdf]"),
        ("a.txt", b"text", "application/octet-stream", "attachment", "[a.txt]"),
    ],
    ids=["png", "fake", "png-as-html", "html", "svg", "pdf", "text"],
)
def test_nothing_runs_in_the_origin_of_the_service(name, content, kind, shown, markdown, as_, visit, uploads):
    made = upload(as_(MAX), uploads, content, name).json
    response = visit(MAX).get(made["full_path"])

    assert made["markdown"].startswith(f"{markdown}(/uploads/")
    assert (response.content_type, response.headers["Content-Disposition"].split(";")[0]) == (kind, shown)
    assert {name: response.headers[name] for name in list(response.headers.keys()) if name in HEADERS} == HEADERS


HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "max-age=0, private, must-revalidate",
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../a b?.png", "a_b_.png"),
        ("C:\\x\\ä.txt", "ä.txt"),
        ("..", "_.."),
        ("", "unnamed"),
        ("x" * 300 + ".png", "x" * 196 + ".png"),
    ],
    ids=["path", "windows", "dots", "empty", "long"],
)
def test_names_are_parts_of_addresses(name, expected):
    assert service.clean_name(name) == expected


def test_parts_are_sent_and_unchanged_files_are_not(as_, uploads, project):
    address = f"/projects/{project.id}{upload(as_(MAX), uploads).json['url']}"
    part = as_(MAX).get(address, headers={"Range": "bytes=0-3"})
    same = as_(MAX).get(address, headers={"If-None-Match": part.headers["ETag"]})

    assert (part.status_code, part.data, part.headers["Content-Range"]) == (206, PNG[:4], f"bytes 0-3/{len(PNG)}")
    assert same.status_code == 304


def test_maintainers_list_and_delete_uploads(as_, uploads, project):
    first, second = (upload(as_(GUS), uploads, name=name).json for name in ("a.png", "b.png"))
    [newest, _] = as_(MAX).get(uploads).json

    assert newest == {
        "id": second["id"],
        "size": len(PNG),
        "filename": "b.png",
        "created_at": newest["created_at"],
        "uploaded_by": {"id": newest["uploaded_by"]["id"], "username": GUS, "public_email": "", "name": "Gus"},
    }
    assert as_(MAX).get(f"{uploads}/{first['id']}").data == PNG
    assert as_(MAX).delete(f"{uploads}/{first['id']}").status_code == 204
    assert as_(MAX).delete(f"/projects/{project.id}{second['url']}").status_code == 204
    assert as_(MAX).delete(f"/projects/{project.id}{second['url']}").json == {"message": NO_UPLOAD}
    assert (as_(MAX).get(uploads).json, storage().names(f"projects/{project.id}/uploads")) == ([], [])


@pytest.mark.parametrize(
    ("person", "status"), [(NOBODY, 401), (SAM, 404), (GUS, 201)], ids=["anonymous", "stranger", "guest"]
)
def test_members_may_upload(person, status, as_, uploads):
    assert upload(as_(person), uploads).status_code == status


def test_strangers_cannot_fill_a_public_project_and_archived_ones_take_nothing(as_, as_admin, people):
    public = make_project("open", visibility="public")
    refused = upload(as_(SAM), f"/projects/{public.id}/uploads").status_code
    as_admin.post(f"/projects/{public.id}/archive")

    assert (refused, upload(as_admin, f"/projects/{public.id}/uploads").status_code) == (403, 403)


def test_developers_cannot_list_or_delete(as_, uploads, project):
    made = upload(as_(DEV), uploads).json

    assert as_(DEV).get(uploads).status_code == 403
    assert as_(DEV).delete(f"/projects/{project.id}{made['url']}").status_code == 403


def test_missing_and_large_files_are_refused(as_, as_admin, uploads, monkeypatch):
    as_admin.put("/application/settings", json={"max_attachment_size": 1})
    monkeypatch.setattr(service, "MIB", 1000)

    assert as_(MAX).post(uploads).json == {"error": "file is missing"}
    assert as_(MAX).post(uploads, data={"file": "x"}).json == {"error": "file is invalid"}
    assert upload(as_(MAX), uploads, b"x" * 1001).status_code == 413
    assert db.session.query(ProjectFile).count() == 0


def test_uploads_of_other_projects_are_not_found(as_, as_admin, uploads, project):
    other = make_project("other", project.namespace)
    made = upload(as_(MAX), uploads).json

    assert as_admin.get(f"/projects/{other.id}{made['url']}").status_code == 404
    assert as_admin.get(f"/projects/{project.id}/uploads/{'0' * 32}/dk.png").status_code == 404


def test_texts_of_the_project_show_its_uploads(as_, visit, uploads, project):
    made = upload(as_(MAX), uploads).json
    as_(MAX).post(f"/projects/{project.id}/issues", json={"title": "x", "description": made["markdown"]})

    assert f'src="{made["full_path"]}"' in visit(MAX).get("/acme/shop/-/issues/1").text


def test_objects_that_get_no_row_are_removed_after_a_day(as_, uploads, project, monkeypatch):
    upload(as_(MAX), uploads)
    name = f"projects/{project.id}/uploads/orphan"
    storage().store(io.BytesIO(b"x"), name)
    remove_leftovers(project.id)
    young = storage().exists(name)
    monkeypatch.setattr("project_service.transfers.workdir.UPLOAD_TIME", dt.timedelta(hours=-1))
    remove_leftovers(project.id)

    assert (young, storage().exists(name), len(storage().names(f"projects/{project.id}/uploads"))) == (True, False, 1)


def test_pasted_files_and_previews(visit, project):
    visitor = visit(GUS)
    data = {"csrf_token": visitor.csrf_token(), "file": (io.BytesIO(PNG), "image.png")}
    pasted = visitor.open("POST", "/acme/shop/-/uploads", data=data)
    preview = visitor.send("/acme/shop/-/preview", text="**b** <script>x</script> @max")

    assert (pasted.status_code, pasted.json["markdown"][:8]) == (201, "![image]")
    assert "<strong>b</strong>" in preview.text
    assert "<script>" not in preview.text
    assert '<a href="/max" title="Max">@max</a>' in preview.text
