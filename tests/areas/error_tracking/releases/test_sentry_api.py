"""The API that sentry-cli and the plug-ins of bundlers call: protocol, refusals, roles, releases."""

from __future__ import annotations

import datetime as dt
import gzip
import io
import zipfile

import pytest

from project_service.areas.error_tracking.releases import bundles, jobs, uploads
from project_service.areas.error_tracking.releases.models import SourceMapArtifact, SourceMapBundle
from project_service.areas.error_tracking.releases.storage_names import CHUNKS, content_folder
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.storage import storage
from tests.support.sample_data import DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM, make_token
from tests.support.sentry_requests import Sender, track_errors
from tests.support.source_maps import Uploader, build, bundle, event, sha1

UNKNOWN = {"detail": "The requested resource does not exist"}
ASSEMBLE = "artifactbundle/assemble/"
VERSION = "web@2.0.0+1 rc"


@pytest.fixture
def as_uploader(app, people, project):
    """Makes a client of one of the people."""
    return lambda name, *scopes: Uploader(app, make_token(people[name], *scopes) if name else None)


@pytest.fixture
def uploader(as_uploader):
    """A client of a developer."""
    return as_uploader(DEV)


def test_clients_learn_who_they_are_and_what_there_is(uploader, project, people):
    assert uploader.open("GET", "/api/0/").json["user"]["username"] == DEV
    assert [one["slug"] for one in uploader.open("GET", "/api/0/organizations/").json] == ["acme"]
    assert uploader.open("GET", "").json["slug"] == "acme"
    assert [one["slug"] for one in uploader.open("GET", "projects/").json] == ["shop"]
    for name in ("shop", "SHOP", str(project.id)):
        assert uploader.open("GET", f"/api/0/projects/acme/{name}/").json["id"] == str(project.id)


def test_options_have_all_keys_and_an_absolute_address(uploader):
    options = uploader.open("GET", "chunk-upload/").json

    assert options["url"] == "http://localhost/api/0/organizations/acme/chunk-upload/"
    assert (options["chunkSize"], options["hashAlgorithm"], options["compression"]) == (2 << 20, "sha1", ["gzip"])
    assert {"chunksPerRequest", "maxRequestSize", "concurrency", "maxFileSize", "accept"} <= options.keys()


@pytest.mark.parametrize(
    ("name", "scopes", "read", "uploaded"),
    [
        (NOBODY, (), 401, 401),
        (SAM, (), 404, 404),
        (GUS, (), 404, 404),
        (RITA, (), 200, 403),
        (DEV, ("read_api",), 200, 403),
        (DEV, (), 200, 200),
        (MAX, (), 200, 200),
        (OLIVE, (), 200, 200),
    ],
)
def test_reporters_read_and_developers_upload(as_uploader, name, scopes, read, uploaded):
    client = as_uploader(name, *scopes)

    assert client.open("GET", "projects/").status_code == read
    assert client.send(b"x").status_code == uploaded
    body = {"checksum": sha1(b"x"), "chunks": [], "projects": ["shop"]}
    assert client.open("POST", ASSEMBLE, json=body).status_code == uploaded
    created = client.open("POST", "releases/", json={"version": "1", "projects": ["shop"]})
    assert created.status_code == (201 if uploaded == 200 else uploaded)
    if created.status_code != 201:
        assert list(created.json) == ["detail"]


def test_unknown_addresses_and_tokens_have_a_text(app, uploader):
    assert (uploader.open("GET", "/api/0/relays/").json, uploader.open("POST", "/api/0/x/").status_code) == (
        UNKNOWN,
        404,
    )
    response = Uploader(app, "nothing").open("GET", "projects/")
    assert (response.status_code, response.json) == (401, {"detail": "Invalid token"})
    assert Uploader(app, None).open("GET", "/api/0/").json["auth"] is None


