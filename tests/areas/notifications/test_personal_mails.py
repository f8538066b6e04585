"""Mails of assignments and mentions, links that end mails, and the parts of a project's page."""

from __future__ import annotations

import dataclasses

import pytest
from sqlalchemy import select

from project_service.areas.alerts.alerts import service as alerts
from project_service.areas.alerts.models import Alert
from project_service.areas.notifications.actions import unsubscribing
from project_service.areas.notifications.models import NotificationChannel
from project_service.domain.accounts.users import User
from project_service.kit import clock, mail
from project_service.kit.db.session import db, unit_of_work
from project_service.kit.deliveries import DeliveryOutcome, DeliveryResult
from tests.areas.notifications.conftest import make_rule
from tests.support.mails import queued_mails
from tests.support.sample_data import DEV, MAX

MAINTAINERS = {"type": "members", "access_level": 40}


@pytest.fixture
def mails(app, monkeypatch):
    """The personal messages that were sent."""
    settings = dataclasses.replace(app.config["SETTINGS"], smtp_host="127.0.0.1", smtp_port=1)
    monkeypatch.setitem(app.config, "SETTINGS", settings)
    found = []
    delivered = DeliveryOutcome(DeliveryResult.DELIVERED)
    monkeypatch.setattr(mail, "send_now", lambda one: found.append(one) or delivered)
    return found


@pytest.mark.parametrize(
    ("setting", "number"),
    [({}, 1), ({"level": "disabled"}, 0), ({"level": "custom"}, 0), ({"level": "custom", "reassign_issue": True}, 1)],
    ids=["participating", "disabled", "custom", "custom-chosen"],
)
def test_what_is_assigned_is_mailed_unless_the_level_excludes_it(setting, number, as_, project, people, post, mails):
    post({"title": "Disk full"})
    as_(DEV).put(f"/projects/{project.id}/notification_settings", json=setting)
    client, address = as_(MAX), f"/projects/{project.id}"

    with unit_of_work():
        alert = db.session.scalars(select(Alert)).one()
        alerts.assign(db.session.get_one(User, people[MAX].id), alert, db.session.get_one(User, people[DEV].id))
    client.post(f"{address}/issues", json={"title": "Buy a disk", "assignee_ids": [people[DEV].id]})

    subjects = sorted(one.subject for one in queued_mails() if one.recipient == "dev@example.org")
    assert subjects == ["shop | Alert: Disk full", "shop | Buy a disk (#1)"] * number


def test_a_mail_program_ends_the_mails_of_a_project(app, as_, project, post, send, mails):
    make_rule(project, MAINTAINERS)
    post({"title": "Disk full"})
    send()
    [sent] = [one for one in mails if one.recipient == "max@example.org"]
    path = sent.headers["List-Unsubscribe"].strip("<>").removeprefix("http://localhost")
    client = app.test_client(use_cookies=False)

    asked = client.get(path)
    answer = client.post(path, data={"List-Unsubscribe": "One-Click"})
    assert (asked.status_code, answer.status_code, answer.text) == (200, 200, "No more mails about Acme / shop.")
    assert sent.headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert as_(MAX).get(f"/projects/{project.id}/notification_settings").json["level"] == "disabled"
    assert client.post(f"{unsubscribing.PATH}forged").status_code == 404


def test_the_page_of_a_project_names_failing_channels_and_changes_the_level(visit, project, channel):
    with unit_of_work():
        db.session.get(NotificationChannel, channel.id).failing_since = clock.now()
    maintainer, developer = visit(MAX), visit(DEV)

    shown = [visitor.get("/acme/shop").text for visitor in (maintainer, developer)]
    assert [("The channel #ops has failed since" in text) for text in shown] == [True, False]
    assert "Notifications: Global" in shown[1]
    assert developer.send("/acme/shop/-/notification_settings", level="watch").status_code == 302
    assert "Notifications: Watch" in developer.get("/acme/shop").text
