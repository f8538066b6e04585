"""The collector through HTTP: recorded requests of SDKs, and the order of checks."""

from __future__ import annotations

import gzip
import json
import zlib
from concurrent.futures import ThreadPoolExecutor, wait

import brotli
import pytest
import zstandard
from sqlalchemy import func, select

from project_service.access import webhooks
from project_service.areas.error_tracking.errors.models import (
    DAY_SECONDS,
    DroppedEventCount,
    TrackedError,
    TrackedErrorEvent,
)
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, unit_of_work
from tests.support import sample_data
from tests.support.sentry_requests import RECORDINGS, Sender, track_errors

ID = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def sender(app, project):
    """A client that sends events to the project."""
    return Sender(app, track_errors(project))


def stored_errors():
    """Return all errors, those with most occurrences first."""
    db.session.expire_all()
    return list(db.session.scalars(select(TrackedError).order_by(TrackedError.count.desc(), TrackedError.id)))


def counts():
    """Return the numbers of errors, of occurrences and of stored events."""
    db.session.expire_all()
    errors = db.session.execute(select(func.count(), func.coalesce(func.sum(TrackedError.count), 0))).one()
    return (*errors, db.session.scalar(select(func.count(TrackedErrorEvent.id))))


@pytest.mark.both_databases
@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_requests_create_the_expected_errors(sender, name):
    responses = sender.replay_all(name)

    requests, errors, occurrences = RECORDINGS[name]
    assert [response.status_code for response in responses] == [200] * requests
    assert counts() == (errors, occurrences, occurrences)


def test_errors_of_three_sdks_are_grouped_and_show_the_newest_event(sender):
    for name in ("python", "node", "ruby"):
        sender.replay_all(name)

    assert counts() == (20, 29, 29)
    assert next((error.title, error.count) for error in stored_errors()) == ("Stock of article 4711 is low", 4)


def test_titles_culprits_and_users_are_as_recorded(sender):
    sender.replay_all("python")

    found = [(error.count, error.title, error.culprit, error.level, error.user_count) for error in stored_errors()]
    assert found == [
        (3, "ZeroDivisionError: division by zero", "shop.pricing in price_of", "error", 0),
        (3, "PriceMissing: article 1 has no price", "shop.pricing in look_up", "error", 0),
        (2, "Stock of article 4712 is low", "", "warning", 0),
        (2, "order 18 cannot be shipped to Oslo", "shop.orders", "error", 0),
        (2, "PriceMissing: article 4001 has no price", "shop.pricing in look_up", "error", 0),
        (1, "ZeroDivisionError: division by zero", "shop.pricing in price_of", "error", 0),
        (1, "ValueError: invalid literal for int() with base 10: '12a'", "__main__ in caught", "error", 1),
        (1, "RuntimeError: Не найдено: 🧨 “商品” café", "__main__ in größe_berechnen", "error", 0),
        (1, "PriceMissing: article 4711 has no price", "shop.pricing in look_up", "error", 0),
        (1, "ExceptionGroup: several", "__main__ in <module>", "error", 0),
    ]


def test_secrets_are_not_stored(sender):
    sender.replay_all("python-flask")

    events = db.session.scalars(select(TrackedErrorEvent))
    stored = json.dumps([[event.summary, event.details] for event in events])
    assert len(stored) > 10_000
    assert [secret for secret in ("4111 1111 1111 1111", "token=abc", "hunter2") if secret in stored] == []


@pytest.mark.both_databases
def test_the_same_event_twice_counts_once(sender):
    responses = [sender.envelope({"event_id": ID}, {"type": "event"}, {"message": "hello"}) for _ in range(2)]

    assert [response.json for response in responses] == [{"id": ID}] * 2
    assert counts() == (1, 1, 1)


def test_client_reports_count_discarded_events(sender):
    sender.replay_all("ignored")

    dropped = db.session.execute(select(DroppedEventCount.reason, DroppedEventCount.count)).all()
    assert dropped == [("sdk:event_processor", 1)]


