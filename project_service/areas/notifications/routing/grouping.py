"""Messages of groups that are due (notifications reference, sections 7 and 8)."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Select, case, delete, func, select, update

from project_service.areas.notifications import deliveries_log, messages
from project_service.areas.notifications.messages import ChannelMessage
from project_service.areas.notifications.models import (
    PAGERDUTY,
    NotificationAnnouncement,
    NotificationChannel,
    NotificationGroup,
    NotificationItem,
    NotificationReminder,
)
from project_service.areas.notifications.personal import quiet_hours
from project_service.areas.notifications.routing import holding, texts
from project_service.domain.accounts.users import User
from project_service.domain.notifications.models import (
    ALERT,
    ALERT_ACKNOWLEDGED,
    ALERT_IGNORED,
    ALERT_REOPENED,
    ALERT_RESOLVED,
    ALERT_TRIGGERED,
    ERROR,
    FINDING,
    ISSUE,
    OPENING,
    SEVERITIES,
    NotificationEvent,
    NotificationRule,
)
from project_service.domain.projects import Project
from project_service.domain.silences import holding as silences
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, insert, unit_of_work

GROUPS_PER_STEP = 20
MAX_ITEMS = 50
PAGER_ITEMS_PER_STEP = 200
ALERT_ACTIONS = {  # as web hooks call them (webhooks reference, section 13.8)
    ALERT_TRIGGERED: "open",
    ALERT_ACKNOWLEDGED: "update",
    ALERT_IGNORED: "update",
    ALERT_RESOLVED: "resolve",
    ALERT_REOPENED: "reopen",
}
ENDS = ("alert_resolved", "incident_closed")
_severity = case({name: number for number, name in enumerate(SEVERITIES)}, value=NotificationEvent.severity, else_=0)


def send_due(until: dt.datetime) -> bool:
    """Turn groups that were due at a moment into messages; false if none was due."""
    due = select(NotificationGroup).where(NotificationGroup.due_at <= until)
    with unit_of_work(write=False):
        is_due = db.session.scalar(due.with_only_columns(NotificationGroup.id).limit(1)) is not None
    if not is_due:
        return False
    with jobs.step():
        groups = due.order_by(NotificationGroup.due_at, NotificationGroup.id).limit(GROUPS_PER_STEP)
        for group in db.session.scalars(groups).all():
            _send(group)
    return True


def _send(group: NotificationGroup) -> None:
    """Write the message of a group, or end a group for which nothing waits."""
    items = _waiting(group)
    kind, _, number = group.target.partition(":")
    now = clock.now()
    quiet_until = quiet_hours.end_of(int(number), now) if kind == "user" else None
    if quiet_until is not None:
        if quiet_hours.lets_critical_pass(int(number)):
            items = items.where(NotificationEvent.severity.in_(quiet_hours.PASSING_SEVERITIES))
        else:
            items = items.limit(0)
    if silences.has_active(group.project_id):
        _drop_held(items)
    ids = list(db.session.scalars(items.with_only_columns(NotificationItem.id)))
    if not ids:
        if quiet_until is not None:
            group.due_at = quiet_until
            return
        if group.ended_count:
            _write_ended(group, db.session.get(User, int(number)))
        db.session.delete(group)
        return
    channel = db.session.get(NotificationChannel, int(number)) if kind == "channel" else None
    if channel is not None and channel.type == PAGERDUTY:
        for item in db.session.scalars(_waiting(group).with_only_columns(NotificationItem)):
            _write(group, channel, None, [item.id])
    elif kind == "channel":
        _write(group, channel, None, ids)
    else:
        _write(group, None, db.session.get(User, int(number)), ids)
        if quiet_until is None:
            group.ended_count = 0
    group.last_sent_at = now
    group.due_at = quiet_until or now + dt.timedelta(seconds=group.interval_seconds)


def _drop_held(items: Select[Any]) -> None:
    """Take out of a group what a silence holds back that was made while it waited."""
    events = list(db.session.scalars(items.with_only_columns(NotificationEvent)))
    held = holding.held(events)
    for event in events:
        if event.id in held:
            event.silence_ids = held[event.id]
    ids = list(held)
    for start in range(0, len(ids), 500):
        some = NotificationItem.event_id.in_(ids[start : start + 500])
        waits = some & NotificationItem.delivery_id.is_(None)
        db.session.execute(delete(NotificationItem).where(waits).execution_options(synchronize_session=False))
    db.session.flush()


def _waiting(group: NotificationGroup) -> Select[Any]:
    return (
        select(NotificationItem)
        .join(NotificationEvent, NotificationEvent.id == NotificationItem.event_id)
        .where(NotificationItem.group_id == group.id, NotificationItem.delivery_id.is_(None))
        .order_by(NotificationItem.id)
    )


def _write(group: NotificationGroup, channel: NotificationChannel | None, user: User | None, ids: list[int]) -> None:
    """Write the message of some items, and that the target was notified of the openings among them."""
    message = _message(group, ids)
    if user is not None:
        message = for_person(message, group.rule)
        if group.ended_count and quiet_hours.end_of(user.id, clock.now()) is None:
            message = replace(message, lines=(*message.lines, texts.ended_meanwhile(group.ended_count)))
    delivery = deliveries_log.write(message, project=group.project, channel=channel, user=user)
    for start in range(0, len(ids), 500):
        some = NotificationItem.id.in_(ids[start : start + 500])
        db.session.execute(update(NotificationItem).where(some).values(delivery_id=delivery.id, group_id=None))
        opened = (
            select(NotificationEvent.subject_type, NotificationEvent.subject_id)
            .join(NotificationItem, NotificationItem.event_id == NotificationEvent.id)
            .where(some, NotificationEvent.kind.in_(OPENING), NotificationEvent.subject_type.in_((ALERT, ISSUE)))
        )
        rows = [
            {
                "project_id": group.project_id,
                "subject_type": subject_type,
                "subject_id": subject_id,
                "target": group.target,
                "announced_at": clock.now(),
            }
            for subject_type, subject_id in db.session.execute(opened.distinct())
        ]
        if rows:
            db.session.execute(insert(NotificationAnnouncement).on_conflict_do_nothing(), rows)
            _plan_reminder(group)


def _write_ended(group: NotificationGroup, user: User | None) -> None:
    """Write that what began during quiet hours has ended since: there is nothing else to tell."""
    message = texts.build(
        group.project,
        texts.all_ended(group.project, group.ended_count),
        counts={"triggered": 0, "resolved": group.ended_count, "other": 0},
        at=clock.isoformat(clock.now()),
    )
    deliveries_log.write(for_person(message, group.rule), project=group.project, user=user)


def _plan_reminder(group: NotificationGroup) -> None:
    """Have a target reminded that was notified of openings by a rule with ``repeat_interval``, unless it is already."""
    if group.rule is None or group.rule.repeat_interval is None:
        return
    reminder = {
        "project_id": group.project_id,
        "rule_id": group.rule.id,
        "target": group.target,
        "due_at": clock.now() + dt.timedelta(seconds=group.rule.repeat_interval),
    }
    db.session.execute(insert(NotificationReminder).values(**reminder).on_conflict_do_nothing())


def reminder_of(project: Project, rule: NotificationRule, events: Sequence[NotificationEvent]) -> ChannelMessage:
    """Return the message that reminds of openings, the most severe first."""
    listed = events[:MAX_ITEMS]
    return texts.build(
        project,
        texts.reminder(project, events),
        kind="reminder",
        rule={"id": rule.id, "name": rule.name},
        counts={"triggered": len(events), "resolved": 0, "other": 0},
        items=tuple(map(_item, listed)),
        omitted=len(events) - len(listed),
        at=min(map(texts.moment_of, events)),
        alert_ids=tuple(event.subject_id for event in events if event.subject_type == ALERT),
    )


def _message(group: NotificationGroup, ids: list[int]) -> ChannelMessage:
    counts, listed = _counted(ids), _listed(ids)
    project = group.project
    number = sum(counts.values())
    if number == 1:
        [event] = listed
        author = db.session.get(User, event.author_id) if event.kind == ALERT_ACKNOWLEDGED and event.author_id else None
        fields = texts.single(project, event, author)
    else:
        fields = texts.several(project, counts, listed, _repeated(ids))
    kinds = Counter[str]()
    for (kind, _), quantity in counts.items():
        kinds["triggered" if kind in OPENING else "resolved" if kind in ENDS else "other"] += quantity
    rule = None if group.rule is None else {"id": group.rule.id, "name": group.rule.name}
    return texts.build(
        project,
        fields,
        rule=rule,
        counts={name: kinds[name] for name in ("triggered", "resolved", "other")},
        items=tuple(map(_item, listed)),
        omitted=max(number - len(listed), 0),
        at=min(map(texts.moment_of, listed)),
    )


def for_person(message: ChannelMessage, rule: NotificationRule | None) -> ChannelMessage:
    """Return a message with the reason why a person is told."""
    reason = f"rule {rule.name}" if rule is not None else "your notification level"
    return ChannelMessage.from_json(message.as_json() | {"reason": messages.one_line(reason)})


def _counted(ids: list[int]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for start in range(0, len(ids), 500):
        rows = (
            select(NotificationEvent.kind, NotificationEvent.severity, func.count())
            .join(NotificationItem, NotificationItem.event_id == NotificationEvent.id)
            .where(NotificationItem.id.in_(ids[start : start + 500]))
            .group_by(NotificationEvent.kind, NotificationEvent.severity)
        )
        for kind, severity, number in db.session.execute(rows):
            counts[kind, severity] += number
    return counts


def _repeated(ids: list[int]) -> Counter[texts.Line]:
    """Count the events of each line, those that are not listed too."""
    counts: Counter[texts.Line] = Counter()
    event, title = NotificationEvent, NotificationEvent.snapshot["title"].as_string()
    parts = (event.kind, event.severity, event.environment, title)
    for start in range(0, len(ids), 500):
        rows = (
            select(*parts, func.count())
            .join(NotificationItem, NotificationItem.event_id == event.id)
            .where(NotificationItem.id.in_(ids[start : start + 500]))
            .group_by(*parts)
        )
        for *line, number in db.session.execute(rows):
            counts[texts.Line(*line)] += number
    return counts


def _listed(ids: list[int]) -> list[NotificationEvent]:
    """Return the events to be listed: openings of what has not ended first, the most severe, then the oldest."""
    events: list[NotificationEvent] = []
    is_opening = case((NotificationEvent.kind.in_(OPENING), 0), else_=1)
    for start in range(0, len(ids), 500):
        rows = (
            select(NotificationEvent)
            .join(NotificationItem, NotificationItem.event_id == NotificationEvent.id)
            .where(NotificationItem.id.in_(ids[start : start + 500]))
            .order_by(is_opening, _severity, NotificationEvent.id)
            .limit(MAX_ITEMS)
        )
        events += db.session.scalars(rows)
    ended = {event.subject_id for event in events if event.kind in ENDS}
    events.sort(
        key=lambda event: (
            event.kind not in OPENING or event.subject_id in ended,
            SEVERITIES.index(event.severity) if event.severity in SEVERITIES else 0,
            event.id,
        )
    )
    return events[:MAX_ITEMS]


def _item(event: NotificationEvent) -> dict[str, Any]:
    """Return an item as channels of the type webhook have it."""
    snapshot = event.snapshot
    names = {
        ERROR: ("id", "title", "level", "count", "url"),
        FINDING: ("url", "severity", "title", "count"),
    }.get(event.subject_type)
    left_out = ("payload", "integration", "integration_id", "alert_id")
    attributes = {name: value for name, value in snapshot.items() if name not in left_out}
    if names is not None:
        attributes = {name: snapshot.get(name, event.severity if name == "severity" else None) for name in names}
    if event.kind in ALERT_ACTIONS:
        attributes["action"] = ALERT_ACTIONS[event.kind]
    return {
        "event": event.kind,
        "at": texts.moment_of(event),
        "silenced": bool(event.silence_ids),
        "object_attributes": attributes,
    }
