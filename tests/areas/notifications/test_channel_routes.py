"""Channels and the log of messages through the API."""

from __future__ import annotations

import dataclasses
import json
import re

import pytest
from sqlalchemy import select

from project_service.areas.notifications.kinds import Answer
from project_service.areas.notifications.kinds.pager import PagerDuty
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery
from project_service.domain.audit.models import AuditEvent
from project_service.kit import deliveries
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.security.outgoing_http import rules
from tests.areas.notifications.conftest import make_rule
from tests.support.mails import queued_mails
from tests.support.sample_data import DEV, MAX, NOBODY, OLIVE, PAGER, PHONE, RITA, SAM

SECRET = "https://hooks.example.test/services/T00/B00/veryX3xY"


@pytest.fixture
def mails_are_on(app, monkeypatch):
    settings = dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1", smtp_port=1)
    monkeypatch.setitem(app.config, "SETTINGS", settings)


def channels(project):
    return f"/projects/{project.id}/notification_channels"


def test_a_channel_is_shown_without_its_secrets(as_maintainer, project, receiver, local_hooks):
    created = as_maintainer.post(
        channels(project),
        json={"name": "ops", "type": "slack", "url": receiver.url + "/secret/x3Xy", "username": "shop"},
    )

    shown = as_maintainer.get(f"{channels(project)}/{created.json['id']}").json
    assert (created.status_code, shown) == (201, created.json)
    assert list(shown) == [
        *("id", "scope", "name", "type", "enabled", "state", "target", "settings", "anonymous_actions"),
        *("rate_per_minute", "failing_since", "last_delivered_at", "last_error", "created_at", "updated_at"),
    ]
    assert (shown["target"], shown["settings"], shown["state"]) == ("127.0.0.1/…x3Xy", {"username": "shop"}, "ok")
    text = db.session.scalars(select(AuditEvent.details)).all()
    assert "secret" not in created.text + str(text)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "slack"}, {"url": ["can't be blank"]}),
        ({"type": "slack", "url": "http://10.0.0.1/hook"}, {"url": ["is not allowed"]}),
        ({"type": "teams", "url": "http://example.org/"}, {"url": ["must begin with https://"]}),
        ({"type": "telegram", "chat_id": "1"}, {"token": ["is invalid"]}),
        ({"type": "email", "address": "a@b.example"}, {"type": ["is not available: no mail server is configured"]}),
        (PHONE | {"rate_per_minute": 61}, {"rate_per_minute": ["must be from 1 to 60"]}),
    ],
    ids=["blank", "local", "http", "token", "mail", "rate"],
)
def test_bad_channels_are_refused(fields, message, as_maintainer, project):
    response = as_maintainer.post(channels(project), json={"name": "x"} | fields)

    assert (response.status_code, response.json) == (400, {"message": message})


def test_names_are_unique_in_any_case(as_maintainer, project):
    as_maintainer.post(channels(project), json={"name": "Pager"} | PAGER)

    response = as_maintainer.post(channels(project), json={"name": "pager"} | PAGER)

    assert response.json == {"message": {"name": ["has already been taken"]}}


def test_another_url_takes_no_secrets_along(as_maintainer, project, receiver, local_hooks):
    fields = {"name": "x", "type": "webhook", "url": receiver.url, "custom_headers": [{"key": "X-A", "value": "b"}]}
    number = as_maintainer.post(channels(project), json=fields).json["id"]

    as_maintainer.put(f"{channels(project)}/{number}", json={"url": receiver.url + "/other"})

    [channel] = db.session.scalars(select(NotificationChannel))
    assert channel.secrets == {"url": receiver.url + "/other"}


def test_a_test_is_sent_at_once(as_maintainer, project, receiver, local_hooks):
    number = as_maintainer.post(channels(project), json={"name": "x", "type": "webhook", "url": receiver.url}).json[
        "id"
    ]

    passed = as_maintainer.post(f"{channels(project)}/{number}/test")
    receiver.status, receiver.body = 403, b"no such hook"
    failed = as_maintainer.post(f"{channels(project)}/{number}/test")

    assert (passed.status_code, passed.json["status"], passed.json["response_status"]) == (201, "delivered", "200")
    assert receiver.bodies[0]["title"] == "Test notification from localhost"
    assert (failed.status_code, failed.json) == (422, {"message": "HTTP 403 no such hook"})
    log = as_maintainer.get(f"/projects/{project.id}/notification_deliveries").json
    assert [(entry["kind"], entry["status"]) for entry in log] == [("test", "failed"), ("test", "delivered")]


def test_a_test_of_pagerduty_opens_an_incident_and_resolves_it(as_maintainer, project, monkeypatch):
    sent = []
    monkeypatch.setattr(
        PagerDuty, "send", lambda kind, outgoing: sent.append(json.loads(kind.request(outgoing).body)) or Answer(202)
    )
    fields = {"name": "x", "type": "pagerduty", "routing_key": "R" * 32}
    channel = as_maintainer.post(channels(project), json=fields).json

    tested = as_maintainer.post(f"{channels(project)}/{channel['id']}/test")

    assert (tested.status_code, channel["rate_per_minute"]) == (201, 60)
    assert [event["event_action"] for event in sent] == ["trigger", "resolve"]
    assert sent[0]["dedup_key"] == sent[1]["dedup_key"]
    assert sent[0]["payload"]["severity"] == "info"


