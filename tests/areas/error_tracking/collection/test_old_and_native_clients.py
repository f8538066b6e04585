"""Events of old clients and of native programs (error collection reference, section 22)."""

from __future__ import annotations

import base64
import json
import zlib

import pytest
from sqlalchemy import select

from project_service.areas.error_tracking.collection.messages import filled_in
from project_service.areas.error_tracking.errors.models import TrackedError, TrackedErrorEvent
from project_service.kit.db.session import db
from tests.support.sentry_requests import EXAMPLES, Sender, track_errors

CASES = EXAMPLES.parent / "public-cases" / "reports-and-errors"
EVENT = json.dumps({"message": "hello"}).encode()
FRAMES = [{"module": "shop", "function": "total", "in_app": True}]


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


def stored():
    """Return the errors and the newest event."""
    db.session.expire_all()
    errors = list(db.session.scalars(select(TrackedError).order_by(TrackedError.count, TrackedError.id)))
    return errors, db.session.scalars(select(TrackedErrorEvent).order_by(TrackedErrorEvent.id.desc())).first()


def store(sender, body, content_type="application/octet-stream"):
    """Send a body to the endpoint of single events."""
    return sender.post(f"{sender.base}/store/?sentry_key={sender.key}", body, {"content-type": content_type})


def as_sent(sender, request, end):
    """Send a request of a public case to an endpoint."""
    if end == "envelope":
        return sender.envelope({}, {"type": "event"}, request["body"].encode())
    headers = {name: value.replace("@KEY@", sender.key) for name, value in request["headers"].items()}
    return sender.post(f"{sender.base}/store/", request["body"].encode(), headers)


@pytest.mark.parametrize(
    ("number", "end"),
    [(10, "store"), *((number, end) for number in (11, 12, 13, 14) for end in ("store", "envelope"))],
)
def test_public_cases_give_the_expected_errors(sender, number, end):
    path = next((one for one in CASES.glob(f"{number}-*.json") if ".expected" not in one.name), None)
    if path is None:
        pytest.skip("the public cases are not here; PROJECT_SERVICE_TEST_DATA says where")
    right = json.loads(path.with_suffix("").with_suffix(".expected.json").read_text())["right"]

    statuses = [as_sent(sender, request, end).status_code for request in json.loads(path.read_text())["requests"]]

    errors, event = stored()
    frames = [frame for entry in event.details["exceptions"] for frame in entry["frames"]]
    found = {
        "statuses": statuses,
        "errors": [{"title": error.title, "count": error.count} for error in errors],
        "error_counts": [error.count for error in errors],
        "titles_have": all(right.get("titles_have", "") in error.title for error in errors),
        "user": bool(event.summary["user"]),
        "request": bool(event.details["request"]),
        "frames": len(frames),
        "culprit_has": right.get("culprit_has", "") in event.summary["culprit"],
        "frame_text_has": any(right.get("frame_text_has", "") in str(frame["filename"]) for frame in frames),
    }
    assert {name: found[name] for name in right} == {
        name: True if name.endswith(("_have", "_has")) else value for name, value in right.items()
    }


def raw_deflate(data):
    """Compress without the header of zlib."""
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize(
    "body",
    [
        base64.b64encode(zlib.compress(EVENT)),
        base64.encodebytes(zlib.compress(EVENT)),
        base64.b64encode(raw_deflate(EVENT)),
        base64.b64encode(EVENT),
        zlib.compress(EVENT),
        b"\n " + EVENT,
    ],
)
def test_bodies_of_raven_are_decoded(sender, body):
    assert store(sender, body).status_code == 200
    assert store(sender, body, "application/json").status_code == 200
    assert [error.title for error in stored()[0]] == ["hello"]


def test_encoded_bodies_have_the_usual_bounds(sender):
    large = json.dumps({"message": "x" * 1_100_000}).encode()

    assert store(sender, base64.b64encode(zlib.compress(large))).status_code == 413
    assert store(sender, base64.b64encode(large)).status_code == 413
    assert store(sender, large).status_code == 413
    assert store(sender, base64.b64encode(zlib.compress(EVENT)[:-3])).status_code == 400
    assert [store(sender, body).status_code for body in (b"", b"hello", b"[1]", b"%%")] == [400] * 4


def crash(function, value="Segfault", **fields):
    """Return an event of a crash handler."""
    frames = [{"function": function, "package": "/opt/shop", "in_app": True, "instruction_addr": "0x10"}]
    mechanism = {"type": "signalhandler", "synthetic": True}
    exception = {"type": "SIGSEGV", "value": value, "mechanism": mechanism, "stacktrace": {"frames": frames}}
    return {"platform": "native", "exception": {"values": [{**exception, **fields}]}}


