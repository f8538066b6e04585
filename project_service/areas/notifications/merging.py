"""Late messages of a channel or person are merged into one (notifications reference, section 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update

from project_service.areas.notifications import deliveries_log, messages
from project_service.areas.notifications.messages import ENDED, OPEN, ChannelMessage
from project_service.areas.notifications.models import NotificationDelivery, NotificationItem
from project_service.domain.notifications.models import ENDING, OPENING, NotificationEvent
from project_service.kit import clock
from project_service.kit.db.session import db

MAX_LISTED = 10
MAX_ITEMS = 50


def merge(late: Sequence[NotificationDelivery]) -> NotificationDelivery | None:
    """Write the one message that replaces late ones, without queueing it; ``None`` without any."""
    if not late:
        return None
    if len(late) == 1:
        return late[0]
    newest = late[-1]
    message = _message(late)
    merged = NotificationDelivery(
        project=newest.project if len({one.project_id for one in late}) == 1 else None,
        channel_id=newest.channel_id,
        channel_name=newest.channel_name,
        user_id=newest.user_id,
        recipient=newest.recipient,
        kind="message",
        title=message.title,
        content=message.as_json(),
        triggered_count=message.counts["triggered"],
        resolved_count=message.counts["resolved"],
        other_count=message.counts["other"],
        attempts=0,
        created_at=clock.now(),
    )
    db.session.add(merged)
    db.session.flush()
    deliveries_log.merge_into(merged, list(late))
    ids = [one.id for one in late]
    moved = update(NotificationItem).where(NotificationItem.delivery_id.in_(ids)).values(delivery_id=merged.id)
    db.session.execute(moved)
    return merged


def _message(late: Sequence[NotificationDelivery]) -> ChannelMessage:
    delay = messages.duration_words(clock.now() - min(one.created_at for one in late))
    still_open = _still_open([one.id for one in late])
    lines = [_line(item) for item in still_open[:MAX_LISTED]]
    rest = len(still_open) - len(lines)
    counts = {
        "triggered": sum(one.triggered_count for one in late),
        "resolved": sum(one.resolved_count for one in late),
        "other": sum(one.other_count for one in late),
    }
    told = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    first = ChannelMessage.from_json(late[0].content)
    headline = f"{len(late)} notifications were delayed by {delay}"
    return ChannelMessage(
        headline=headline,
        project=first.project,
        url=first.url,
        lines=(told, *lines, *((f"… and {rest} more",) if rest > 0 else ())),
        state=OPEN if still_open else ENDED,
        severity=still_open[0].severity if still_open else "unknown",
        mail_subject=f"{first.project['name']} | {headline}",
        counts=counts,
        items=tuple(_last_items(late)),
        omitted=max(sum(counts.values()) - MAX_ITEMS, 0),
        reason=first.reason,
        at=first.at,
    )


def _still_open(delivery_ids: list[int]) -> list[NotificationEvent]:
    """Return the openings of late messages whose subject has not ended since, the newest first."""
    events = (
        select(NotificationEvent)
        .join(NotificationItem, NotificationItem.event_id == NotificationEvent.id)
        .where(NotificationItem.delivery_id.in_(delivery_ids), NotificationEvent.kind.in_(OPENING))
        .order_by(NotificationEvent.id.desc())
    )
    found = {(event.subject_type, event.subject_id): event for event in db.session.scalars(events)}
    ended = select(NotificationEvent.subject_type, NotificationEvent.subject_id, NotificationEvent.id).where(
        NotificationEvent.subject_id.in_({number for _, number in found}), NotificationEvent.kind.in_(ENDING)
    )
    for subject_type, subject_id, event_id in db.session.execute(ended):
        opening = found.get((subject_type, subject_id))
        if opening is not None and opening.id < event_id:
            del found[subject_type, subject_id]
    return list(found.values())


def _line(event: NotificationEvent) -> str:
    environment = f" — {event.environment}" if event.environment else ""
    return f"[{event.severity.upper()}] {messages.one_line(event.snapshot['title'])}{environment}"


def _last_items(late: Sequence[NotificationDelivery]) -> list[dict[str, Any]]:
    items = [item for one in late for item in one.content["items"]]
    return items[-MAX_ITEMS:]
