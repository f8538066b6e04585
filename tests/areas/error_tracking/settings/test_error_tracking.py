"""Error-tracking settings through HTTP (error tracking reference), and their page."""

from __future__ import annotations

import html
import json
import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sqlalchemy import text

from project_service.areas.error_tracking.settings import service
from project_service.areas.error_tracking.settings.models import ErrorTrackingSetting
from project_service.domain import instance_settings
from project_service.domain.accounts.users import BLOCKED
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.security.outgoing_http import client, rules
from tests.support import sample_data, visitors
from tests.support.sample_data import ADA, DEV, GUS, MAX, NOBODY, OLIVE, RITA, SAM

URL = "https://errors.example.org/api/0/projects/acme/shop-frontend"
TOKEN = "a-token-nobody-reads"
ADDRESSES = {
    "errors.example.org": "203.0.113.7",
    "inside.example.org": "10.1.2.3",
    "both.example.org": "203.0.113.8 127.0.0.1",
}
BODY = {
    "active": True,
    "project_name": "Shop Frontend",
    "tracker_external_url": "https://errors.example.org/acme/shop-frontend",
    "sentry_external_url": "https://errors.example.org/acme/shop-frontend",
    "api_url": URL,
    "integrated": False,
}
INTEGRATED = dict.fromkeys(BODY) | {"active": True, "integrated": True}
NO_RECORD = {"message": "404 Error Tracking Setting Not Found"}
NO_PROJECT = {"message": "404 Project Not Found"}
REQUIRED = ["is a required field"]
PAGE = "/acme/shop/-/settings/operations"
NOTICE = re.compile(r'<div class="notice (good|bad)"[^>]*>(.*?)</div>', re.DOTALL)
OPERATIONS = [("GET", {}), ("PATCH", {"active": True}), ("PUT", {"active": True, "integrated": False})]
visit = visitors.visit  # the fixture of the page tests


@pytest.fixture(autouse=True)
def host_addresses(monkeypatch):
    """Addresses by host name, space-separated; a function returns them at the time of the lookup."""
    addresses_by_host = dict(ADDRESSES)
    validate = rules.validate

    def resolve(host, port, family=0, kind=0):
        entry = addresses_by_host.get(host)
        if entry is None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        addresses = entry if isinstance(entry, str) else entry()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses.split()]

    def validate_with_resolver(url, policy, resolver=None, *, resolve_seconds=10.0):
        return validate(url, policy, resolve, resolve_seconds=resolve_seconds)

    monkeypatch.setattr(rules, "validate", validate_with_resolver)
    return addresses_by_host


def settings(project):
    return f"/projects/{project.id}/error_tracking/settings"


def all_responses(client, project):
    """Return the responses of the three operations."""
    return [client.open(method, settings(project), json=sent) for method, sent in OPERATIONS]


def stored(project):
    return db.session.query(ErrorTrackingSetting).filter_by(project_id=project.id).populate_existing().one_or_none()


def token_at_rest():
    return db.session.scalar(text("SELECT token FROM error_tracking_settings"))


@pytest.fixture
def fill(project):
    """Save the settings of the shop as its page does; ``None`` removes a field."""

    def save(**fields):
        form = {"enabled": True, "integrated": False, "api_url": URL, "token": TOKEN, "store_addresses": False}
        form |= {"organization_name": "", "project_name": "", "hidden_keys": [], "resolve_after_days": 0} | fields
        service.save(project, form, service.url_problems(form["api_url"], instance_settings.outgoing_policy()))
        db.session.commit()
        return stored(project)

    return save


# Permissions and the order of checks


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("person", [ADA, OLIVE, MAX])
def test_maintainers_and_higher_roles_may_do_everything(person, archived, project, fill, as_):
    fill()
    sample_data.reload(project).archived = archived
    db.session.commit()

    responses = all_responses(as_(person), project)

    assert [(response.status_code, response.json) for response in responses] == [(200, BODY)] * 3


