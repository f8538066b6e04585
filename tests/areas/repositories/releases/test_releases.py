"""Releases by API (repositories reference, section 4.6)."""

from __future__ import annotations

import pytest

from project_service.domain.hooks.hook_events import SAMPLES
from tests.support.sample_data import DEV, MAX, NOBODY, RITA

FIRST = "v1.0"
NOTES = {"tag_name": FIRST, "name": "One", "description": "# Notes\n\n* fixed"}


@pytest.fixture
def releases(code, project):
    return f"/projects/{project.id}/releases"


@pytest.mark.both_databases
def test_a_release_is_created_shown_updated_and_deleted(as_, releases, code, project):
    created = as_(DEV).post(releases, json=NOTES)

    shown = created.json
    assert (created.status_code, shown["tag_name"], shown["name"], shown["description"]) == (
        201, FIRST, "One", NOTES["description"],
    )  # fmt: skip
    assert (shown["author"]["username"], shown["upcoming_release"], shown["evidences"]) == (DEV, False, [])
    assert shown["commit"] == as_(DEV).get(f"{code}/tags/{FIRST}").json["commit"]
    assert shown["commit_path"] == f"/{project.full_path}/-/commit/{shown['commit']['id']}"
    assert shown["tag_path"] == f"/{project.full_path}/-/tags/{FIRST}"
    assert shown["_links"]["self"] == f"http://localhost/{project.full_path}/-/releases/{FIRST}"
    assert [source["format"] for source in shown["assets"]["sources"]] == ["zip", "tar.gz", "tar.bz2", "tar"]
    assert (shown["assets"]["count"], shown["assets"]["links"]) == (4, [])
    assert as_(RITA).get(f"{releases}/{FIRST}").json == shown | {"_links": {"self": shown["_links"]["self"]}}
    changed = as_(DEV).put(f"{releases}/{FIRST}", json={"name": "Two", "released_at": "2999-01-01T00:00:00Z"})
    assert (changed.json["name"], changed.json["upcoming_release"]) == ("Two", True)
    assert as_(DEV).get(f"{code}/tags/{FIRST}").json["release"] == {
        "tag_name": FIRST, "description": NOTES["description"],
    }  # fmt: skip
    deleted = as_(DEV).delete(f"{releases}/{FIRST}")
    assert (deleted.status_code, deleted.json["name"]) == (200, "Two")
    missing = as_(DEV).get(f"{releases}/{FIRST}")
    assert (missing.status_code, missing.json) == (404, {"message": "404 Not Found"})
    assert as_(DEV).get(f"{code}/tags/{FIRST}").json["release"] is None


def test_a_release_creates_its_tag(as_, releases, code):
    created = as_(DEV).post(releases, json={"tag_name": "v9", "ref": "main", "tag_message": "Nine"})

    assert (created.status_code, created.json["name"]) == (201, "v9")
    tag = as_(DEV).get(f"{code}/tags/v9").json
    assert (tag["message"], tag["commit"]) == ("Nine", created.json["commit"])


@pytest.mark.parametrize(
    ("sent", "status", "text"),
    [
        (NOTES, 409, "Release already exists"),
        ({"tag_name": "v9"}, 422, "Ref is not specified"),
        ({"tag_name": "v9", "ref": "nothing"}, 400, "Target nothing is invalid"),
        ({"tag_name": "a..b", "ref": "main"}, 400, "Tag name invalid"),
        ({"tag_name": None, "ref": "main"}, 400, "Tag name invalid"),
        ({"tag_name": "v1.1", "assets": {"links": [{"name": None, "url": None}]}}, 400, {"name": ["can't be blank"]}),
        ({"tag_name": "v1.1", "milestones": ["m1"]}, 400, "Milestone(s) not found: m1"),
        ({"tag_name": "v1.1", "name": "x" * 256}, 400, {"name": ["is too long (maximum is 255 characters)"]}),
        (
            {"tag_name": "v1.1", "assets": {"links": [{"name": "a", "url": "javascript:alert(1)"}]}},
            400,
            {"url": ["is blocked: Only allowed schemes are http, https, ftp"]},
        ),
        (
            {"tag_name": "v1.1", "assets": {"links": [{"name": n, "url": "https://a.example"} for n in "ab"]}},
            400,
            {"url": ["has already been taken"]},
        ),
    ],
)
def test_invalid_releases_are_refused(sent, status, text, as_, releases):
    as_(DEV).post(releases, json=NOTES)

    response = as_(DEV).post(releases, json=sent)

    assert (response.status_code, response.json) == (status, {"message": text})
    assert [row["tag_name"] for row in as_(DEV).get(releases).json] == [FIRST]


