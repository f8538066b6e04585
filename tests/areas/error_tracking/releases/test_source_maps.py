"""Uploads of source maps, and events whose frames are resolved with them."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from sqlalchemy import select

from project_service.areas.error_tracking.collection import waiting
from project_service.areas.error_tracking.errors.models import (
    MergedError,
    TrackedError,
    TrackedErrorDigest,
    TrackedErrorEvent,
)
from project_service.areas.error_tracking.releases.models import ResolvedStack, SourceMapBundle, WaitingEvent
from project_service.areas.error_tracking.source_maps import lookup, symbolication
from project_service.areas.error_tracking.source_maps.rewriting import filename_of, module_of
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support.sample_data import DEV, make_token
from tests.support.sentry_requests import Sender, track_errors
from tests.support.source_maps import DEBUG_ID, FRAMES, MAP, SCRIPT, Uploader, build, event, sha1

OTHER_ID = "11111111-2222-4333-8444-555555555555"
RESOLVED = [("src/a", "<anonymous>", 9), ("src/a", "run", 7), ("src/a", "boom", 3)]


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


@pytest.fixture
def uploader(app, people, project):
    """A client that uploads as a developer."""
    return Uploader(app, make_token(people[DEV]))


def newest_event():
    """Return the event that arrived last."""
    db.session.remove()
    return db.session.scalars(select(TrackedErrorEvent).order_by(TrackedErrorEvent.id.desc())).first()


def frames_of(stored):
    """Return module, function and line of the frames of an event."""
    frames = [frame for entry in stored.details["exceptions"] for frame in entry["frames"]]
    return [(frame["module"], frame["function"], frame["lineno"]) for frame in frames]


def errors():
    """Return culprit and count of all errors."""
    db.session.remove()
    rows = db.session.scalars(select(TrackedError).order_by(TrackedError.id))
    return [(error.culprit, error.count) for error in rows]


@pytest.mark.both_databases
def test_frames_are_resolved_by_debug_id(sender, uploader, run_jobs):
    assert uploader.upload(build()) == {"state": "ok", "missingChunks": [], "detail": None}
    for _ in range(2):
        sender.event(**event())
        run_jobs()

    stored = newest_event()
    frame = stored.details["exceptions"][0]["frames"][2]
    assert frames_of(stored) == RESOLVED
    assert (frame["context_line"], len(frame["pre_context"])) == ("  throw new Error('boom ' + y);", 2)
    assert (frame["abs_path"], frame["minified"]["function"]) == ("https://shop.example.org/src/a.js", "r")
    assert frame["data"]["resolved_with"] == "debug-id"
    assert errors() == [("boom(src/a)", 2)]


def test_frames_are_resolved_by_release_and_address(sender, uploader, run_jobs):
    uploader.upload(build(debug_id=None), version="shop@1", dist="7")
    for dist in ("7", None):
        sender.event(**event(debug_id=None, release="shop@1", dist=dist))
        run_jobs()
        assert (frames_of(newest_event()) == RESOLVED) is (dist == "7")

    assert newest_event().details["source_map_problems"][0]["hint"].endswith("without a dist")


@pytest.mark.parametrize(
    ("fields", "hint"),
    [
        ({}, "The build was not prepared"),
        ({"release": "shop@1"}, "Upload the build with sentry-cli sourcemaps upload --release shop@1"),
        ({"platform": "node"}, None),
    ],
    ids=["no release", "release without files", "node"],
)
def test_an_event_of_an_unprepared_build_says_what_to_do(sender, fields, hint):
    sender.event(**event(debug_id=None, **fields))

    problems = newest_event().details.get("source_map_problems", [])
    assert [problem["hint"].startswith(hint) for problem in problems] == ([True] if hint else [])


@pytest.mark.both_databases
def test_an_upload_after_the_event_resolves_and_groups_it(sender, uploader, run_jobs):
    uploader.upload(build())
    sender.event(**event())
    run_jobs()
    moved = [{**frame, "colno": frame["colno"] + 2, "function": "zz"} for frame in FRAMES]
    exception = {"type": "Error", "value": "boom 42", "stacktrace": {"frames": moved}}
    sender.event(**event(debug_id=OTHER_ID, exception={"values": [exception]}))
    run_jobs()
    assert len(errors()) == 2
    assert newest_event().details["source_map_problems"][0]["message"].startswith("No source map with debug id")
    merged_id = newest_event().error_id

    uploader.upload(build(OTHER_ID, {**MAP, "mappings": "Q" + MAP["mappings"][1:]}, "  " + SCRIPT))
    run_jobs()

    assert errors() == [("boom(src/a)", 2)]
    assert frames_of(newest_event()) == RESOLVED
    assert newest_event().details["source_map_problems"] == []
    assert newest_event().error_id != merged_id


def test_a_merged_error_is_found_by_its_former_id(sender, uploader, run_jobs, as_maintainer, project):
    uploader.upload(build())
    sender.event(**event())
    sender.event(**event(debug_id=OTHER_ID, exception={"type": "Error", "stacktrace": {"frames": FRAMES[1:]}}))
    before = newest_event().error_id
    uploader.upload(build(OTHER_ID))
    run_jobs()

    response = as_maintainer.get(f"/projects/{project.id}/error_tracking/errors/{before}")
    assert response.status_code == 200


@pytest.mark.both_databases
def test_events_wait_for_their_source_maps_before_they_are_grouped(sender, uploader, run_jobs):
    uploader.upload(build())
    number = "0" * 31
    for digit in ("1", "1", "2"):
        sender.event(**event(event_id=f"{number}{digit}", user={"id": 7}))
    assert (errors(), newest_event()) == ([], None)

    run_jobs()

    assert errors() == [("boom(src/a)", 2)]
    assert [row.title for row in db.session.scalars(select(TrackedError))] == ["Error: boom 42"]
    assert frames_of(newest_event()) == RESOLVED
    assert db.session.scalar(select(WaitingEvent.id)) is None
    assert [row.user_count for row in db.session.scalars(select(TrackedError))] == [1]
    assert len(db.session.scalars(select(TrackedErrorDigest.digest)).all()) == 1


def test_the_next_build_of_the_same_code_adds_to_the_same_error(sender, uploader, run_jobs):
    uploader.upload(build())
    uploader.upload(build(OTHER_ID, {**MAP, "mappings": "Q" + MAP["mappings"][1:]}, "  " + SCRIPT))
    moved = [{**frame, "colno": frame["colno"] + 2, "function": "zz"} for frame in FRAMES]
    exception = {"type": "Error", "value": "boom 42", "stacktrace": {"frames": moved}}
    sender.event(**event())
    sender.event(**event(debug_id=OTHER_ID, exception={"values": [exception]}))
    run_jobs()

    assert errors() == [("boom(src/a)", 2)]
    assert db.session.scalar(select(MergedError.id)) is None


def test_the_list_says_how_many_events_wait_for_source_maps(sender, uploader, visit, project):
    uploader.upload(build())
    sender.event(**event())

    assert "1 event waits for source maps" in visit(DEV).get(f"/{project.full_path}/-/error_tracking").text


def test_events_whose_error_is_named_by_the_application_do_not_wait(sender, uploader):
    uploader.upload(build())
    sender.event(**event(fingerprint=["checkout"]))

    assert [count for _, count in errors()] == [1]
    assert newest_event().details["source_map_problems"][0]["type"] == "js_pending"


def test_an_event_that_waits_too_long_is_grouped_as_it_was_sent(sender, uploader, run_jobs, monkeypatch):
    uploader.upload(build())
    sender.event(**event())
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now + dt.timedelta(minutes=6))
    with db.session.no_autoflush:
        waiting.group_overdue()

    assert (errors(), frames_of(newest_event())[2]) == ([("r(https://shop.example.org/js/app.js)", 1)], (None, "r", 1))
    assert newest_event().details["source_map_problems"][0]["type"] == "js_pending"
    run_jobs()
    assert (errors(), newest_event().details["source_map_problems"]) == ([("boom(src/a)", 1)], [])


def test_waiting_events_of_a_project_are_bounded(sender, uploader, run_jobs, monkeypatch):
    monkeypatch.setattr(waiting, "MAX_WAITING_EVENTS", 1)
    uploader.upload(build())
    for _ in range(3):
        sender.event(**event())
    assert [count for _, count in errors()] == [2]

    run_jobs()

    assert errors() == [("boom(src/a)", 3)]


@pytest.mark.parametrize(
    ("source_map", "problem"),
    [
        (b"{", "js_invalid_source"),
        ({**MAP, "mappings": "!!!"}, "js_invalid_source"),
        ({**MAP, "mappings": ""}, "js_invalid_sourcemap_location"),
        ({name: value for name, value in MAP.items() if name != "sourcesContent"}, "js_missing_sources_content"),
    ],
)
def test_an_event_says_why_frames_are_not_resolved(sender, uploader, run_jobs, source_map, problem):
    uploader.upload(build(source_map=source_map))
    sender.event(**event())
    run_jobs()

    assert {one["type"] for one in newest_event().details["source_map_problems"]} == {problem}


@pytest.mark.parametrize("script", ["(" * 50_000, ""])
def test_a_script_that_ends_the_parser_is_left_out(sender, uploader, run_jobs, script):
    uploader.upload(build(script=script))
    sender.event(**event())
    run_jobs()

    assert [line for _, _, line in frames_of(newest_event())] == [9, 7, 3]


def test_a_parser_that_takes_too_long_is_ended(sender, uploader, run_jobs, monkeypatch):
    monkeypatch.setattr(symbolication, "MAX_SECONDS", 0.001)
    uploader.upload(build())
    sender.event(**event())
    run_jobs()

    assert newest_event().details["source_map_problems"][0]["hint"] == symbolication.TOO_MUCH


def test_secrets_in_sources_are_removed(sender, uploader, run_jobs):
    source = MAP["sourcesContent"][0].replace("const y = x * 2;", "const password = 'hunter2';")
    uploader.upload(build(source_map={**MAP, "sourcesContent": [source]}))
    sender.event(**event())
    run_jobs()

    stored = json.dumps(newest_event().details)
    assert ("hunter2" in stored, "[Filtered]" in stored) == (False, True)


def test_artifacts_of_another_project_are_not_used(app, people, sender, uploader, run_jobs, group, as_admin):
    as_admin.post("/projects", json={"name": "other", "path": "other", "namespace_id": group.id})
    from_admin = Uploader(app, as_admin.token)
    assert from_admin.upload(build(), projects=["other"])["state"] == "ok"
    sender.event(**event())
    run_jobs()

    assert frames_of(newest_event())[2] == (None, "r", 1)


def test_too_many_new_stacks_of_a_minute_are_not_resolved(sender, monkeypatch):
    monkeypatch.setattr("project_service.areas.error_tracking.releases.arrivals.MAX_STACKS_A_MINUTE", 2)
    for line in range(1, 5):
        frames = [{**FRAMES[0], "lineno": line}]
        sender.event(**event(exception={"type": "Error", "stacktrace": {"frames": frames}}))

    assert len(db.session.scalars(select(ResolvedStack.digest)).all()) == 2
    assert newest_event().details["source_map_problems"][0]["type"] == "js_too_many"


def test_failed_uploads_are_listed_with_their_reason(uploader, browser, as_maintainer, project):
    answer = uploader.upload(b"no archive")

    assert (answer["state"], answer["detail"]) == ("error", "failed to open release manifest")
    assert db.session.scalars(select(SourceMapBundle.error)).one() == "failed to open release manifest"


def test_the_same_bundle_is_stored_for_each_release(uploader):
    content = build()
    assert uploader.upload(content, version="a")["state"] == "ok"
    assert uploader.assemble(content, version="a").json["state"] == "ok"
    assert uploader.assemble(content, version="b").json == {
        "state": "not_found",
        "missingChunks": [sha1(content)],
        "detail": None,
    }
    assert uploader.upload(content, version="b")["state"] == "ok"


def test_names_under_which_scripts_are_searched():
    assert lookup.names_of("https://h/a/b.js?v=1#x") == [
        "https://h/a/b.js?v=1",
        "https://h/a/b.js",
        "~/a/b.js?v=1",
        "~/a/b.js",
    ]
    assert [lookup.names_of(path)[-1] for path in ("/app/x.cjs", "file:///app/x.cjs", "app:///x.js")] == [
        "~/app/x.cjs",
        "~/app/x.cjs",
        "~/x.js",
    ]


def test_references_are_joined_to_the_address_of_the_file():
    base = "https://h/js/app.js"
    assert [
        lookup.joined(base, one) for one in ("a.js.map", "../src/a.js", "/m/a", "~/m/a", "../../../x", "http://o/a")
    ] == [
        "https://h/js/a.js.map",
        "https://h/src/a.js",
        "https://h/m/a",
        "https://h/m/a",
        "https://h/x",
        "http://o/a",
    ]


@pytest.mark.parametrize(
    ("source", "filename", "module"),
    [
        ("webpack://shop/./src/a.ts", "./src/a.ts", "src/a"),
        ("webpack:///src/a.vue", "src/a.vue", "src/a"),
        ("turbopack:///[project]/app/a.tsx", "app/a.tsx", "app/a"),
        ("webpack:///./~/lib/a.js", "~/lib/a.js", "lib/a"),
        ("../../src/a.mjs", "../../src/a.mjs", "src/a"),
        ("webpack://@acme/shop/./src/a.ts", "./src/a.ts", "src/a"),
        ("webpack://shop/../node_modules/a/b.js", "../node_modules/a/b.js", "node_modules/a/b"),
        ("shop/./src/a.ts", "./src/a.ts", "src/a"),
        ("@acme/shop/./src/a.ts", "./src/a.ts", "src/a"),
        ("/./src/a.ts", "./src/a.ts", "src/a"),
        ("shop/../node_modules/a/b.js", "../node_modules/a/b.js", "node_modules/a/b"),
        ("/[project]/app/a.tsx", "app/a.tsx", "app/a"),
        (f"x/{DEBUG_ID}", f"x/{DEBUG_ID}", f"x/{DEBUG_ID}"),
    ],
)
def test_names_of_sources(source, filename, module):
    assert (filename_of(source), module_of(filename)) == (filename, module)