@pytest.mark.parametrize(
    ("person", "status", "message"),
    [
        (DEV, 403, "403 Forbidden"),
        (RITA, 403, "403 Forbidden"),
        (GUS, 403, "403 Forbidden"),
        (SAM, 404, "404 Project Not Found"),
        (NOBODY, 401, "401 Unauthorized"),
    ],
)
@pytest.mark.parametrize("filled", [True, False])
def test_other_roles_are_refused_with_and_without_a_record(filled, person, status, message, project, fill, as_):
    if filled:
        fill(enabled=False)

    responses = all_responses(as_(person), project)

    assert [(response.status_code, response.json) for response in responses] == [(status, {"message": message})] * 3
    assert not filled or stored(project).enabled is False


@pytest.mark.parametrize("visibility", ["internal", "public"])
def test_non_members_get_403_and_anonymous_callers_401(visibility, as_):
    project = sample_data.make_project(visibility=visibility)

    assert [response.status_code for response in all_responses(as_(SAM), project)] == [403] * 3
    assert [response.status_code for response in all_responses(as_(NOBODY), project)] == [401] * 3


def test_a_missing_project_is_401_for_anonymous_callers_and_404_for_users(project, as_):
    project.id = 4711

    assert {response.status_code for response in all_responses(as_(NOBODY), project)} == {401}
    assert [response.json for response in all_responses(as_(ADA), project)] == [NO_PROJECT] * 3


@pytest.mark.parametrize(("method", "missing"), [("PATCH", ""), ("PUT", ", integrated is missing")])
def test_parameters_are_validated_before_the_project(method, missing, project, as_):
    callers = (ADA, MAX, DEV, GUS, SAM)
    responses = [as_(person).open(method, settings(project)) for person in callers]
    project.id = 4711
    responses += [as_(person).open(method, settings(project)) for person in callers]

    error = f"active is missing, active is empty{missing}"
    assert [(response.status_code, response.json) for response in responses] == [(400, {"error": error})] * 10


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_anonymous_callers_get_401_before_other_errors(method, project, as_):
    response = as_(NOBODY).open(method, settings(project), json={"active": "randomstring"})

    assert (response.status_code, response.json) == (401, {"message": "401 Unauthorized"})


def test_a_read_only_token_cannot_switch(project, fill, people, client_of):
    fill()
    client = client_of(people[MAX], "read_api")

    responses = [*all_responses(client, project), client.patch(settings(project), json={"active": "nonsense"})]

    assert [response.status_code for response in responses] == [200, 403, 403, 403]
    assert {response.json["error"] for response in responses[1:]} == {"insufficient_scope"}


def test_tokens_with_other_scopes_and_expired_tokens_are_refused(project, fill, people, client_of):
    fill()
    other, old = client_of(people[MAX], "read_user"), client_of(people[MAX], expires_at=clock.today())

    assert [response.status_code for response in all_responses(other, project)] == [403] * 3
    assert [response.json["error"] for response in all_responses(old, project)] == ["invalid_token"] * 3


def test_blocked_users_are_refused(project, fill, people, client_of):
    fill()
    client = client_of(people[MAX])
    sample_data.reload(people[MAX]).state = BLOCKED
    db.session.commit()

    assert {response.json["message"] for response in all_responses(client, project)} == {
        "403 Forbidden - Your account has been blocked."
    }


@pytest.mark.parametrize("method", ["GET", "PATCH"])
def test_without_settings_show_and_switch_are_404(method, project, as_maintainer):
    response = as_maintainer.open(method, settings(project), json={"active": False})

    assert (response.status_code, response.json) == (404, NO_RECORD)
    assert stored(project) is None


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_settings_have_no_post_or_delete_route(method, project, as_):
    responses = [as_(person).open(method, settings(project)) for person in (MAX, NOBODY)]

    assert [response.status_code for response in responses] == [405, 401]


# Show


def test_settings_have_exactly_these_keys(project, fill, as_maintainer):
    fill()

    assert as_maintainer.get(settings(project)).text == json.dumps(BODY, separators=(",", ":"))


def test_a_stored_name_is_shown_unchanged(project, fill, as_maintainer):
    fill(project_name="the SHOP")

    assert as_maintainer.get(settings(project)).json == BODY | {"project_name": "the SHOP"}


def test_a_blank_name_is_null(project, fill, as_maintainer):
    fill(project_name=" \t")

    assert as_maintainer.get(settings(project)).json == BODY


