"""Replay: which messages stored events would have been, by the rules and grouping of now; nothing is sent."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from sqlalchemy import select

from project_service.areas.notifications.routing.recipients import Recipients
from project_service.areas.notifications.rules import matching, preview
from project_service.domain.notifications.models import ALERT, ENDING, OPENING, NotificationEvent, NotificationRule
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
    events: list[NotificationEvent] = field(default_factory=list)

    @property
    def number(self) -> int:
        """How many events it is about."""
        return len(self.events)

    @property
    def titles(self) -> list[str]:
        """The titles of the first events."""
        return [event.snapshot["title"] for event in self.events[:MAX_SHOWN_TITLES]]


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
    attempt = _Replay(recipients, {event.subject_id for event in events if event.kind in OPENING})
    untold = sum(not attempt.route(event) for event in events)
    messages = [message for message in attempt.messages if message.events]
    names = dict(zip(sorted({message.target for message in messages}), _names(recipients, messages), strict=True))
    for message in messages:
        message.target = names[message.target]
    messages.sort(key=lambda message: message.due_at, reverse=True)
    return Replayed(messages, len(events), untold)


class _Replay:
    """Routes events as the router does, without the database (notifications reference, section 7)."""

    def __init__(self, recipients: Recipients, opened: set[int]) -> None:
        self.recipients = recipients
        self.opened = opened  # alerts whose opening is replayed, too: of others every target was notified
        self.messages: list[ReplayedMessage] = []
        self._current: dict[tuple[int, str, str], ReplayedMessage] = {}
        self._openings: dict[tuple[str, int], ReplayedMessage] = {}  # by target and alert

    def route(self, event: NotificationEvent) -> bool:
        """Add an event to the messages of its targets; false if no rule names any."""
        routed: set[str] = set()
        for rule in self.recipients.rules:
            if matching.mismatch(rule, event, event.created_at) is not None:
                continue
            for target in self.recipients.targets_of(rule, event):
                if target not in routed and not self._is_refused(event, target):
                    self._add(rule, target, event)
                routed.add(target)
        return bool(routed)

    def _is_refused(self, event: NotificationEvent, target: str) -> bool:
        """Whether a target is not notified: it caused the event, or was not notified of the opening."""
        if target == f"user:{event.author_id}":
            return True
        if event.kind in OPENING:
            return False
        opening = self._openings.get((target, event.subject_id))
        if opening is None:
            return event.subject_id in self.opened and self.recipients.is_told_of_openings(event, target)
        if event.kind not in ENDING or opening.due_at <= event.created_at:
            return False
        opening.events = [
            opening_event for opening_event in opening.events if opening_event.subject_id != event.subject_id
        ]
        del self._openings[target, event.subject_id]
        return True

    def _add(self, rule: NotificationRule, target: str, event: NotificationEvent) -> None:
        key = (rule.id, target, matching.group_key(rule, event))
        message = self._current.get(key)
        if message is None or message.due_at < event.created_at:
            due_at = event.created_at + dt.timedelta(seconds=rule.group_wait)
            if message is not None and message.events:
                due_at = max(due_at, message.due_at + dt.timedelta(seconds=rule.group_interval))
            message = self._current[key] = ReplayedMessage(rule, target, due_at)
            self.messages.append(message)
        message.events.append(event)
        if event.kind in OPENING:
            self._openings[target, event.subject_id] = message


def _names(recipients: Recipients, messages: list[ReplayedMessage]) -> list[str]:
    return preview.shown_targets(recipients, sorted({message.target for message in messages}))