def test_protected_tags_protect_their_releases(as_, releases, project):
    as_(MAX).post(releases, json=NOTES)
    as_(MAX).post(f"/projects/{project.id}/protected_tags", json={"name": "v*", "create_access_level": 40})
    fields = {"tag_name": "v9", "ref": "main"}

    responses = [
        as_(DEV).post(releases, json=fields),
        as_(DEV).put(f"{releases}/{FIRST}", json={"name": "x"}),
        as_(DEV).delete(f"{releases}/{FIRST}"),
        as_(DEV).post(f"{releases}/{FIRST}/assets/links", json={"name": "a", "url": "https://a.example"}),
    ]

    refusal = {"message": "You are not allowed to create this tag as it is protected."}
    assert [(response.status_code, response.json) for response in responses] == [(403, refusal)] * 4
    assert as_(MAX).post(releases, json=fields).status_code == 201


def test_release_links_are_created_updated_and_deleted(as_, releases):
    link = {"name": "binary", "url": "https://files.example/a.tgz", "link_type": "package", "filepath": "/bin/a"}
    as_(DEV).post(releases, json=NOTES | {"assets": {"links": [link]}})
    links = f"{releases}/{FIRST}/assets/links"

    created = as_(DEV).post(links, json={"name": "docs", "url": "https://docs.example/"})

    assert created.status_code == 201
    assert created.json == {
        "id": created.json["id"],
        "name": "docs",
        "url": "https://docs.example/",
        "direct_asset_url": "https://docs.example/",
        "link_type": "other",
    }
    assert [row["name"] for row in as_(RITA).get(links).json] == ["docs", "binary"]
    one = f"{links}/{created.json['id']}"
    assert as_(DEV).put(one, json={"name": "manual", "link_type": "runbook"}).json["link_type"] == "runbook"
    assert as_(DEV).put(one, json={"url": link["url"]}).json == {"message": {"url": ["has already been taken"]}}
    assert as_(RITA).get(f"{releases}/{FIRST}").json["assets"]["links"][0]["name"] == "manual"
    assert (as_(DEV).delete(one).json["name"], as_(DEV).get(one).status_code) == ("manual", 404)


def test_releases_are_ordered_by_release_time(as_, releases):
    for name, moment in (("v1.1", "2020-01-01"), (FIRST, "2021-01-01")):
        as_(DEV).post(releases, json={"tag_name": name, "released_at": moment})

    def tags(query=""):
        return [row["tag_name"] for row in as_(RITA).get(f"{releases}{query}").json]

    assert (tags(), tags("?sort=asc"), tags("?order_by=created_at")) == (
        [FIRST, "v1.1"], ["v1.1", FIRST], [FIRST, "v1.1"],
    )  # fmt: skip
    assert as_(RITA).get(f"{releases}/permalink/latest").json["tag_name"] == FIRST
    assert as_(NOBODY).get(releases).status_code == 404


def test_null_milestones_mean_no_milestones(as_, releases):
    created = as_(DEV).post(releases, json=NOTES | {"milestones": None})

    assert (created.status_code, created.json.get("milestones", [])) == (201, [])


def test_a_deleted_tag_removes_its_release(as_, releases, code, git_of, people, project):
    for tag in (FIRST, "v1.1"):
        as_(DEV).post(releases, json={"tag_name": tag})

    git_of(people[DEV]).push(project.full_path, f":refs/tags/{FIRST}")
    as_(DEV).delete(f"{code}/tags/v1.1")

    assert as_(DEV).get(releases).json == []


