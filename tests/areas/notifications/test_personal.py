"""Personal levels, quiet hours, and the panel that shows who was told."""

from __future__ import annotations

import dataclasses
import datetime as dt

import pytest
from sqlalchemy import select

from project_service.areas.notifications.models import NotificationDelivery, QuietHours
from project_service.areas.notifications.personal import quiet_hours
from project_service.kit import clock, deliveries
from project_service.kit.db.session import db
from tests.areas.notifications.conftest import make_rule, to
from tests.support.sample_data import DEV, MAX, NOBODY, RITA, SAM

MAINTAINERS = {"type": "members", "access_level": 40}


@pytest.fixture
def sent(app, monkeypatch):
    """The addresses that mails were sent to."""
    settings = dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1")
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    found = []
    delivered = deliveries.DeliveryOutcome(deliveries.DeliveryResult.DELIVERED)
    monkeypatch.setattr("project_service.kit.mail.send_now", lambda mail: found.append(mail.recipient) or delivered)
    return found


def of_project(project):
    return f"/projects/{project.id}/notification_settings"


def test_a_setting_that_was_never_made_is_not_stored(as_, project, group):
    client = as_(DEV)

    assert client.get("/notification_settings").json == {
        "level": "participating",
        "notification_email": "dev@example.org",
    }
    assert client.get(of_project(project)).json == {"level": "global"}
    assert client.get(f"/groups/{group.id}/notification_settings").json == {"level": "global"}


def test_custom_events_are_kept_and_unset_ones_are_null(as_, project):
    changed = as_(DEV).put(of_project(project), json={"level": "custom", "new_error": True, "unknown": 1})

    events = changed.json["events"]
    assert (changed.status_code, events["new_error"], events["new_note"], list(events)[-1]) == (
        *(200, True, None),
        "incident_opened",
    )
    assert as_(DEV).put(of_project(project), json={}).json == changed.json


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"level": "loud"}, "'loud' is not a valid level"),
        (
            {"level": "watch", "notification_email": "x@example.net"},
            {"notification_email": ["must be an email you have verified"]},
        ),
    ],
    ids=["level", "address"],
)
def test_bad_settings_change_nothing(fields, message, as_, project):
    response = as_(DEV).put(of_project(project), json=fields)

    assert (response.status_code, response.json) == (400, {"message": message})
    assert as_(DEV).get(of_project(project)).json == {"level": "global"}


@pytest.mark.parametrize(("person", "status"), [(RITA, 200), (SAM, 404), (NOBODY, 401)])
def test_settings_are_for_those_who_see_the_project(person, status, as_, project):
    assert as_(person).get(of_project(project)).status_code == status


def test_who_watches_is_told_without_a_rule_if_they_may_read_alerts(as_, project, post, send, sent):
    as_(DEV).put("/notification_settings", json={"level": "watch"})
    as_(RITA).put(of_project(project), json={"level": "watch"})

    post({"title": "Disk full"})
    send()

    assert sent == ["dev@example.org"]


def test_the_nearest_level_counts_and_disabled_beats_rules(as_, project, group, post, send, sent):
    make_rule(project, MAINTAINERS)
    as_(MAX).put(f"/groups/{group.id}/notification_settings", json={"level": "disabled"})
    post({"title": "One"})
    send()
    as_(MAX).put(of_project(project), json={"level": "watch"})

    post({"title": "Two"})
    send(301)

    assert sorted(sent) == ["max@example.org", "olive@example.org", "olive@example.org"]


def test_personal_messages_wait_for_the_end_of_quiet_hours_but_critical_ones_pass(
    as_, project, post, send, sent, later
):
    make_rule(project, {"type": "user", "username": "max"})
    before, after = (f"{clock.now() + dt.timedelta(hours=hours):%H:%M}" for hours in (-2, 2))
    as_(MAX).put("/user/quiet_hours", json={"enabled": True, "time_zone": "UTC", "from": before, "to": after})

    post({"title": "Slow", "severity": "low"}, {"title": "Down", "severity": "critical"})
    send()

    titles = db.session.scalars(select(NotificationDelivery.title)).all()
    assert (sent, titles) == (["max@example.org"], ["[CRITICAL] Down"])


