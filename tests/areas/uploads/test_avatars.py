"""Pictures of users, groups and projects."""

from __future__ import annotations

import hashlib
import io

import pytest

from project_service.areas.avatars import serving as avatar_serving
from project_service.domain.accounts import avatars
from project_service.domain.project_files import ProjectFile
from project_service.domain.projects import Project
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.storage import storage
from project_service.transfers.importing.files import adopt_avatar
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, OLIVE, SAM, reload

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100


def picture(content=PNG, name="me.png"):
    return {"avatar": (io.BytesIO(content), name)}


def path_of(address):
    return address.removeprefix("http://localhost")


def test_a_user_sets_and_removes_the_own_picture_which_everybody_sees(as_, visit, people):
    made = as_(DEV).put("/user/avatar", data=picture()).json["avatar_url"]
    seen = visit(NOBODY).get(path_of(made))
    shown = as_(MAX).get(f"/users/{people[DEV].id}").json["avatar_url"]
    removed = as_(DEV).put("/user/avatar", data={"avatar": ""}).json

    assert path_of(made).startswith(f"/uploads/-/system/user/avatar/{people[DEV].id}/me.png?v=")
    assert (seen.data, seen.content_type, seen.headers["Cache-Control"]) == (PNG, "image/png", "public, max-age=300")
    assert seen.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    drawn = {"avatar_url": f"http://localhost/-/avatars/user/{people[DEV].id}"}
    assert (shown, removed, storage().names(f"avatars/user/{people[DEV].id}")) == (made, drawn, [])


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (b"<svg/>", "x.svg", avatars.UNSUPPORTED),
        (b"<svg/>", "x.png", avatars.UNSUPPORTED),
        (PNG, "x.html", avatars.UNSUPPORTED),
        (PNG + b"x" * avatars.MAX_BYTES, "x.png", avatars.TOO_BIG),
    ],
    ids=["svg", "fake", "ending", "size"],
)
def test_other_files_are_refused(content, name, problem, as_, people):
    response = as_(DEV).put("/user/avatar", data=picture(content, name))

    assert (response.status_code, response.json) == (400, {"message": {"avatar": [problem]}})
    assert as_(DEV).put("/user/avatar").json == {"error": "avatar is missing"}


def test_the_picture_of_a_project_is_for_those_who_see_it(as_, visit, project):
    made = as_(MAX).put(f"/projects/{project.id}", data=picture()).json["avatar_url"]
    statuses = [as_(name).get(f"/projects/{project.id}/avatar").status_code for name in (GUS, SAM, NOBODY)]
    pages = [visit(name).get(path_of(made)).status_code for name in (GUS, SAM)]

    assert (statuses, pages) == ([200, 404, 404], [200, 404])
    assert as_(MAX).put(f"/projects/{project.id}", data={"avatar": ""}).json["avatar_url"] is None
    assert as_(GUS).get(f"/projects/{project.id}/avatar").json == {"message": "404 Avatar Not Found"}


def test_groups_and_users_have_pictures_too(as_, as_admin, group, people):
    changed = as_(OLIVE).put(f"/groups/{group.id}", data=picture())
    created = as_admin.post("/groups", data={"name": "New", "path": "new", **picture()})
    user = as_admin.put(f"/users/{people[MAX].id}", data=picture()).json

    assert f"/uploads/-/system/group/avatar/{group.id}/me.png" in changed.json["avatar_url"]
    assert as_(OLIVE).get(f"/groups/{group.id}/avatar").data == PNG
    assert "/avatar/" in created.json["avatar_url"]
    assert "/uploads/-/system/user/avatar/" in user["avatar_url"]


def test_a_picture_is_found_by_a_public_address(as_, as_admin, people):
    as_admin.put(f"/users/{people[DEV].id}", json={"public_email": "dev@example.org"})
    made = as_(DEV).put("/user/avatar", data=picture()).json

    assert as_(NOBODY).get("/avatar?email=Dev@example.org").json == made
    assert as_(NOBODY).get("/avatar?email=max@example.org").json == {"avatar_url": None}


