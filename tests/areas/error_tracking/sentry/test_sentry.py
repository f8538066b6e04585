"""A Sentry server as the backend: its errors are shown, and its failures are reported."""

from __future__ import annotations

import html
import json
import re
import time
from urllib.parse import parse_qs, urlsplit

import pytest
import redis

from project_service.areas.error_tracking.sentry import client, values
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.kit.db.session import db, unit_of_work
from tests.support.remote_servers import raw, reply, serving
from tests.support.sample_data import DEV, RITA
from tests.support.sentry_requests import example

LIST = "/acme/shop/-/error_tracking"
ISSUES = "/api/0/projects/acme/shop/issues/"
LARGE_ID = "9007199254740993"


class FakeRedis:
    """Hashes and keys of Redis in memory; they never expire."""

    def __init__(self):
        self.hashes, self.keys = {}, {}

    def hget(self, name, field):
        return self.hashes.get(name, {}).get(field)

    def hlen(self, name):
        return len(self.hashes.get(name, {}))

    def hset(self, name, field, value):
        self.hashes.setdefault(name, {})[field] = value

    def delete(self, name):
        self.hashes.pop(name, None)

    def set(self, name, value, ex):
        self.keys[name] = (value, ex)

    def exists(self, name):
        return name in self.keys

    def expire(self, name, seconds):
        pass

    def pipeline(self, transaction):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self):
        pass

    def __getattr__(self, name):
        raise redis.ConnectionError("not in this test")


@pytest.fixture
def sentry(as_admin, project):
    """A Sentry server that replays recorded responses; the project's settings refer to it."""
    as_admin.put("/application/settings", json={"outbound_local_requests_whitelist": ["127.0.0.1"]})
    with serving() as server:
        for response in example("sentry-api")["answers"]:
            if response["status"] == 200:
                respond_with(
                    server, response["request"].split()[1].partition("?")[0], response["body"], response["headers"]
                )
        with unit_of_work():
            url = server.url("/api/0/projects/acme/shop")
            db.session.add(ErrorTrackingSetting(project_id=project.id, enabled=True, api_url=url, token="secret"))
        # the response to a change has the URL of the issue
        respond_with(server, f"/api/0/issues/{LARGE_ID}/", recorded("one issue"), {})
        yield server


@pytest.fixture
def cached(app, monkeypatch):
    """An empty cache in memory."""
    monkeypatch.setitem(app.extensions, "redis", FakeRedis())
    return app.extensions["redis"]


def recorded(name):
    responses = example("sentry-api")["answers"]
    return next(response["body"] for response in responses if response["name"] == name)


