"""Reminders of alerts and incidents that a rule has announced and that are still open (notifications reference, 7)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from sqlalchemy import delete, func, select, update
from sqlalchemy import insert as insert_rows

from project_service.areas.notifications import deliveries_log
from project_service.areas.notifications.models import (
    PAGERDUTY,
    NotificationChannel,
    NotificationItem,
    NotificationReminder,
)
from project_service.areas.notifications.personal import quiet_hours
from project_service.areas.notifications.routing import grouping
from project_service.areas.notifications.routing.recipients import Recipients
from project_service.areas.notifications.rules import matching
from project_service.domain.accounts.users import User
from project_service.domain.alerts import alert_actions
from project_service.domain.notifications.models import (
    ALERT,
    ISSUE,
    OPENING,
    SEVERITIES,
    NotificationEvent,
    NotificationRule,
)
from project_service.domain.silences import holding as silences
from project_service.domain.tracker.issues import OPENED, Issue
from project_service.kit import clock, jobs
from project_service.kit.db.session import db, unit_of_work

REMINDERS_PER_STEP = 20
IDS_AT_ONCE = 500
INACTIVE_PAUSE = dt.timedelta(minutes=10)  # outside the active periods of a rule


def restart(rule: NotificationRule) -> None:
    """Plan the reminders of a rule whose interval or switch has changed, also for what it has announced before."""
    db.session.execute(delete(NotificationReminder).where(NotificationReminder.rule_id == rule.id))
    if rule.repeat_interval is None or not rule.enabled:
        return
    announced = (
        select(NotificationEvent.project_id, NotificationItem.target)
        .join(NotificationEvent, NotificationEvent.id == NotificationItem.event_id)
        .where(NotificationItem.rule_id == rule.id, NotificationItem.delivery_id.is_not(None))
        .where(NotificationEvent.kind.in_(OPENING), NotificationEvent.subject_type.in_((ALERT, ISSUE)))
    )
    due_at = clock.now() + dt.timedelta(seconds=rule.repeat_interval)
    rows = [
        {"rule_id": rule.id, "project_id": project_id, "target": target, "due_at": due_at}
        for project_id, target in db.session.execute(announced.distinct())
    ]
    if rows:
        db.session.execute(insert_rows(NotificationReminder), rows)


def send_due(until: dt.datetime) -> bool:
    """Write the reminders that were due at a moment; false if none was due."""
    due = select(NotificationReminder).where(NotificationReminder.due_at <= until)
    with unit_of_work(write=False):
        is_due = db.session.scalar(due.with_only_columns(NotificationReminder.id).limit(1)) is not None
    if not is_due:
        return False
    with jobs.step():
        some = due.order_by(NotificationReminder.due_at, NotificationReminder.id).limit(REMINDERS_PER_STEP)
        for reminder in db.session.scalars(some).all():
            _remind(reminder)
    return True


def _remind(reminder: NotificationReminder) -> None:
    """Write one reminder, or end it if nothing is open that its target was notified of."""
    rule, now = reminder.rule, clock.now()
    events = _open_events(reminder)
    if rule.repeat_interval is None or not events or reminder.project.deleting_since is not None:
        db.session.delete(reminder)
        return
    if rule.active_periods and not any(matching.is_within(period, now) for period in rule.active_periods):
        reminder.due_at = now + INACTIVE_PAUSE
        return
    kind, _, number = reminder.target.partition(":")
    quiet_until = quiet_hours.end_of(int(number), now) if kind == "user" else None
    if quiet_until is not None:
        is_critical = any(matching.rank(event.severity) == 0 for event in events)
        if not (is_critical and quiet_hours.lets_critical_pass(int(number))):
            reminder.due_at = quiet_until
            return
    reminder.due_at = now + dt.timedelta(seconds=rule.repeat_interval)
    channel = db.session.get(NotificationChannel, int(number)) if kind == "channel" else None
    if channel is not None and channel.type == PAGERDUTY:
        return
    user = db.session.get(User, int(number)) if kind == "user" else None
    open_events = _unsilenced(reminder.project_id, _still_told(reminder, events))
    if open_events:
        message = grouping.reminder_of(reminder.project, rule, open_events)
        message = message if user is None else grouping.for_person(message, rule)
        delivery = deliveries_log.write(message, project=reminder.project, channel=channel, user=user)
        _note_on_items(reminder, [event.id for event in open_events], delivery.id)


def _note_on_items(reminder: NotificationReminder, event_ids: list[int], delivery_id: int) -> None:
    """Store the reminder with what it reminded of, for the panels of the subjects."""
    item = NotificationItem
    for some in _portions(event_ids):
        reminded = update(item).where(item.event_id.in_(some), item.target == reminder.target)
        values = {"reminder_id": delivery_id, "reminder_count": item.reminder_count + 1}
        db.session.execute(reminded.values(values).execution_options(synchronize_session=False))


def _open_events(reminder: NotificationReminder) -> list[NotificationEvent]:
    """Return the last opening that the target was notified of, of each alert still triggered and each open incident."""
    event, item = NotificationEvent, NotificationItem
    announced = (
        select(event.subject_type, event.subject_id, func.max(event.id))
        .join(item, item.event_id == event.id)
        .where(event.project_id == reminder.project_id, event.kind.in_(OPENING))
        .where(event.subject_type.in_((ALERT, ISSUE)), item.target == reminder.target)
        .where(item.rule_id == reminder.rule_id, item.delivery_id.is_not(None))
        .group_by(event.subject_type, event.subject_id)
    )
    rows = db.session.execute(announced).all()
    subjects = {(subject_type, subject_id) for subject_type, subject_id, _ in rows}
    still_open = {(ALERT, number) for number in _triggered(number for kind, number in subjects if kind == ALERT)}
    still_open |= {(ISSUE, number) for number in _open_issues(number for kind, number in subjects if kind == ISSUE)}
    ids = [event_id for subject_type, subject_id, event_id in rows if (subject_type, subject_id) in still_open]
    events: list[NotificationEvent] = []
    for some in _portions(ids):
        events += db.session.scalars(select(event).where(event.id.in_(some)))
    order = {name: number for number, name in enumerate(SEVERITIES)}
    return sorted(events, key=lambda open_event: (order.get(open_event.severity, 0), open_event.id))


def _triggered(alert_ids: Iterable[int]) -> set[int]:
    return {
        number for some in _portions(list(alert_ids)) for number in alert_actions.open_among(some, acknowledged=False)
    }


def _open_issues(issue_ids: Iterable[int]) -> set[int]:
    opened = select(Issue.id).where(Issue.state == OPENED)
    portions = _portions(list(issue_ids))
    return {number for some in portions for number in db.session.scalars(opened.where(Issue.id.in_(some)))}


def _portions(ids: list[int]) -> list[list[int]]:
    return [ids[start : start + IDS_AT_ONCE] for start in range(0, len(ids), IDS_AT_ONCE)]


def _still_told(reminder: NotificationReminder, events: list[NotificationEvent]) -> list[NotificationEvent]:
    """Leave out what the target would not be notified of any more: access, level or the channel have changed."""
    recipients = Recipients(reminder.project)
    examples = {(event.subject_type, event.kind): event for event in events}
    targets = {key: recipients.targets_of(reminder.rule, event) for key, event in examples.items()}
    return [event for event in events if reminder.target in targets[event.subject_type, event.kind]]


def _unsilenced(project_id: int, events: list[NotificationEvent]) -> list[NotificationEvent]:
    """Leave out alerts that are silenced now; their silence does not count them as held back."""
    facts = {event.id: matching.facts_of(event) for event in events if event.subject_type == ALERT}
    silenced = silences.silences_matching(project_id, facts) if facts else {}
    return [event for event in events if event.id not in silenced]
