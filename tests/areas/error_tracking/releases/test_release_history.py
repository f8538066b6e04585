"""Commits and deploys of releases, as clients send and read them, and the page of a release."""

from __future__ import annotations

import io
import json

import pytest

from project_service.areas.error_tracking.errors.models import TrackedError
from project_service.kit.db.session import db
from tests.support.git_repositories import _git
from tests.support.sample_data import DEV, MAX, RITA, make_token
from tests.support.sentry_requests import Sender, track_errors
from tests.support.source_maps import MAP, SCRIPT, Uploader, build, event, sha1

PAGE = "/acme/shop/-/error_tracking/releases"


@pytest.fixture
def as_uploader(app, people, project):
    """Makes a client of one of the people."""
    return lambda name, *scopes: Uploader(app, make_token(people[name], *scopes))


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


@pytest.fixture
def uploader(as_uploader, sender):
    """A client of a developer with a release."""
    client = as_uploader(DEV)
    client.open("POST", "releases/", json={"version": "1.0", "projects": ["shop"]})
    return client


def test_commits_of_clients_are_kept_and_listed(uploader):
    commits = [
        {
            "id": "b" * 40,
            "message": "Fix the till\n\nIt was stuck.",
            "author_name": "Dev",
            "author_email": "dev@example.org",
            "timestamp": "2026-11-27T10:00:00Z",
            "repository": "acme/shop",
            "patch_set": [{"path": "a", "type": "M"}],
        },
        {"id": "a" * 40},
    ]

    release = uploader.open("PUT", "releases/1.0/", json={"commits": commits}).json
    listed = uploader.open("GET", "releases/1.0/commits/").json

    assert (release["commitCount"], release["lastCommit"]["id"]) == (2, "b" * 40)
    assert [one["message"] for one in listed] == ["Fix the till", None]
    assert listed[0]["repository"] == {"id": "acme/shop", "name": "acme/shop"}
    uploader.open("POST", "releases/", json={"version": "1.1", "projects": ["shop"]})
    assert uploader.open("GET", "releases/1.1/previous-with-commits/").json["version"] == "1.0"
    assert uploader.open("PUT", "releases/1.0/", json={"commits": []}).json["lastCommit"] is None


@pytest.mark.parametrize("commits", ["x", [1], [{"id": 1}], [{"id": "a" * 65}]], ids=["text", "number", "id", "long"])
def test_malformed_commits_are_refused(commits, uploader):
    refused = uploader.open("PUT", "releases/1.0/", json={"commits": commits})

    assert (refused.status_code, refused.json) == (400, {"detail": "commits is invalid"})


def test_commits_of_a_repository_here_are_read_by_a_job(uploader, repository, tmp_path, run_jobs):
    folder = tmp_path / "repository"
    sha = _git(folder, "rev-parse", "HEAD").decode().strip()
    [listed] = uploader.open("GET", "repos/").json
    ref = {"repository": listed["name"], "commit": sha}

    waiting = uploader.open("PUT", "releases/1.0/", json={"refs": [ref]}).json
    run_jobs()
    read = uploader.open("GET", "releases/1.0/").json

    assert (waiting["commitCount"], waiting["lastCommit"]["id"]) == (0, sha)
    assert (read["commitCount"], read["lastCommit"]["id"]) == (1, sha)
    assert read["lastCommit"]["message"]
    unknown = uploader.open("PUT", "releases/1.0/", json={"refs": [{"repository": "acme/x", "commit": sha}]})
    assert unknown.json == {"detail": "Unable to find repository acme/x"}


def test_deploys_are_added_and_listed(uploader, as_uploader):
    sent = {"environment": "production", "name": None, "url": None, "dateStarted": None, "dateFinished": None}

    first = uploader.open("POST", "releases/1.0/deploys/", json=sent)
    uploader.open("POST", "/api/0/projects/acme/shop/releases/1.0/deploys/", json={"environment": "staging"})

    assert (first.status_code, first.json["environment"], first.json["dateFinished"] is not None) == (
        201,
        "production",
        True,
    )
    listed = uploader.open("GET", "releases/1.0/deploys/").json
    assert [one["environment"] for one in listed] == ["staging", "production"]
    release = uploader.open("GET", "releases/1.0/").json
    assert (release["deployCount"], release["lastDeploy"]["environment"]) == (2, "staging")
    assert uploader.open("POST", "releases/1.0/deploys/", json={}).json == {"environment": "This field is required."}
    assert uploader.open("POST", "releases/1.0/deploys/", json={"environment": "a/b"}).status_code == 400
    assert as_uploader(RITA).open("POST", "releases/1.0/deploys/", json=sent).status_code == 403


