"""Alerts of known receivers, which are taken in in front of Flask: nobody can tell the difference."""

from __future__ import annotations

import io
import json
import time

import pytest
import sqlalchemy.exc
from flask import Flask
from sqlalchemy import select

from project_service.access import webhooks
from project_service.areas.alerts import ingestion
from project_service.areas.alerts.models import HTTP, PROMETHEUS, Alert, AlertIntegration, IncidentSetting
from project_service.domain.tracker.issues import Issue
from project_service.kit import metrics
from project_service.kit.db.session import db
from project_service.kit.http import current
from project_service.kit.security import encryption, secrets

KEY = "0123456789abcdef" * 2
IDENTIFIER = "00112233445566ee"
HOOK = f"/acme/shop/alerts/notify/x/{IDENTIFIER}.json"
OF_PROMETHEUS = "/acme/shop/prometheus/alerts/notify.json"
ALERT = b'{"title": "Disk", "fingerprint": "known"}'
OF_ONE_REQUEST = {"X-Request-Id", "X-Runtime"}
ODD = {
    "nothing": b"",
    "blanks": b"  ",
    "an object without anything": b"{}",
    "no JSON": b"{",
    "no object": b"[1]",
    "no text": b'{"title": "\xff"}',
    "a NUL": b'{"title": "a\\u0000b"}',
    "too deep": b'{"a":' * 101 + b"1" + b"}" * 101,
    "too large": b'{"title": "%s"}' % (b"x" * (1 << 20)),
    "a number of many digits": b'{"title": ' + b"9" * 5000 + b"}",
    "a batch of nothing": b'{"version": "4"}',
}


@pytest.fixture
def hook(project):
    """Receivers of both kinds."""
    common = {"project_id": project.id, "name": "Shop", "active": True, "token": KEY, "mapping": {}}
    db.session.add(AlertIntegration(type=HTTP, endpoint_identifier=IDENTIFIER, **common))
    db.session.add(AlertIntegration(type=PROMETHEUS, endpoint_identifier="ff", **common))
    db.session.commit()


@pytest.fixture
def client(app, hook):
    return app.test_client(use_cookies=False)


@pytest.fixture
def post(app, client):
    """Sends a body, to who is known or else to who is not."""

    def send(body, path=HOOK, *, known=True, headers=(), **options):
        db.session.remove()
        if not known:
            app.extensions[webhooks.REMEMBERED] = webhooks.Remembered()
        return client.post(path, data=body, headers={"Authorization": f"Bearer {KEY}", **dict(headers)}, **options)

    return send


@pytest.fixture
def known(post):
    """Both receivers are."""
    for path in (HOOK, OF_PROMETHEUS):
        post(ALERT if path == HOOK else b"{}", path)
    assert post(ALERT).status_code == 200


@pytest.fixture
def asked(monkeypatch):
    """The requests that Flask was asked to answer."""
    asked, wsgi_app = [], Flask.full_dispatch_request
    monkeypatch.setattr(Flask, "full_dispatch_request", lambda app: asked.append(app) or wsgi_app(app))
    return asked


def headers_of(answer):
    return sorted(pair for pair in answer.headers if pair[0] not in OF_ONE_REQUEST)


def lines(capfd):
    """What was logged of requests, without what belongs to one."""
    logged = map(json.loads, capfd.readouterr().err.splitlines())
    own = ("seconds", "timestamp", "request_id")
    return [{name: line[name] for name in line if name not in own} for line in logged if line["event"] == "request"]


def test_a_known_one_is_answered_as_one_that_is_not_and_flask_is_not_asked(known, post, asked, capfd):
    capfd.readouterr()
    usual, of_usual = post(ALERT, known=False), lines(capfd)
    assert len(asked) == 1

    answer, of_known = post(ALERT), lines(capfd)

    assert len(asked) == 1
    assert (answer.status_code, answer.data) == (200, b'[{"iid":1,"title":"Disk"}]') == (200, usual.data)
    assert headers_of(answer) == headers_of(usual)
    assert of_known == of_usual
    assert len(of_known) == 1