def test_an_unknown_address_is_asked_for_confirmation(as_maintainer, project, mails_are_on, browser):
    created = as_maintainer.post(channels(project), json={"name": "x", "type": "email", "address": "jo@example.net"})

    [mail] = queued_mails()
    db.session.remove()
    link = next(word for word in mail.body.split() if "/confirm/" in word)
    page = browser.get(link)
    browser.post(link, data={"csrf_token": re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page.text)[1]})
    shown = as_maintainer.get(f"{channels(project)}/{created.json['id']}").json
    assert (created.json["state"], created.json["target"]) == ("unconfirmed", "j…@example.net")
    assert (page.status_code, shown["state"]) == (200, "ok")


def test_an_unconfirmed_address_gets_no_test(as_maintainer, project, mails_are_on):
    fields = {"name": "x", "type": "email", "address": "jo@example.net"}
    channel = as_maintainer.post(channels(project), json=fields).json

    tested = as_maintainer.post(f"{channels(project)}/{channel['id']}/test")

    assert (tested.status_code, tested.json["message"][:28]) == (422, "The address is not confirmed")


def test_the_address_of_a_member_needs_no_confirmation(as_maintainer, project, mails_are_on):
    created = as_maintainer.post(channels(project), json={"name": "x", "type": "email", "address": "dev@example.org"})

    assert (created.json["state"], queued_mails()) == ("ok", [])


@pytest.mark.parametrize(
    ("person", "read", "write"),
    [(OLIVE, 200, 201), (MAX, 200, 201), (DEV, 200, 403), (RITA, 403, 403), (SAM, 404, 404), (NOBODY, 401, 401)],
    ids=["owner", "maintainer", "developer", "reporter", "stranger", "anonymous"],
)
def test_developers_read_and_maintainers_write(person, read, write, as_, project):
    client = as_(person)

    assert client.get(channels(project)).status_code == read
    assert client.post(channels(project), json={"name": "x"} | PAGER).status_code == write


def test_a_project_uses_channels_of_its_group(as_, project, group):
    as_(OLIVE).post(f"/groups/{group.id}/notification_channels", json={"name": "all"} | PAGER)

    [listed] = as_(DEV).get(channels(project)).json
    changed = as_(OLIVE).put(f"{channels(project)}/{listed['id']}", json={"name": "mine"})
    assert (listed["scope"], changed.status_code) == ("group", 404)
    assert changed.json == {"message": "404 Notification Channel Not Found"}


def test_members_are_told_by_mail_with_headers_for_filters(post, send, project, mails_are_on, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "project_service.kit.mail.send_now",
        lambda mail: sent.append(mail) or deliveries.DeliveryOutcome(deliveries.DeliveryResult.DELIVERED),
    )
    make_rule(project, {"type": "members", "access_level": 40})

    post({"title": "Disk full", "description": "Very full"})
    send()

    assert sorted(mail.recipient for mail in sent) == ["max@example.org", "olive@example.org"]
    assert {mail.subject for mail in sent} == {"shop | Alert: Disk full"}
    assert sent[0].body.startswith(
        "An alert has been triggered in acme/shop.\n\n"
        "View alert details at http://localhost/acme/shop/-/alert_management/1/details\n\nDescription: Very full\n"
    )
    assert sent[0].headers["References"].startswith("<alert-")


def test_what_is_incomplete_is_refused_with_the_reason(as_, project, channel):
    content = {"headline": "Disk full", "items": []}
    with unit_of_work():
        row = NotificationDelivery(project_id=project.id, channel_id=channel.id, recipient="ops", title="A")
        row.content, row.status, row.attempts = content, "delivered", 1
        db.session.add(row)
        db.session.get(NotificationChannel, channel.id).secrets = {}
    client, place = as_(MAX), f"/projects/{project.id}"

    resent = client.post(f"{place}/notification_deliveries/{row.id}/resend")
    tested = client.post(f"{place}/notification_channels/{channel.id}/test")
    assert (resent.status_code, resent.json) == (
        *(422,),
        {"message": "The stored message is incomplete and cannot be sent again"},
    )
    assert (tested.status_code, tested.json) == (422, {"message": "the channel is incomplete: url is missing"})


def test_settings_are_shown_only_to_those_who_may_change_the_channel(as_, project):
    made = as_(MAX).post(channels(project), json={"name": "phone", **PHONE}).json
    address = f"{channels(project)}/{made['id']}"

    read = {name: as_(name).get(address).json["settings"] for name in (MAX, DEV)}
    listed = as_(DEV).get(channels(project)).json[0]
    assert (made["settings"], read[MAX], read[DEV]) == (made["settings"], made["settings"], {})
    assert (bool(made["settings"]), listed["settings"], listed["target"]) == (True, {}, made["target"])


def test_no_transaction_is_open_while_the_host_of_a_channel_is_resolved(as_maintainer, project, monkeypatch):
    open_transactions = []
    monkeypatch.setattr(rules, "validate", lambda *_: open_transactions.append(db.session().in_transaction()))

    created = as_maintainer.post(channels(project), json={"name": "a", "type": "slack", "url": "https://a.test/x"})
    changed = as_maintainer.put(f"{channels(project)}/{created.json['id']}", json={"url": "https://b.test/y"})

    assert (created.status_code, changed.status_code, open_transactions) == (201, 200, [False, False])