@pytest.mark.parametrize(
    ("slug", "name"),
    [("sentry-project", "Sentry Project"), ("shop", "Shop"), ("a_b-c", "A B C"), ("shop/", "Shop"), ("v2", "V2")],
)
def test_without_a_name_the_last_part_of_the_url_is_shown(slug, name, project, fill, as_maintainer):
    url = f"https://errors.example.org/api/0/projects/acme/{slug}"
    fill(api_url=url)

    shown = as_maintainer.get(settings(project)).json

    assert (shown["project_name"], shown["api_url"]) == (name, url)
    assert shown["tracker_external_url"] == f"https://errors.example.org/acme/{slug}"


def test_settings_without_a_url_have_null_fields(project, fill, as_maintainer):
    fill(enabled=False, api_url=None, token=None)

    shown = as_maintainer.get(settings(project))

    assert shown.json == dict.fromkeys(BODY) | {"active": False, "integrated": False}


@pytest.mark.parametrize(
    "address", ["/projects/{}/error_tracking/settings/", "/projects/acme%2Fshop{}", "/projects/ACME%2Fshop{}/"]
)
def test_the_project_is_found_by_id_or_path_with_a_trailing_slash_too(address, project, fill, as_maintainer):
    fill()
    path = address.format(project.id if "error" in address else "/error_tracking/settings")

    assert as_maintainer.get(path).json == BODY
    assert as_maintainer.patch(path, json={"active": False}).json == BODY | {"active": False}


# Switch


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "active is missing, active is empty"),
        ({"active": ""}, "active is empty"),
        ({"active": None}, "active is empty"),
        ({"active": "randomstring"}, "active is invalid"),
        ({"active": 2}, "active is invalid"),
        ({"active": []}, "active is invalid"),
        ({"active": {"a": 1}}, "active is invalid"),
        ({"active": True, "integrated": "perhaps"}, "integrated is invalid"),
        ({"active": "x", "integrated": "z"}, "active is invalid, integrated is invalid"),
    ],
)
def test_an_invalid_switch_changes_nothing(fields, error, project, fill, as_maintainer):
    fill()

    response = as_maintainer.patch(settings(project), json=fields)

    assert (response.status_code, response.json) == (400, {"error": error})
    assert as_maintainer.get(settings(project)).json == BODY


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        (True, True),
        ("true", True),
        ("1", True),
        (1, True),
        ("on", True),
        ("YES", True),
        (False, False),
        ("f", False),
        (0, False),
    ],
)
def test_a_switch_accepts_many_spellings(active, expected, project, fill, as_maintainer):
    fill(enabled=not expected)

    response = (
        as_maintainer.patch(settings(project), data={"active": str(active)})
        if isinstance(active, str)
        else (as_maintainer.patch(settings(project), json={"active": active}))
    )

    assert (response.status_code, response.json) == (200, BODY | {"active": expected})
    assert stored(project).enabled is expected


def test_switching_changes_only_the_flag_and_is_idempotent(project, fill, as_maintainer):
    fill(project_name="Shop", organization_name="Acme")

    responses = [
        as_maintainer.patch(f"{settings(project)}?active={active}") for active in ("false", "false", "true", "true")
    ]

    assert [response.json["active"] for response in responses] == [False, False, True, True]
    row = stored(project)
    assert (row.api_url, row.token, row.project_name, row.organization_name) == (URL, TOKEN, "Shop", "Acme")
    assert {response.json["api_url"] for response in responses} == {URL}


@pytest.mark.parametrize(
    ("missing", "messages"),
    [
        ({"api_url": None}, {"api_url": REQUIRED}),
        ({"token": None}, {"token": REQUIRED}),
        ({"api_url": None, "token": None}, {"api_url": REQUIRED, "token": REQUIRED}),
    ],
)
def test_an_incomplete_record_cannot_be_enabled(missing, messages, project, fill, as_maintainer):
    fill(enabled=False, **missing)

    response = as_maintainer.patch(settings(project), json={"active": True})

    assert (response.status_code, response.json) == (400, {"message": messages})
    assert stored(project).enabled is False


def test_an_incomplete_record_can_be_disabled(project, fill, as_maintainer):
    fill(enabled=False, api_url=None, token=None)

    assert as_maintainer.patch(settings(project), json={"active": False}).status_code == 200


