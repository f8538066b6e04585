"""Requests that want more than they ask for: another host, more fields than there are, bodies that explode."""

from __future__ import annotations

import re
import time

import pytest

from project_service.kit.db.base import Base
from project_service.kit.db.session import snapshot
from project_service.kit.http import raw_content as raw
from tests.conftest import make_app
from tests.support.route_survey import api_rules, body_of, sent, survey
from tests.support.sample_data import MAX, OLIVE
from tests.support.visitors import addresses as page_addresses

EVIL = "evil.example"
MARK = "smuggled-in-4242424242"
NUMBER = 4242424242
POLICY = "default-src 'none'; frame-ancestors 'none'"
SECONDS = 5.0  # of a machine that does other things as well


HOSTS = {"Host": EVIL, "X-Forwarded-Host": EVIL, "Forwarded": f"host={EVIL}", "X-Original-Host": EVIL}


@pytest.fixture
def known_by_name(app, monkeypatch):
    """The service knows under which address people reach it."""
    monkeypatch.setitem(app.config, "EXTERNAL_URL", "https://projects.example.org")


def speaks_of_it(response):
    return EVIL.encode() in response.data or EVIL in str(response.headers)


def test_no_response_contains_a_forged_host(app, filled, known_by_name):
    told = {address: speaks_of_it(filled.get(address, headers=HOSTS)) for address in survey(app, filled)}

    assert ([address for address, found in told.items() if found], len(told) > 60) == ([], True)


def test_no_page_contains_a_forged_host(app, visit, values, known_by_name):
    visitor = visit(MAX)
    pages = page_addresses(app, "GET", values).values()

    told = {address: speaks_of_it(visitor.get(address, headers=HOSTS)) for address in pages}

    assert ([address for address, found in told.items() if found], len(told) > 30) == ([], True)


FILE_POLICIES = {raw.POLICY, "default-src 'none'; sandbox"}


def test_every_page_has_its_headers(app, visit, values):
    visitor = visit(OLIVE)
    pages = [*page_addresses(app, "GET", values).values(), "/no/such/page", "/users/sign_in"]

    for address in pages:
        headers = visitor.get(address).headers
        if headers["Content-Security-Policy"] in FILE_POLICIES:
            assert re.search("/-/raw/|/uploads/|/avatars?/", address), address
            continue
        policy = dict(part.strip().partition(" ")[::2] for part in headers["Content-Security-Policy"].split(";"))
        assert {policy["default-src"], policy["script-src"], policy["style-src"]} == {"'self'"}, address
        assert (policy["object-src"], policy["base-uri"], policy["form-action"]) == ("'none'", "'none'", "'self'")
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
        assert headers["Cache-Control"] == "no-store", address
        assert headers["Referrer-Policy"] in {"strict-origin-when-cross-origin", "no-referrer"}, address


def test_every_api_response_has_its_headers(app, filled):
    for address in survey(app, filled):
        headers = filled.get(address).headers
        assert headers["X-Content-Type-Options"] == "nosniff", address
        is_file = re.search("/raw$|/uploads/|/avatar$", address.partition("?")[0])
        assert headers["Content-Security-Policy"] in ({POLICY} | FILE_POLICIES if is_file else {POLICY}), address
        assert "Set-Cookie" not in headers


def columns():
    """The names of all columns of all tables."""
    return {column.name for table in Base.metadata.sorted_tables for column in table.columns}


