"""Pages of alert integrations: configuration by maintainers, test alerts by developers."""

from __future__ import annotations

import html
import itertools
import json
import re
import shlex
from urllib.parse import urlsplit

import pytest

from project_service.areas.alerts import queries
from project_service.areas.alerts.models import (
    HTTP,
    OPSGENIE,
    PROMETHEUS,
    Alert,
    AlertIntegration,
    FormerAddress,
    IncidentSetting,
)
from project_service.areas.alerts.payloads import payload_mapping as mapping
from project_service.domain.projects import RedirectRoute
from project_service.domain.tracker.environments import Environment
from project_service.kit import clock
from project_service.kit.db.session import db
from tests.support import sample_data
from tests.support.git_repositories import keep_repository
from tests.support.sample_data import ADA, DEV, GUS, MAX, OLIVE, RITA, SAM
from tests.support.visitors import store

OPERATIONS = "/acme/shop/-/settings/operations"
NEW = f"{OPERATIONS}/integrations/new"
KEY = "0123456789abcdef" * 2
EVENT = {"title": "Oven cold", "at": "2026-03-04T05:06:07Z", "hosts": ["a", "b"], "code": 7, "up": True, "of": None}
SAMPLE = json.dumps({"event": EVENT})
OTHER_SAMPLE = json.dumps({"event": {"title": "Oven cold"}})
TITLE = '["event","title"]'
SINGLE = ["event/title", "event/at", "event/hosts[0]", "event/hosts[1]", "event/code", "event/up"]
BATCH = json.dumps(
    dict.fromkeys(("groupKey", "status", "receiver", "groupLabels", "commonLabels", "commonAnnotations"), "x")
    | {"externalURL": "x", "version": "4"}
    | {"alerts": [{"status": "firing", "labels": {"alertname": "Latency"}, "startsAt": "2026-03-04T05:06:07Z"}]}
)


def make_integration(project, **fields):
    fields = {"name": "Kitchen", "active": True, "endpoint_identifier": "1f", "token": KEY, "mapping": {}} | fields
    return store(AlertIntegration(project_id=project.id, **fields))


@pytest.fixture
def integration(project):
    return make_integration(project)


def page_of(row, name):
    return f"{OPERATIONS}/integrations/{row.id}/{name}"


def stored():
    db.session.remove()
    return db.session.query(AlertIntegration).order_by(AlertIntegration.id).all()


def titles():
    db.session.remove()
    return [alert.title for alert in db.session.query(Alert).order_by(Alert.iid)]


def credentials(response):
    """Return the URL and key that the credentials page shows."""
    matches = [
        re.search(f'id="{name}" value="([^"]+)"', response.text) for name in ("webhook-url", "authorization-key")
    ]
    return tuple(html.unescape(one.group(1)) for one in matches)


def options(response, target):
    """Return the options of the select of an alert field: label → whether selected; without sample values."""
    select = re.search(f'<select id="map_{target}".*?</select>', response.text, re.DOTALL).group()
    matches = re.findall(r'<option value="[^"]+"( selected)?>([^<:]*):', select)
    return {html.unescape(label): bool(selected) for selected, label in matches}


def stored_as(response, target):
    """Return the stored value that the form shows for an alert field."""
    cell = re.search(rf'id="stored-{target}"[^>]*>(.*?)</div>', response.text, re.DOTALL)[1]
    return " ".join(html.unescape(re.sub("<[^>]+>", "", cell)).split())


def send_alert(visitor, address, key, body):
    """Send an alert as a monitoring tool does."""
    headers = {"Authorization": f"Bearer {key}"}
    return visitor.open("POST", urlsplit(address).path, json=body, headers=headers).status_code


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"type": HTTP, "name": "Shop Monitoring"}, r"/acme/shop/alerts/notify/shop-monitoring/[0-9a-f]{16}\.json"),
        ({"type": HTTP, "name": "厨房"}, r"/acme/shop/alerts/notify/http-endpoint/[0-9a-f]{16}\.json"),
        ({"type": HTTP, "name": "x" * 255}, rf"/acme/shop/alerts/notify/{'x' * 63}/[0-9a-f]{{16}}\.json"),
        ({"type": PROMETHEUS, "name": "Prom"}, r"/acme/shop/prometheus/alerts/notify\.json"),
        ({"type": PROMETHEUS, "name": " "}, r"/acme/shop/prometheus/alerts/notify\.json"),
    ],
)
def test_saving_an_integration_shows_its_url_and_key(fields, path, maintainer, project):
    response = maintainer.send(NEW, active="y", **fields)
    page = maintainer.get(response.location)
    [row] = stored()
    address, key = credentials(page)

    assert (response.status_code, response.location) == (302, page_of(row, "credentials"))
    assert "Integration successfully saved" in page.text
    assert (row.type, row.name, row.active) == (fields["type"], fields["name"].strip() or "Prometheus", True)
    assert re.fullmatch(path, urlsplit(address).path)
    assert (key, re.fullmatch("[0-9a-f]{32}", key) is not None) == (row.token, True)


