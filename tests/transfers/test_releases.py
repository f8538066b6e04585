"""Releases in archives, and archived rows of earlier versions."""

from __future__ import annotations

import runpy

import pytest
from sqlalchemy import select

from project_service.domain.repositories.releases import Release, ReleaseLink
from project_service.kit.db.base import MIGRATIONS
from project_service.kit.db.session import db
from project_service.transfers.models import ArchivedRow
from tests.support.archives import make_archive, rows, send, unpack
from tests.support.sample_data import DEV, MAX

MOMENT = "2021-02-03T04:05:06.789Z"
LINK = {"id": 3, "release_id": 2, "url": "https://files.example/a", "name": "a", "filepath": None, "link_type": "image"}
ROW = {
    "id": 2,
    "tag": "v1",
    "description": "Notes",
    "name": "One",
    "sha": "a" * 40,
    "released_at": MOMENT,
    "created_at": MOMENT,
    "updated_at": MOMENT,
    "links": [LINK | {"created_at": MOMENT, "updated_at": MOMENT}],
    "evidences": [{"summary": {"token": 1}}],
}
# not releases here: they are exported as they came
OTHERS = [
    {"tag": "v1", "name": "again"},
    {"name": "no tag"},
    {"tag": "v2", "links": [LINK | {"url": "javascript:alert(1)"}]},
    {"tag": "v3", "links": [LINK, LINK | {"url": "https://files.example/b"}]},
]


@pytest.fixture
def exported(as_, run_jobs):
    def run(number):
        as_(MAX).post(f"/projects/{number}/export")
        run_jobs()
        return rows(unpack(as_(MAX).get(f"/projects/{number}/export/download").data), "releases")

    return run


@pytest.mark.both_databases
def test_releases_of_an_archive_are_served_and_exported_unchanged(as_, run_jobs, exported):
    number = send(as_(MAX), make_archive({"releases": [ROW, *OTHERS]})).json["id"]
    run_jobs()

    [shown] = as_(MAX).get(f"/projects/{number}/releases").json

    assert (shown["tag_name"], shown["name"], shown["description"], shown["released_at"]) == (
        "v1", "One", "Notes", MOMENT,
    )  # fmt: skip
    assert (shown["commit"], shown["assets"]["sources"]) == (None, [])
    assert [link["link_type"] for link in shown["assets"]["links"]] == ["image"]
    assert exported(number) == [ROW, *OTHERS]


def test_a_changed_release_is_exported_with_its_changes(as_, run_jobs, exported):
    number = send(as_(MAX), make_archive({"releases": [ROW]})).json["id"]
    run_jobs()
    release = f"/projects/{number}/releases/v1"

    as_(MAX).put(release, json={"description": "Better"})
    as_(MAX).post(f"{release}/assets/links", json={"name": "b", "url": "https://files.example/b"})

    [row] = exported(number)
    assert (row["description"], row["evidences"], row["sha"]) == ("Better", ROW["evidences"], ROW["sha"])
    assert [(link["name"], link["link_type"]) for link in row["links"]] == [("a", "image"), ("b", "other")]


@pytest.mark.both_databases
def test_the_upgrade_creates_releases_from_archived_rows(as_, project, people):
    for row in [ROW | {"author_id": people[DEV].id}, *OTHERS, 7]:
        db.session.add(ArchivedRow(project_id=project.id, relation="releases", data=row))
    db.session.commit()

    upgrade = runpy.run_path(str(MIGRATIONS / "versions" / "0028_add_releases.py"))
    with db.engine.begin() as connection:
        upgrade["_convert"](connection, Release.__table__, ReleaseLink.__table__)

    [shown] = as_(DEV).get(f"/projects/{project.id}/releases").json
    assert (shown["tag_name"], shown["author"]["username"], shown["released_at"]) == ("v1", DEV, MOMENT)
    assert [link["url"] for link in shown["assets"]["links"]] == [LINK["url"]]
    left = select(ArchivedRow.data).where(ArchivedRow.relation == "releases").order_by(ArchivedRow.id)
    assert list(db.session.scalars(left)) == [*OTHERS, 7]
