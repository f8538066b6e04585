"""Pages of channels, rules and messages, as a maintainer uses them without JavaScript."""

from __future__ import annotations

from sqlalchemy import select

from project_service.areas.notifications.models import NotificationChannel
from project_service.domain.notifications.models import NotificationRule
from project_service.kit.db.session import db
from tests.areas.notifications.conftest import make_rule, to


def test_a_channel_is_added_tested_and_told_by_a_rule(maintainer, local_hooks, project, receiver, post, send):
    own = f"/{project.full_path}/-/settings/notifications"
    assert "Nobody is told about alerts" in maintainer.get(own).text
    assert "Microsoft Teams" in maintainer.get(f"{own}/channels/new").text

    refused = maintainer.send(f"{own}/channels/new?type=slack", name="ops", url="", rate_per_minute="20", enabled="y")
    assert (refused.status_code, "can&#39;t be blank" in refused.text) == (422, True)
    receiver.body = b"ok"
    fields = {"name": "ops", "url": receiver.url, "rate_per_minute": "20", "enabled": "y", "test": "1"}
    maintainer.send(f"{own}/channels/new?type=slack", **fields)
    assert "The test of &#34;ops&#34; was delivered" in maintainer.get(own).text

    channel = db.session.scalars(select(NotificationChannel)).one()
    rule = {"name": "All", "events": ["alert_triggered"], "targets": [f"channel:{channel.id}"], "matchers": "title"}
    rule |= {"group_wait": "5", "group_interval": "300", "enabled": "y"}
    refused = maintainer.send(f"{own}/rules/new", **rule)
    assert "is not a field, an operator and a value" in refused.text
    maintainer.send(f"{own}/rules/new", **rule | {"matchers": "title matches *full*"})
    assert "Alert triggered if title matches *full* → #ops, grouped for 5 min" in maintainer.get(f"{own}/rules").text

    post({"title": "Disk full", "severity": "high"}, {"title": "Other"})
    send()
    assert receiver.bodies[1]["text"] == "*[HIGH]* Disk full — shop"
    assert "[HIGH] Disk full" in maintainer.get(f"{own}/deliveries").text
    assert "This message would have been sent" in maintainer.get(f"{own}/rules/replay").text


def test_one_click_mails_maintainers_and_another_disables_it(maintainer, project):
    own = f"/{project.full_path}/-/settings/notifications"

    maintainer.send(f"{own}/rules/starter")
    rule = db.session.scalars(select(NotificationRule)).one()
    maintainer.send(f"{own}/rules/{rule.id}/toggle")
    db.session.remove()

    [stored] = db.session.scalars(select(NotificationRule))
    assert (stored.targets, stored.enabled) == ([{"type": "members", "access_level": 40}], False)


def test_a_failing_channel_says_why(maintainer, channel, project, receiver, post, send):
    make_rule(project, to(channel))
    receiver.status = 404

    for number in range(3):
        post({"title": f"Alert {number}"})
        send(301)

    text = maintainer.get(f"/{project.full_path}/-/settings/notifications").text
    assert ("Failing" in text, "HTTP 404 thanks" in text) == (True, True)


def test_a_rule_whose_channel_was_deleted_can_be_switched_off(maintainer, project):
    rule = make_rule(project, {"type": "channel", "id": 4711})

    page = maintainer.send(f"/{project.full_path}/-/settings/notifications/rules/{rule.id}/toggle")
    db.session.remove()
    assert (page.status_code, db.session.get(NotificationRule, rule.id).enabled) == (302, False)


def test_messages_of_a_user_lead_to_no_rules(maintainer):
    text = maintainer.get("/-/profile/notifications/deliveries").text

    assert ("/-/profile/notifications/deliveries" in text, "/-/profile/notifications/rules" in text) == (True, False)