def test_the_oldest_endpoint_keeps_its_short_url(maintainer, project):
    row = make_integration(project, endpoint_identifier="legacy")

    address, key = credentials(maintainer.get(page_of(row, "credentials")))

    assert (urlsplit(address).path, key) == ("/acme/shop/alerts/notify.json", KEY)
    assert send_alert(maintainer, address, key, {}) == 200


def test_an_opsgenie_integration_has_its_own_url_and_no_key(maintainer, project):
    fields = {"type": OPSGENIE, "name": "Ops", "active": "y", "target_url": "https://ops.example/alerts"}

    response = maintainer.send(NEW, test="1", **fields)
    page = maintainer.get(response.location)

    assert response.location == page_of(stored()[0], "credentials")
    assert "leads to https://ops.example/alerts" in page.text
    assert ("Authorization key" in page.text, stored()[0].token in page.text) == (False, False)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": ""}, "Name can't be blank"),
        ({"name": "  "}, "Name can't be blank"),
        ({"name": "x" * 256}, "Name is too long (maximum is 255 characters)"),
        ({"type": "pager"}, "Not a valid choice"),
        ({"type": OPSGENIE, "active": "y"}, "Opsgenie URL can't be blank"),
        ({"type": OPSGENIE, "target_url": "ftp://ops.example"}, "is blocked: Only allowed schemes are http, https"),
        ({"type": OPSGENIE, "target_url": "https://"}, "is blocked: Hostname or IP address invalid"),
        *(
            ({"type": OPSGENIE, "target_url": f"http://{host}/"}, f"Opsgenie URL is blocked: Requests to {target}")
            for host, target in {
                "localhost": "localhost",
                "127.0.0.1": "loopback",
                "[::1]:90": "loopback",
                "10.0.0.7": "the local network",
                "0xa.1": "the local network",
                "169.254.169.254": "the link local",
            }.items()
        ),
        ({"payload_example": "{"}, "Sample payload is not valid JSON"),
        ({"payload_example": "[1]"}, "Sample payload has to be a JSON object"),
        ({"payload_example": '{"a":' * 101 + "1" + "}" * 101}, "Sample payload is too big"),
    ],
)
def test_an_invalid_integration_shows_errors_and_is_not_stored(fields, message, maintainer, project):
    response = maintainer.send(NEW, **{"type": HTTP, "name": "Kitchen"} | fields)

    assert (response.status_code, message in html.unescape(response.text)) == (422, True)
    assert stored() == []


@pytest.mark.parametrize(("kind", "words"), [(HTTP, 0), (PROMETHEUS, 1)])
def test_the_command_on_the_credentials_page_works(kind, words, maintainer, visit, project):
    page = maintainer.get(maintainer.send(NEW, type=kind, name="Kitchen", active="y").location).text
    command = shlex.split(html.unescape(re.search(r'<code id="curl">(.*?)</code>', page, re.DOTALL)[1]))
    headers = dict(text.split(": ") for option, text in itertools.pairwise(command) if option == "--header")
    body = json.loads(command[command.index("--data") + 1])

    response = visit(None).open("POST", urlsplit(command[-1]).path, json=body, headers=headers)

    assert (response.status_code, len(titles()), page.count("webhook_configs")) == (200, 1, words)
    assert "grouped by" in page


def test_integrations_of_a_type_have_distinct_names(maintainer, project):
    for kind, name in ((PROMETHEUS, ""), (PROMETHEUS, ""), (HTTP, "Kitchen"), (HTTP, "Kitchen"), (HTTP, "Kitchen")):
        maintainer.send(NEW, type=kind, name=name)
    maintainer.send(page_of(stored()[4], "edit"), name="Kitchen 2")

    assert [row.name for row in stored()] == ["Prometheus", "Prometheus 2", "Kitchen", "Kitchen 2", "Kitchen 2 2"]


