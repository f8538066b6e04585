"""The rules that a new project starts with."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.notifications.models import NotificationDelivery
from project_service.domain.projects import Project
from project_service.kit.db.session import db
from tests.areas.alerts.receivers.test_alert_receivers import IDENTIFIER, KEY, make_integration
from tests.areas.notifications.test_personal import sent
from tests.support.sample_data import MAX

__all__ = ["sent"]


def test_the_owner_of_a_new_project_is_mailed_about_alerts(app, as_, people, send, sent):
    project_id = as_(MAX).post("/projects", json={"name": "Till"}).json["id"]
    make_integration(db.session.get(Project, project_id))
    db.session.remove()
    headers = {"Authorization": f"Bearer {KEY}"}
    client = app.test_client(use_cookies=False)
    for body in ({}, {"end_time": "2026-01-01T00:00:00Z"}):
        alert = {"title": "Disk full", "fingerprint": "a"} | body
        client.post(f"/max/till/alerts/notify/x/{IDENTIFIER}.json", json=alert, headers=headers)
        send()

    titles = db.session.scalars(select(NotificationDelivery.title)).all()
    assert (sent, titles) == (["max@example.org"] * 2, ["[CRITICAL] Disk full", "[RESOLVED] Disk full"])


def test_a_new_project_starts_with_a_rule_for_new_and_one_for_resolved_alerts(as_, people):
    project_id = as_(MAX).post("/projects", json={"name": "Till"}).json["id"]

    rules = as_(MAX).get(f"/projects/{project_id}/notification_rules").json
    assert [(rule["name"], rule["enabled"], rule["events"], rule["targets"]) for rule in rules] == [
        ("E-mail for new alerts", True, ["alert_triggered"], [{"type": "members", "access_level": 40}]),
        ("E-mail when an alert recovers", True, ["alert_resolved"], [{"type": "members", "access_level": 40}]),
    ]
