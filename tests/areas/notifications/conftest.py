"""A receiver of messages, a channel that leads to it, rules, and alerts."""

from __future__ import annotations

import datetime as dt

import pytest

from project_service.areas.notifications.models import NotificationChannel
from project_service.domain.notifications.models import NotificationRule
from project_service.kit import clock, deliveries
from project_service.kit.db.session import db, unit_of_work
from tests.areas.alerts.receivers.test_alert_receivers import IDENTIFIER, KEY, make_integration
from tests.areas.webhooks.conftest import local_hooks, receiver

__all__ = ["local_hooks", "receiver"]


@pytest.fixture
def later(monkeypatch):
    """Moves the clock ahead."""
    real, passed = clock.now, [dt.timedelta()]
    monkeypatch.setattr(clock, "now", lambda: real() + passed[0])

    def move(**time):
        passed[0] += dt.timedelta(**time)

    return move


@pytest.fixture
def send(later):
    """Routes what has happened, lets groups become due, and sends messages."""

    def deliver(seconds=6):
        db.session.remove()
        deliveries.send_all_due()
        later(seconds=seconds)
        deliveries.send_all_due()
        db.session.remove()

    return deliver


@pytest.fixture
def post(app, project):
    """Sends alerts to an endpoint of the shop."""
    make_integration(project)

    def send_alerts(*bodies):
        client = app.test_client(use_cookies=False)
        for body in bodies:
            db.session.remove()
            path = f"/{project.full_path}/alerts/notify/x/{IDENTIFIER}.json"
            response = client.post(path, json=body, headers={"Authorization": f"Bearer {KEY}"})
            assert response.status_code == 200, response.data

    return send_alerts


@pytest.fixture
def channel(local_hooks, project, receiver):
    """A channel of the type webhook that leads to the receiver."""
    return make_channel(project, url=receiver.url)


def make_channel(project, type_="webhook", name="ops", *, url=None, **fields):
    with unit_of_work():
        row = NotificationChannel(project_id=project.id, type=type_, name=name, target="ops", confirmed_at=clock.now())
        row.secrets = {} if url is None else {"url": url}
        for attribute, value in fields.items():
            setattr(row, attribute, value)
        db.session.add(row)
    return row


def make_rule(owner, *targets, **fields):
    fields = {"name": "All", "events": ["alert_triggered", "alert_resolved"]} | fields
    with unit_of_work():
        row = NotificationRule(project_id=owner.id, targets=list(targets), **fields)
        db.session.add(row)
    return row


def to(channel):
    return {"type": "channel", "id": channel.id}