def test_the_page_of_a_release_has_its_errors_commits_deploys_and_uploads(sender, uploader, visit, project):
    sender.event(message="stuck", release="0.9")
    sender.event(message="stuck", release="1.0")
    sender.event(message="jammed", release="1.0")
    uploader.open("PUT", "releases/1.0/", json={"commits": [{"id": "c" * 40, "message": "<b>Oil</b>"}]})
    uploader.open("POST", "releases/1.0/deploys/", json={"environment": "production", "url": "javascript:alert(1)"})
    uploader.upload(build(), version="1.0")

    page, releases = visit(RITA).get(f"{PAGE}/1.0").text, visit(RITA).get(PAGE).text

    assert ("jammed" in page, "stuck" in page) == (True, False)
    assert ("&lt;b&gt;Oil&lt;/b&gt;" in page, 'href="javascript' in page, "production" in page) == (True, False, True)
    assert "2 files" in page
    assert '<th scope="row">1.0</th><td>1</td><td>1</td>' in releases
    assert visit(MAX).get(f"{PAGE}/nothing").status_code == 404
    listed = visit(RITA).get("/acme/shop/-/error_tracking?release=0.9").text
    assert ("Only errors of the release" in listed, "jammed" in listed) == (True, False)


def test_the_api_lists_releases_and_uploads(sender, uploader, as_, project, run_jobs):
    sent = sender.event(**event(release="1.0"))
    uploader.upload(build(), version="1.0")
    base = f"/projects/{project.id}/error_tracking"

    [release] = as_(RITA).get(f"{base}/releases", query_string={"search": "1."}).json
    [bundle] = as_(RITA).get(f"{base}/source_maps", query_string={"release": "1.0"}).json
    files = as_(RITA).get(f"{base}/source_maps/{bundle['id']}/files").json

    assert (release["version"], release["new_errors"], release["errors"], release["events"]) == ("1.0", 1, 1, 1)
    assert release["source_maps"] == {"bundles": 1, "files": 2, "bytes": bundle["bytes"], "dists": []}
    assert as_(RITA).get(f"{base}/releases/1.0").json == release
    assert {file["type"] for file in files} == {"minified_source", "source_map"}
    assert [as_(RITA).get(f"{base}/source_maps", query_string={"debug_id": one}).json for one in ("0" * 32,)] == [[]]
    found = as_(RITA).get(f"{base}/source_maps", query_string={"debug_id": files[0]["debug_id"]}).json
    assert [one["id"] for one in found] == [bundle["id"]]
    resolve = f"{base}/errors/{as_(DEV).get(f'{base}/errors').json[0]['id']}/events/{sent.json['id']}/resolve"
    assert (as_(DEV).post(resolve).status_code, as_(RITA).post(resolve).status_code) == (202, 403)
    run_jobs()
    assert as_(DEV).delete(f"{base}/source_maps/{bundle['id']}").status_code == 403
    assert as_(MAX).delete(f"{base}/source_maps/{bundle['id']}").status_code == 204
    assert as_(RITA).get(f"{base}/source_maps").json == []