@pytest.mark.parametrize(("person", "words"), [(MAX, "switch it on"), (DEV, "a maintainer switches it on")])
def test_the_test_page_of_an_inactive_integration_warns(person, words, visit, project):
    row = make_integration(project, active=False)

    page = visit(person).get(page_of(row, "test")).text

    assert ("a test alert will be refused until" in page, words in page) == (True, True)


def test_the_credentials_page_shows_old_urls_and_their_last_use(maintainer, project, integration):
    store(RedirectRoute(path="acme/till", project_id=project.id))
    store(RedirectRoute(path="acme/cellar", project_id=project.id))
    store(FormerAddress(integration_id=integration.id, path="acme/till", last_used_at=clock.now()))

    pages = [maintainer.get(address).text for address in (page_of(integration, "credentials"), OPERATIONS)]

    shown = [" ".join(re.sub("<[^>]+>", " ", page[page.index("Old addresses") :]).split()) for page in pages]
    assert "http://localhost/acme/cellar/alerts/notify/kitchen/1f.json : not used since" in shown[0]
    assert "http://localhost/acme/till/alerts/notify/kitchen/1f.json : last used just now" in shown[0]
    assert "acme/cellar none not used since the change acme/till Kitchen just now" in shown[1]


def test_the_sample_of_a_link_is_ignored(maintainer, project):
    fields = {"type": OPSGENIE, "payload_example": "{", "parsed_example": SAMPLE, "map_title": TITLE}

    refused = maintainer.send(NEW, name="x" * 256, **fields)
    response = maintainer.send(NEW, name="Kitchen", **fields)

    assert (refused.status_code, "payload_example-wrong" in refused.text) == (422, False)
    assert response.status_code == 302
    assert [(row.type, row.payload_example, row.mapping) for row in stored()] == [(OPSGENIE, None, {})]


def test_the_test_of_a_prometheus_integration_starts_without_a_sample(maintainer, project):
    row = make_integration(project, type=PROMETHEUS, payload_example=SAMPLE)

    assert "Oven cold" not in maintainer.get(page_of(row, "test")).text


def test_an_inactive_opsgenie_integration_needs_no_url(maintainer, project):
    response = maintainer.send(NEW, type=OPSGENIE, name="Ops")
    page = maintainer.get(response.location)

    assert (response.status_code, [row.active for row in stored()]) == (302, [False])
    assert "This integration is not active" in page.text
    assert "leads to its address instead" in page.text


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [(HTTP, OPSGENIE, "while other integrations are active"), (OPSGENIE, HTTP, "beside Opsgenie")],
)
def test_opsgenie_and_other_integrations_are_not_active_together(first, second, message, maintainer, project):
    make_integration(project, type=first, target_url="https://ops.example")
    fields = {"type": second, "name": "Second", "target_url": "https://ops.example"}

    both = maintainer.send(NEW, active="y", **fields)
    waiting = maintainer.send(NEW, **fields)

    assert (both.status_code, message in both.text) == (422, True)
    assert (waiting.status_code, [row.active for row in stored()]) == (302, [True, False])


def test_a_new_form_has_no_fields_to_map(maintainer, project):
    page = maintainer.get(NEW)

    assert (page.status_code, "Add new integration" in page.text) == (200, True)
    assert [f'name="{name}"' in page.text for name in ("type", "name", "active", "payload_example")] == [True] * 4
    assert "map_title" not in page.text


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("title", SINGLE),
        ("start_time", [*(label for label in SINGLE if label != "event/up"), "event/of"]),
        ("end_time", [*(label for label in SINGLE if label != "event/up"), "event/of"]),
        ("hosts", [*SINGLE, "event/hosts"]),
        ("severity", SINGLE),
    ],
)
def test_a_parsed_sample_offers_matching_fields(target, labels, maintainer, project):
    page = maintainer.send(NEW, type=HTTP, name="Kitchen", payload_example=SAMPLE, parse="1")

    assert page.status_code == 200
    assert options(page, target).keys() == set(labels)
    assert stored() == []


def test_an_invalid_sample_shows_an_error(maintainer, integration):
    fields = {"type": HTTP, "name": "Kitchen", "payload_example": "{", "parse": "1"}

    pages = [maintainer.send(NEW, **fields), maintainer.send(page_of(integration, "edit"), **fields)]

    assert [page.status_code for page in pages] == [200, 200]
    assert all("Sample payload is not valid JSON" in page.text for page in pages)
    assert not any("map_title" in page.text for page in pages)


