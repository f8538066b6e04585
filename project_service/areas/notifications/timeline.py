"""The panel "Notifications" of alerts, errors, findings and incidents: who was told, and why others were not."""

from __future__ import annotations

import datetime as dt
import functools
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import joinedload

from project_service.access.abilities import Ability, allowed
from project_service.access.identity import caller
from project_service.access.page_parts import panels
from project_service.areas.notifications.models import NotificationChannel, NotificationDelivery, NotificationItem
from project_service.domain.accounts.users import User
from project_service.domain.notifications.models import (
    ALERT,
    ERROR,
    FINDING,
    ISSUE,
    NotificationEvent,
    NotificationRule,
)
from project_service.domain.projects import Project
from project_service.domain.tracker.issues import INCIDENT
from project_service.kit.db.session import db

MAX_EVENTS = 20
WITH_ITEMS = (NotificationItem.delivery, NotificationItem.reminder)
MAX_OUTCOMES = 20
OTHER_EVENT = "events"  # of rules that are about other kinds of events
BECAUSE = {
    "min_severity": "the severity is too low",
    "environment": "another environment",
    "integration_ids": "another integration",
    "matchers": "a condition does not hold",
    "active_periods": "it is not active at this time",
}


@dataclass(frozen=True, slots=True)
class TimelineOutcome:
    """What became of an event for one target; of reminders how many there were, and when the last."""

    target: str
    text: str
    is_delivered: bool = False
    reminders: int = 0
    last_reminder_at: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An event with what became of it for each target, and why rules did not match."""

    event: NotificationEvent
    words: str
    outcomes: list[TimelineOutcome] = field(default_factory=list)
    omitted: int = 0
    unmatched: list[str] = field(default_factory=list)


def fill(subject_type: str, subject: Any) -> dict[str, Any]:
    """Return the newest events of a subject with what became of them; nothing for those who may not see it."""
    subject_id = _subject_id(subject_type, subject)
    project = _project_of(subject)
    if subject_id is None or project is None or not allowed(caller(), Ability.READ_NOTIFICATIONS, project):
        return {"is_shown": False}
    statement = select(NotificationEvent).where(
        NotificationEvent.subject_type == subject_type, NotificationEvent.subject_id == subject_id
    )
    newest = statement.where(NotificationEvent.project_id == project.id).order_by(NotificationEvent.id.desc())
    events = db.session.scalars(newest.limit(MAX_EVENTS)).all()
    return {
        "is_shown": True,
        "entries": _entries(events) if events else [],
        "address": f"/{project.full_path}/-/settings",
    }


def _subject_id(subject_type: str, subject: Any) -> int | None:
    if subject_type == FINDING:
        number = subject.pipeline_id
    elif subject_type == ISSUE and subject.issue_type != INCIDENT:
        return None
    else:
        number = getattr(subject, "id", None)
    return number if isinstance(number, int) else int(number) if str(number).isdigit() else None


def _project_of(subject: Any) -> Project | None:
    project = getattr(subject, "project", None)
    if isinstance(project, Project):
        return project
    project_id = getattr(subject, "project_id", None)
    return None if project_id is None else db.session.get(Project, project_id)


def _entries(events: Any) -> list[TimelineEntry]:
    ids = [event.id for event in events]
    items = select(NotificationItem).where(NotificationItem.event_id.in_(ids)).order_by(NotificationItem.id)
    of_event: dict[int, list[NotificationItem]] = {}
    for item in db.session.scalars(items.options(*map(joinedload, WITH_ITEMS)).limit(MAX_EVENTS * 50)):
        of_event.setdefault(item.event_id, []).append(item)
    names = _names({item.target for some in of_event.values() for item in some} | _targets_in_reasons(events))
    rule_ids = {reason["rule_id"] for event in events for reason in event.reasons}
    rows = select(NotificationRule.id, NotificationRule.name).where(NotificationRule.id.in_(rule_ids))
    rules = {row.id: row.name for row in db.session.execute(rows)} if rule_ids else {}
    return [_entry(event, of_event.get(event.id, []), names, rules) for event in events]


def _entry(
    event: NotificationEvent, items: list[NotificationItem], names: dict[str, str], rules: dict[int, str]
) -> TimelineEntry:
    shown_items = items[:MAX_OUTCOMES]
    outcomes = [TimelineOutcome(names.get(item.target, item.target), *_outcome(item)) for item in shown_items]
    outcomes += [_reminder(item, names) for item in shown_items if item.reminder_count]
    outcomes += [TimelineOutcome("", f"held back by silence #{number}") for number in event.silence_ids]
    unmatched = []
    for reason in event.reasons:
        if reason["because"] == OTHER_EVENT:
            continue
        because = BECAUSE.get(reason["because"], reason["because"])
        target = f" for {names.get(reason['target'], reason['target'])}" if "target" in reason else ""
        unmatched.append(f"{rules.get(reason['rule_id'], 'a deleted rule')}{target}: {because}")
    words = event.kind.replace("_", " ").capitalize()
    return TimelineEntry(event, words, outcomes, max(len(items) - MAX_OUTCOMES, 0), unmatched)


def _outcome(item: NotificationItem) -> tuple[str, bool]:
    return ("waits for its group", False) if item.delivery is None else _result(item.delivery)


def _reminder(item: NotificationItem, names: dict[str, str]) -> TimelineOutcome:
    reminder = item.reminder
    result = ("no longer in the log", False) if reminder is None else _result(reminder)
    sent_at = None if reminder is None else reminder.created_at
    return TimelineOutcome(names.get(item.target, item.target), *result, item.reminder_count, sent_at)


def _result(delivery: NotificationDelivery) -> tuple[str, bool]:
    if delivery.status == "delivered" and delivery.delivered_at is not None:
        seconds = (delivery.delivered_at - delivery.created_at).total_seconds()
        return f"delivered in {seconds:.1f} s", True
    return f"{delivery.status}: {delivery.error}" if delivery.error else delivery.status, False


def _targets_in_reasons(events: Any) -> set[str]:
    return {reason["target"] for event in events for reason in event.reasons if "target" in reason}


def _names(targets: set[str]) -> dict[str, str]:
    ids: dict[str, list[int]] = {"channel": [], "user": []}
    for target in targets:
        kind, _, number = target.partition(":")
        ids[kind].append(int(number))
    names: dict[str, str] = {}
    if ids["channel"]:
        rows = select(NotificationChannel.id, NotificationChannel.name)
        for row in db.session.execute(rows.where(NotificationChannel.id.in_(ids["channel"]))):
            names[f"channel:{row.id}"] = f"#{row.name}"
    if ids["user"]:
        for row in db.session.execute(select(User.id, User.username).where(User.id.in_(ids["user"]))):
            names[f"user:{row.id}"] = f"@{row.username}"
    return names


for page in (ALERT, ERROR, FINDING, ISSUE):
    panels.add(panels.Panel(page, 80, "notifications/timeline.html", functools.partial(fill, page)))
