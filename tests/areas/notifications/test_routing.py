"""From alerts to messages: rules, grouping, throttling, what is not told."""

from __future__ import annotations

import pytest
from sqlalchemy import func, select

from project_service.areas.alerts.alerts import service
from project_service.areas.alerts.effects import incidents
from project_service.areas.alerts.models import Alert, Status
from project_service.areas.notifications import deliveries_log, jobs, merging
from project_service.areas.notifications.kinds import Answer
from project_service.areas.notifications.kinds.chats import Discord
from project_service.areas.notifications.kinds.pager import PagerDuty
from project_service.areas.notifications.models import NotificationDelivery, NotificationItem
from project_service.areas.notifications.routing import holding, router
from project_service.areas.notifications.rules import replay
from project_service.domain.accounts.users import User
from project_service.domain.notifications.models import NotificationEvent
from project_service.kit.db.session import db, unit_of_work
from tests.areas.notifications.conftest import make_channel, make_rule, to
from tests.support.sample_data import MAX


def titles(receiver):
    return [body["title"] for body in receiver.bodies]


def change(people, status, user=MAX):
    with unit_of_work():
        alert = db.session.scalars(select(Alert).order_by(Alert.id)).first()
        service.change_status(db.session.get_one(User, people[user].id), alert, status)


def test_an_alert_is_one_message_with_its_attributes(post, send, channel, project, receiver):
    make_rule(project, to(channel))

    post({"title": "Disk full", "severity": "high", "description": "/var is at 97 %"})
    send()

    [body] = receiver.bodies
    assert (body["title"], body["counts"]) == ("[HIGH] Disk full", {"triggered": 1, "resolved": 0, "other": 0})
    assert body["items"][0]["object_attributes"]["description"] == "/var is at 97 %"
    assert body["rule"]["name"] == "All"
    assert body["url"].endswith("/acme/shop/-/alert_management/1/details")
    assert db.session.scalars(select(NotificationDelivery.status)).all() == ["delivered"]


def test_a_storm_is_one_message_with_a_count_and_ten_lines(post, send, channel, project, receiver):
    make_rule(project, to(channel))

    post(*({"title": f"Alert {number}", "severity": "low"} for number in range(30)), {"title": "Worst"})
    send()

    [body] = receiver.bodies
    assert body["title"] == "31 new alerts in shop (1 critical, 30 low)"
    assert (len(body["items"]), body["items"][0]["object_attributes"]["title"]) == (31, "Worst")
    [delivery] = db.session.scalars(select(NotificationDelivery))
    assert (len(delivery.content["lines"]), delivery.content["lines"][-1]) == (11, "… and 21 more")


def test_what_comes_within_the_interval_is_a_second_message(post, send, channel, project, receiver):
    make_rule(project, to(channel))
    post({"title": "One"})
    send()

    post({"title": "Two"}, {"title": "Three"})
    send()
    waiting = len(receiver.bodies)
    send(300)

    assert (waiting, titles(receiver)) == (1, ["[CRITICAL] One", "2 new alerts in shop (2 critical)"])


def test_opened_and_resolved_within_the_wait_is_no_message(post, send, channel, people, project, receiver):
    make_rule(project, to(channel))
    post({"title": "Flap"})

    change(people, Status.RESOLVED)
    send()

    assert (receiver.bodies, db.session.scalar(select(func.count(NotificationItem.id)))) == ([], 0)


def test_an_end_is_told_where_the_opening_was_told(post, send, channel, people, project, receiver):
    other = make_channel(project, name="critical", url=receiver.url + "?critical")
    make_rule(project, to(channel))
    make_rule(project, to(other), name="Critical", min_severity="critical")
    post({"title": "Slow", "severity": "low"})
    send()

    change(people, Status.RESOLVED)
    send(301)

    assert [(path, body) for (path, _, _), body in zip(receiver.requests, titles(receiver), strict=True)] == [
        ("/hook", "[LOW] Slow"),
        ("/hook", "[RESOLVED] Slow"),
    ]


def test_an_incident_of_an_alert_is_not_told_where_the_alert_was(
    as_maintainer, post, send, channel, people, project, receiver
):
    make_rule(project, to(channel), events=["alert_triggered", "incident_opened"])
    post({"title": "Disk full"})
    with unit_of_work():
        alert = db.session.scalars(select(Alert)).one()
        incidents.create_incident(db.session.get_one(User, people[MAX].id), alert)
    as_maintainer.post(
        f"/projects/{project.id}/issues", json={"title": "Other", "issue_type": "incident", "labels": "x"}
    )
    send()

    [body] = receiver.bodies
    assert [item["event"] for item in body["items"]] == ["alert_triggered", "incident_opened"]
    alert, incident = (item["object_attributes"] for item in body["items"])
    assert (alert["title"], alert["action"], incident["title"], incident["action"]) == (
        *("Disk full", "open"),
        *("Other", "open"),
    )
    assert (incident["state_id"], incident["type"], incident["labels"][0]["title"]) == (1, "Incident", "x")