def test_the_preview_shows_the_alert_that_the_sample_makes(maintainer, project):
    fields = {"type": HTTP, "name": "Kitchen", "payload_example": SAMPLE, "parse": "1"}
    plain = maintainer.send(NEW, parsed_example=SAMPLE, **fields)
    hosts, end = '["event","hosts"]', '["event","at"]'
    mapped = maintainer.send(NEW, parsed_example=SAMPLE, map_title=TITLE, map_hosts=hosts, map_end_time=end, **fields)

    assert (stored_as(plain, "title"), "<dd>Triggered</dd>" in plain.text) == ("New: Alert", True)
    assert options(mapped, "title")["event/title"] is True
    assert (stored_as(mapped, "title"), stored_as(mapped, "hosts"), stored_as(mapped, "start_time")) == (
        "Oven cold",
        "a, b",
        "time of receipt",
    )
    assert ("<dd>Resolved</dd>" in mapped.text, ">event/hosts: [&#34;a&#34;,&#34;b&#34;]<" in mapped.text) == (
        True,
        True,
    )


def test_the_first_parse_of_an_unknown_sample_suggests_fields(maintainer, project):
    page = maintainer.send(NEW, type=HTTP, name="Kitchen", payload_example=SAMPLE, parse="1")

    assert (options(page, "title")["event/title"], options(page, "hosts")["event/hosts"]) == (True, True)
    assert (stored_as(page, "title"), page.text.count('<span class="muted">suggested</span>')) == ("Oven cold", 2)


def test_suggested_severities_are_in_the_preview_as_they_are_saved(maintainer, project):
    sample = '{"title": "Oven cold", "severity": "P2"}'

    page = maintainer.send(NEW, type=HTTP, name="Kitchen", payload_example=sample, parse="1")

    assert ('name="severity_word" value="p2"' in page.text, "is not a severity" in page.text) == (True, False)


def test_the_severity_table_of_a_chosen_tool_is_shown(maintainer, project):
    row = 'name="severity_word" value="disaster"'
    form = maintainer.send(NEW, type="zabbix", severities_of="", parse="1")
    live = maintainer.send(f"{OPERATIONS}/integrations/preview", type="zabbix", severities_of="")
    same = maintainer.send(f"{OPERATIONS}/integrations/preview", type="zabbix", severities_of="zabbix")

    assert [row in page.text for page in (form, live, same)] == [True, True, False]
    assert 'name="severities_of" value="zabbix"' in live.text


def test_a_mapping_is_stored_shown_again_and_used_by_the_receiver(maintainer, project):
    fields = {"type": HTTP, "name": "Kitchen", "active": "y", "payload_example": SAMPLE, "parsed_example": SAMPLE}
    response = maintainer.send(NEW, map_title=TITLE, **fields)
    [row] = stored()
    address, key = credentials(maintainer.get(response.location))

    assert row.mapping == {"title": {"path": ["event", "title"], "type": "string", "label": "event/title"}}
    assert row.payload_example == SAMPLE
    assert options(maintainer.get(page_of(row, "edit")), "title")["event/title"] is True
    assert send_alert(maintainer, address, key, {"event": {"title": "Oven on fire"}, "title": "Ignored"}) == 200
    assert titles() == ["Oven on fire"]


@pytest.mark.parametrize("key", ['["event","hosts"]', '["event","gone"]', "nonsense"])
def test_an_invalid_mapping_shows_the_error_at_its_field(key, maintainer, integration):
    fields = {"name": "Kitchen", "payload_example": SAMPLE, "parsed_example": SAMPLE, "map_title": TITLE}

    response = maintainer.send(page_of(integration, "edit"), map_start_time=key, **fields)

    error = re.search(r'<p class="wrong" id="map_start_time-wrong">([^<]*)</p>', response.text)
    assert (response.status_code, stored()[0].mapping) == (422, {})
    assert error[1].startswith("Start time cannot be mapped to this")
    assert options(response, "title")["event/title"] is True
    assert 'id="map_title-wrong"' not in response.text


def test_a_sample_with_too_many_fields_keeps_mapped_ones(maintainer, project, monkeypatch):
    monkeypatch.setattr(mapping, "MAX_FIELDS", 2)
    stored_mapping = {"title": {"path": ["c"], "type": "string", "label": "c"}}
    samples = [json.dumps(dict.fromkeys(keys, "x")) for keys in ("abcd", "ab")]
    long, short = (
        make_integration(
            project,
            payload_example=text,
            mapping=stored_mapping if "c" in text else {},
            endpoint_identifier=str(number),
        )
        for number, text in enumerate(samples)
    )

    pages = [maintainer.get(page_of(one, "edit")) for one in (long, short)]

    assert [options(page, "title") for page in pages] == [
        {"a": False, "b": False, "c": True},
        {"a": False, "b": False},
    ]
    assert ["only the first 2 are offered" in page.text for page in pages] == [True, False]


