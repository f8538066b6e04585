"""Pictures of users, groups and projects."""

from __future__ import annotations

import io

import pytest

from project_service.domain import avatars
from project_service.kit.storage import storage
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, OLIVE, SAM

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
    assert (shown, removed, storage().names(f"avatars/user/{people[DEV].id}")) == (made, {"avatar_url": None}, [])


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
