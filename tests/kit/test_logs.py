"""What the log tells, and what it keeps to itself."""

from __future__ import annotations

import json
import logging
import os
import re

import pytest
import structlog
from hypothesis import example, given, settings
from hypothesis import strategies as st

from project_service.kit import logs
from project_service.kit.security.outgoing_http.client import Client
from project_service.kit.security.outgoing_http.rules import Policy
from tests.support.remote_servers import raw

SECRETS = st.text(
    st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="\"'&,;\\#/?@[]{}()<>`|"), min_size=8
).map(lambda text: "Zq9" + text)
NAMES = st.sampled_from(
    [
        "token",
        "private_token",
        "PRIVATE-TOKEN",
        "access_token",
        "job_token",
        "X-Gitlab-Token",
        "password",
        "PASSWORD",
        "passwd",
        "api_key",
        "client_secret",
        "secret_key",
        "private-key",
        "Authorization",
        "cookie",
        "Set-Cookie",
    ]
)


@pytest.fixture
def lines(capfd):
    """What was written, entry by entry."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    written = []

    def read():
        written.extend(json.loads(line) for line in capfd.readouterr().err.splitlines())
        return written

    logs.configure("INFO")
    structlog.contextvars.clear_contextvars()
    yield read
    root.handlers = handlers
    root.setLevel(level)


quickly = settings(max_examples=25, deadline=None)


def written(**entry):
    """How an entry would stand in the log."""
    return logs._dumps(logs.hide_secrets(None, "info", entry))


def test_each_entry_is_one_line_of_json(lines):
    structlog.get_logger("ours").info("something\nhappened", number=5, things=["a", {"b": None}])
    logging.getLogger("theirs").warning("said %s", "so")

    ours, theirs = lines()
    assert (ours["event"], ours["number"], ours["things"]) == ("something\nhappened", 5, ["a", {"b": None}])
    assert (ours["logger"], ours["level"], theirs["logger"], theirs["level"]) == ("ours", "info", "theirs", "warning")
    assert theirs["event"] == "said so"
    assert ours["timestamp"].endswith("Z")


def test_the_level_applies_to_all_loggers(lines):
    structlog.get_logger("ours").debug("too much")
    logging.getLogger("theirs").debug("too much")
    logging.getLogger("rq.worker").info("chatter")

    assert lines() == []


def test_malformed_headers_of_remote_servers_are_not_logged(lines, remote):
    remote.responses["/"] = raw(b"HTTP/1.1 200 OK\r\nBad header line\r\nX-Echo: Ym9iOnB3NzdzZWNyZXQ=\r\n\r\n")

    with Client(Policy(allow_local=True)).request("GET", remote.url()) as response:
        assert response.status == 200

    assert lines() == []


def test_an_entry_contains_bound_values(lines):
    with logs.bound(request_id="abc", task=5):
        structlog.get_logger("ours").info("inside")
        logging.getLogger("theirs").info("inside")
    structlog.get_logger("ours").info("outside")

    inside, theirs, outside = lines()
    assert (inside["request_id"], inside["task"], theirs["request_id"]) == ("abc", 5, "abc")
    assert "request_id" not in outside


def test_an_exception_is_logged_without_secrets(lines):
    try:
        raise LookupError("https://user:Zq9-hidden@example.org failed with token=Zq9-hidden")
    except LookupError:
        structlog.get_logger("ours").exception("failed")
        logging.getLogger("theirs").exception("failed with password=%s", "Zq9-hidden")

    assert all("LookupError" in entry["exception"] for entry in lines())
    assert "Zq9" not in json.dumps(lines())


def test_values_that_are_not_json_are_logged_as_text(lines):
    structlog.get_logger("ours").info("odd", thing=object, number={5: "five"}, raw=b"bytes")

    (entry,) = lines()
    assert "object" in entry["thing"]
    assert entry["number"] == {"5": "five"}


@pytest.mark.parametrize(
    "name",
    [
        "\N{LATIN SMALL LETTER LONG S}ecret",
        "to\N{KELVIN SIGN}en",
        "my_API-Key",
        *(name.replace("i", i) for name in ("authorization", "cookie", "private") for i in "\u0131\u0130I"),
    ],
)
def test_secret_names_are_recognised_in_any_spelling(name):
    assert logs.hide_secrets(None, "info", {name: "Zq9", "event": f"{name}=Zq9"}) == {
        name: logs.HIDDEN,
        "event": f"{name}={logs.HIDDEN}",
    }


@quickly
@given(NAMES, SECRETS)
def test_values_of_secret_names_are_redacted(name, secret):
    entry = {
        "text": {name: secret},
        "list": {name: [secret, {"deep": secret}]},
        "bytes": {name: secret.encode()},
        "inside": [{name: secret}],
        name: secret,
    }

    assert "Zq9" not in written(**entry)


@quickly
@given(NAMES, SECRETS)
def test_secrets_inside_texts_are_redacted(name, secret):
    forms = [
        f"{name}={secret}",
        f"{name}: {secret}",
        f"GET /api/v4/projects?page=2&{name}={secret}&per_page=3 HTTP/1.1",
        f'{{"{name}": "{secret}", "other": 1}}',
        f"{{'{name}': '{secret}'}}",
        f"{name}='{secret} with blanks {secret}'",
        f'{name}="{secret}, {secret}"',
    ]

    assert "Zq9" not in written(event="\n".join(forms), args=[forms], inner={"deep": [forms]})


@quickly
@given(SECRETS)
@example("Zq9000TOKEN")
def test_credentials_of_headers_and_urls_are_redacted(secret):
    texts = [
        f"Authorization: Bearer {secret}",
        f"Authorization: Basic {secret}",
        f"{{'Authorization': 'Bearer {secret}'}}",
        f"Cookie: project_service={secret}; other={secret}",
        f"https://user:{secret}@example.org/path",
        f"https://user:{secret}:{secret}@example.org/path",
        f"https://{secret}@example.org/path",
        f"redis://:{secret}@example.org:6379/0",
        f"postgresql+psycopg://user:{secret}@example.org/database",
    ]

    for text in texts:
        assert "Zq9" not in written(event=text, url=text), text


@pytest.mark.parametrize(
    "text",
    [
        "a request for https://example.org:8080/path?page=2 took 5 s",
        "max@example.org wrote to https://example.org/max@home",
        "the tokenizer made no secretions",
        "token 5 was revoked",
        "redis://localhost:6379/0 answers",
    ],
)
def test_other_values_are_not_redacted(text):
    assert json.loads(written(event=text))["event"] == text


def test_numbers_and_flags_are_not_redacted():
    entry = json.loads(written(token_id=5, password_changed=True, token=None))

    assert entry == {"token_id": 5, "password_changed": True, "token": None}


def test_ids_of_requests_are_random():
    assert len({logs.new_request_id() for _ in range(100)}) == 100
    assert logs.REQUEST_ID.fullmatch(logs.new_request_id())


def test_the_request_log_names_routes_and_never_parameters(app, lines):
    headers = {"PRIVATE-TOKEN": "Zq9-header", "Authorization": "Bearer Zq9-header"}
    browser = app.test_client()

    browser.get("/api/v4/projects/5/variables/Zq9-key?private_token=Zq9-query", headers=headers)
    browser.post("/api/v4/users?password=Zq9-query", json={"password": "Zq9-body"})
    browser.get("/nowhere/Zq9-path?access_token=Zq9-query")

    routes = [entry["route"] for entry in lines() if entry["event"] == "request"]
    assert routes[:2] == ["/api/v4/projects/<project>/variables/<key>", "/api/v4/users"]
    assert len(routes) == 3
    assert "Zq9" not in json.dumps(lines())


def test_readable_lines_have_time_level_message_and_values(capfd, lines):
    logs.configure("INFO", "text")
    structlog.get_logger("shop").info("request", route="/orders", token="never-seen")
    logging.getLogger("library").warning("slow %s", "disk")

    own, foreign = capfd.readouterr().err.splitlines()
    assert re.match(r"\d\d:\d\d:\d\d \[info +\] request .*route=/orders", own)
    assert "never-seen" not in own
    assert re.match(r"\d\d:\d\d:\d\d \[warning +\] slow disk", foreign)


def test_a_terminal_gets_warnings_and_starts_only_unless_a_level_is_set(monkeypatch, capfd, lines):
    monkeypatch.setattr(os, "isatty", lambda _file: True)
    for level in (None, "INFO"):
        logs.configure(level, "json")
        structlog.get_logger("shop").info("request")
        structlog.get_logger("shop").warning("slow")
        logging.getLogger(logs.LIFECYCLE).info("started")

    shown = [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]
    assert shown == ["slow", "started", "request", "slow", "started"]


def test_a_terminal_gets_coloured_lines_unless_json_is_wanted(monkeypatch, capfd, lines):
    monkeypatch.setattr(os, "isatty", lambda _file: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    logs.configure("INFO")
    structlog.get_logger("shop").info("request")
    logs.configure("INFO", "json")
    structlog.get_logger("shop").info("request")

    for_people, for_programs = capfd.readouterr().err.splitlines()
    assert "\x1b[" in for_people
    assert json.loads(for_programs)["event"] == "request"