def test_the_title_of_a_crash_is_its_function_and_signal(sender):
    sender.event(**crash("Cart::total"))
    sender.event(**crash("Cart::total", "Fatal Error: SIGSEGV", type="EXC_BAD_ACCESS"))

    [error] = stored()[0]
    assert (error.title, error.count, error.type) == ("Cart::total: EXC_BAD_ACCESS", 2, "EXC_BAD_ACCESS")


def test_texts_that_javascript_captured_keep_their_group(sender):
    for platform in ("node", "javascript"):
        sender.event(**{**crash("stop", "SIGTERM received", type="Error"), "platform": platform, "message": "SIGTERM"})

    [error] = stored()[0]
    assert (error.title, error.count) == ("SIGTERM", 2)


def test_frames_without_symbols_are_grouped_by_their_offset(sender):
    for start, offset in ((0x7F0000000000, 0x10), (0x550000000000, 0x10), (0x550000000000, 0x20)):
        frame = {"instruction_addr": hex(start + offset), "package": "/opt/libprice.so"}
        event = crash(None, stacktrace={"frames": [frame]})
        image = {"type": "elf", "code_file": "/opt/libprice.so", "image_addr": hex(start)}
        sender.event(**event, debug_meta={"images": [image, None, {"image_addr": "?"}]})

    errors, event = stored()
    assert [(error.title, error.count) for error in errors] == [
        ("libprice.so + 0x20: SIGSEGV", 1),
        ("libprice.so + 0x10: SIGSEGV", 2),
    ]
    [frame] = event.details["exceptions"][0]["frames"]
    assert (frame["package"], frame["image_addr"], frame["offset"]) == ("/opt/libprice.so", "0x550000000000", "0x20")


def test_a_frame_finds_its_image_by_the_range_of_addresses(sender):
    images = [
        {"code_file": f"/opt/{name}", "image_addr": at, "image_size": 0x100} for name, at in (("a", 0), ("b", 256))
    ]
    sender.event(**crash(None, stacktrace={"frames": [{"instruction_addr": 260}]}), debug_meta={"images": images})

    assert stored()[0][0].title == "b + 0x4: SIGSEGV"


def test_a_stack_of_the_event_groups_a_message_and_is_shown(sender):
    for text in ("one", "two"):
        sender.event(message=text, stacktrace={"frames": FRAMES})
    sender.event(message="one")

    errors, _ = stored()
    assert [(error.title, error.count, error.culprit) for error in errors] == [
        ("one", 1, ""),
        ("two", 2, "shop in total"),
    ]


def test_the_image_of_a_frame_is_found_by_its_address(sender):
    image = {"code_file": "/opt/a", "image_addr": "0x100"}
    frame = {"instruction_addr": "0x104", "image_addr": "0x100"}
    sender.event(**crash(None, stacktrace={"frames": [frame]}), debug_meta={"images": [image]})

    assert stored()[0][0].title == "a + 0x4: SIGSEGV"


def test_a_crash_whose_exception_has_no_stack_is_grouped_by_the_thread_that_crashed(sender):
    for function in ("Cart::total", "Price::load"):
        frames = [{"function": function, "package": "/opt/shop"}]
        threads = [{"crashed": True, "stacktrace": {"frames": frames}}, {"stacktrace": {"frames": FRAMES}}]
        sender.event(**crash(None, stacktrace=None), threads={"values": threads})

    assert [error.title for error in stored()[0]] == ["Cart::total: SIGSEGV", "Price::load: SIGSEGV"]


def test_a_stack_of_the_event_belongs_to_the_exception_that_has_none(sender):
    values = [{"type": "A"}, {"type": "B", "stacktrace": {"frames": FRAMES}}]
    sender.event(exception={"values": values}, stacktrace={"frames": [{"module": "top", "function": "f"}]})

    assert [entry["frames"][0]["module"] for entry in stored()[1].details["exceptions"]] == ["top", "shop"]


def test_what_old_clients_say_about_templates_and_queries_is_shown(sender):
    query = {"query": "SELECT 1", "engine": "psycopg2"}
    sender.event(**{"sentry.interfaces.Query": query, "template": {"filename": "a.html"}})

    assert stored()[1].details["contexts"] == {"query": query, "template": {"filename": "a.html"}}


def test_the_value_of_an_exception_may_be_an_object(sender):
    sender.event(exception={"type": "Error", "value": {"code": 17, "password": "hunter2"}})

    assert stored()[0][0].title == 'Error: {"code":17,"password":"[Filtered]"}'


@pytest.mark.parametrize(
    ("template", "parameters", "text"),
    [
        ("%d left", ["many"], "%d left"),
        ("%d left", [3], "3 left"),
        ("%d left", ["3"], "3 left"),
        ("%i left", [-3.7], "-3 left"),
        ("%(n)d of %(what)s", {"n": 1, "what": "tea"}, "1 of tea"),
    ],
)
def test_parameters_must_fit_their_template(template, parameters, text):
    assert filled_in(template, parameters) == text