ENCODINGS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
    "": bytes,
    "identity": bytes,
    "GZIP": gzip.compress,
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_bodies_are_decompressed_with_bounds(sender, encoding):
    compress, path = ENCODINGS[encoding], f"{sender.base}/store/?sentry_key={sender.key}"
    headers = {"content-encoding": encoding}
    body = compress(b'{"message": "hello"}')

    assert sender.post(path, body, headers).status_code == 200
    if encoding in ("", "identity"):
        return
    assert sender.post(path, body[:-3], headers).status_code == 400
    assert sender.post(path, b"no archive", headers).status_code == 400
    assert sender.post(path, compress(b'{"message": "' + b"x" * 4_000_000 + b'"}'), headers).status_code == 413
    assert counts() == (1, 1, 1)


@pytest.mark.parametrize(("encoding", "compress"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_bodies_of_several_members_or_frames_are_read_whole(sender, encoding, compress):
    path, headers = f"{sender.base}/store/?sentry_key={sender.key}", {"content-encoding": encoding}
    parts = [b'{"message":', b"", b' "hello', b'"}']

    assert sender.post(path, b"".join(map(compress, parts)), headers).status_code == 200
    assert sender.post(path, compress(b"{}") + b"behind it", headers).status_code == 400
    assert sender.post(path, compress(b'{"message": "a"}') + compress(b"") * 10_001, headers).status_code == 400
    assert [error.title for error in stored_errors()] == ["hello"]


def test_a_bomb_is_refused_and_counted(sender):
    response = sender.envelope({}, {"type": "attachment"}, b"x", {"type": "event"}, b'{"extra": "' + b"x" * 2_000_000)

    assert (response.status_code, response.json) == (413, {"message": "413 Request Entity Too Large"})
    path, bomb = f"{sender.base}/envelope/?sentry_key={sender.key}", gzip.compress(b"{}\n" + b" " * (101 << 20))
    assert sender.post(path, bomb, {"content-encoding": "gzip"}).status_code == 413
    total = select(DroppedEventCount.reason, func.sum(DroppedEventCount.count)).group_by(DroppedEventCount.reason)
    assert db.session.execute(total).all() == [("too_large", 2)]


def test_unknown_encodings_are_refused(sender):
    response = sender.post(f"{sender.base}/store/?sentry_key={sender.key}", b"{}", {"content-encoding": "lzma"})

    assert (response.status_code, response.json) == (415, {"message": "415 Unsupported Media Type"})
    assert response.headers["X-Sentry-Error"] == "the content encoding is not supported"


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ({"X-Sentry-Auth": "Sentry sentry_version=7, sentry_key={key}"}, 200),
        ({"X-Sentry-Auth": "sentry sentry_key={key},sentry_client=x"}, 200),
        ({"Authorization": "Sentry sentry_key={key}, sentry_secret=x"}, 200),
        ({"X-Sentry-Auth": "Sentry sentry_key=", "Authorization": "Sentry sentry_key={key}"}, 200),
        ({"X-Sentry-Auth": "Sentry sentry_key=glet_x", "Authorization": "Sentry sentry_key={key}"}, 404),
        ({"Authorization": "Bearer {key}"}, 400),
        ({}, 400),
    ],
)
def test_the_key_is_read_from_two_headers(sender, header, status):
    headers = {name: value.format(key=sender.key) for name, value in header.items()}

    response = sender.post(f"{sender.base}/store/", b'{"message": "hello"}', headers)

    assert response.status_code == status
    if status == 400:
        assert response.json == {"message": "400 Bad request - Failed to parse sentry request"}


def test_the_key_may_be_in_the_dsn_of_the_envelope(sender):
    body = b'{"dsn": "https://%s@elsewhere.example.org/9"}\n{"type":"event"}\n{"message":"x"}' % sender.key.encode()

    assert sender.post(f"{sender.base}/envelope", body).status_code == 200
    assert sender.post(f"{sender.base}/envelope", body.replace(b"glet_", b"glat_")).status_code == 404
    assert sender.post(f"{sender.base}/envelope", b"{}\n").status_code == 400
    assert counts() == (1, 1, 1)