@pytest.mark.parametrize("active", [True, False])
def test_switching_makes_no_dns_request(active, host_addresses, project, fill, as_maintainer):
    fill()
    requested_hosts = []
    host_addresses["errors.example.org"] = lambda: requested_hosts.append("errors.example.org") or "10.0.0.1"

    response = as_maintainer.patch(settings(project), json={"active": active})

    assert (response.status_code, response.json["active"], requested_hosts) == (200, active, [])


@pytest.mark.both_databases
def test_changes_are_not_recorded_as_events(project, fill, as_maintainer):
    fill()
    as_maintainer.patch(settings(project), json={"active": False})

    assert as_maintainer.get(f"/projects/{project.id}/events").json == []


# The integrated tracker


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, "active is missing, active is empty, integrated is missing"),
        ({"active": True}, "integrated is missing"),
        ({"integrated": True}, "active is missing, active is empty"),
        ({"active": "", "integrated": True}, "active is empty"),
        ({"active": True, "integrated": "invalid_string"}, "integrated is invalid"),
        ({"active": "x", "integrated": "z"}, "active is invalid, integrated is invalid"),
    ],
)
def test_invalid_settings_are_not_created(fields, error, project, as_maintainer):
    response = as_maintainer.put(settings(project), json=fields)

    assert (response.status_code, response.json) == (400, {"error": error})
    assert stored(project) is None


def test_the_integrated_backend_needs_no_other_field(project, as_maintainer):
    created = as_maintainer.put(settings(project), json={"active": True, "integrated": True})
    disabled, enabled = (as_maintainer.patch(settings(project), json={"active": active}) for active in (False, True))

    assert (created.status_code, created.json) == (200, INTEGRATED)
    assert (disabled.status_code, disabled.json) == (200, INTEGRATED | {"active": False})
    assert (enabled.status_code, enabled.json, as_maintainer.get(settings(project)).json) == (
        200,
        INTEGRATED,
        INTEGRATED,
    )


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_switching_to_the_integrated_backend_keeps_the_sentry_settings(method, project, fill, as_maintainer):
    fill()

    to_integrated = as_maintainer.open(method, settings(project), json={"active": True, "integrated": True})
    to_sentry = as_maintainer.open(method, settings(project), json={"active": True, "integrated": False})

    assert (
        to_integrated.json["integrated"],
        to_integrated.json["api_url"],
        to_integrated.json["tracker_external_url"],
    ) == (True, None, None)
    assert (to_sentry.status_code, to_sentry.json) == (200, BODY)


def test_incomplete_sentry_settings_are_not_created(project, as_maintainer):
    response = as_maintainer.put(settings(project), json={"active": True, "integrated": False})

    assert (response.status_code, response.json) == (400, {"message": {"api_url": REQUIRED, "token": REQUIRED}})
    assert stored(project) is None


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_an_active_record_needs_a_backend(method, project, as_maintainer):
    as_maintainer.put(settings(project), json={"active": True, "integrated": True})

    response = as_maintainer.open(method, settings(project), json={"active": True, "integrated": False})

    assert (response.status_code, response.json) == (400, {"message": {"api_url": REQUIRED, "token": REQUIRED}})
    assert as_maintainer.get(settings(project)).json == INTEGRATED


@pytest.mark.parametrize("integrated", [None, ""])
def test_a_missing_integrated_flag_keeps_its_value(integrated, project, as_maintainer):
    sent = {"active": False, "integrated": integrated}

    created = as_maintainer.put(settings(project), json=sent)
    as_maintainer.put(settings(project), json={"active": True, "integrated": True})
    updated = [as_maintainer.open(method, settings(project), json=sent) for method in ("PUT", "PATCH")]

    assert (created.status_code, created.json["integrated"]) == (200, False)
    assert [(response.status_code, response.json["integrated"]) for response in updated] == [(200, True)] * 2


def test_inactive_settings_may_be_emptied(project, as_maintainer):
    response = as_maintainer.put(settings(project), json={"active": False, "integrated": False})

    assert (response.status_code, response.json) == (200, dict.fromkeys(BODY) | {"active": False, "integrated": False})


@pytest.mark.both_databases
def test_concurrent_requests_create_one_record(project, client_of, people):
    client, start = client_of(people[MAX]), threading.Barrier(6)

    def put(_number):
        start.wait()
        sent = {"active": True, "integrated": True}
        headers = {"PRIVATE-TOKEN": client.token}
        return client.browser.open(f"/api/v4{settings(project)}", method="PUT", json=sent, headers=headers).status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(put, range(6)))

    assert set(statuses) <= {200, 409}
    assert 200 in statuses
    assert stored(project).integrated is True