def declared(document, method, path):
    operation = document["paths"]["/api/v4" + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", path)][method.lower()]
    for content in operation.get("requestBody", {}).get("content", {}).values():
        schema = content["schema"]
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return set(schema["properties"])
    return set()


def traces():
    """Where what was smuggled in is stored."""
    with snapshot() as connection:
        return {
            (table.name, str(value)[:60])
            for table in Base.metadata.sorted_tables
            for row in connection.execute(table.select())
            for value in row
            if MARK in str(value) or str(NUMBER) in str(value)
        }


@pytest.mark.sqlite_only
def test_undeclared_fields_change_nothing(app, filled, document, project, group, people, put_back):
    smuggled = columns() - {"sudo", "private_token", "access_token", "page", "per_page"}
    known = {"project": project.id, "group": group.id, "user": people[MAX].id, "namespace": group.id, "key": "A"}
    put_back()
    taken, stored, failed = set(), {}, {}

    for method, path, _rule in api_rules(app, "POST", "PUT", "PATCH"):
        names = smuggled - declared(document, method, path)
        address = re.sub(r"<(?:\w+:)?(\w+)>", lambda part: str(known.get(part[1], 1)), path)
        for value in (MARK, NUMBER):
            body = dict.fromkeys(names, value) | body_of(document, method, path)
            response = filled.open(method, address, **sent(body))
            if response.status_code >= 500:
                failed[method, path] = response.text
            if response.status_code < 300:
                taken.add((method, path))
                stored |= {(method, path): found} if (found := traces()) else {}
                put_back()

    assert (stored, failed, len(taken) > 20, len(smuggled) > 100) == ({}, {}, True, True)


@pytest.mark.parametrize(
    ("body", "statuses"),
    [
        (b"[" * 1_000_000, {400}),
        (b'{"a":' * 1_000_000, {400}),
        (b'{"a":' * 500 + b"1" + b"}" * 500, {400}),
        (b"{" + b",".join(b'"k%d":1' % number for number in range(500_000)) + b"}", {400}),
        (b'{"key":' + b"9" * 1_000_000 + b"}", {400}),
        (b'{"key":1e999999999,"value":"v"}', {400}),
        (b'{"key":"' + b"\\u0000" * 10 + b'"}', {400}),
        (b'{"key":"A","value":"' + b"x" * (9 << 20) + b'"}', {400, 413}),
        (b'{"key":"A","value":"' + b"x" * (11 << 20) + b'"}', {413}),
        (b'{"value":"v"' + b',"key":"A"' * 200_000 + b"}", {201, 400}),
        (b'{"key":["' + b'","'.join([b"x"] * 1_000_000) + b'"]}', {400}),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else "",
)
def test_an_expanding_body_is_refused_quickly(body, statuses, filled, project):
    began = time.process_time()

    response = filled.post(f"/projects/{project.id}/variables", data=body, content_type="application/json")

    assert (response.status_code in statuses, response.status_code) == (True, response.status_code)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize(
    "body",
    [
        "&".join(f"a{number}=1" for number in range(100_000)),
        "a" + "[a]" * 100_000 + "=1",
        "a" + "[]" * 1000 + "=1",
        "a[" * 500_000,
        "&" * 5_000_000,
        "%" * 3_000_000,
        "=" * 3_000_000,
        ";" * 3_000_000,
    ],
    ids=lambda body: body[:12],
)
@pytest.mark.parametrize("place", ["form", "query"])
def test_an_expanding_form_is_refused_quickly(place, body, filled, project):
    if place == "query":
        body = body[:8000]  # the web server takes no longer ones
    began = time.process_time()

    response = (
        filled.get(f"/projects/{project.id}/variables?{body}")
        if place == "query"
        else filled.post(
            f"/projects/{project.id}/variables", data=body, content_type="application/x-www-form-urlencoded"
        )
    )

    assert response.status_code < 500
    assert time.process_time() - began < SECONDS


def test_a_multipart_body_of_many_parts_is_refused_quickly(filled, project):
    part = b'--x\r\nContent-Disposition: form-data; name="a%d"\r\n\r\n1\r\n'
    body = b"".join(part % number for number in range(50_000)) + b"--x--\r\n"
    began = time.process_time()

    response = filled.post(
        f"/projects/{project.id}/variables", data=body, content_type="multipart/form-data; boundary=x"
    )

    assert 400 <= response.status_code < 500
    assert time.process_time() - began < SECONDS


def test_the_host_header_is_used_only_without_a_configured_url(tmp_path):
    app = make_app("sqlite", tmp_path, EXTERNAL_URL="https://projects.example.org")

    response = app.test_client().get("/", headers={"Host": EVIL})

    assert EVIL not in response.headers["Location"]


ODD = (None, "", [None], [], {}, "x" * 300, -1, 2**63 - 1, {"a": None}, False)


@pytest.mark.sqlite_only
@pytest.mark.parametrize("in_turn", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["in turn", "all"])
def test_unusual_parameter_values_cause_no_internal_error(
    in_turn, app, filled, document, project, group, people, put_back
):
    known = {"project": project.id, "group": group.id, "user": people[MAX].id, "namespace": group.id, "key": "A"}
    put_back()
    failed, tried = {}, 0

    # each parameter has one of the values, or all
    for method, path, _rule in api_rules(app, "POST", "PUT", "PATCH"):
        address = re.sub(r"<(?:\w+:)?(\w+)>", lambda part: str(known.get(part[1], 1)), path)
        for name in declared(document, method, path):
            for value in [ODD[tried % len(ODD)]] if in_turn else ODD:
                body = body_of(document, method, path) | {name: value}
                response = filled.open(method, address, **sent(body))
                tried += 1
                if response.status_code >= 500:
                    failed[method, path, name] = value
                if response.status_code < 300:
                    put_back()

    assert (failed, tried > 150) == ({}, True)