def test_a_critical_message_passes_quiet_hours_while_others_wait_for_their_end(as_, project, post, send, later):
    make_rule(project, {"type": "user", "username": "max"}, group_wait=10)
    before, after = (f"{clock.now() + dt.timedelta(hours=hours):%H:%M}" for hours in (-2, 2))
    as_(MAX).put("/user/quiet_hours", json={"enabled": True, "time_zone": "UTC", "from": before, "to": after})

    for title, severity, seconds in (("Slow", "low", 11), ("Down", "critical", 11), ("Lost", "critical", 301)):
        post({"title": title, "severity": severity})
        send(seconds)
    later(hours=2)
    send()

    titles = db.session.scalars(select(NotificationDelivery.title).order_by(NotificationDelivery.id)).all()
    assert titles == ["[CRITICAL] Down", "[CRITICAL] Lost", "[LOW] Slow"]


@pytest.mark.parametrize(
    ("titles", "told"),
    [
        (["Brief"], "1 alert or incident began and ended during your quiet hours in shop"),
        (["Brief", "Slow"], "[LOW] Slow"),
    ],
    ids=["nothing else", "another"],
)
def test_what_ended_during_quiet_hours_is_counted_at_their_end(titles, told, as_, project, post, send, later):
    make_rule(project, {"type": "user", "username": "max"})
    before, after = (f"{clock.now() + dt.timedelta(hours=hours):%H:%M}" for hours in (-2, 2))
    as_(MAX).put("/user/quiet_hours", json={"enabled": True, "time_zone": "UTC", "from": before, "to": after})
    post(*({"title": title, "fingerprint": title, "severity": "low"} for title in titles))
    send(60)

    post({"title": "Brief", "fingerprint": "Brief", "end_time": "2030-01-01T00:00:00Z"})
    send()
    later(hours=2)
    send()

    message = db.session.scalars(select(NotificationDelivery)).one()
    assert message.title == told
    assert ("1 more began and ended during your quiet hours." in message.content["lines"]) is (len(titles) > 1)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2027-03-27T23:30:00+00:00", "2027-03-28T05:00:00+00:00"),
        ("2027-10-30T21:30:00+00:00", "2027-10-31T06:00:00+00:00"),
        ("2027-06-01T12:00:00+00:00", None),
    ],
    ids=["spring", "autumn", "noon"],
)
def test_quiet_hours_go_over_midnight_and_changes_of_the_clock(now, end):
    hours = QuietHours(time_zone="Europe/Berlin", days=quiet_hours.ALL_DAYS, starts="22:00", ends="07:00")

    found = quiet_hours.end_of_period(hours, dt.datetime.fromisoformat(now))

    assert (found and found.isoformat()) == end


def test_levels_and_quiet_hours_are_changed_on_pages(visit, project):
    page = visit(DEV)

    page.send(f"/{project.full_path}/-/notification_settings", level="custom", events="new_error")
    page.send("/-/profile/notifications/level", level="watch")
    fields = {"enabled": "y", "time_zone": "Europe/Berlin", "days": ["1", "2"], "starts": "21:00", "ends": "06:00"}
    page.send("/-/profile/notifications/quiet_hours", **fields)

    text = page.get("/-/profile/notifications").text
    assert ("acme/shop" in text, "Custom" in text) == (True, True)
    assert db.session.scalars(select(QuietHours.starts)).all() == ["21:00"]


def test_the_page_of_an_alert_says_who_was_told_and_why_others_were_not(maintainer, project, channel, post, send):
    make_rule(project, to(channel))
    make_rule(project, MAINTAINERS, name="Worst", min_severity="critical")
    post({"title": "Disk full", "severity": "low"})
    send()

    text = maintainer.get(f"/{project.full_path}/-/alert_management/1/details").text

    assert ("#ops" in text, "delivered in" in text) == (True, True)
    assert "Worst: the severity is too low" in text