# Validation of the record


def refusal(fill, **fields):
    with pytest.raises(Invalid) as raised:
        fill(**fields)
    db.session.rollback()
    return raised.value.message


@pytest.mark.parametrize("token", [TOKEN, None])
@pytest.mark.parametrize("url", [URL, None])
@pytest.mark.parametrize("enabled", [True, False])
def test_active_settings_are_complete(enabled, url, token, project, fill):
    fields = {"enabled": enabled, "api_url": url, "token": token}
    missing = {name: REQUIRED for name in ("api_url", "token") if fields[name] is None}

    if enabled and missing:
        assert refusal(fill, **fields) == missing
    else:
        assert (fill(**fields).api_url, stored(project).enabled) == (url, enabled)


PROJECT_URLS = (
    URL,
    f"{URL}/",
    f"{URL}//",
    "http://errors.example.org:9000/api/0/projects/a/b",
    "https://errors.example.org/api/0/projects/my.org/my_shop-2",
    "https://203.0.113.7/api/0/projects/a/b",
    "https://[2a00:1450::1]/api/0/projects/a/b",
    "https://nowhere.example.org/api/0/projects/a/b",
    f"https://errors.example.org/api/0/projects/a/{'b' * 211}",
)


def test_valid_urls_are_accepted(project, fill, as_maintainer):
    shown = []
    for url in PROJECT_URLS:
        fill(api_url=url)
        shown.append(as_maintainer.get(settings(project)).json["api_url"])

    assert shown == [*PROJECT_URLS]


INVALID_PROJECT_URLS = (
    (f"https://errors.example.org/api/0/projects/a/{'b' * 212}", "is too long (maximum is 255 characters)"),
    ("ftp://errors.example.org/api/0/projects/a/b", "is blocked: Only allowed schemes are http, https"),
    ("javascript:alert(1)", "is blocked: Only allowed schemes are http, https"),
    ("errors.example.org/api/0/projects/a/b", "is blocked: Only allowed schemes are http, https"),
    ("https://errörs.example.org/api/0/projects/a/b", "is blocked: URI is invalid"),
    ("https://errors.example.org/api/0/projects/a/b c", "is blocked: URI is invalid"),
    ("https://errors.example.org:0/api/0/projects/a/b", "is blocked: URI is invalid"),
    ("https://-x/api/0/projects/a/b", "is blocked: Hostname or IP address invalid"),
    ("https:///api/0/projects/a/b", "is blocked: Hostname or IP address invalid"),
    ("http://localhost/api/0/projects/a/b", "is blocked: Requests to localhost are not allowed"),
    ("http://127.0.0.1/api/0/projects/a/b", "is blocked: Requests to loopback addresses are not allowed"),
    ("http://0x7f.1/api/0/projects/a/b", "is blocked: Requests to loopback addresses are not allowed"),
    ("http://inside.example.org/api/0/projects/a/b", "is blocked: Requests to the local network are not allowed"),
    ("http://both.example.org/api/0/projects/a/b", "is blocked: Requests to loopback addresses are not allowed"),
    ("http://169.254.169.254/api/0/projects/a/b", "is blocked: Requests to the link local network are not allowed"),
    ("https://errors.example.org", "is invalid"),
    ("https://errors.example.org/", "is invalid"),
    ("https://errors.example.org/acme/shop", "is invalid"),
    ("https://errors.example.org/api/0/projects/acme", "is invalid"),
    ("https://errors.example.org/api/0/projects/acme/shop/more", "is invalid"),
    ("https://errors.example.org/tracker/api/0/projects/acme/shop", "is invalid"),
    ("https://errors.example.org/api/0/projects/acme/<script>", "is invalid"),
    ("https://errors.example.org/api/1/projects/acme/shop", "is invalid"),
    (f"{URL}?secret=1", "is invalid"),
    (f"{URL}#top", "is invalid"),
    ("https://ada:pw@errors.example.org/api/0/projects/acme/shop", "is invalid"),
)


@pytest.mark.parametrize("enabled", [True, False])
def test_invalid_urls_are_refused(enabled, fill):
    refusals = [(url, refusal(fill, api_url=url, enabled=enabled)) for url, _ in INVALID_PROJECT_URLS]

    assert refusals == [(url, {"api_url": [message]}) for url, message in INVALID_PROJECT_URLS]


