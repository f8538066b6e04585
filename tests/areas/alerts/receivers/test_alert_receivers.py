"""Receivers of alerts through HTTP: the order of checks, and ingestion of payloads."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import io
import json
import os
import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask import has_app_context
from sqlalchemy import select, update
from sqlalchemy.exc import OperationalError

from project_service.access import webhooks
from project_service.areas.alerts.models import (
    HTTP,
    PROMETHEUS,
    TARGET,
    Alert,
    AlertIntegration,
    FormerAddress,
    IncidentSetting,
    Status,
)
from project_service.areas.alerts.receivers import ingestion
from project_service.domain import instance_settings
from project_service.domain.accounts.bots import ALERT_BOT
from project_service.domain.accounts.users import User
from project_service.domain.namespaces import Namespace
from project_service.domain.paths import path_registry
from project_service.domain.projects import Project
from project_service.domain.rate_limits import RateLimitWindow
from project_service.domain.tracker.environments import Environment
from project_service.domain.tracker.issues import Issue
from project_service.domain.tracker.notes import Note
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.clients.view_admission import MAX_BODY_BYTES
from project_service.kit.http.errors import Conflict
from tests.areas.alerts.receivers.receiver_client import logged_requests
from tests.support import sample_data

pytestmark = pytest.mark.both_databases

KEY, OTHER_KEY = "0123456789abcdef" * 2, "f" * 32
IDENTIFIER = "00112233445566ff"
END = "2026-03-04T06:00:00Z"
ELEMENT = {
    "status": "firing",
    "labels": {"alertname": "Latency"},
    "annotations": {},
    "startsAt": "2026-03-04T05:06:07Z",
    "endsAt": "0001-01-01T00:00:00Z",
}
KEYS = ("groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations", "externalURL")
EXAMPLES = (
    Path(os.environ.get("PROJECT_SERVICE_TEST_DATA") or Path(__file__).parents[5] / "shared" / "data")
    / "alert-payloads"
)
PLAIN = {
    "title": "Disk usage above 95 % on db-2",
    "start_time": "2026-03-04T05:06:07Z",
    "service": "postgresql",
    "monitoring_tool": "Nagios",
    "hosts": ["db-2.internal.example", "db-2-replica.internal.example"],
    "severity": "HIGH",
    "fingerprint": ["db-2", "disk", 95],
    "gitlab_environment_name": "production",
    "check": {"value": 95.7, "nothing": None},
}


PATH_ENDINGS = (f"/alerts/notify/x/{IDENTIFIER}.json", "/alerts/notify.json", "/prometheus/alerts/notify.json")
OTHER_RECEIVERS = [f"/acme/shop{path_ending}" for path_ending in PATH_ENDINGS[1:]] + ["/acme/shop/alerts/notify/x/y"]
MANY_VALUES = b'{"a":[' + b"[]," * 600_000 + b"[]]}"
DEEP, LARGE = b'{"a":' * 101 + b"1" + b"}" * 101, b'{"a":"' + b"x" * (1 << 20) + b'"}'


def batch(*elements):
    return dict.fromkeys(KEYS, "x") | {"version": "4", "alerts": list(elements)}


def element(name, **more):
    return ELEMENT | {"labels": {"alertname": name}} | more


def alerts():
    db.session.remove()
    return list(db.session.scalars(select(Alert).order_by(Alert.iid)))


def notes(alert):
    statement = select(Note).where(Note.noteable_type == TARGET, Note.noteable_id == alert.id).order_by(Note.id)
    return [(note.author.name, note.body, note.system) for note in db.session.scalars(statement)]


def make_integration(project, **fields):
    fields = {"type": HTTP, "name": "Shop monitoring", "active": True, "mapping": {}} | fields
    fields = {"endpoint_identifier": IDENTIFIER, "token": KEY} | fields
    row = AlertIntegration(project_id=project.id, **fields)
    db.session.add(row)
    db.session.commit()
    return row


@pytest.fixture
def endpoint(project):
    return make_integration(project)


@pytest.fixture
def prometheus(project):
    return make_integration(project, type=PROMETHEUS, name="Prom", endpoint_identifier="aa")


@pytest.fixture
def post(app, endpoint):
    """Send a body to the endpoint, by default with its key."""

    def send(
        body=None,
        *,
        path=f"/acme/shop/alerts/notify/shop/{IDENTIFIER}.json",
        key=KEY,
        method="POST",
        base_url=None,
        input_stream=None,
        environ_overrides=None,
        **headers,
    ):
        options = {"base_url": base_url, "input_stream": input_stream, "environ_overrides": environ_overrides}
        auth = {"Authorization": f"Bearer {key}"} if key else {}
        data = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        if input_stream is None:
            options["data"] = data
        if has_app_context():
            db.session.remove()
        client = app.test_client(use_cookies=False)
        return client.open(path, method=method, headers=auth | headers, content_type="application/json", **options)

    return send


@pytest.fixture
def post_batch(post, prometheus):
    return lambda *elements, **options: post(
        batch(*elements), path="/acme/shop/prometheus/alerts/notify.json", **options
    )


def status_and_body(response):
    return response.status_code, response.data


def test_an_accepted_alert_is_returned(post):
    response = post({"title": "A"})

    assert (response.status_code, response.json) == (200, [{"iid": 1, "title": "A"}])


@pytest.mark.parametrize(
    "path_ending", [f"x/{IDENTIFIER}.json", f"x/{IDENTIFIER}", f"an-old-name/{IDENTIFIER}.json", f"%C3%A4/{IDENTIFIER}"]
)
def test_the_name_in_the_url_is_ignored(path_ending, post):
    assert post({}, path=f"/acme/shop/alerts/notify/{path_ending}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/acme/nothing/alerts/notify/x/00112233445566ff.json",
        "/nothing/shop/alerts/notify/x/00112233445566ff.json",
        f"/acme/shop/alerts/notify/x/{IDENTIFIER}.json/",
        f"/acme/shop/alerts/notify/x/y/{IDENTIFIER}.json",
        f"/acme/shop/alerts/notify/{IDENTIFIER}.json",
        "/shop/alerts/notify/x/00112233445566ff.json",
        "/acme/shop/alerts/notify/x/not-hex.json",
        "/acme/nothing/alerts/notify.json",
        "/acme/nothing/prometheus/alerts/notify.json",
    ],
)
def test_an_unknown_receiver_is_404(path, post):
    assert status_and_body(post(batch(), path=path)) == (404, b"")


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "MKCOL", "LOCK"]
)
def test_other_methods_are_not_found(method, post):
    responses = [post({}, method=method), *(post({}, method=method, path=path) for path in OTHER_RECEIVERS)]

    assert [status_and_body(response) for response in responses] == [(404, b"")] * len(responses)
    assert not any("Allow" in response.headers for response in responses)


@pytest.mark.parametrize(
    "path", [f"/acme/nothing{path_ending}" for path_ending in PATH_ENDINGS] + ["/acme/shop/alerts/notify/x/no-hex.json"]
)
@pytest.mark.parametrize(("body", "status"), [(DEEP, 404), (LARGE, 404), (b"[]", 404), (b"{}", 404), (b"{", 400)])
def test_without_a_project_only_broken_json_is_400(path, body, status, post):
    assert status_and_body(post(body, path=path)) == (status, b"")


@pytest.mark.parametrize("path", ["/acme/shop/alerts/notify.json", "/acme/shop/alerts/notify"])
def test_the_old_url_without_a_name_works(path, post, project):
    assert status_and_body(post({}, path=path)) == (403, b"")
    make_integration(project, endpoint_identifier="legacy", token=OTHER_KEY)

    assert post({}, path=path, key=OTHER_KEY).status_code == 200


@pytest.mark.parametrize("body", [b"{", b"[]", DEEP, LARGE, MANY_VALUES])
@pytest.mark.parametrize("key", [KEY, None])
def test_a_body_beyond_the_limits_is_refused_before_the_key(body, key, post):
    assert status_and_body(post(body, key=key)) == (400, b"")
    assert alerts() == []


@pytest.mark.parametrize("key", [KEY, OTHER_KEY, None])
def test_a_body_above_the_largest_limit_is_a_bad_request(key, post):
    assert status_and_body(post(b'{"a":"' + b"x" * MAX_BODY_BYTES + b'"}', key=key)) == (400, b"")
    assert alerts() == []


@pytest.mark.parametrize("key", [KEY, OTHER_KEY, None])
def test_an_unknown_or_inactive_endpoint_is_refused_whatever_the_key(key, post, endpoint):
    unknown = post({}, key=key, path="/acme/shop/alerts/notify/x/ffff.json")
    db.session.merge(endpoint).active = False
    db.session.commit()

    assert status_and_body(unknown) == status_and_body(post({}, key=key)) == (403, b"")
    assert alerts() == []


def basic(password):
    return "Basic " + base64.b64encode(f"anybody:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (f"Bearer {KEY}", 200),
        (f"bearer {KEY}", 200),
        (basic(KEY), 200),
        (basic(OTHER_KEY), 401),
        (f"Bearer {OTHER_KEY}", 401),
        (f"Bearer {KEY}0", 401),
        ("Bearer ", 401),
        (f"Token {KEY}", 401),
        (KEY, 401),
    ],
)
def test_the_key_is_read_from_the_header(header, status, post):
    assert post({}, key=None, Authorization=header).status_code == status
    assert len(alerts()) == (status == 200)


def test_the_key_is_not_read_from_body_query_or_other_headers(post, as_maintainer, project):
    path = f"/acme/shop/alerts/notify/x/{IDENTIFIER}.json"
    responses = [
        post({}, key=None),
        post({"token": KEY, "private_token": KEY}, key=None),
        post({}, key=None, path=f"{path}?token={KEY}&private_token={KEY}&access_token={KEY}"),
        post({}, key=None, **{"PRIVATE-TOKEN": as_maintainer.token}),
    ]

    assert [status_and_body(response) for response in responses] == [(401, b"")] * 4
    assert alerts() == []


def test_the_key_of_another_integration_is_refused(post, project):
    make_integration(project, endpoint_identifier="bb", token=OTHER_KEY)

    assert post({}, key=OTHER_KEY).status_code == 401


def test_an_alert_is_stored_as_sent(post, project):
    environment = Environment(project_id=project.id, name="production", slug="production")
    db.session.add(environment)
    db.session.commit()

    post(PLAIN, path=f"/acme/shop/alerts/notify/x/{IDENTIFIER}.json?more=1")

    [alert] = alerts()
    assert (alert.title, alert.service, alert.monitoring_tool) == (PLAIN["title"], "postgresql", "Nagios")
    assert (alert.hosts, alert.severity, alert.environment.name) == (PLAIN["hosts"], 1, "production")
    assert (alert.status, alert.events, alert.ended_at, alert.iid) == (Status.TRIGGERED, 1, None, 1)
    assert alert.started_at.isoformat() == "2026-03-04T05:06:07+00:00"
    assert alert.fingerprint == "6dde4ab3912722706b11eff1e02afa553f8f766a"
    assert alert.payload == PLAIN
    assert notes(alert) == [("Alert Bot", "logged an alert from **Nagios**", True)]


@pytest.mark.parametrize("body", [b"", b"{}"])
def test_empty_payloads_create_alerts_with_default_values(body, post):
    post(body)
    post(body)

    assert [(alert.title, alert.severity, alert.fingerprint, alert.events) for alert in alerts()] == [
        ("New: Alert", 0, None, 1)
    ] * 2


def test_environments_with_long_names_are_matched(post, project):
    db.session.add(Environment(project_id=project.id, name="review/" + "x" * 240, slug="review"))
    db.session.commit()

    post({"gitlab_environment_name": "review/" + "x" * 240})

    assert alerts()[0].environment.slug == "review"


@pytest.mark.parametrize("name", ["staging", "Production", "", None])
def test_payloads_do_not_create_environments(name, post):
    post({"title": "A", "gitlab_environment_name": name})

    assert alerts()[0].environment_id is None
    assert db.session.query(Environment).count() == 0


@pytest.mark.parametrize("value", [b'"a\\u0000b"', b"1e400", b"123456789012345678901234567890", b'"\xf0\x9f\xa7\xaf"'])
def test_unusual_values_are_stored_or_refused(value, post):
    assert post(b'{"title": ' + value + b', "more": [' + value + b"]}").status_code in (200, 400)


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 400])
def test_long_integers_keep_all_digits(number, post):
    other = number[:-1] + "7"
    bodies = [f'{{"fingerprint": {one}, "more": [{one}, 1.5]}}'.encode() for one in (number, other, number)]

    assert [post(body).status_code for body in bodies] == [200] * 3

    stored = alerts()
    assert [(alert.payload["more"], alert.events) for alert in stored] == [
        ([int(number), 1.5], 2),
        ([int(other), 1.5], 1),
    ]
    assert stored[0].fingerprint == hashlib.sha1(number.encode()).hexdigest()


def test_an_integer_above_the_limit_is_kept_as_text(post):
    number = "9" * 1_000_000

    assert post(f'{{"title": "A", "fingerprint": {number}}}'.encode()).status_code == 200

    [alert] = alerts()
    assert (alert.payload["fingerprint"], alert.fingerprint) == (number, hashlib.sha1(number.encode()).hexdigest())


def test_a_repeated_alert_only_increases_the_count(post):
    post(PLAIN)
    response = post(PLAIN | {"title": "Other", "severity": "low", "start_time": END})

    [alert] = alerts()
    assert response.json == [{"iid": 1, "title": PLAIN["title"]}]
    assert (alert.events, alert.title, alert.severity, alert.payload) == (2, PLAIN["title"], 1, PLAIN)
    assert len(notes(alert)) == 1


@pytest.mark.parametrize("status", [Status.TRIGGERED, Status.ACKNOWLEDGED, Status.IGNORED])
def test_unresolved_alerts_are_open(status, post):
    post(PLAIN)
    alerts()[0].status = status
    db.session.commit()

    post(PLAIN)
    counted = [(alert.events, alert.status) for alert in alerts()]
    post(PLAIN | {"end_time": END})

    [alert] = alerts()
    assert counted == [(2, status)]
    assert (alert.events, alert.status, alert.ended_at.isoformat()) == (2, Status.RESOLVED, "2026-03-04T06:00:00+00:00")
    assert [body for _, body, _ in notes(alert)] == [
        "logged an alert from **Nagios**",
        "logged a recovery alert from **Nagios**",
        "changed the status to **Resolved**",
    ]


def test_a_repeat_of_a_resolved_alert_creates_a_new_one(post):
    for body in (PLAIN, PLAIN | {"end_time": END}, PLAIN):
        post(body)

    assert [(alert.status, alert.events) for alert in alerts()] == [(Status.RESOLVED, 1), (Status.TRIGGERED, 1)]


@pytest.mark.parametrize("body", [PLAIN, {}])
def test_a_recovery_without_an_open_alert_is_stored_as_resolved(body, post):
    response = post(body | {"end_time": END})

    [alert] = alerts()
    assert (response.status_code, alert.status, alert.ended_at is None) == (200, Status.RESOLVED, False)
    assert len(notes(alert)) == 3


def test_an_end_time_resolves_an_alert_with_a_generated_fingerprint(post):
    post({"title": "A", "hosts": "x"})
    post({"title": "A", "hosts": "y", "end_time": END})

    assert [alert.status for alert in alerts()] == [Status.RESOLVED]


@pytest.mark.parametrize(("tool", "source"), [("Datadog", "Datadog"), (None, "Shop monitoring")])
def test_a_system_note_names_the_source(tool, source, post):
    post({"title": "A", "monitoring_tool": tool})

    assert notes(alerts()[0])[0][1] == f"logged an alert from **{source}**"


def test_two_integrations_of_a_project_share_fingerprints_and_two_projects_do_not(post, project, group):
    make_integration(project, endpoint_identifier="bb")
    make_integration(sample_data.make_project("till", group), endpoint_identifier="cc")
    for path in (f"shop/alerts/notify/x/{IDENTIFIER}", "shop/alerts/notify/x/bb", "till/alerts/notify/x/cc"):
        post(PLAIN, path=f"/acme/{path}.json")

    assert sorted((alert.iid, alert.events) for alert in alerts()) == [(1, 1), (1, 2)]


def test_a_mapping_is_followed(post, endpoint):
    db.session.merge(endpoint).mapping = {"title": {"path": ["event", "title"], "type": "string"}}
    db.session.commit()

    assert post({"event": {"title": "Mapped"}, "title": "Plain"}).json[0]["title"] == "Mapped"


def run_concurrently(count, act):
    db.session.remove()
    start = threading.Barrier(count)

    def begin(number):
        start.wait(30)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_concurrent_alerts_create_one_open_alert_and_count_all(post):
    responses = run_concurrently(40, lambda number: post(PLAIN).status_code)

    assert responses == [200] * 40
    assert [(alert.events, alert.status) for alert in alerts()] == [(40, Status.TRIGGERED)]


def test_concurrent_firing_and_recovery_lose_no_count(post):
    responses = run_concurrently(
        12, lambda number: post(PLAIN | ({"end_time": END} if number % 4 == 0 else {})).status_code
    )

    stored = alerts()
    assert responses == [200] * 12
    assert sum(alert.status != Status.RESOLVED for alert in stored) <= 1
    assert all((alert.ended_at is not None) == (alert.status == Status.RESOLVED) for alert in stored)
    ended_alone = sum(notes(alert)[1:2] != [] and "recovery" in notes(alert)[1][1] for alert in stored)
    assert 9 <= sum(alert.events for alert in stored) <= 9 + ended_alone


def test_batches_in_opposite_orders_do_not_deadlock(post_batch):
    elements = [element(f"A{number}") for number in range(20)]

    responses = run_concurrently(4, lambda number: post_batch(*elements[:: 1 if number % 2 else -1]).status_code)

    assert responses == [200] * 4
    assert [alert.events for alert in alerts()] == [4] * 20


def test_each_alert_of_a_batch_is_ingested(post_batch):
    other = ELEMENT | {"labels": {"alertname": "Other", "severity": "page"}}
    first = post_batch(ELEMENT, other, ELEMENT | {"labels": {}}, ELEMENT)
    post_batch(ELEMENT | {"status": "resolved", "endsAt": END}, other)

    assert [one["iid"] for one in first.json] == [1, 2, 1]
    assert [(alert.title, alert.events, alert.status, alert.severity) for alert in alerts()] == [
        ("Latency", 2, Status.RESOLVED, 0),
        ("Other", 2, Status.TRIGGERED, 1),
    ]
    assert alerts()[0].payload == ELEMENT
    assert notes(alerts()[0])[0][1] == "logged an alert from **Prom**"


def test_an_empty_batch_is_a_success(post_batch):
    assert (post_batch().status_code, alerts()) == (200, [])


def test_an_endpoint_accepts_batches(post):
    assert len(post(batch(ELEMENT)).json) == 1


@pytest.mark.parametrize("body", [{}, batch() | {"version": "3"}, {"alerts": []}])
@pytest.mark.parametrize("key", [KEY, None])
def test_invalid_batches_are_refused_before_the_key(body, key, post, prometheus):
    assert status_and_body(post(body, key=key, path="/acme/shop/prometheus/alerts/notify.json")) == (422, b"")


def test_the_log_names_what_a_batch_lacks(post, prometheus):
    post(
        {key: value for key, value in batch().items() if key != "receiver"},
        path="/acme/shop/prometheus/alerts/notify.json",
    )

    assert [logged.reason for logged in logged_requests()] == ["not a webhook of Alertmanager: without receiver"]


@pytest.mark.parametrize(
    ("active", "key", "status"),
    [(True, KEY, 200), (True, OTHER_KEY, 401), (True, None, 401), (False, KEY, 401), (False, None, 401)],
)
def test_prometheus_needs_an_active_integration_and_its_key(active, key, status, post_batch, prometheus):
    db.session.merge(prometheus).active = active
    db.session.commit()

    assert post_batch(ELEMENT, key=key).status_code == status


def test_the_key_selects_one_of_several_prometheus_integrations(post_batch, project):
    make_integration(project, type=PROMETHEUS, name="Two", endpoint_identifier="dd", token=OTHER_KEY)

    assert [post_batch(ELEMENT, key=key).status_code for key in (KEY, OTHER_KEY)] == [200, 200]


@pytest.fixture
def limited(app):
    """Two requests of a receiver are allowed in a long period."""
    with unit_of_work():
        changes = {"enabled": True, "per_period": 2, "period_in_seconds": 100_000}
        prefix = "throttle_incident_management_notification"
        instance_settings.change_settings({f"{prefix}_{name}": value for name, value in changes.items()})


def rate_limit_subjects():
    db.session.remove()
    return set(db.session.scalars(select(RateLimitWindow.subject)))


def test_a_limit_counts_every_request_of_a_receiver(limited, post, project):
    make_integration(project, endpoint_identifier="bb")
    responses = [post({}, key=None), post(b"{"), post({})]
    other = post({}, path="/acme/shop/alerts/notify/x/bb.json")

    assert [response.status_code for response in responses] == [401, 400, 429]
    assert (responses[2].text, responses[2].mimetype) == ("Retry later", "text/plain")
    assert 0 < int(responses[2].headers["Retry-After"]) <= 100_000
    assert (other.status_code, len(alerts())) == (200, 1)


def test_a_limit_counts_from_when_it_is_set(post, request):
    assert [post({}).status_code for _ in range(4)] == [200] * 4
    request.getfixturevalue("limited")

    assert [post({}).status_code for _ in range(4)] == [200, 200, 429, 429]


def test_a_limit_applies_to_all_spellings_of_a_receiver_url(limited, post):
    paths = [f"/acme/shop/alerts/notify/{number}/{IDENTIFIER}{'.json' * (number % 2)}" for number in range(3)]

    assert [post({}, path=path).status_code for path in paths] == [200, 200, 429]


def test_unknown_paths_are_not_counted(limited, post):
    paths = [f"/acme/shop/alerts/notify/x/{number:016x}.json" for number in range(5)]
    paths += [f"/acme/none{number}/alerts/notify.json" for number in range(5)]
    paths += [f"/acme/none{number}/prometheus/alerts/notify.json" for number in range(5)]

    assert {post({}, path=path).status_code for path in paths} <= {403, 404}
    assert rate_limit_subjects() == set()


def test_a_limit_ends_with_its_period(limited, post, monkeypatch):
    before = [post({}).status_code for _ in range(3)]
    later = clock.now() + dt.timedelta(seconds=100_001)
    monkeypatch.setattr(clock, "now", lambda: later)

    assert (before, post({}).status_code) == ([200, 200, 429], 200)


def test_requests_above_a_limit_write_nothing(limited, post, count_queries):
    for _ in range(2):
        post({})

    with count_queries() as queries:
        assert post({}).status_code == 429

    assert {statement.split()[0] for statement in queries} == {"SELECT"}


def test_unknown_paths_create_no_counter(limited, post):
    rejected_paths = (
        "no/such/alerts/notify.json",
        "acme/shop/alerts/notify/x/ffff.json",
        "acme/shop/alerts/notify/x/no-hex",
    )
    for number in range(5):
        for path in (
            *rejected_paths,
            f"acme/{number}/prometheus/alerts/notify",
            f"acme/shop/alerts/notify/x/f{number}",
        ):
            assert post({}, path=f"/{path}").status_code in (403, 404)

    assert rate_limit_subjects() == set()


def test_prometheus_integrations_of_a_project_share_a_limit(limited, post_batch, project):
    make_integration(project, type=PROMETHEUS, name="Two", endpoint_identifier="dd", token=OTHER_KEY)

    assert [post_batch(ELEMENT, key=key).status_code for key in (KEY, OTHER_KEY, KEY)] == [200, 200, 429]
    assert rate_limit_subjects() == {f"receiver:prometheus:{project.id}"}


def test_there_is_no_limit_by_default(post):
    assert post({}).status_code == 200
    assert rate_limit_subjects() == set()


def example(name):
    """Return an example payload, or an equivalent one when the examples are not installed."""
    path = EXAMPLES / f"{name}.json"
    return path.read_bytes() if path.exists() else json.dumps(EXAMPLE_PAYLOADS[name]).encode()


EXAMPLE_PAYLOADS = {
    "plain-full": PLAIN,
    "unicode": {"title": "Überhitzung 🔥", "hosts": "sensor-ø7.fabrik.example", "fingerprint": "raum-nord/überhitzung"},
    "huge-but-legal": {
        "title": "T" * 300,
        "description": "D" * 2000,
        "service": "s" * 200,
        "hosts": ["h" * 300],
        "more": "x" * 800_000,
    },
}


def test_the_documented_example_with_all_fields_is_ingested(post):
    assert post(example("plain-full")).status_code == 200

    [alert] = alerts()
    assert (alert.title, alert.fingerprint) == (PLAIN["title"], "6dde4ab3912722706b11eff1e02afa553f8f766a")


def test_the_example_in_many_scripts_is_ingested(post):
    body = example("unicode")
    post(body)

    [alert] = alerts()
    assert (alert.title, alert.hosts) == (json.loads(body)["title"], ["sensor-ø7.fabrik.example"])
    assert alert.fingerprint == hashlib.sha1("raum-nord/überhitzung".encode()).hexdigest()
    assert alert.payload == json.loads(body)


def test_the_large_example_is_ingested(post):
    body = example("huge-but-legal")
    assert post(body).status_code == 200

    [alert] = alerts()
    assert (alert.title, len(alert.description), len(alert.service)) == ("T" * 197 + "...", 1000, 100)
    assert (sum(map(len, alert.hosts)), alert.payload) == (255, json.loads(body))


def test_open_alerts_are_found_by_an_index(app, post_batch, count_queries):
    elements = [element(f"A{number}") for number in range(3)]
    post_batch(*elements)
    with count_queries() as queries:
        post_batch(*elements)
    [adding] = [statement for statement in queries if "UPDATE alerts" in statement]

    assert "alerts.project_id" not in adding.partition("UPDATE alerts")[2].partition("IN (SELECT")[0]
    assert [alert.events for alert in alerts()] == [2, 2, 2]


def test_a_batch_takes_a_constant_number_of_statements(post_batch, endpoint, count_queries):
    def elements(first, count):
        """Return a batch of repeated, new and resolved alerts, a third each."""
        repeated, new = [element(f"{first}-{number}") for number in range(2 * count)], []
        post_batch(*repeated)
        new = [element(f"{first}-new-{number}") for number in range(count)]
        ended = [one | {"status": "resolved", "endsAt": END} for one in repeated[count:]]
        return [one for triple in zip(repeated[:count], new, ended, strict=True) for one in triple]

    counts = []
    for first, count in (("a", 2), ("b", 20)):
        sent = elements(first, count)
        with count_queries() as queries:
            response = post_batch(*sent)
        assert [one["title"] for one in response.json] == [one["labels"]["alertname"] for one in sent]
        counts.append(len(queries))

    assert counts[0] == counts[1] <= 12
    by_title = {alert.title: (alert.events, alert.status) for alert in alerts()}
    assert (by_title["b-0"], by_title["b-new-0"], by_title["b-20"]) == ((2, 0), (1, 0), (1, Status.RESOLVED))
    assert len(by_title) == 66


def test_of_one_identity_in_a_batch_the_newest_state_is_stored(post_batch):
    firing, resolved = element("A"), element("A", status="resolved", endsAt=END)

    response = post_batch(resolved, firing, element("B"), firing, resolved)

    assert [created["iid"] for created in response.json] == [1, 2, 1]
    assert [(alert.title, alert.events, alert.status) for alert in alerts()] == [
        ("A", 2, Status.TRIGGERED),
        ("B", 1, Status.TRIGGERED),
    ]
    assert [len(notes(alert)) for alert in alerts()] == [1, 1]


def test_concurrent_random_batches_are_counted_exactly(app, post_batch, prometheus, monkeypatch):
    """Batches of many monitors: repeated and new alerts in different orders, some twice."""
    monkeypatch.setattr(webhooks, "MAX_ATTEMPTS", 1)
    post_batch(element("creates the bot and the counter"))
    names = [f"A{number}" for number in range(10)]

    def send(number):
        order, sent = random.Random(number), Counter()
        for _ in range(15):
            chosen = order.choices(names, k=order.randint(1, 15))
            assert post_batch(*map(element, chosen)).status_code == 200
            sent.update(chosen)
        return sent

    sent = sum(run_concurrently(6, send), Counter({"creates the bot and the counter": 1}))

    assert Counter({alert.title: alert.events for alert in alerts()}) == sent
    assert len(alerts()) == len(sent)
    assert [len(notes(alert)) for alert in alerts()] == [1] * len(sent)


def test_batches_with_recoveries_in_different_orders_all_succeed(post_batch, prometheus):
    def send(number):
        order = random.Random(number)  # seeded, so that runs are reproducible
        for _ in range(10):
            names = [f"A{one}" for one in range(20)]
            order.shuffle(names)
            status = [{"status": "resolved", "endsAt": END} if one % 6 == 5 else {} for one in range(27)]
            sent = [element(name, **more) for name, more in zip(names + names[:7], status, strict=True)]
            assert post_batch(*sent).status_code == 200

    run_concurrently(4, send)

    open_alerts = Counter(alert.title for alert in alerts() if alert.status != Status.RESOLVED)
    assert set(open_alerts.values()) <= {1}


def test_concurrent_alerts_open_one_incident(post, project):
    db.session.add(IncidentSetting(project_id=project.id, create_issue=True))
    db.session.commit()

    responses = run_concurrently(12, lambda number: post(PLAIN | {"fingerprint": f"f{number % 2}"}).status_code)

    assert responses == [200] * 12
    assert [alert.events for alert in alerts()] == [6, 6]
    assert len({alert.issue_id for alert in alerts()}) == db.session.query(Issue).count() == 2


def test_a_transaction_is_retried_after_a_deadlock(post, monkeypatch):
    write, failures = ingestion.ingest, [1, 2]

    class Deadlock(Exception):
        sqlstate = "40P01"

    def fail_twice(receiver, reports):
        stored = write(receiver, reports)
        if failures:
            failures.pop()
            raise OperationalError("INSERT", {}, Deadlock())
        return stored

    monkeypatch.setattr(ingestion, "ingest", fail_twice)

    assert post(PLAIN).json == [{"iid": 1, "title": PLAIN["title"]}]
    assert [(alert.events, len(notes(alert))) for alert in alerts()] == [(1, 1)]


@pytest.mark.parametrize("sqlstate", ["40P01", "57014"])
def test_a_failed_write_is_an_error_and_stores_nothing(sqlstate, post, monkeypatch):
    write, tries = ingestion.ingest, []

    class Failure(Exception):
        pass

    Failure.sqlstate = sqlstate

    def fail(receiver, reports):
        write(receiver, reports)
        tries.append(reports)
        raise OperationalError("INSERT", {}, Failure())

    monkeypatch.setattr(ingestion, "ingest", fail)

    assert post(PLAIN).status_code == 503
    assert (len(tries), alerts()) == (webhooks.MAX_ATTEMPTS if sqlstate == "40P01" else 1, [])


CHANGES = {
    "another key": (AlertIntegration, {"token": OTHER_KEY}, 401),
    "switched off": (AlertIntegration, {"active": False}, 403),
    "of another type": (AlertIntegration, {"type": PROMETHEUS}, 403),
    "another identifier": (AlertIntegration, {"endpoint_identifier": "ff"}, 403),
    "the project is being removed": (Project, {"deleting_since": clock.now()}, 404),
}
BODIES = {
    "a repeated one": PLAIN,
    "a new one": PLAIN | {"fingerprint": "new"},
    "a recovery": PLAIN | {"end_time": END},
    "several": batch(ELEMENT, ELEMENT),
    "none at all": batch(),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("changed", CHANGES)
def test_after_a_change_the_next_request_is_refused(changed, body, post):
    model, values, status = CHANGES[changed]
    assert [post(PLAIN).status_code for _ in range(2)] == [200] * 2
    db.session.remove()
    db.session.execute(update(model).values(values))
    db.session.commit()

    assert [status_and_body(post(body)) for _ in range(2)] == [(status, b"")] * 2
    assert [(alert.events, alert.status) for alert in alerts()] == [(2, Status.TRIGGERED)]
    assert db.session.query(Note).count() == 1


def test_a_removed_integration_is_refused_at_once(post, endpoint):
    post(PLAIN)
    db.session.delete(db.session.get_one(AlertIntegration, endpoint.id))
    db.session.commit()

    assert status_and_body(post(PLAIN)) == (403, b"")


def test_after_a_reset_only_the_new_key_is_accepted(post):
    post(PLAIN)
    db.session.remove()
    db.session.execute(update(AlertIntegration).values(token=OTHER_KEY))
    db.session.commit()

    assert [post({}, key=key).status_code for key in (OTHER_KEY, KEY, OTHER_KEY)] == [200, 401, 200]


def test_a_removed_bot_is_created_again(post):
    post(PLAIN)
    db.session.remove()
    gone = {"username": "gone", "email": "gone@example.org", "deleting_since": clock.now()}
    db.session.execute(update(User).where(User.username == ALERT_BOT).values(gone))
    db.session.commit()

    assert post(PLAIN | {"fingerprint": "new"}).status_code == 200
    db.session.remove()
    stored_notes = db.session.scalars(select(Note).where(Note.noteable_type == TARGET).order_by(Note.id))
    assert [note.author.username for note in stored_notes] == ["gone", ALERT_BOT]


def test_paths_ignore_case_and_identifiers_do_not(post, endpoint):
    db.session.merge(endpoint).endpoint_identifier = "00112233445566ab"
    db.session.commit()
    path = "/Acme/SHOP/alerts/notify/any name/00112233445566ab.json"

    assert post({}, path=path).status_code == 200
    assert post({}, path=path.replace("ab.json", "AB.json")).status_code == 403


def test_links_of_incidents_have_the_host_of_the_request(app, post, project):
    db.session.add(IncidentSetting(project_id=project.id, create_issue=True))
    db.session.commit()
    for host, name in (("one.example.org", "a"), ("two.example.org:8443", "b")):
        assert post({"title": name, "fingerprint": name}, base_url=f"https://{host}").status_code == 200

    descriptions = dict(db.session.execute(select(Issue.title, Issue.description)).all())
    assert "https://one.example.org/acme/shop/" in descriptions["a"]
    assert "https://two.example.org:8443/acme/shop/" in descriptions["b"]


def test_a_body_without_a_length_is_ingested(post):
    environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""}
    response = post(None, input_stream=io.BytesIO(b'{"title": "Disk"}'), environ_overrides=environ)

    assert response.json == [{"iid": 1, "title": "Disk"}]


def test_an_incomplete_body_is_refused(post):
    for sent in (b"", b" ", b'{"title": ', b"{}"):
        response = post(None, input_stream=io.BytesIO(sent), environ_overrides={"CONTENT_LENGTH": "34"})

        assert response.status_code == 400
    assert alerts() == []


def test_a_malformed_authorization_header_counts_as_no_key(post):
    for header in ("Basic \xe9", "Basic !", "Bearer \xe9", "Digest x", "Bearer"):
        assert post({}, key=None, Authorization=header).status_code == 401


def move(project, path):
    with unit_of_work():
        row = db.session.get_one(Project, project.id)
        row.path = path
        path_registry.move_project(row, Conflict("taken"))


@pytest.mark.both_databases
def test_old_receiver_urls_work_until_the_path_is_reused(post, project, endpoint):
    move(project, "store")
    move(project, "market")
    responses = [post(PLAIN).status_code, post(PLAIN).status_code]
    [use] = db.session.query(FormerAddress)
    used = (use.integration_id, use.path, clock.now() - use.last_used_at < dt.timedelta(minutes=1))

    with unit_of_work():
        db.session.get_one(Project, project.id).name = "Market"
    new_project = sample_data.make_project("shop", db.session.get_one(Project, project.id).namespace)

    assert (responses, [alert.events for alert in alerts()]) == ([200, 200], [2])
    assert used == (endpoint.id, "acme/shop", True)
    assert post(PLAIN).status_code == 403  # the receiver of another project, which has no such endpoint
    move(new_project, "elsewhere")
    assert post(PLAIN).status_code == 403


@pytest.mark.both_databases
def test_receiver_urls_work_after_the_group_was_renamed(post, project, group):
    with unit_of_work():
        row = db.session.get_one(Namespace, group.id)
        row.path = "umbrella"
        path_registry.move_namespace(row, Conflict("taken"))

    assert (post(PLAIN).status_code, [alert.events for alert in alerts()]) == (200, [1])