def test_two_rules_tell_a_channel_once(post, send, channel, project, receiver):
    make_rule(project, to(channel), name="First")
    make_rule(project, to(channel), name="Second")

    post({"title": "Disk full"})
    send()

    assert [body["rule"]["name"] for body in receiver.bodies] == ["First"]


@pytest.mark.parametrize(
    ("condition", "because"),
    [
        ({"min_severity": "high"}, "min_severity"),
        ({"environment": "prod*"}, "environment"),
        ({"integration_ids": [999]}, "integration_ids"),
        ({"matchers": [{"field": "title", "operator": "matches", "value": "*cpu*"}]}, "matchers"),
        ({"events": ["new_error"]}, "events"),
    ],
    ids=["severity", "environment", "integration", "matcher", "event"],
)
def test_a_condition_that_does_not_hold_is_noted(condition, because, post, send, channel, project, receiver):
    rule = make_rule(project, to(channel), **condition)

    post({"title": "Disk full", "severity": "low"})
    send()

    [event] = db.session.scalars(select(NotificationEvent))
    assert (receiver.bodies, event.reasons) == ([], [{"rule_id": rule.id, "because": because}])


def test_a_project_without_rules_writes_no_events(post, project):
    post({"title": "Disk full"})

    assert db.session.scalar(select(func.count(NotificationEvent.id))) == 0


def test_a_rule_costs_a_request_at_most_three_statements(post, channel, project, count_queries):
    with count_queries() as before:
        post({"title": "One"})
    make_rule(project, to(channel))

    with count_queries() as after:
        post({"title": "Two"})

    assert len(after) - len(before) <= 3


def test_what_a_silence_holds_back_is_stored_and_not_sent(post, send, channel, project, receiver, monkeypatch):
    monkeypatch.setattr(holding, "HOLDERS", [lambda events: {event.id: [4] for event in events}])
    make_rule(project, to(channel))

    post({"title": "Disk full"})
    send()

    assert (receiver.bodies, db.session.scalars(select(NotificationEvent.silence_ids)).all()) == ([], [[4]])


def test_a_later_message_waits_for_one_that_fails(post, send, channel, people, project, receiver):
    make_rule(project, to(channel), group_interval=30)
    receiver.status = 503
    post({"title": "Disk full"})
    send()
    change(people, Status.RESOLVED)
    receiver.status = 200

    send(40)
    send()

    assert titles(receiver) == ["[CRITICAL] Disk full"] * 2 + ["[RESOLVED] Disk full"]
    keys = receiver.header("Idempotency-Key")
    assert keys[0] == keys[1] != keys[2]


def test_late_messages_are_merged(post, send, later, channel, project, receiver):
    make_rule(project, to(channel), group_interval=30)
    receiver.status = 503
    for number in range(3):
        post({"title": f"Alert {number}"})
        send(31)
    receiver.status = 200
    receiver.requests.clear()

    later(minutes=20)
    send()

    [title] = titles(receiver)
    assert title.startswith("3 notifications were delayed by 2")
    statuses = db.session.scalars(select(NotificationDelivery.status).order_by(NotificationDelivery.id)).all()
    assert statuses == ["merged", "merged", "merged", "delivered"]


def test_messages_that_are_merged_again_keep_their_number_and_delay(post, send, later, channel, project, receiver):
    make_rule(project, to(channel), group_interval=30)
    receiver.status = 503
    for number in range(4):
        post({"title": f"Alert {number}"})
        send(31)
        later(minutes=11)
    receiver.status = 200
    receiver.requests.clear()

    later(minutes=30)
    send()

    [title] = titles(receiver)
    assert title.startswith("4 notifications were delayed by 1 h")
    assert receiver.bodies[0]["counts"]["triggered"] == 4
    log = db.session.execute(select(NotificationDelivery.status, NotificationDelivery.merged_into_id)).all()
    assert sorted(status for status, _ in log) == ["delivered", "merged", "merged", "merged", "merged"]
    assert len({number for _, number in log}) == 2