@pytest.mark.parametrize("slash", ["", "/"])
def test_a_url_without_a_project_is_refused(slash, fill):
    url = f"https://errors.example.org/api/0/projects{slash}"

    assert refusal(fill, api_url=url) == {"project": REQUIRED}


def test_local_addresses_need_permission_of_an_administrator(project, fill, as_admin):
    as_admin.put("/application/settings", json={"outbound_local_requests_whitelist": ["10.0.0.0/8"]})

    fill(api_url="http://inside.example.org/api/0/projects/a/b")

    assert stored(project).api_url == "http://inside.example.org/api/0/projects/a/b"


def test_a_changed_url_drops_the_token(project, fill):
    fill()

    assert refusal(fill, api_url=f"{URL}-two", token=None) == {"token": REQUIRED}
    assert fill(api_url=f"{URL}-two", token=None, enabled=False).token is None


def test_a_changed_url_with_a_token_stores_that_token(project, fill):
    fill()

    assert fill(api_url=f"{URL}-two", token="another").token == "another"


@pytest.mark.parametrize("token", ["", None])
def test_an_unchanged_url_keeps_the_token(token, project, fill):
    fill()

    assert fill(project_name="New", token=token).token == TOKEN


@pytest.mark.both_databases
def test_the_token_is_encrypted_and_never_shown(project, fill, as_maintainer, visit):
    fill()

    page = visit(MAX).get(PAGE)
    responses = [response.text for response in all_responses(as_maintainer, project)]

    assert TOKEN not in token_at_rest()
    assert "A token is stored." in page.text
    assert not [shown for shown in (page.text, *responses) if TOKEN in shown]


@pytest.mark.both_databases
def test_settings_are_removed_with_their_project(project, fill, as_, run_jobs):
    fill()

    as_(OLIVE).delete(f"/projects/{project.id}")
    run_jobs()

    assert db.session.query(ErrorTrackingSetting).count() == 0


# The page


FORM = {"api_url": URL, "token": TOKEN, "enabled": "y", "backend": "sentry"}


def send(visitor, **fields):
    return visitor.send(f"{PAGE}/error_tracking", **(FORM | fields))


def test_the_api_shows_what_the_page_saves(project, visit, as_maintainer):
    response = send(visit(MAX), organization_name="Acme")

    assert (response.status_code, response.headers["Location"]) == (302, PAGE)
    assert as_maintainer.get(settings(project)).json == BODY
    assert (stored(project).organization_name, stored(project).token) == ("Acme", TOKEN)


@pytest.mark.parametrize(
    ("person", "status"), [(ADA, 302), (OLIVE, 302), (MAX, 302), (DEV, 403), (GUS, 403), (SAM, 404), (NOBODY, 302)]
)
def test_the_page_has_the_permissions_of_the_api(person, status, project, visit):
    response = send(visit(person))

    assert response.status_code == status
    assert (stored(project) is not None) == (person in (ADA, OLIVE, MAX))


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (
            {"api_url": "http://127.0.0.1/api/0/projects/a/b"},
            "is blocked: Requests to loopback addresses are not allowed",
        ),
        ({"api_url": "https://errors.example.org"}, "is invalid"),
        ({"api_url": "https://errors.example.org/api/0/projects/"}, "Project is a required field"),
        ({"api_url": ""}, "is a required field"),
        ({"token": ""}, "is a required field"),
    ],
)
def test_the_page_shows_errors_and_saves_nothing(fields, shown, project, visit):
    response = send(visit(MAX), **fields)

    assert response.status_code == 422
    assert shown in response.text
    assert TOKEN not in response.text
    assert stored(project) is None


def test_the_server_of_sentry_chosen_on_the_page_replaces_the_integrated_backend(project, visit, as_maintainer):
    as_maintainer.put(settings(project), json={"active": True, "integrated": True})
    visitor = visit(MAX)

    refused = send(visitor, api_url="http://127.0.0.1/api/0/projects/a/b")
    unchanged = as_maintainer.get(settings(project)).json
    saved = send(visitor)

    assert (refused.status_code, unchanged) == (422, INTEGRATED)
    assert (saved.status_code, as_maintainer.get(settings(project)).json) == (302, BODY)