def test_a_sample_may_have_crlf_line_ends(maintainer, project):
    text = json.dumps({"event": EVENT}, indent=1)
    fields = {"payload_example": text.replace("\n", "\r\n"), "parsed_example": text.replace("\n", "\r\n")}

    response = maintainer.send(NEW, type=HTTP, name="Kitchen", map_title=TITLE, **fields)

    assert (response.status_code, stored()[0].payload_example) == (302, text)
    assert list(stored()[0].mapping) == ["title"]


def test_a_changed_sample_has_to_be_mapped_again(maintainer, integration):
    one = page_of(integration, "edit")
    fields = {"name": "Kitchen", "payload_example": OTHER_SAMPLE, "parsed_example": SAMPLE, "map_title": TITLE}

    saved = maintainer.send(one, **fields)
    parsed = maintainer.send(one, parse="1", **fields)

    assert (saved.status_code, "was changed: parse it and map its fields again" in saved.text) == (422, True)
    assert (options(parsed, "title"), stored()[0].mapping) == ({"event/title": False}, {})


def test_without_a_sample_there_is_no_mapping(maintainer, project):
    mapping = {"title": {"path": ["event", "title"], "type": "string", "label": "event/title"}}
    row = make_integration(project, payload_example=SAMPLE, mapping=mapping)

    response = maintainer.send(page_of(row, "edit"), name="Kitchen", active="y", payload_example="")

    assert response.status_code == 302
    assert [(one.payload_example, one.mapping) for one in stored()] == [(None, {})]


def test_an_integration_is_edited_and_keeps_type_identifier_and_key(maintainer, integration):
    one = page_of(integration, "edit")

    response = maintainer.send(one, type=PROMETHEUS, name="Bakery", payload_example="")
    refused = maintainer.send(one, name="")

    [row] = stored()
    assert (response.status_code, refused.status_code) == (302, 422)
    assert (row.type, row.name, row.active, row.endpoint_identifier, row.token) == (HTTP, "Bakery", False, "1f", KEY)


def test_save_and_test_opens_the_test_page(maintainer, project):
    response = maintainer.send(NEW, type=HTTP, name="Kitchen", active="y", payload_example=SAMPLE, test="1")
    page = maintainer.get(response.location)

    assert response.location == page_of(stored()[0], "test")
    assert ("Test payload" in page.text, "Oven cold" in page.text) == (True, True)


def test_a_reset_key_replaces_the_old_key_at_once(maintainer, integration):
    address, old = credentials(maintainer.get(page_of(integration, "credentials")))
    confirmation = maintainer.get(page_of(integration, "reset_key"))
    before = send_alert(maintainer, address, old, {})

    page = maintainer.get(maintainer.send(page_of(integration, "reset_key")).location)
    _, new = credentials(page)

    assert ("Reset the authorization key of Kitchen?" in confirmation.text, before) == (True, 200)
    assert ("The old one no longer works" in page.text, new == old) == (True, False)
    assert (send_alert(maintainer, address, old, {}), send_alert(maintainer, address, new, {})) == (401, 200)


def test_a_deleted_integration_receives_nothing_and_its_alerts_stay(maintainer, integration):
    address, key = credentials(maintainer.get(page_of(integration, "credentials")))
    send_alert(maintainer, address, key, {"title": "Kept"})
    page = maintainer.get(page_of(integration, "delete"))

    response = maintainer.send(page_of(integration, "delete"))

    assert "Delete Kitchen?" in page.text
    assert (response.location, stored()) == (f"{OPERATIONS}#alerts", [])
    assert "The integration has been successfully removed." in maintainer.get(response.location).text
    assert (send_alert(maintainer, address, key, {}), titles()) == (403, ["Kept"])


def test_the_list_shows_which_integrations_are_active(maintainer, project):
    empty = maintainer.get(OPERATIONS).text
    make_integration(project)
    make_integration(project, name="Prom", type=PROMETHEUS, active=False, endpoint_identifier="2f")

    page = maintainer.get(OPERATIONS).text
    rows = re.findall(r'">(Enabled|Disabled)</span>.*?Integration Name">(\w+)<.*?Type">([^<]+)<', page, re.DOTALL)

    assert ("No integrations have been added yet." in empty, "Add new integration" in empty) == (True, True)
    assert rows == [("Disabled", "Prom", "Prometheus"), ("Enabled", "Kitchen", "HTTP Endpoint")]
    assert KEY not in page


