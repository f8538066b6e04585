"""Routing: events become items in the groups of their targets (notifications reference, section 7)."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import joinedload

from project_service.areas.notifications.models import (
    NotificationAnnouncement,
    NotificationGroup,
    NotificationItem,
)
from project_service.areas.notifications.personal import quiet_hours
from project_service.areas.notifications.personal.quiet_hours import PASSING_SEVERITIES
from project_service.areas.notifications.routing import holding
from project_service.areas.notifications.routing.recipients import Recipients
from project_service.areas.notifications.rules import matching
from project_service.domain.notifications.models import (
    ALERT,
    ENDING,
    INCIDENT_OPENED,
    OPENING,
    NotificationEvent,
    NotificationRule,
)
from project_service.domain.projects import Project
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, insert, unit_of_work

BATCH_SIZE = 500
PERSONAL, PERSONAL_WAIT_SECONDS, PERSONAL_INTERVAL_SECONDS = "personal", 5, 300
NOBODY, OWN, NOT_ANNOUNCED = "has no recipient", "caused by the recipient", "the opening was not announced"
INCIDENT_OF_ALERT, NEVER_MIND = "the alert was announced", "ended before it was announced"


def route_waiting() -> bool:
    """Route a batch of events; false if there was none."""
    unrouted = select(NotificationEvent.id).where(NotificationEvent.routed_at.is_(None))
    with unit_of_work(write=False):
        has_work = db.session.scalar(unrouted.limit(1)) is not None
    if not has_work:
        return False
    with jobs.step():
        waiting = select(NotificationEvent).where(NotificationEvent.routed_at.is_(None))
        waiting = waiting.options(joinedload(NotificationEvent.project)).order_by(NotificationEvent.id)
        events = list(db.session.scalars(waiting.limit(BATCH_SIZE)))
        by_project = sorted(events, key=lambda event: (event.project_id, event.id))
        for _, of_project in itertools.groupby(by_project, key=lambda event: event.project_id):
            _ProjectRouting(list(of_project)).run()
    return True


def routed_until(now: dt.datetime) -> dt.datetime:
    """Return when the first event happened that is not routed yet; ``now`` without one."""
    unrouted = select(NotificationEvent.created_at).where(NotificationEvent.routed_at.is_(None))
    with unit_of_work(write=False):
        oldest = db.session.scalar(unrouted.order_by(NotificationEvent.id).limit(1))
    return now if oldest is None else min(oldest, now)


class _ProjectRouting:
    """Routes the events of one project; everything that decides is read once."""

    def __init__(self, events: list[NotificationEvent]) -> None:
        self.events = events
        self.project: Project = events[0].project
        self.recipients = Recipients(self.project)
        self.now = clock.now()
        self.groups: dict[tuple[str, str, str], NotificationGroup] = {}
        self.items: list[dict[str, Any]] = []
        self.announced: set[tuple[str, int, str]] = set()
        self.waiting: dict[tuple[str, int, str], list[NotificationEvent]] = {}
        self.quiet: dict[str, bool] = {}

    def run(self) -> None:
        """Add the items of all events, and store why others have none."""
        held = holding.held(self.events)
        self._read_state()
        for event in self.events:
            event.routed_at = self.now
            if event.id in held:
                event.silence_ids = held[event.id]
            elif self.project.deleting_since is None:
                self._route(event)
        db.session.flush()
        if self.items:
            statement = insert(NotificationItem).on_conflict_do_nothing(index_elements=["event_id", "target"])
            for start in range(0, len(self.items), BATCH_SIZE):
                rows = self.items[start : start + BATCH_SIZE]
                for row in rows:
                    row["group_id"] = row.pop("group").id
                db.session.execute(statement, rows)

    def _read_state(self) -> None:
        here = select(NotificationGroup).where(NotificationGroup.project_id == self.project.id)
        self.groups = {(row.origin, row.target, row.group_key): row for row in db.session.scalars(here)}
        subjects = {(event.subject_type, event.subject_id) for event in self.events}
        subjects |= {(ALERT, event.snapshot["alert_id"]) for event in self.events if event.snapshot.get("alert_id")}
        ids = {number for _, number in subjects}
        statement = select(NotificationAnnouncement).where(
            NotificationAnnouncement.project_id == self.project.id, NotificationAnnouncement.subject_id.in_(ids)
        )
        self.announced = {(row.subject_type, row.subject_id, row.target) for row in db.session.scalars(statement)}
        waiting = (
            select(NotificationItem.target, NotificationEvent)
            .join(NotificationEvent, NotificationEvent.id == NotificationItem.event_id)
            .where(
                NotificationItem.delivery_id.is_(None),
                NotificationEvent.project_id == self.project.id,
                NotificationEvent.subject_id.in_(ids),
            )
        )
        for target, event in db.session.execute(waiting):
            self.waiting.setdefault((event.subject_type, event.subject_id, target), []).append(event)

    def _route(self, event: NotificationEvent) -> None:
        reasons: list[dict[str, Any]] = []
        routed: set[str] = set()
        for rule in self.recipients.rules:
            because = matching.mismatch(rule, event, event.created_at)
            if because is not None:
                reasons.append({"rule_id": rule.id, "because": because})
                continue
            targets = self.recipients.targets_of(rule, event)
            if not targets:
                reasons.append({"rule_id": rule.id, "because": NOBODY})
            for target in targets:
                if target in routed:
                    continue
                routed.add(target)
                if (refusal := self._refusal(event, target)) is not None:
                    reasons.append({"rule_id": rule.id, "target": target, "because": refusal})
                else:
                    self._add(event, target, rule)
        for target in self.recipients.watchers(event):
            if target not in routed and self._refusal(event, target) is None:
                self._add(event, target, None)
        event.reasons = reasons

    def _refusal(self, event: NotificationEvent, target: str) -> str | None:
        """Return why a target that a rule names is not notified of an event."""
        subject = (event.subject_type, event.subject_id, target)
        if target == f"user:{event.author_id}":
            return OWN
        if event.kind == INCIDENT_OPENED and (alert_id := event.snapshot.get("alert_id")) is not None:
            of_alert = (ALERT, alert_id, target)
            if of_alert in self.announced or of_alert in self.waiting:
                return INCIDENT_OF_ALERT
        if event.kind in OPENING:
            return None
        if event.kind in ENDING and self._withdraw(subject):
            return NEVER_MIND
        is_known = subject in self.announced or subject in self.waiting
        return None if is_known or not self.recipients.is_told_of_openings(event, target) else NOT_ANNOUNCED

    def _withdraw(self, subject: tuple[str, int, str]) -> bool:
        """Remove what waits about a subject that has ended, if its opening waits, too."""
        events = self.waiting.get(subject, [])
        if not any(event.kind in OPENING for event in events) or subject in self.announced:
            return False
        ids = {event.id for event in events}
        if self._is_quiet(subject[2]):
            opening_ids = {event.id for event in events if event.kind in OPENING}
            for group in self._groups_of(opening_ids, subject[2]):
                group.ended_count += 1
        self.items = [item for item in self.items if item["event_id"] not in ids or item["target"] != subject[2]]
        db.session.execute(
            delete(NotificationItem).where(NotificationItem.event_id.in_(ids), NotificationItem.target == subject[2])
        )
        del self.waiting[subject]
        return True

    def _is_quiet(self, target: str) -> bool:
        """Whether a target is a person who has quiet hours now."""
        if target not in self.quiet:
            kind, _, number = target.partition(":")
            self.quiet[target] = kind == "user" and quiet_hours.end_of(int(number), self.now) is not None
        return self.quiet[target]

    def _groups_of(self, event_ids: set[int], target: str) -> set[NotificationGroup]:
        """Return the groups in which events wait for a target."""
        new = {item["group"] for item in self.items if item["event_id"] in event_ids and item["target"] == target}
        stored = select(NotificationGroup).join(NotificationItem, NotificationItem.group_id == NotificationGroup.id)
        here = NotificationItem.event_id.in_(event_ids), NotificationItem.target == target
        return new | set(db.session.scalars(stored.where(*here)))

    def _add(self, event: NotificationEvent, target: str, rule: NotificationRule | None) -> None:
        group = self._group(event, target, rule)
        rule_id = None if rule is None else rule.id
        self.items.append({"group": group, "event_id": event.id, "target": target, "rule_id": rule_id})
        self.waiting.setdefault((event.subject_type, event.subject_id, target), []).append(event)

    def _group(self, event: NotificationEvent, target: str, rule: NotificationRule | None) -> NotificationGroup:
        origin = PERSONAL if rule is None else f"rule:{rule.id}"
        key = (origin, target, "" if rule is None else matching.group_key(rule, event))
        wait = PERSONAL_WAIT_SECONDS if rule is None else rule.group_wait
        if key not in self.groups:
            self.groups[key] = NotificationGroup(
                project_id=self.project.id,
                rule_id=None if rule is None else rule.id,
                origin=origin,
                target=target,
                group_key=key[2],
                ended_count=0,
                interval_seconds=PERSONAL_INTERVAL_SECONDS if rule is None else rule.group_interval,
                due_at=max(event.created_at, self.now - dt.timedelta(seconds=wait)) + dt.timedelta(seconds=wait),
            )
            db.session.add(self.groups[key])
        elif event.severity in PASSING_SEVERITIES:  # what waits for the end of quiet hours does not hold it up
            group = self.groups[key]
            usual = event.created_at + dt.timedelta(seconds=wait)
            if group.last_sent_at is not None:
                usual = max(usual, group.last_sent_at + dt.timedelta(seconds=group.interval_seconds))
            group.due_at = min(group.due_at, usual)
        return self.groups[key]