def test_refused_clients_get_the_same_response(sender, project):
    other = sample_data.make_project()
    foreign = Sender(sender.client.application, track_errors(other))
    addresses = [
        f"{sender.base}/store/?sentry_key={foreign.key}",
        f"{foreign.base}/store/?sentry_key={sender.key}",
        f"{sender.base}0000/store/?sentry_key={sender.key}",
        f"{sender.base}/store/?sentry_key=%00",
    ]
    with unit_of_work():
        db.session.scalars(
            select(ErrorTrackingSetting).where(ErrorTrackingSetting.project_id == other.id)
        ).one().enabled = False
    addresses.append(f"{foreign.base}/store/?sentry_key={foreign.key}")

    responses = [sender.post(address, b'{"message": "x"}') for address in addresses]

    assert {(response.status_code, response.data) for response in responses} == {(404, b'{"message":"404 Not Found"}')}
    assert counts() == (0, 0, 0)


EVENT = b'{"message":"hello"}'
ENVELOPES = {
    b"": 400,
    b"\n": 400,
    b"no json": 400,
    b"[]": 400,
    b"{}": 200,
    b"{}\n\n\n": 200,
    b'{}\n{"type":"event","length":19}\n' + EVENT: 200,
    b'{}\n\n{"type":"event","length":19}\n' + EVENT + b"\n\n": 200,
    b'{}\n{"type":"event"}\n' + EVENT + b"\n": 200,
    b'{}\n{"type":"event","length":20}\n' + EVENT: 400,
    b'{}\n{"type":"event","length":18}\n' + EVENT: 400,
    b'{}\n{"type":"event","length":-1}\n' + EVENT: 400,
    b'{}\n{"type":"event","length":"19"}\n' + EVENT: 400,
    b'{}\n{"length":19}\n' + EVENT: 400,
    b'{}\n{"type":"event"}\n': 400,
    b'{}\n{"type":"event"}': 400,
    b'{}\n{"type":"event"}\n[]': 400,
    b'{}\n{"type":"event"}\n{"message":"\xff"}': 400,
    b'{}\n{"type":"event"}\n' + b'{"extra":' + b"[" * 100_000: 400,
    b'{}\n{"type":"event"}\n' + EVENT + b'\n{"type":"event"}\n' + EVENT: 400,
    b'{}\n{"type":"attachment","length":27}\n{"type":"event"}\n{"a":"bc"}\n{"type":"event"}\n' + EVENT: 200,
    b'{}\n{"type":"whatever"}\n{"type":"event"}\n{"type":"event"}\n' + EVENT: 200,
    b'{"event_id":"zz"}\n{"type":"event"}\n' + EVENT: 400,
    b'{"event_id":"01234567-89AB-CDEF-0123-456789abcdef"}\n{"type":"event"}\n' + EVENT: 200,
}


@pytest.mark.parametrize("body", ENVELOPES)
def test_envelopes_are_parsed_as_documented(sender, body):
    response = sender.post(f"{sender.base}/envelope/?sentry_key={sender.key}", body)

    assert response.status_code == ENVELOPES[body], response.data
    assert counts()[0] == (1 if EVENT in body and response.status_code == 200 else 0)


@pytest.mark.both_databases
def test_fields_of_any_type_are_accepted(sender):
    for value in (None, True, 7, 1e400, 10**30, "text\0\ud83d", [], {}, [[1]], {"values": 7}, {"values": [7, {}]}):
        names = [
            "timestamp",
            "level",
            "platform",
            "logger",
            "server_name",
            "dist",
            "release",
            "transaction",
            "environment",
            "message",
            "logentry",
            "exception",
            "threads",
            "breadcrumbs",
            "user",
            "request",
            "tags",
            "contexts",
            "extra",
            "modules",
            "sdk",
            "fingerprint",
        ]
        for name in (names,) if value is not None else ([one] for one in names):
            response = sender.event(**dict.fromkeys(name, value))
            assert response.status_code == 200, response.data

    assert sum(error.count for error in stored_errors()) == 10 + 22