def test_a_message_does_not_wait_for_events_after_it_was_due(post, later, channel, project, monkeypatch):
    monkeypatch.setattr(router, "BATCH_SIZE", 1)
    make_rule(project, to(channel))
    post({"title": "First"})
    jobs.prepare_messages()
    later(seconds=6)
    post({"title": "Second"}, {"title": "Third"})

    jobs.prepare_messages()

    assert db.session.scalars(select(NotificationDelivery.triggered_count)).all() == [2]


def test_messages_above_the_rate_of_a_channel_are_merged(post, send, project, receiver, local_hooks):
    channel = make_channel(project, url=receiver.url, rate_per_minute=1)
    make_rule(project, to(channel), group_by=["title"])
    post(*({"title": f"Alert {number}"} for number in range(4)))

    send()
    send(61)

    first, rest = titles(receiver)
    assert (first, rest[:32]) == ("[CRITICAL] Alert 0", "3 notifications were delayed by ")


def test_a_channel_is_told_once_that_the_limit_of_a_day_is_reached(post, send, channel, project, receiver, monkeypatch):
    monkeypatch.setattr(deliveries_log, "MAX_MESSAGES_PER_DAY", 2)
    make_rule(project, to(channel))

    for number in range(5):
        post({"title": f"Alert {number}"})
        send(301)

    assert titles(receiver)[2:] == ["The limit of 2 messages a day is reached"]


def test_discord_is_left_alone_until_its_period_ends(post, send, project, monkeypatch):
    sent, used_up = [], {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": "50.5"}
    monkeypatch.setattr(
        Discord, "send", lambda _, outgoing: sent.append(outgoing.message.title) or Answer(204, headers=used_up)
    )
    channel = make_channel(project, "discord")
    with unit_of_work():
        channel.secrets = {"url": "https://discord.com/api/webhooks/1/a"}
        db.session.add(channel)
    make_rule(project, to(channel), group_by=["title"])
    post({"title": "One"}, {"title": "Two"})

    send()
    send(30)
    assert sent == ["[CRITICAL] One"]
    send(31)
    assert sent == ["[CRITICAL] One", "[CRITICAL] Two"]


@pytest.mark.parametrize(
    ("first", "end", "error"),
    [(503, [], merging.ENDED_UNSENT), (None, ["[RESOLVED] Gone"], None)],
    ids=["refused", "unanswered"],
)
def test_pagerduty_gets_the_last_event_of_an_alert_that_waits(first, end, error, post, send, project, monkeypatch):
    sent, status = [], [first]
    monkeypatch.setattr(PagerDuty, "send", lambda _, outgoing: sent.append(outgoing.message.title) or Answer(status[0]))
    channel = make_channel(project, "pagerduty", rate_per_minute=60)
    with unit_of_work():
        channel.secrets = {"routing_key": "R" * 32}
        db.session.add(channel)
    make_rule(project, to(channel), group_interval=30)
    post({"title": "Gone", "fingerprint": "1"}, {"title": "Open", "fingerprint": "2"})
    send()
    post({"title": "Gone", "fingerprint": "1", "end_time": "2030-01-01T00:00:00Z"})
    status[0] = 202
    send(31)
    send(31)

    assert sent == ["[CRITICAL] Gone", "[CRITICAL] Open", *end]
    errors = db.session.scalars(select(NotificationDelivery.error).order_by(NotificationDelivery.id)).all()
    assert errors == [merging.REPLACED, None, error]


def test_the_replay_of_a_project_has_the_messages_that_were_sent(post, send, later, channel, project, receiver):
    make_rule(project, to(channel), group_interval=30)
    end = {"end_time": "2030-01-01T00:00:00Z"}
    post({"title": "Short", "fingerprint": "1"}, {"title": "Short", "fingerprint": "1"} | end)
    later(seconds=1)
    post({"title": "Long", "fingerprint": "2"})
    send()
    post({"title": "Long", "fingerprint": "2"} | end)
    send(31)

    replayed = replay.replay(project)

    assert titles(receiver) == ["[CRITICAL] Long", "[RESOLVED] Long"]
    assert [(message.titles, message.number) for message in replayed.messages] == [(["Long"], 1), (["Long"], 1)]
    assert (replayed.events, replayed.untold) == (4, 0)


def test_equal_lines_count_all_alerts_of_the_message(post, send, channel, project, receiver):
    make_rule(project, to(channel))
    post(*({"title": "Disk full", "fingerprint": str(number)} for number in range(60)), {"title": "CPU hot"})
    send()

    log = db.session.scalars(select(NotificationDelivery)).one()
    assert log.content["lines"] == [f"[CRITICAL] Disk full ({chr(215)}60)", "[CRITICAL] CPU hot"]