def test_developers_see_no_keys_and_may_send_test_alerts(visit, integration):
    developer = visit(DEV)
    shown = [developer.get(OPERATIONS), developer.get(page_of(integration, "test"))]

    sent = developer.get(developer.send(page_of(integration, "test"), payload='{"title": "A try"}').location)

    assert [page.status_code for page in shown] == [200, 200]
    assert ("Send test alert" in shown[0].text, "Add new integration" in shown[0].text) == (True, False)
    assert not any(KEY in page.text or "View credentials" in page.text for page in (*shown, sent))
    assert ("has been successfully sent" in sent.text, titles()) == (True, ["A try"])


def test_developers_cannot_open_the_incident_settings(visit, project):
    page = visit(DEV).get(f"{OPERATIONS}?alerts=settings")

    assert (page.status_code, "No integrations have been added yet." in page.text) == (200, True)
    assert ("create_issue" in page.text, "Alert settings" in page.text) == (False, False)


@pytest.mark.parametrize(
    ("person", "configures", "tries"),
    [(ADA, 200, 200), (OLIVE, 200, 200), (DEV, 403, 200), (RITA, 403, 404), (GUS, 403, 404), (SAM, 404, 404)],
)
def test_roles_that_open_the_pages_of_an_integration(person, configures, tries, visit, integration):
    visitor = visit(person)
    pages = ("edit", "credentials", "reset_key", "delete")

    statuses = [visitor.get(page_of(integration, name)).status_code for name in pages]

    assert [*statuses, visitor.get(NEW).status_code] == [configures] * 5
    assert visitor.get(page_of(integration, "test")).status_code == tries


@pytest.mark.parametrize(("person", "status"), [(DEV, 403), (RITA, 403), (SAM, 404)])
def test_roles_that_cannot_change_an_integration(person, status, visit, integration):
    visitor = visit(person)
    addresses = [NEW, f"{OPERATIONS}/alerts", *(page_of(integration, name) for name in ("edit", "reset_key", "delete"))]

    statuses = [visitor.send(address, name="Mine", type=HTTP).status_code for address in addresses]

    assert statuses == [status] * 5
    assert [(row.name, row.token) for row in stored()] == [("Kitchen", KEY)]


def test_an_integration_of_another_project_is_not_found(visit, project):
    row = make_integration(sample_data.make_project("elsewhere"))
    admin = visit(ADA)

    statuses = [admin.get(page_of(row, name)).status_code for name in ("edit", "credentials", "test", "delete")]

    assert statuses == [404] * 4


@pytest.mark.parametrize(
    ("fields", "payload", "message"),
    [
        ({}, "", "can't be blank"),
        ({}, " ", "can't be blank"),
        ({}, "{", "Integration payload is invalid."),
        ({}, "[]", "Integration payload is invalid."),
        ({"active": False}, "{}", "The integration is currently inactive."),
        ({"type": PROMETHEUS}, "{}", "Integration payload is invalid. It is no body of an Alertmanager webhook"),
    ],
)
def test_a_failed_test_alert_shows_the_reason(fields, payload, message, visit, project):
    row = make_integration(project, **fields)

    response = visit(DEV).send(page_of(row, "test"), payload=payload)

    assert (response.status_code, message in html.unescape(response.text)) == (422, True)
    assert ("successfully sent" in response.text, titles()) == (False, [])


@pytest.mark.parametrize("kind", [HTTP, PROMETHEUS])
def test_a_batch_is_accepted_as_test_alert(kind, maintainer, project):
    row = make_integration(project, type=kind)

    response = maintainer.send(page_of(row, "test"), payload=BATCH)
    pages = [maintainer.get(response.location).text for _ in "ab"]

    assert response.status_code == 302
    assert (["successfully sent" in page for page in pages], titles()) == ([True, True], ["Latency"])


def test_an_empty_test_batch_does_not_link_to_the_list(maintainer, project):
    row = make_integration(project, type=PROMETHEUS)

    response = maintainer.send(page_of(row, "test"), payload=json.dumps(json.loads(BATCH) | {"alerts": [{}]}))
    page = maintainer.get(response.location).text

    assert ("there is no alert in it" in page, "successfully sent" in page) == (True, False)


