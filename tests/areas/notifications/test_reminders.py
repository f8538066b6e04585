"""Reminders of what a rule has told of and is still open."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import select

from project_service.areas.alerts.models import Alert, Status
from project_service.areas.notifications.models import NotificationDelivery, NotificationReminder
from project_service.domain.silences.models import Silence
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work
from tests.areas.notifications.conftest import make_rule, to
from tests.support import sample_data
from tests.support.sample_data import MAX

HOURS = 3600
FOUR_HOURS = 4 * HOURS


@pytest.fixture
def told(post, send, channel, project):
    """Two alerts of which a rule with reminders has told the channel."""
    make_rule(project, to(channel), repeat_interval=FOUR_HOURS)
    post({"title": "Disk full"}, {"title": "CPU hot", "severity": "low"})
    send()


def reminders():
    log = NotificationDelivery
    return list(db.session.scalars(select(log.title).where(log.kind == "reminder").order_by(log.id)))


def set_status(iid, status):
    with unit_of_work():
        db.session.scalars(select(Alert).where(Alert.iid == iid)).one().status = int(status)


def test_what_nobody_acknowledged_is_told_again_until_it_is(told, send, later):
    later(seconds=FOUR_HOURS)
    send()
    set_status(2, Status.ACKNOWLEDGED)
    later(seconds=FOUR_HOURS)
    send()
    set_status(1, Status.RESOLVED)
    later(seconds=FOUR_HOURS)
    send()

    assert reminders() == ["Still open for 4 h: 2 alerts in shop", "Still open for 8 h: [CRITICAL] Disk full"]
    assert list(db.session.scalars(select(NotificationReminder))) == []


def test_the_page_of_an_alert_shows_how_often_its_target_was_reminded(told, send, later, maintainer, project):
    for _ in range(2):
        later(seconds=FOUR_HOURS)
        send()

    page = maintainer.get(f"/{project.full_path}/-/alert_management/1/details").text

    assert re.search(r"#ops reminded 2 times, last .*delivered in", page)


def test_reminders_of_silenced_alerts_are_held_back(told, send, later, project):
    later(seconds=FOUR_HOURS)
    sample_data.make_silence(project, starts_at=clock.now())
    send()

    assert (reminders(), db.session.query(Silence).count()) == ([], 1)


def test_an_interval_is_validated_and_concerns_what_was_told_before(as_, post, send, channel, project, later):
    rule = make_rule(project, to(channel))
    address = f"/projects/{project.id}/notification_rules/{rule.id}"
    post({"title": "Disk full"})
    send()
    refused = as_(MAX).put(address, json={"repeat_interval": 60})
    changed = as_(MAX).put(address, json={"repeat_interval": HOURS})
    later(seconds=HOURS)
    send()

    assert (refused.status_code, refused.json) == (
        400,
        {"message": {"repeat_interval": ["must be from 3600 to 604800"]}},
    )
    assert (changed.json["repeat_interval"], reminders()) == (HOURS, ["Still open for 1 h: [CRITICAL] Disk full"])
    assert as_(MAX).put(address, json={"repeat_interval": None}).json["repeat_interval"] is None
    assert list(db.session.scalars(select(NotificationReminder))) == []
