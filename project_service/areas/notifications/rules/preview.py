"""What would follow from an event, and which messages stored alerts would have been; nothing is sent."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Required, TypedDict, Unpack

from sqlalchemy import select

from project_service.areas.notifications import messages
from project_service.areas.notifications.routing.recipients import Recipients
from project_service.areas.notifications.rules import matching
from project_service.domain.accounts.users import User
from project_service.domain.notifications.models import ALERT, SUBJECTS, NotificationEvent, NotificationRule
from project_service.domain.projects import Project
from project_service.domain.silences import holding
from project_service.kit import clock
from project_service.kit.db.session import db
from project_service.kit.http.errors import NotFound


class TriedEvent(TypedDict, total=False):
    """An event to be tried: the alert with an ``iid``, or its parts."""

    alert_iid: int | None
    event: Required[str]
    severity: Required[str]
    environment: str | None
    title: Required[str]
    payload: dict[str, Any] | None


def preview(project: Project, **fields: Unpack[TriedEvent]) -> dict[str, Any]:
    """Return which rules would match an event, whom they would tell, and why others would not match."""
    event = _event(project, **fields)
    recipients = Recipients(project)
    matches, not_matching = [], []
    for rule in recipients.rules:
        because = matching.mismatch(rule, event, clock.now())
        if because is not None:
            not_matching.append({"rule_id": rule.id, "because": because})
            continue
        names = shown_targets(recipients, recipients.targets_of(rule, event))
        matches.append({"rule_id": rule.id, "rule_name": rule.name, "targets": names})
    facts = {0: matching.facts_of(event)} if event.subject_type == ALERT else {}
    silences = holding.silences_matching(project.id, facts).get(0, [])
    return {"silenced_by": [silence.id for silence in silences], "matches": matches, "not_matching": not_matching}


def shown_targets(recipients: Recipients, targets: Sequence[str]) -> list[str]:
    """Return targets as people read them: ``#ops`` and ``@anna``."""
    ids = [int(target.partition(":")[2]) for target in targets if target.startswith("user:")]
    rows = select(User.id, User.username).where(User.id.in_(ids))
    people = {f"user:{row.id}": f"@{row.username}" for row in db.session.execute(rows)} if ids else {}
    channels = {f"channel:{number}": f"#{channel.name}" for number, channel in recipients.channels.items()}
    return [people.get(target) or channels.get(target, target) for target in targets]


def words_of(rule: NotificationRule, channels: dict[int, str]) -> str:
    """Return a rule as a sentence."""
    events = ", ".join(kind.replace("_", " ") for kind in rule.events)
    parts = [events[:1].upper() + events[1:]]
    if rule.min_severity:
        parts.append(f"from {rule.min_severity}")
    if rule.environment:
        parts.append(f"in {rule.environment}")
    parts += [
        f"if {matcher['field']} {matcher['operator'].replace('_', ' ')} {matcher['value']}" for matcher in rule.matchers
    ]
    names = []
    for target in rule.targets:
        if target["type"] == "channel":
            names.append(f"#{channels.get(target['id'], 'a deleted channel')}")
        elif target["type"] == "user":
            names.append(f"@{target['username']}")
        else:
            roles = {10: "guests", 20: "reporters", 30: "developers", 40: "maintainers", 50: "owners"}
            names.append(f"{roles[target['access_level']]} and above")
    interval = messages.duration_words(dt.timedelta(seconds=rule.group_interval))
    grouped = f", grouped for {interval}" + (f" by {', '.join(rule.group_by)}" if rule.group_by else "")
    length = dt.timedelta(seconds=rule.repeat_interval or 0)
    repeated = f", again every {messages.duration_words(length)}" if length else ""
    return f"{' '.join(parts)} → {', '.join(names)}{grouped}{repeated}"


def _event(project: Project, **fields: Unpack[TriedEvent]) -> NotificationEvent:
    if (iid := fields.get("alert_iid")) is not None:
        stored = (
            select(NotificationEvent)
            .where(NotificationEvent.project_id == project.id, NotificationEvent.subject_type == ALERT)
            .where(NotificationEvent.snapshot["iid"].as_integer() == iid)
            .order_by(NotificationEvent.id.desc())
        )
        event = db.session.scalar(stored.limit(1))
        if event is None:
            raise NotFound("Alert")
        return event
    payload = fields.get("payload") or {}
    kind = fields["event"]
    snapshot = {name: payload.get(name) for name in ("service", "monitoring_tool", "hosts", "fingerprint")}
    return NotificationEvent(
        project_id=project.id,
        kind=kind,
        subject_type=SUBJECTS[kind],
        subject_id=0,
        severity=fields["severity"],
        environment=fields.get("environment") or None,
        snapshot=snapshot | {"title": fields["title"], "payload": payload},
    )