def test_a_huge_stack_trace_is_truncated(sender):
    frames = [{"function": f"f{number}", "lineno": number} for number in range(20_000)]

    assert sender.event(exception={"type": "Deep", "stacktrace": {"frames": frames}}).status_code == 200

    [event] = db.session.scalars(select(TrackedErrorEvent))
    stored = event.details["exceptions"][0]["frames"]
    assert [frame["function"] for frame in (stored[0], stored[124], stored[125], stored[-1])] == [
        "f0",
        "f124",
        "f19875",
        "f19999",
    ]


def test_preflights_are_answered_and_other_methods_refused(sender):
    headers = {"Origin": "https://shop.example.org", "Access-Control-Request-Method": "POST"}
    preflight = sender.client.options(f"{sender.base}/envelope/", headers=headers)
    refused = sender.client.get(f"{sender.base}/envelope/")

    assert (preflight.status_code, preflight.headers["Access-Control-Allow-Methods"]) == (200, "POST, OPTIONS")
    assert (refused.status_code, refused.headers["Allow"]) == (405, "OPTIONS, POST")
    response = sender.post(f"{sender.base}/store/", b"", {"origin": "https://shop.example.org"})
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["Access-Control-Expose-Headers"] == "X-Sentry-Error, X-Sentry-Rate-Limits, Retry-After"


def test_the_url_of_hosted_collectors_is_accepted(sender):
    path = f"/errortracking/api/v1/projects/api/{sender.project_id}/store/?sentry_key={sender.key}"

    assert sender.post(path, b'{"message": "hello"}').status_code == 200


def test_client_keys_are_created_listed_and_removed(app, as_maintainer, project):
    path = f"/projects/{project.id}/error_tracking/client_keys"
    as_maintainer.put(f"/projects/{project.id}/error_tracking/settings", json={"active": True, "integrated": True})

    created = as_maintainer.post(path)
    listed = as_maintainer.get(path)

    assert (created.status_code, listed.json[1]) == (201, created.json)
    key = listed.json[0]
    assert key["sentry_dsn"].endswith(f"{key['public_key']}@localhost/api/v4/error_tracking/collector/{project.id}")
    removed = as_maintainer.delete(f"{path}/{key['id']}")
    assert (removed.status_code, removed.json) == (200, key)
    assert as_maintainer.delete(f"{path}/{key['id']}").json == {"message": "404 Not found"}


def test_an_event_of_the_oldest_error_is_stored_at_the_limit(sender, as_admin):
    as_admin.put("/application/settings", json={"error_tracking_errors_per_project": 1})
    sender.event(message="new")

    response = sender.event(message="old", timestamp=clock.now().timestamp() - 10 * DAY_SECONDS)

    assert response.status_code == 200
    assert [error.title for error in stored_errors()] == ["old"]
    as_admin.put("/application/settings", json={"error_tracking_errors_per_project": 10_000})


def test_versions_of_modules_are_not_scrubbed(sender):
    sender.event(modules={"google-auth": "2.1", "flask-session": 3, "odd": []})

    [event] = db.session.scalars(select(TrackedErrorEvent))
    assert event.details["modules"] == {"google-auth": "2.1", "flask-session": "3"}


def test_the_line_number_of_a_closure_is_ignored_in_grouping(sender):
    for line in (12, 13):
        frames = [{"function": "run", "filename": "a.php"}, {"function": f"{{closure:/srv/a.php:{line}}}"}]
        sender.event(exception={"type": "Broken", "stacktrace": {"frames": frames}})

    assert counts() == (1, 2, 2)


@pytest.mark.both_databases
def test_an_event_waits_for_the_removal_of_its_error_without_a_deadlock(app, sender, monkeypatch):
    if db.engine.dialect.name == "sqlite":  # SQLite has one writer at a time
        return
    sender.event()
    [error] = stored_errors()
    monkeypatch.setattr(webhooks, "MAX_ATTEMPTS", 1)
    lock_row(error)  # the first step of a removal

    def send():
        with app.app_context():
            return sender.event()

    with ThreadPoolExecutor(1) as pool:
        pending = pool.submit(send)
        assert not wait([pending], timeout=0.3).done
        db.session.delete(error)
        db.session.commit()
        response = pending.result()

    assert response.status_code == 200
    assert counts() == (1, 1, 1)