def test_the_page_can_disable_the_integrated_backend(project, visit, as_maintainer):
    as_maintainer.put(settings(project), json={"active": True, "integrated": True})

    response = visit(MAX).send(f"{PAGE}/error_tracking", api_url="", token="", backend="integrated")

    assert response.status_code == 302
    assert as_maintainer.get(settings(project)).json == INTEGRATED | {"active": False}


@pytest.mark.both_databases
def test_no_lock_is_held_during_a_dns_request(host_addresses, project, visit, as_admin):
    written = []

    def look_up():
        written.append(can_write(as_admin))
        return "203.0.113.7"

    host_addresses["slow.example.org"] = look_up

    response = send(visit(MAX), api_url="https://slow.example.org/api/0/projects/a/b")

    assert (response.status_code, written) == (302, [True])


def can_write(client):
    """Return whether another client can write while a request is in progress."""
    pool = ThreadPoolExecutor(1)
    headers = {"PRIVATE-TOKEN": client.token}
    written = pool.submit(
        client.browser.open, "/api/v4/features/x", method="POST", json={"value": "true"}, headers=headers
    )
    try:
        return written.result(4.0).status_code == 201
    except TimeoutError:
        return False
    finally:
        pool.shutdown(wait=False)


# Test connection


class Tracker(ThreadingHTTPServer):
    """A local Sentry server; ``response`` is called with the handler of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.response = lambda handler: None
        self.requests: list[tuple[str, str | None]] = []

    def handle_error(self, request, client_address) -> None:
        """Ignore clients that disconnect."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/api/0/projects/acme/shop"

    def responds_with(self, status, body=b"", **headers):
        def respond(handler):
            handler.send_response(status)
            for name, value in headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(body)))
            handler.end_headers()
            handler.wfile.write(body)

        self.response = respond


class _Answering(BaseHTTPRequestHandler):
    server: Tracker

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers.get("Authorization")))
        self.server.response(self)

    def log_message(self, format: str, *args) -> None:
        """Write no log."""


@pytest.fixture
def tracker(as_admin) -> Iterator[Tracker]:
    """A Sentry server whose address and port the outbound request settings allow."""
    server = Tracker()
    allowed = [f"127.0.0.1:{server.server_port}"]
    as_admin.put("/application/settings", json={"outbound_local_requests_whitelist": allowed})
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def outcome(response):
    """Return whether the test succeeded, and the message of the page."""
    assert response.status_code == 200, response.text
    kind, message = NOTICE.search(response.text).groups()
    return kind == "good", html.unescape(message)


NO_TRACKER = "Something answers, but not as an error tracker does."


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (200, b'{"name":"Shop <b>"}', (True, "Connected: the tracker knows the project Shop <b>.")),
        (200, b'{"slug":"shop"}', (True, "Connected: the tracker knows the project shop.")),
        (200, b"{}", (True, "Connected.")),
        (200, b"null", (False, NO_TRACKER)),
        (200, b"[]", (False, NO_TRACKER)),
        (200, b"<html>", (False, NO_TRACKER)),
        (200, b"\xff", (False, NO_TRACKER)),
        (200, b"", (False, NO_TRACKER)),
        (204, b"", (False, "The tracker answered with status 204.")),
        (401, b"{}", (False, "The tracker refuses the token (401).")),
        (403, b"{}", (False, "The tracker refuses the token (403).")),
        (404, b"{}", (False, "The tracker does not know this organisation and project (404).")),
        (500, b"{}", (False, "The tracker answered with status 500.")),
    ],
)
def test_the_response_of_sentry_is_shown(status, body, message, tracker, project, visit):
    tracker.responds_with(status, body)

    response = send(visit(MAX), api_url=tracker.url, test="1")

    assert outcome(response) == message
    assert tracker.requests == [("/api/0/projects/acme/shop/", f"Bearer {TOKEN}")]
    assert stored(project).api_url == tracker.url


def test_a_connection_test_uses_the_stored_token(tracker, project, fill, visit):
    tracker.responds_with(200, b"{}")
    fill(api_url=tracker.url)

    send(visit(MAX), api_url=tracker.url, token="", test="1")

    assert tracker.requests[0][1] == f"Bearer {TOKEN}"