def test_the_settings_of_alerts_are_saved(maintainer, project):
    before = maintainer.get(f"{OPERATIONS}?alerts=settings").text
    response = maintainer.send(f"{OPERATIONS}/alerts", create_issue="y")
    after = maintainer.get(response.location).text
    assert ["have been successfully saved" in page for page in (before, after)] == [False, True]
    names = ("create_issue", "auto_close_incident")

    def checked(text):
        return [re.search(f'<input[^>]* id="{name}"[^>]*>', text).group().count("checked") for name in names]

    row = db.session.query(IncidentSetting).one()
    assert (checked(before), checked(after)) == ([0, 1], [1, 0])
    assert (row.create_issue, row.auto_close_incident) == (True, False)
    assert maintainer.send(f"{OPERATIONS}/alerts").status_code == 302
    assert db.session.query(IncidentSetting).one().create_issue is False


def test_a_template_is_chosen_among_those_of_the_repository(maintainer, project, tmp_path):
    keep_repository(project, tmp_path / "git", files={".gitlab/issue_templates/Outage.md": b"Who?"})
    before = maintainer.get(f"{OPERATIONS}?alerts=settings").text

    refused = maintainer.send(f"{OPERATIONS}/alerts", issue_template_key="Outrage")
    response = maintainer.send(f"{OPERATIONS}/alerts", issue_template_key="Outage")

    assert '<option value="Outage">Outage</option>' in before
    assert (refused.status_code, "not found" in refused.text) == (422, True)
    assert '<option selected value="Outage">Outage</option>' in maintainer.get(response.location).text


def test_one_endpoint_may_have_the_short_url(maintainer, visit, project):
    fields = {"type": "http", "active": "y", "short_address": "y"}

    first = maintainer.send(NEW, name="Old", **fields)
    second = maintainer.send(NEW, name="Older", **fields)

    address, key = credentials(maintainer.get(first.location))
    assert address == "http://localhost/acme/shop/alerts/notify.json"
    assert send_alert(visit(None), address, key, {"title": "Still here"}) == 200
    assert (second.status_code, "belongs to another endpoint" in html.unescape(second.text)) == (422, True)
    assert "Short address" not in maintainer.get(NEW).text


def test_a_concurrent_claim_of_the_short_url_is_refused(maintainer, project, monkeypatch):
    fields = {"type": "http", "active": "y", "short_address": "y"}
    maintainer.send(NEW, name="Old", **fields)
    monkeypatch.setattr(
        queries, "has_short_address", lambda project: False
    )  # both requests check before the other commits

    response = maintainer.send(NEW, name="Older", **fields)

    assert (response.status_code, "belongs to another endpoint" in html.unescape(response.text)) == (422, True)


def test_only_http_endpoints_have_a_short_url(maintainer, project):
    maintainer.send(NEW, type="prometheus", active="y", short_address="y")

    assert stored()[0].endpoint_identifier != "legacy"


def test_an_unknown_tab_opens_the_first(visit, integration):
    page = visit(MAX).get(f"{OPERATIONS}?alerts=nonsense")

    assert (page.status_code, "Kitchen" in page.text) == (200, True)


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({}, ["Paste a sample payload"]),
        ({"payload_example": "{"}, ["is not valid JSON"]),
        (
            {"payload_example": '{"title": "Oven <cold>"}'},
            ["Oven &lt;cold&gt;", "Critical", "Triggered", "Fingerprint"],
        ),
        ({"payload_example": '{"end_time": "2026-03-04T05:06:07Z"}'}, ["Resolved", "4 Mar 2026 05:06:07 UTC"]),
        (
            {"payload_example": SAMPLE, "parsed_example": SAMPLE, "map_title": TITLE},
            ['<div id="stored-title">Oven cold', "grouped by all fields except start_time, end_time and hosts."],
        ),
        (
            {"payload_example": SAMPLE, "parsed_example": SAMPLE, "map_end_time": '["event","at"]'},
            ["grouped by all fields except start_time, end_time, hosts and event/at.", "Map a fingerprint"],
        ),
        (
            {"payload_example": SAMPLE, "parsed_example": SAMPLE, "map_fingerprint": '["event","code"]'},
            ["grouped by event/code or fingerprint; without it, by all fields except start_time"],
        ),
        (
            {"payload_example": SAMPLE, "parsed_example": "{}", "map_title": TITLE},
            ['<div id="stored-title">New: Alert', "has changed"],
        ),
        (
            {"payload_example": '{"start_time": "soon"}'},
            ["<code>soon</code> in <code>start_time</code> cannot be read"],
        ),
        ({"payload_example": '{"severity": "sev1"}'}, ["Critical<br>", "“sev1” is not a severity"]),
        ({"payload_example": '{"gitlab_environment_name": "Prod"}'}, ["not an environment of this project yet"]),
        ({"payload_example": "{}", "type": PROMETHEUS}, ["no body of an Alertmanager webhook"]),
        ({"payload_example": BATCH, "type": PROMETHEUS}, ["Latency", "Prometheus"]),
    ],
)
def test_the_preview_follows_the_form_and_stores_nothing(fields, texts, maintainer, project):
    response = maintainer.send(f"{OPERATIONS}/integrations/preview", **{"type": HTTP} | fields)

    assert (response.status_code, [text for text in texts if text not in response.text]) == (200, [])
    assert "<html" not in response.text
    assert stored() == []


