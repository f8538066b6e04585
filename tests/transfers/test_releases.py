"""Releases in archives, and archived rows of earlier versions."""

from __future__ import annotations

import pytest

from tests.support.archives import make_archive, rows, send, unpack
from tests.support.sample_data import MAX

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