def respond_with(server, path, body, headers=None, status=200):
    """Let the server respond to a path with JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    header_fields = {name.replace("-", "_"): value for name, value in (headers or {}).items()}
    server.responses[path] = lambda handler: reply(handler, status, content, **header_fields)


def received_requests(server):
    """Return and clear the requests that the server received: method, path and query."""
    requests = []
    for request in server.received:
        method, target, _ = request.line.split()
        parts = urlsplit(target)
        requests.append(
            (method, parts.path, {k: v[0] for k, v in parse_qs(parts.query, keep_blank_values=True).items()})
        )
    server.received.clear()
    return requests


@pytest.fixture
def errors(project):
    return f"/projects/{project.id}/error_tracking/errors"


def test_the_list_comes_from_sentry(sentry, errors, as_):
    response = as_(RITA).get(errors)

    assert [(one["id"], one["count"], one["user_count"], one["status"]) for one in response.json] == [
        (LARGE_ID, 17283, 12, "unresolved"),
        ("12", 1, 0, "unresolved"),
    ]
    first = response.json[0]
    assert first["external_url"] == sentry.url(f"/acme/shop/issues/{LARGE_ID}")
    assert (first["type"], first["message"], first["integrated"]) == ("ZeroDivisionError", "division by zero", False)
    assert 'rel="next"' in response.headers["Link"]
    assert "cursor=1795490000000%3A0%3A0" in response.headers["Link"]
    assert ("X-Total" in response.headers, 'rel="prev"' in response.headers["Link"]) == (False, False)
    assert received_requests(sentry) == [
        ("GET", ISSUES, {"query": "", "limit": "20"}),
        ("GET", "/api/0/projects/acme/shop/", {}),
    ]


def test_filters_are_sent_to_sentry(sentry, errors, as_):
    query = (
        "status=resolved&search=no price&environment=a b&release=1&level=error&order_by=count&cursor=1:2:0&per_page=5"
    )
    as_(RITA).get(f"{errors}?{query}")

    assert received_requests(sentry)[0][2] == {
        "query": 'is:resolved no price environment:"a b" release:1 level:error',
        "limit": "5",
        "sort": "freq",
        "cursor": "1:2:0",
    }
    assert as_(RITA).get(f"{errors}?sort=asc").json == {"message": "Invalid value for sort param"}
    assert as_(RITA).get(f"{errors}?status=resolved,ignored").status_code == 400


@pytest.mark.both_databases
def test_one_error_is_shown_and_resolved_with_its_issue(sentry, errors, as_, project):
    developer, one = as_(DEV), f"{errors}/{LARGE_ID}"

    shown = developer.get(one).json
    linked = developer.post(f"{one}/issue")
    received_requests(sentry)
    resolved = developer.put(one, json={"status": "resolved"})

    assert (shown["first_release"], shown["last_release"]) == ("2.4.0", "0f3c8a52b1c9")
    assert (linked.status_code, linked.json["issue_iid"]) == (201, 1)
    assert (resolved.json["status"], resolved.json["closed_issue_iid"]) == ("resolved", 1)
    assert [request[:2] for request in received_requests(sentry)] == [
        ("GET", f"/api/0/issues/{LARGE_ID}/"),
        ("PUT", f"/api/0/issues/{LARGE_ID}/"),
    ]
    issue = developer.get(f"/projects/{project.id}/issues/1").json
    assert issue["state"] == "closed"
    assert "shop/pricing.py:12 in price_of\n    return total / len(" in issue["description"]
    assert developer.post(f"{one}/issue").status_code == 409
    assert developer.delete(f"{one}/issue").status_code == 204
    assert developer.get(one).json["issue_iid"] is None


def test_an_error_of_another_sentry_project_is_not_found(sentry, errors, as_):
    developer = as_(DEV)
    for base in ("/api/0/", "/api/0/organizations/acme/"):
        respond_with(sentry, f"{base}issues/404404/", {}, status=404)

    for error_id in ("13", "404404", "x"):
        assert developer.get(f"{errors}/{error_id}").json == {"message": "404 Error Not Found"}
        assert developer.put(f"{errors}/{error_id}", json={"status": "resolved"}).status_code == 404
    assert {method for method, _, _ in received_requests(sentry)} == {"GET"}


def test_functions_of_the_integrated_backend_are_refused(sentry, errors, as_, as_admin):
    refused = {"message": "400 Bad request - not available for this backend"}

    assert as_(RITA).get(f"{errors}/{LARGE_ID}/events").json == refused
    assert as_(RITA).get(f"{errors}/{LARGE_ID}/events/latest").json == refused
    assert as_admin.delete(f"{errors}/{LARGE_ID}").json == refused


def test_pages_show_list_and_newest_event(sentry, visit):
    developer = visit(DEV)

    listed = developer.get(LIST).text
    shown = developer.get(f"{LIST}/{LARGE_ID}/details").text

    assert "cursor=1795490000000%3A0%3A0" in listed
    assert f"{LIST}/{LARGE_ID}/details" in listed
    assert received_requests(sentry)[0][2]["query"] == "is:unresolved"
    assert '<mark class="line"><span class="number">12</span>    return total' in shown
    assert f'href="{sentry.url(f"/acme/shop/issues/{LARGE_ID}")}"' in shown
    assert "secret of another project" not in listed
    response = developer.send(f"{LIST}/{LARGE_ID}/status", status="ignored")
    assert (response.status_code, sentry.received[-1].body) == (302, b'{"status":"ignored"}')


def test_the_list_falls_back_to_the_organisation(sentry, errors, as_):
    first = recorded("first page of unresolved issues")
    respond_with(sentry, ISSUES, {}, status=410)
    respond_with(sentry, "/api/0/organizations/acme/issues/", first)
    respond_with(sentry, "/api/0/issues/12/", {}, status=404)
    respond_with(sentry, "/api/0/organizations/acme/issues/12/", first[1])

    assert len(as_(RITA).get(errors).json) == 2
    assert as_(RITA).get(f"{errors}/12").json["title"] == "Stock of article 4711 is low"
    query = next(query for _, path, query in received_requests(sentry) if path == "/api/0/organizations/acme/issues/")
    assert query == {"project": "4501", "groupStatsPeriod": "24h", "query": "", "limit": "20"}


FAULTS = {
    "redirect": (lambda server: server.redirects(ISSUES, "http://127.0.0.1/"), "Sentry response status code: 302"),
    "error": (lambda server: respond_with(server, ISSUES, {}, status=500), "Sentry response status code: 500"),
    "token": (lambda server: respond_with(server, ISSUES, {}, status=401), "Sentry response status code: 401"),
    "size": (
        lambda server: respond_with(server, ISSUES, b"[" + b" " * (2 << 20) + b"]"),
        "Sentry API response is too big. Limit is 1 MB. Got 2097154 bytes.",
    ),
    "no id": (
        lambda server: respond_with(server, ISSUES, [{"title": "x"}]),
        'Sentry API response is missing keys. key not found: "id"',
    ),
    "no JSON": (lambda server: respond_with(server, ISSUES, b"<html>"), "Error when connecting to Sentry"),
    "no list": (lambda server: respond_with(server, ISSUES, {"id": "1"}), "Error when connecting to Sentry"),
    "no HTTP": (lambda server: server.responses.update({ISSUES: raw(b"hello")}), "Error when connecting to Sentry"),
    "slow": (lambda server: server.responses.update({ISSUES: raw(b"x", pause=3)}), "Connection to Sentry timed out"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_failures_of_sentry_are_reported(sentry, errors, as_, visit, monkeypatch, fault):
    set_up, text = FAULTS[fault]
    set_up(sentry)
    monkeypatch.setattr(client, "TOTAL_SECONDS", 1.0)

    response, page = as_(RITA).get(errors), visit(RITA).get(LIST)

    assert (response.status_code, response.json) == (502, {"message": text})
    assert (page.status_code, text.removesuffix(".") in html.unescape(page.text)) == (200, True)
    assert "Check again" in page.text
    assert ("Sentry refuses the token" in page.text) == (fault == "token")


def test_unreachable_urls_are_reported(sentry, errors, as_, visit):
    def answer_for(url):
        with unit_of_work():
            db.session.query(ErrorTrackingSetting).update({"api_url": url})
        return as_(RITA).get(errors).json["message"], visit(RITA).get(f"{LIST}/1/details").status_code

    refused = answer_for("http://127.0.0.1:9/api/0/projects/acme/shop")
    blocked = answer_for("http://10.0.0.1/api/0/projects/acme/shop")
    unknown = answer_for("http://nowhere.invalid/api/0/projects/acme/shop")

    assert refused == ("Connection refused", 200)
    assert (blocked[0][:24], blocked[1]) == ("The address is blocked: ", 200)
    assert unknown == ("Received SocketError when trying to connect to Sentry", 200)


def test_responses_are_cached_for_a_minute_and_used_for_ten_on_failure(sentry, visit, cached, monkeypatch):
    visitor = visit(DEV)
    visitor.get(LIST)
    received_requests(sentry)
    visitor.get(LIST)
    assert received_requests(sentry) == []

    later = time.time() + 200
    monkeypatch.setattr(client.time, "time", lambda: later)
    respond_with(sentry, ISSUES, {}, status=500)
    old = visitor.get(LIST).text
    assert "Sentry response status code: 500. What is shown is from 3 minutes ago." in old
    assert LARGE_ID in old
    visitor.send(f"{LIST}/{LARGE_ID}/status", status="resolved")  # clears the cache
    assert LARGE_ID not in visitor.get(LIST).text


def test_a_rate_limited_server_is_not_requested(sentry, errors, as_, cached):
    respond_with(sentry, ISSUES, {}, {"X-Sentry-Rate-Limit-Reset": str(int(time.time()) + 100)}, status=429)

    responses = [as_(RITA).get(errors) for _ in range(2)]

    assert {response.json["message"] for response in responses} == {"Sentry response status code: 429"}
    assert len(received_requests(sentry)) == 1
    assert 90 < next(iter(cached.keys.values()))[1] <= 100


def test_disabled_settings_show_no_errors_of_sentry(sentry, errors, as_, visit):
    with unit_of_work():
        db.session.query(ErrorTrackingSetting).update({"enabled": False})

    assert "See the errors of your application here" in visit(RITA).get(LIST).text
    assert as_(RITA).get(errors).json == {"message": "404 Error Tracking Setting Not Found"}
    assert visit(RITA).get(f"{LIST}/{LARGE_ID}/details").status_code == 404
    assert received_requests(sentry) == []


@pytest.mark.parametrize("value", [None, True, 7, -1.5, "text", [], {}, [[1]], {"id": 1}, [None, {}]])
def test_responses_of_any_type_are_handled(project, value):
    issue = recorded("one issue")
    event = recorded("latest event of an issue")

    for name in issue:
        if name != "id":
            values.error_of(project, issue | {name: value}, "https://x/", None)
    for name in event:
        values.event_of(event | {name: value})
    for kind in ("exception", "breadcrumbs", "request"):
        shown = values.event_of(
            {
                "entries": [
                    {"type": kind, "data": value},
                    {"type": kind, "data": {"values": [value, {"stacktrace": value}]}},
                ]
            }
        )
        assert re.fullmatch(r"", shown.id)