def test_its_requests_are_counted_and_have_ids_of_their_own(known, post):
    labels = {"method": "POST", "route": "/<path:project>/alerts/notify/<slug>/<identifier>", "status": "200"}
    before = metrics.REQUESTS.labels(*labels.values())._value.get()

    own = ("", "", "mine-1", "no id at all!")
    answers = [post(ALERT, headers={"X-Request-Id": name} if name else {}) for name in own]

    assert metrics.REQUESTS.labels(*labels.values())._value.get() == before + 4
    given = [answer.headers["X-Request-Id"] for answer in answers]
    assert (len(set(given)), [len(one) for one in given], given[2]) == (4, [32, 32, 6, 32], "mine-1")


@pytest.mark.parametrize("path", [HOOK, OF_PROMETHEUS])
@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
def test_odd_bodies_are_answered_alike(body, path, known, post):
    usual = post(body, path, known=False)
    for other in (HOOK, OF_PROMETHEUS):
        post(ALERT if other == HOOK else b"{}", other)

    again = [post(body, path) for _ in range(2)]

    def told(answer):
        # those without a fingerprint are numbered one after the other
        titles = [one["title"] for one in answer.json] if answer.status_code == 200 else answer.data
        return answer.status_code, titles, [pair for pair in headers_of(answer) if pair[0] != "Content-Length"]

    assert [told(answer) for answer in again] == [told(usual)] * 2
    assert post(ALERT).json == [{"iid": 1, "title": "Disk"}]


def test_a_body_whose_length_is_not_told_is_taken_in(known, post, asked):
    for length in ("", "3"):
        environ = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": length}
        answer = post(None, input_stream=io.BytesIO(ALERT), environ_overrides=environ)

        assert answer.json == [{"iid": 1, "title": "Disk"}]
    assert len(asked) == 2


def test_a_body_that_ends_too_early_is_refused_and_nothing_is_stored(known, post):
    for sent in (b"", b" ", ALERT[:10], b"{}"):
        answer = post(None, input_stream=io.BytesIO(sent), environ_overrides={"CONTENT_LENGTH": "34"})

        assert answer.status_code == 400
    assert list(db.session.scalars(select(Alert.events))) == [2]


@pytest.mark.parametrize("length", ["9" * 5000, "-1", "\u00b2", "x", "1e1"])
def test_a_length_that_is_none_is_nothing_to_count_on(length, known, post):
    answers = [
        post(None, known=is_known, input_stream=io.BytesIO(b""), environ_overrides={"CONTENT_LENGTH": length})
        for is_known in (True, False)
    ]

    assert answers[0].status_code == answers[1].status_code
    assert answers[0].headers["X-Frame-Options"]


def test_a_body_that_is_larger_than_any_may_be_is_refused(known, post, app):
    assert post(b" " * (app.config["MAX_CONTENT_LENGTH"] + 1)).status_code == 400


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_not_there(method, known, client):
    answers = [client.open(HOOK, method=method, headers={"Authorization": f"Bearer {KEY}"}) for _ in range(2)]

    assert [(answer.status_code, answer.data) for answer in answers] == [(404, b"")] * 2
    assert list(db.session.scalars(select(Alert.events))) == [2]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_key_may_come_in_each_way_that_is_allowed(scheme, known, post, asked):
    assert post(ALERT, headers={"Authorization": f"{scheme} {KEY}"}).status_code == 200
    assert (
        post(ALERT, headers={"Authorization": "Basic YTowMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg=="}).status_code
        == 200
    )
    assert not asked


@pytest.mark.parametrize("given", ["", KEY, f"Digest {KEY}", f"Bearer {KEY}x", "Basic !", "Basic \xe9", "Bearer"])
def test_whatever_is_no_key_lets_nobody_in(given, known, post):
    assert post(ALERT, headers={"Authorization": given}).status_code == 401