def test_users_without_a_picture_get_their_initials(visit, people):
    address = f"/-/avatars/user/{people[DEV].id}"

    drawn, unknown = visit(NOBODY).get(address), visit(NOBODY).get("/-/avatars/user/999999")

    assert (drawn.content_type, drawn.headers["Cache-Control"]) == ("image/svg+xml; charset=utf-8", avatar_serving.DAY)
    assert (">D</text>" in drawn.text, "script" in drawn.text, unknown.status_code) == (True, False, 404)
    assert drawn.headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert visit(NOBODY).get(address, headers={"If-None-Match": drawn.headers["ETag"]}).status_code == 304


def test_gravatar_is_named_only_when_it_is_switched_on(as_, as_admin, people):
    as_admin.put("/application/settings", json={"gravatar_enabled": True})
    digest = hashlib.sha256(people[DEV].email.encode()).hexdigest()

    shown = as_(MAX).get(f"/users/{people[DEV].id}").json["avatar_url"]

    assert shown == f"https://secure.gravatar.com/avatar/{digest}?s=80&d=identicon"


@pytest.mark.parametrize(
    ("person", "address", "owner"),
    [
        (DEV, "/-/profile/avatar", "user"),
        (MAX, "/acme/shop/-/avatar", "project"),
        (OLIVE, "/groups/acme/-/avatar", "group"),
    ],
    ids=["user", "project", "group"],
)
def test_pictures_are_changed_and_removed_on_pages(person, address, owner, visit, project, group, people):
    rows = {"user": people[DEV], "project": project, "group": group}
    visitor = visit(person)

    refused = visitor.send(address, **picture(b"<svg/>", "x.svg"))
    saved = visitor.send(address, **picture())
    made = reload(rows[owner]).avatar_url
    page = visitor.get(address)
    removed = visitor.send(address, remove="1")

    assert (refused.status_code, "file format is not supported" in refused.text) == (422, True)
    assert (saved.status_code, made.startswith(f"/uploads/-/system/{owner}/avatar/")) == (302, True)
    assert (f'src="{made}"' in page.text.replace("&amp;", "&"), removed.status_code) == (True, 302)
    assert reload(rows[owner]).avatar_url is None


def test_pictures_go_with_their_owners(as_, as_admin, run_jobs, project, group, people):
    as_(MAX).put(f"/projects/{project.id}", data=picture())
    as_(OLIVE).put(f"/groups/{group.id}", data=picture())
    as_(DEV).put("/user/avatar", data=picture())
    folders = [f"avatars/project/{project.id}", f"avatars/group/{group.id}", f"avatars/user/{people[DEV].id}"]
    stored = [len(storage().names(folder)) for folder in folders]

    as_admin.delete(f"/groups/{group.id}")
    as_admin.delete(f"/users/{people[DEV].id}")
    run_jobs()

    assert (stored, [storage().names(folder) for folder in folders]) == ([1, 1, 1], [[], [], []])


def test_the_picture_of_a_project_is_a_file_of_its_archives(as_, project):
    for name in ("a.png", "b.png"):
        as_(MAX).put(f"/projects/{project.id}", data=picture(name=name))

    files = db.session.scalars(db.select(ProjectFile).where(ProjectFile.project_id == project.id)).all()

    assert [(file.path, storage().open(file.storage_name).read()) for file in files] == [("avatar/b.png", PNG)]


def test_the_avatar_of_an_archive_becomes_the_picture(project):
    with storage().write("projects/x") as target:
        target.write(PNG)
    with unit_of_work():
        file = ProjectFile(project_id=project.id, path="avatar/logo.png", storage_name="projects/x", size=len(PNG))
        db.session.add(file)
        db.session.flush()
        adopt_avatar(db.session.get(Project, project.id))

    assert reload(project).avatar_url.startswith(f"/uploads/-/system/project/avatar/{project.id}/logo.png?v=")
    assert "projects/x" not in storage().names("projects")  # other tests leave files of theirs