def test_milestones_of_a_release_are_set_and_cleared(as_, as_maintainer, releases, project):
    as_maintainer.post(f"/projects/{project.id}/milestones", json={"title": "m1"})

    created = as_(DEV).post(releases, json=NOTES | {"milestones": ["m1"]})
    cleared = as_(DEV).put(f"{releases}/{FIRST}", json={"milestones": []})

    assert [row["title"] for row in created.json["milestones"]] == ["m1"]
    assert cleared.json["milestones"] == []


@pytest.fixture
def developer(visit, code):
    return visit(DEV)


PROJECT_PAGES = "/acme/shop/-"


def test_a_release_is_created_updated_and_deleted_on_pages(developer, as_, releases):
    created = developer.send(
        f"{PROJECT_PAGES}/releases/new", tag="v3", ref="main", name="Three", description="* <i>new</i><script>"
    )
    page = developer.get(created.location).text

    assert created.location == f"{PROJECT_PAGES}/releases/v3"
    assert '<h2 id="release-title">Three</h2>' in page
    assert ("<i>new</i>" in page, "&lt;script&gt;" in page) == (True, True)
    assert f"{PROJECT_PAGES}/archive/v3/shop-v3.zip" in page
    edited = developer.send(f"{PROJECT_PAGES}/releases/v3/edit", name="", description="Better")
    assert (edited.location, as_(DEV).get(f"{releases}/v3").json["description"]) == (created.location, "Better")
    assert "Better" in developer.get(f"{PROJECT_PAGES}/releases").text
    assert "The tag v3 stays" in developer.get(f"{PROJECT_PAGES}/releases/v3/delete").text
    assert developer.send(f"{PROJECT_PAGES}/releases/v3/delete").location == f"{PROJECT_PAGES}/releases"
    assert "This tag has no release" in developer.get(f"{PROJECT_PAGES}/tags/v3").text


def test_a_new_tag_may_have_release_notes(developer, as_, releases):
    developer.send(f"{PROJECT_PAGES}/tags/new", name="v4", ref="main", notes="Noted")

    assert as_(DEV).get(f"{releases}/v4").json["description"] == "Noted"
    assert f'href="{PROJECT_PAGES}/tags/v4"><strong>v4</strong></a> <span class="badge">release</span>' in (
        developer.get(f"{PROJECT_PAGES}/tags").text
    )


def test_a_refused_release_shows_the_errors(developer, as_, releases):
    as_(DEV).post(releases, json=NOTES)

    response = developer.send(f"{PROJECT_PAGES}/releases/new", tag=FIRST, ref="main", description="Kept text")

    assert response.status_code == 422
    assert "Release already exists" in response.text
    assert "Kept text" in response.text


def test_links_with_other_schemes_are_shown_as_text(visit, as_, releases):
    links = [{"name": "mirror", "url": "ftp://files.example/a"}, {"name": "page", "url": "https://docs.example/"}]
    as_(DEV).post(releases, json=NOTES | {"assets": {"links": links}})

    page = visit(RITA).get(f"{PROJECT_PAGES}/releases/{FIRST}").text

    assert 'href="https://docs.example/"' in page
    assert 'href="ftp:' not in page
    assert "mirror: <code>ftp://files.example/a</code>" in page
    assert "/edit" not in page


def test_web_hooks_of_a_release_get_the_commit_of_its_tag(as_, releases, project):
    created = as_(DEV).post(releases, json=NOTES).json

    commit = SAMPLES["releases_events"](project)["commit"]

    shown = created["commit"]
    assert {name: commit[name] for name in ("id", "message", "title", "url")} == {
        "id": shown["id"],
        "message": shown["message"],
        "title": shown["title"],
        "url": shown["web_url"],
    }
    assert commit["author"] == {"name": shown["author_name"], "email": "[REDACTED]"}
    assert commit["timestamp"][:19] == shown["committed_date"][:19]