def test_chunks_are_checked(uploader):
    refused = {
        "Checksum mismatch": uploader.send(b"a", names=[sha1(b"b")]),
        "Too many chunks": uploader.send(*[bytes([n]) for n in range(9)]),
        "Chunk size too large": uploader.send(b"0" * (uploads.CHUNK_BYTES + 1)),
    }
    assert {text: (one.status_code, one.json) for text, one in refused.items()} == {
        text: (400, {"error": text}) for text in refused
    }
    cut = {"file_gzip": (io.BytesIO(gzip.compress(b"a" * 100)[:-4]), sha1(b"a" * 100))}
    assert uploader.open("POST", "chunk-upload/", data=cut).json == {"error": "Checksum mismatch"}
    assert (uploader.send(b"a", b"b").status_code, uploader.send(b"a", name="file").status_code) == (200, 200)
    assert uploader.open("POST", "chunk-upload/").status_code == 200


def test_pending_chunks_are_bounded(uploader, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_PENDING_CHUNKS", 2)

    assert uploader.send(b"a", b"b").status_code == 200
    assert uploader.send(b"c").json == {"error": "Too many pending chunks"}


def test_chunks_of_another_user_are_missing(as_uploader):
    content = build()
    as_uploader(MAX).send(content)

    assert as_uploader(DEV).assemble(content).json["missingChunks"] == [sha1(content)]
    assert as_uploader(MAX).assemble(content).json["state"] == "ok"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"checksum": "x"}, "The checksum field is required"),
        ({"chunks": "x"}, "The chunks field is required"),
        ({"projects": "shop"}, "The projects field is required"),
        ({"projects": []}, "You need to specify at least one project"),
        ({"projects": ["shop", "nothing"]}, "One or more projects are invalid"),
        ({"version": "a/b"}, "The version field cannot be empty"),
        ({"dist": 7}, "The dist field must be a string"),
        ({"more": 1}, "Unknown field more"),
    ],
)
def test_requests_to_assemble_are_checked(uploader, changes, text):
    body = {"checksum": "0" * 40, "chunks": [], "projects": ["shop"], **changes}
    response = uploader.open("POST", ASSEMBLE, json=body)

    assert (response.status_code, response.json["error"].startswith(text)) == (400, True)
    assert uploader.open("POST", ASSEMBLE, data=b"[").json == {"error": "Invalid json body"}