@pytest.mark.parametrize("given", ["Basic \xe9", "Basic !", "Bearer \xe9"])
def test_nobody_has_an_answer_of_the_web_server_without_a_place(given, hook, client):
    answers = [client.post("/a/b/prometheus/alerts/notify.json", headers={"Authorization": given}) for _ in range(3)]

    assert {(answer.status_code, answer.headers["X-Frame-Options"]) for answer in answers} == {(404, "SAMEORIGIN")}


def test_with_the_key_of_another_database_nothing_is_taken_in(app, known, post, monkeypatch):
    proven = app.extensions["proven"]
    monkeypatch.setattr(encryption, "prove_key", fail_with(secrets.SecretKeyMissing("another key")))
    try:
        app.extensions["proven"] = None
        assert [post(ALERT).status_code for _ in range(2)] == [503] * 2
    finally:
        app.extensions["proven"] = proven
    assert list(db.session.scalars(select(Alert.events))) == [2]


def test_other_addresses_are_not_taken_for_one_that_is_known(known, app, client):
    path = HOOK.replace("/x/", "/\u00c3\u00a9/")  # which is an e with an accent, read twice
    for _ in range(2):
        client.post(path, data=ALERT, headers={"Authorization": f"Bearer {KEY}"})

    environ = {"PATH_INFO": HOOK.replace("/x/", "/\u00c3\u00a9/"), "REQUEST_METHOD": "POST"}

    assert app.url_map.find(environ) is None
    assert app.url_map.find(environ | {"PATH_INFO": HOOK}) is not None


def test_nothing_of_a_request_is_left_behind(known, post, app):
    assert post(ALERT).status_code == 200

    with app.app_context():
        assert current.environ() is None


def fail_with(error):
    def fail(*_args, **_options):
        raise error

    return fail


def failing(monkeypatch, error):
    """Has alerts that repeat fail; how often that was."""
    failed = []

    def fail(*_args, **_options):
        failed.append(error)
        time.sleep(0.2)
        raise error

    monkeypatch.setattr(ingestion, "_add_to_one", fail)
    return failed


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ZeroDivisionError("a mistake of ours"), 500),
        (sqlalchemy.exc.OperationalError("UPDATE", {}, Exception("it does not answer")), 503),
    ],
)
def test_what_fails_is_answered_and_logged_once_as_for_others(error, status, known, post, monkeypatch, capfd):
    of_usual = failing(monkeypatch, error)
    usual = post(ALERT, known=False, headers={"X-Request-Id": "mine-1"})
    monkeypatch.undo()
    post(ALERT)
    once = failing(monkeypatch, error)
    capfd.readouterr()

    answer = post(ALERT, headers={"X-Request-Id": "mine-1"})

    logged = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert (answer.status_code, answer.data, headers_of(answer)) == (status, usual.data, headers_of(usual))
    assert [line["level"] for line in logged] == ["error", "info"]
    assert {line["request_id"] for line in logged} == {"mine-1"}
    assert len(once) == len(of_usual)

    answer = post(ALERT)

    logged = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert min(logged[1]["seconds"], float(answer.headers["X-Runtime"])) > 0.2
    assert [line["request_id"] for line in logged] == [answer.headers["X-Request-Id"]] * 2
    monkeypatch.undo()
    assert (post(ALERT).status_code, db.session.scalar(select(Alert.events))) == (200, 4)


def test_the_address_of_the_service_is_that_of_the_request(known, post, project, asked):
    db.session.add(IncidentSetting(project_id=project.id, create_issue=True))
    db.session.commit()
    post(ALERT)
    asked.clear()

    for host, name in (("one.example.org", "a"), ("two.example.org:8443", "b")):
        post(json.dumps({"title": name, "fingerprint": name}), base_url=f"https://{host}")

    told = dict(db.session.execute(select(Issue.title, Issue.description)).all())
    assert not asked
    assert "https://one.example.org/acme/shop/" in told["a"]
    assert "https://two.example.org:8443/acme/shop/" in told["b"]
