"""The log of requests: what it keeps, how it counts, and that it costs the accepted path nothing."""

from __future__ import annotations

import datetime as dt

import pytest
from sqlalchemy import text, update

from project_service.areas.alerts.models import AlertRequest
from project_service.areas.alerts.receivers import delivery_log, jobs, subscriptions
from project_service.areas.alerts.receivers.presets import PRESETS
from project_service.domain import instance_settings
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.http.errors import Invalid
from tests.areas.alerts.receivers.receiver_client import logged_requests, make_receiver

BODY = {"title": "A", "fingerprint": "a", "secret": "s3cret"}


@pytest.fixture
def send(app, project):
    return make_receiver(app, project)


@pytest.mark.both_databases
def test_an_accepted_request_is_logged_with_its_alert_and_encrypted(send):
    send(BODY)

    [logged] = logged_requests()
    stored = db.session.execute(text("SELECT body FROM alert_requests")).scalar_one()
    assert (logged.outcome, logged.status, logged.alert_iids, logged.address) == ("accepted", 200, [1], "127.0.0.1")
    assert "s3cret" in logged.body
    assert "s3cret" not in stored


@pytest.mark.parametrize(
    ("body", "key", "status", "reason"),
    [
        (b"{}", "wrong", 401, "the key is wrong"),
        (b"{}", None, 401, "no key was sent"),
        (b'{"a":\n}', None, 400, "not JSON: expecting value in line 2, column 1"),
        (b'{"a":"' + b"x" * (1 << 20) + b'"}', None, 400, "more than 1 MiB"),
    ],
)
def test_a_refused_request_is_logged_with_the_reason_in_plain_words(send, body, key, status, reason):
    response = send(body, key=key)

    [logged] = logged_requests()
    assert (response.status_code, logged.status, logged.reason, logged.size) == (status, status, reason, len(body))
    assert (len(logged.body), logged.is_cut) == (min(len(body), 64 << 10), len(body) > 64 << 10)


def test_requests_to_an_inactive_integration_are_logged(app, project):
    make_receiver(app, project, active=False)(BODY)

    assert [(one.status, one.reason) for one in logged_requests()] == [(403, "an inactive integration")]


@pytest.mark.both_databases
def test_equal_refusals_are_one_row_with_a_count(send):
    for _ in range(3):
        send(BODY, key="wrong")
    logged_requests()
    send(BODY, key="wrong")
    send(BODY)

    assert [(one.outcome, one.count) for one in logged_requests()] == [("refused", 4), ("accepted", 1)]


def test_the_log_keeps_as_many_requests_as_the_setting_says(send):
    with unit_of_work():
        instance_settings.change_settings({"alert_request_log_size": 3})
    for _ in range(5):
        send(BODY)

    assert len(logged_requests()) == 3


@pytest.mark.both_databases
def test_refused_requests_displace_no_accepted_ones(send):
    with unit_of_work():
        instance_settings.change_settings({"alert_request_log_size": 6})
    for _ in range(3):
        send(BODY)
    for size in range(5):
        send(b" " * size + b"x", key="wrong")

    outcomes = [one.outcome for one in logged_requests()]
    assert outcomes == ["accepted"] * 3 + ["refused"] * 3


def test_a_flood_of_different_refusals_displaces_no_buffered_request(send):
    send(BODY)
    for size in range(delivery_log.MAX_BUFFERED_REQUESTS):
        send(b" " * size + b"x", key="wrong")

    requests = logged_requests()
    assert (requests[0].outcome, sum(one.count for one in requests)) == ("accepted", 101)
    assert requests[-1].reason == delivery_log.SEVERAL_REASONS


def test_old_requests_are_removed(send, run_jobs):
    send(BODY)
    logged_requests()
    with unit_of_work():
        db.session.execute(update(AlertRequest).values(received_at=clock.now() - dt.timedelta(days=8)))

    jobs.prune_requests.defer()
    db.session.commit()
    run_jobs()

    assert logged_requests() == []


def test_the_log_adds_no_statement_to_a_request(send, count_queries):
    send(BODY)
    with count_queries() as queries:
        send(BODY)

    assert not [one for one in queries if "alert_requests" in str(one)]


@pytest.mark.parametrize(
    ("change", "confirms"),
    [
        ({}, True),
        ({"SubscribeURL": "http://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription"}, False),
        ({"SubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription"}, False),
        ({"SubscribeURL": "https://sns.eu-central-1.amazonaws.com.evil.example/?Action=ConfirmSubscription"}, False),
        ({"SubscribeURL": "https://x@sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription"}, False),
        ({"SubscribeURL": "https://sns.eu-central-1.amazonaws.com/x?Action=ConfirmSubscription"}, False),
        ({"SubscribeURL": "https://sns.eu-central-1.amazonaws.com/?Action=Unsubscribe"}, False),
        ({"TopicArn": "arn:aws:sqs:eu-central-1:000000000000:ops"}, False),
        ({"Type": "Notification"}, False),
    ],
)
def test_only_the_region_of_a_topic_confirms_its_subscription(change, confirms):
    message = PRESETS["cloudwatch-sns"].samples["subscription"] | change

    assert (subscriptions.confirmation_url(message) is not None) is confirms


def test_a_foreign_address_is_not_requested():
    with pytest.raises(Invalid):
        subscriptions.confirm({"Type": "SubscriptionConfirmation", "SubscribeURL": "https://evil.example/"})


def test_the_log_of_a_removed_integration_is_dropped(app, send):
    send(BODY)
    with unit_of_work():
        db.session.execute(text("DELETE FROM alerts"))
        db.session.execute(text("DELETE FROM alert_integrations"))

    delivery_log.flush()

    assert logged_requests() == []