def archive(*names, method=zipfile.ZIP_DEFLATED, size=10):
    """An archive of files without a manifest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as target:
        for name in names:
            target.writestr(name, b"0" * size)
    return buffer.getvalue()


def test_hostile_archives_are_refused_with_the_reason(uploader, monkeypatch):
    entry = {"type": "source_map", "url": "~/a", "headers": {"debug-id": "1" * 32}}
    monkeypatch.setattr(bundles, "MAX_FILE_BYTES", 10_000)
    monkeypatch.setattr(bundles, "MAX_UNPACKED_BYTES", 50_000)
    monkeypatch.setattr(bundles, "MAX_FILES", 5)
    monkeypatch.setattr(bundles, "MAX_DIRECTORY_BYTES", 500)
    with pytest.warns(UserWarning, match="Duplicate name"):
        repeated = archive("a", "a")
    refused = {
        "failed to open release manifest": (b"", b"SYSB\x09\0\0\0", archive("a"), bundle({})[:-30]),
        "too many files (limit 5)": (archive(*"abcdefgh"), archive("a" * 300, "b" * 300)),
        "the archive has several files of one name": (repeated,),
        "the archive uses an unsupported compression or encryption": (archive("a", method=zipfile.ZIP_BZIP2),),
        "the archive expands to more than 50000 bytes": (archive("a", size=60_000),),
        "a is larger than 10000 bytes": (bundle({"a": (entry, b"0" * 20_000)}),),
        "uploading a bundle without debug ids or release is prohibited": (build(debug_id=None),),
    }
    for text, contents in refused.items():
        for content in contents:
            answer = uploader.upload(content)
            assert (answer["state"], answer["detail"]) == ("error", text)


def test_an_empty_bundle_and_names_outside_of_it_are_fine(uploader):
    assert uploader.upload(bundle({}))["state"] == "ok"
    entry = {"type": "minified_source", "url": "~/a.js", "headers": {"debug-id": "1" * 32}}
    assert uploader.upload(bundle({"../../x": (entry, b"")}))["state"] == "ok"


def test_releases_are_created_changed_and_removed(as_uploader):
    client = as_uploader(MAX)
    body = {"version": VERSION, "projects": ["shop"], "url": "https://example.org/1"}

    assert [client.open("POST", "releases/", json=body).status_code for _ in range(2)] == [201, 208]
    path = "releases/web@2.0.0%2B1%20rc/"
    changed = client.open("PUT", path, json={"dateReleased": "2026-11-27T12:00:00.123456789Z"}).json
    assert (changed["dateReleased"], changed["shortVersion"]) == ("2026-11-27T12:00:00.123456Z", "2.0.0")
    assert [one["version"] for one in client.open("GET", "/api/0/projects/acme/shop/releases/").json] == [VERSION]
    assert client.open("GET", f"{path}previous-with-commits/").json == {}
    assert [client.open("DELETE", path).status_code for _ in range(2)] == [204, 404]


def test_wrong_releases_are_refused(uploader, project):
    def post(**body):
        return uploader.open("POST", "releases/", json=body)

    assert post(version="a/b", projects=["shop"]).json == {"detail": "Invalid release version"}
    assert post(version="1", projects=["nothing"]).json == {"projects": "Invalid project slugs"}
    assert post(version="1", projects=[]).json == {"detail": "projects is invalid"}
    assert post(version="1", projects=[project.id], url="javascript:x").json == {"detail": "url is invalid"}
    assert uploader.open("PUT", "releases/nothing/", json={}).json == UNKNOWN


def test_a_release_with_errors_stays(app, as_uploader, project):
    Sender(app, track_errors(project)).event(release="1.0")
    response = as_uploader(MAX).open("DELETE", "releases/1.0/")

    assert (response.status_code, "referenced by events" in response.json["detail"]) == (400, True)
    assert as_uploader(DEV).open("GET", "releases/1.0/").json["newGroups"] == 1


def test_what_is_not_needed_any_more_is_removed(uploader, project, run_jobs, monkeypatch):
    uploader.upload(build())
    uploader.send(b"left over")
    run_jobs()
    jobs.prune()
    chunks = [name for name in storage().names(CHUNKS) if name.endswith(sha1(b"left over"))]
    assert (len(storage().names(content_folder(project.id))) >= 2, len(chunks)) == (True, 1)

    later = clock.now() + dt.timedelta(days=91)
    monkeypatch.setattr(clock, "now", lambda: later)
    jobs.prune()

    assert (storage().names(content_folder(project.id)), storage().names(CHUNKS)) == ([], [])
    assert [db.session.query(model).count() for model in (SourceMapArtifact, SourceMapBundle)] == [0, 0]


def test_the_page_shows_releases_and_uploads(app, uploader, visit, project):
    Sender(app, track_errors(project)).event(**event(release="shop@1"))
    uploader.upload(build(), version="<b>shop@2")
    uploader.upload(b"no archive")
    page = visit(RITA).get("/acme/shop/-/error_tracking/releases").text

    assert "shop@1" in page
    assert "&lt;b&gt;shop@2" in page
    assert "failed to open release manifest" in page
    assert "SENTRY_ORG=acme" in page


def test_large_bundles_are_assembled_by_a_job(uploader, monkeypatch, run_jobs, visit):
    monkeypatch.setattr(uploads, "MAX_BYTES_IN_REQUEST", 0)
    good, bad = build(), b"no archive"
    bodies = [{"checksum": sha1(one), "chunks": [sha1(one)], "projects": ["shop"]} for one in (good, bad)]
    for one in (good, bad):
        uploader.send(one)

    def states():
        return [uploader.open("POST", ASSEMBLE, json=body).json["state"] for body in bodies]

    assert (states(), states()) == (["created"] * 2, ["assembling"] * 2)
    assert "being assembled" in visit(RITA).get("/acme/shop/-/error_tracking/releases").text
    later = clock.now() + dt.timedelta(minutes=2)
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: later)
        assert states() == ["created"] * 2
    run_jobs()
    assert states() == ["ok", "error"]
    assert uploader.open("POST", ASSEMBLE, json=bodies[1]).json["detail"] == "failed to open release manifest"
    assert db.session.query(SourceMapBundle).count() == 2