def test_an_existing_environment_is_not_marked_as_new(maintainer, project):
    store(Environment(project_id=project.id, name="Prod", slug="prod"))
    sample = {"payload_example": '{"gitlab_environment_name": "Prod"}'}

    page = maintainer.send(f"{OPERATIONS}/integrations/preview", type=HTTP, **sample).text

    assert ("<dd>Prod" in page, "not an environment" in page) == (True, False)


def test_mapped_single_values_are_stored_as_text(maintainer, visit, project):
    sample = json.dumps({"a": 7, "b": 1.5, "c": False, "d": [1, "x", True], "e": None})
    mapped = {"title": "a", "description": "b", "service": "c", "hosts": "d", "monitoring_tool": "a", "end_time": "e"}
    fields = {f"map_{target}": json.dumps([key]) for target, key in mapped.items()}
    texts = {"payload_example": sample, "parsed_example": sample}
    response = maintainer.send(NEW, type=HTTP, name="Kitchen", active="y", **texts, **fields)

    sent = [send_alert(visit(None), *credentials(maintainer.get(response.location)), json.loads(sample)) for _ in "ab"]

    [alert] = db.session.query(Alert)
    assert (sent, alert.events, alert.status) == ([200, 200], 2, 0)
    assert (alert.title, alert.description, alert.service, alert.monitoring_tool) == ("7", "1.5", "false", "7")
    assert alert.hosts == ["1", "x", "true"]


@pytest.mark.parametrize(("person", "status"), [(DEV, 403), (SAM, 404)])
def test_only_maintainers_see_a_preview(person, status, visit, project):
    assert visit(person).send(f"{OPERATIONS}/integrations/preview", type=HTTP).status_code == status


def test_ignored_times_are_shown_by_the_test_and_the_alert(maintainer, project):
    row = make_integration(project, mapping={"end_time": {"path": ["closed"], "type": "string"}})
    payload = json.dumps({"title": "A <b>", "start_time": "soon <b>", "closed": "04/13/2026"})

    pages = [maintainer.get(maintainer.send(page_of(row, "test"), payload=payload).location) for _ in range(2)]
    pages.append(maintainer.get("/acme/shop/-/alert_management/1/details"))
    valid = maintainer.get(maintainer.send(page_of(row, "test"), payload='{"title": "A <b>"}').location).text

    for page in pages:
        assert "<code>soon &lt;b&gt;</code> in <code>start_time</code> cannot be read as a time" in page.text
        assert "<code>04/13/2026</code> in <code>closed</code> cannot be read as a time" in page.text
    assert "#1 A &lt;b&gt;</a>" in pages[1].text
    assert ("#1 A &lt;b&gt;</a>" in valid, "cannot be read" in valid) == (True, False)


@pytest.mark.both_databases
def test_fields_mapped_to_times_and_hosts_do_not_change_the_fingerprint(maintainer, project):
    fields = {"title": ["name"], "end_time": ["closed_at"], "start_time": ["began"], "hosts": ["nodes"]}
    row = make_integration(project, mapping={name: {"path": path, "type": "string"} for name, path in fields.items()})
    full = {"name": "Disk full"}
    posts = [
        full,
        full | {"closed_at": None},
        full | {"began": 1772600767, "nodes": ["a"]},
        full | {"began": "4.3.2026"},
    ]
    address = f"/acme/shop/alerts/notify/x/{row.endpoint_identifier}.json"

    for body in [*posts, full | {"closed_at": "1772600767"}]:
        assert send_alert(maintainer, address, KEY, body) == 200

    [alert] = db.session.query(Alert)
    assert (alert.status, alert.events, alert.ended_at.isoformat()) == (2, 4, "2026-03-04T05:06:07+00:00")
