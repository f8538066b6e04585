"""Replay: which messages stored events would have been, by the rules and grouping of now; nothing is sent."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import select

from project_service.areas.notifications.routing.recipients import Recipients
from project_service.areas.notifications.rules import matching, preview
from project_service.domain.notifications.models import ALERT, NotificationEvent, NotificationRule
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.db.session import db

MAX_EVENTS = 1000
PERIOD = dt.timedelta(days=7)
MAX_SHOWN_TITLES = 3


@dataclass(slots=True)
class ReplayedMessage:
    """A message that would have been sent: when, to whom, about what."""

    rule: NotificationRule
    target: str
    due_at: dt.datetime
    titles: list[str]
    number: int = 0


@dataclass(frozen=True, slots=True)
class Replayed:
    """The messages of a replay, newest first, and of how many events they were made."""

    messages: list[ReplayedMessage]
    events: int
    untold: int


def replay(project: Project) -> Replayed:
    """Try at most ``MAX_EVENTS`` stored events of alerts of the last days, oldest first."""
    stored = (
        select(NotificationEvent)
        .where(NotificationEvent.project_id == project.id, NotificationEvent.subject_type == ALERT)
        .where(NotificationEvent.created_at > clock.now() - PERIOD)
        .order_by(NotificationEvent.id.desc())
        .limit(MAX_EVENTS)
    )
    events = list(reversed(db.session.scalars(stored).all()))
    recipients = Recipients(project)
    current: dict[tuple[int, str, str], ReplayedMessage] = {}
    messages: list[ReplayedMessage] = []
    untold = 0
    for event in events:
        routed: set[str] = set()
        for rule in recipients.rules:
            if matching.mismatch(rule, event, event.created_at) is not None:
                continue
            for target in recipients.targets_of(rule, event):
                if target in routed:
                    continue
                routed.add(target)
                _add(current, messages, rule, target, event)
        untold += not routed
    names = dict(zip(sorted({message.target for message in messages}), _names(recipients, messages), strict=True))
    for message in messages:
        message.target = names[message.target]
    messages.sort(key=lambda message: message.due_at, reverse=True)
    return Replayed(messages, len(events), untold)


def _add(
    current: dict[tuple[int, str, str], ReplayedMessage],
    messages: list[ReplayedMessage],
    rule: NotificationRule,
    target: str,
    event: NotificationEvent,
) -> None:
    key = (rule.id, target, matching.group_key(rule, event))
    message = current.get(key)
    if message is None or message.due_at < event.created_at:
        due_at = event.created_at + dt.timedelta(seconds=rule.group_wait)
        if message is not None:
            due_at = max(due_at, message.due_at + dt.timedelta(seconds=rule.group_interval))
        message = current[key] = ReplayedMessage(rule, target, due_at, [])
        messages.append(message)
    message.number += 1
    if len(message.titles) < MAX_SHOWN_TITLES:
        message.titles.append(event.snapshot["title"])


def _names(recipients: Recipients, messages: list[ReplayedMessage]) -> list[str]:
    return preview.shown_targets(recipients, sorted({message.target for message in messages}))