def test_old_clients_upload_list_and_remove_single_files(sender, uploader, as_uploader, project, run_jobs):
    files = "/api/0/projects/acme/shop/releases/1.0/files/"

    def post(name, content, **fields):
        data = {"file": (io.BytesIO(content), "x"), "name": name, **fields}
        return uploader.open("POST", files, data=data, content_type="multipart/form-data")

    script = post("~/js/app.js", SCRIPT.encode(), header="Sourcemap:app.js.map")
    source_map = post("~/js/app.js.map", json.dumps(MAP).encode())

    assert (script.status_code, script.json["name"], source_map.status_code) == (201, "~/js/app.js", 201)
    assert [post("~/js/app.js", content).status_code for content in (SCRIPT.encode(), b"other")] == [201, 409]
    assert uploader.open("POST", files, data={}).json == {"detail": "Missing uploaded file"}
    listed = uploader.open("GET", files).json
    known = uploader.open("GET", f"{files}?checksum={'a' * 40}&checksum={sha1(SCRIPT.encode())}").json
    assert [one["size"] for one in listed] == [len(json.dumps(MAP)), len(SCRIPT)]
    assert [(one["name"], one["headers"]) for one in known] == [("~/js/app.js", {"Sourcemap": "app.js.map"})]
    sender.event(**event(None, release="1.0"))
    run_jobs()
    assert db.session.query(TrackedError).one().culprit.startswith("boom(")
    assert uploader.open("DELETE", f"{files}{listed[0]['id']}/").status_code == 403
    assert as_uploader(MAX).open("DELETE", f"{files}{listed[0]['id']}/").status_code == 204
    emptied = as_uploader(MAX).open("DELETE", "/api/0/projects/acme/shop/files/source-maps/?name=1.0")
    assert (emptied.status_code, uploader.open("GET", files).json) == (204, [])


def test_bundles_of_a_release_are_assembled_for_its_projects(uploader):
    content = build()
    uploader.send(content)
    body = {"checksum": sha1(content), "chunks": [sha1(content)]}

    assert uploader.open("POST", "releases/1.0/assemble/", json=body).json["state"] == "ok"
    assert len(uploader.open("GET", "/api/0/projects/acme/shop/releases/1.0/files/").json) == 2
    assert uploader.open("POST", "releases/nothing/assemble/", json=body).status_code == 404


def test_pages_remove_uploads_and_apply_source_maps_again(sender, uploader, visit, as_, project, run_jobs):
    sent = sender.event(**event(release="1.0")).json["id"]
    uploader.upload(build(), version="1.0")
    [error] = as_(RITA).get(f"/projects/{project.id}/error_tracking/errors").json
    one = f"/acme/shop/-/error_tracking/{error['id']}"

    assert "Apply source maps again" in visit(DEV).get(f"{one}/details").text
    visit(DEV).send(f"{one}/events/{sent}/resolve")
    run_jobs()
    assert "Apply source maps again" not in visit(DEV).get(f"{one}/details").text
    page = visit(MAX).get(PAGE).text
    path = f"/acme/shop/-/error_tracking/source_maps/{page.partition('/source_maps/')[2].partition('/')[0]}/delete"
    assert "of the release 1.0" in visit(MAX).get(path).text
    assert visit(MAX).send(path).headers["Location"] == PAGE
    assert "Nothing was uploaded: frames" in visit(DEV).get(PAGE).text
    assert visit(DEV).get(path).status_code in (403, 404)


def test_releases_name_the_tags_that_they_are_made_from(uploader, repository, as_, project, visit):
    for version in ("web@1.0", "2.0"):
        uploader.open("POST", "releases/", json={"version": version, "projects": ["shop"]})

    found = as_(RITA).get(f"/projects/{project.id}/error_tracking/releases").json
    assert {one["version"]: one["tag_name"] for one in found} == {"1.0": "v1.0", "web@1.0": "v1.0", "2.0": None}
    assert "/-/tags/v1.0" in visit(RITA).get(f"/{project.full_path}/-/error_tracking/releases/web@1.0").text


TOOLS = {"cli": ".sentryclirc", "vite": "vite.config.js", "webpack": "webpack.config.js", "unknown": ".sentryclirc"}


@pytest.mark.parametrize("tool", TOOLS)
def test_pages_say_what_to_enter_for_each_tool(tool, uploader, visit, project):
    for name, page in ((RITA, "error_tracking/releases"), (MAX, "settings/operations")):
        shown = visit(name).get(f"/{project.full_path}/-/{page}?upload={tool}").text
        assert [text in shown for text in (TOOLS[tool], "http://localhost", 'id="upload-maps"')] == [True] * 3
        assert ("@localhost" in shown) is (name is MAX)  # the address with the key of the project