def test_inactive_settings_can_be_tested(tracker, project, visit):
    tracker.responds_with(200, b"{}")

    response = visit(MAX).send(f"{PAGE}/error_tracking", api_url=tracker.url, token=TOKEN, backend="sentry", test="1")

    assert outcome(response) == (True, "Connected.")


def test_a_connection_test_needs_url_and_token(project, visit):
    response = visit(MAX).send(f"{PAGE}/error_tracking", api_url="", token="", backend="integrated", test="1")

    assert outcome(response) == (False, "Fill in the address and the token first.")


def test_a_redirect_to_a_blocked_address_is_not_followed(tracker, project, visit):
    tracker.responds_with(302, Location="http://127.0.0.1:1/secret")

    response = send(visit(MAX), api_url=tracker.url, test="1")

    assert outcome(response) == (False, "The address is blocked: Requests to loopback addresses are not allowed.")
    assert len(tracker.requests) == 1


@pytest.mark.both_databases
def test_a_redirect_to_another_host_does_not_send_the_token(tracker, project, visit, as_admin):
    other = Tracker()
    other.responds_with(200, b"{}")
    threading.Thread(target=other.serve_forever, args=[0.01], daemon=True).start()
    as_admin.put("/application/settings", json={"outbound_local_requests_whitelist": ["127.0.0.1"]})
    tracker.responds_with(302, Location=other.url)

    response = send(visit(MAX), api_url=tracker.url, test="1")
    other.shutdown()
    other.server_close()

    assert outcome(response) == (True, "Connected.")
    assert other.requests == [("/api/0/projects/acme/shop", None)]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:1/api/0/projects/a/b", "The tracker cannot be reached: Request to 127.0.0.1:1 failed: "),
        (
            "http://nowhere.example.org/api/0/projects/a/b",
            "The address is blocked: Host cannot be resolved or invalid.",
        ),
    ],
)
def test_an_unreachable_sentry_server_is_reported(url, expected, project, visit, as_admin):
    as_admin.put("/application/settings", json={"outbound_local_requests_whitelist": ["127.0.0.1"]})

    succeeded, message = outcome(send(visit(MAX), api_url=url, test="1"))

    assert (succeeded, message.startswith(expected)) == (False, True)


def test_a_name_that_now_resolves_to_a_private_address_is_refused(host_addresses, tracker, project, visit):
    responses = iter(["203.0.113.7", "10.0.0.1"])
    host_addresses["turning.example.org"] = lambda: next(responses)

    response = send(visit(MAX), api_url="http://turning.example.org/api/0/projects/a/b", test="1")

    assert outcome(response) == (False, "The address is blocked: Requests to the local network are not allowed.")


def test_an_endless_response_is_aborted(tracker, project, visit):
    tracker.responds_with(200, b" " * (service.MAX_RESPONSE_BYTES + 1))

    succeeded, message = outcome(send(visit(MAX), api_url=tracker.url, test="1"))

    assert (succeeded, "has more than 1048576 bytes" in message) == (False, True)


def test_an_invalid_token_is_refused_without_repeating_it(tracker, project, visit):
    succeeded, message = outcome(send(visit(MAX), api_url=tracker.url, token="tökèn–✓", test="1"))

    assert (succeeded, "characters that cannot be sent" in message, "tökèn" in message) == (False, True, False)


@pytest.fixture
def _short_timeouts(monkeypatch):
    original = client.Client
    monkeypatch.setattr(
        client, "Client", lambda policy, **_timeouts: original(policy, read_timeout=0.2, total_timeout=20.0)
    )


@pytest.mark.usefixtures("_short_timeouts")
def test_a_silent_sentry_server_times_out(tracker, project, visit):
    tracker.response = lambda handler: time.sleep(30)

    succeeded, message = outcome(send(visit(MAX), api_url=tracker.url, test="1"))

    assert (succeeded, message.endswith("failed: timed out.")) == (False, True)


def test_no_lock_is_held_during_a_request_to_sentry(tracker, project, visit, as_admin):
    written = []

    def respond(handler):
        written.append(can_write(as_admin))
        tracker.responds_with(200, b"{}")
        tracker.response(handler)

    tracker.response = respond

    result = outcome(send(visit(MAX), api_url=tracker.url, test="1"))

    assert (result, written) == ((True, "Connected."), [True])
