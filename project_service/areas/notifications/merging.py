"""Late messages of a channel or person are merged into one (notifications reference, section 14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import or_, select, update
from sqlalchemy.orm import aliased

from project_service.areas.notifications import deliveries_log, messages
from project_service.areas.notifications.messages import ENDED, OPEN, OTHER, ChannelMessage
from project_service.areas.notifications.models import (
    DELIVERED,
    MERGED,
    WAITING,
    NotificationDelivery,
    NotificationItem,
)
from project_service.domain.notifications.models import ENDING, OPENING, NotificationEvent
from project_service.kit import clock
from project_service.kit.db.session import db

MAX_LISTED = 10
MAX_ITEMS = 50
REPLACED = "a newer event of the alert was sent in its place"
ENDED_UNSENT = "the alert ended before its opening was sent"


def merge(late: Sequence[NotificationDelivery]) -> NotificationDelivery | None:
    """Write the one message that replaces late ones, without queueing it; ``None`` without any."""
    if not late:
        return None
    if len(late) == 1:
        return late[0]
    originals = _originals(late)
    message = _message(late, originals)
    is_merged_again = late[0] not in originals
    merged = late[0] if is_merged_again else _empty_copy(late[-1])
    merged.project = late[-1].project if len({delivery.project_id for delivery in late}) == 1 else None
    merged.title, merged.content = message.title, message.as_json()
    merged.triggered_count, merged.resolved_count = message.counts["triggered"], message.counts["resolved"]
    merged.other_count = message.counts["other"]
    db.session.add(merged)
    db.session.flush()
    others = [delivery for delivery in late if delivery is not merged]
    deliveries_log.merge_into(merged, others)
    ids = [delivery.id for delivery in others]
    for link in (NotificationItem.delivery_id, NotificationItem.reminder_id):
        db.session.execute(update(NotificationItem).where(link.in_(ids)).values({link: merged.id}))
    return merged


def reason_to_skip(waiting: NotificationDelivery) -> str | None:
    """Return why an event is not sent to PagerDuty: a newer one of its alert waits, too, or no opening was sent."""
    mine, other, event, other_event = (
        aliased(NotificationItem), aliased(NotificationItem), aliased(NotificationEvent), aliased(NotificationEvent),
    )  # fmt: skip
    same_subject = (other_event.subject_type == event.subject_type) & (other_event.subject_id == event.subject_id)
    about_it = (
        select(
            NotificationDelivery.id,
            NotificationDelivery.status,
            NotificationDelivery.error,
            NotificationDelivery.attempts,
            NotificationDelivery.response_status,
        )
        .select_from(mine)
        .join(event, event.id == mine.event_id)
        .join(other_event, same_subject)
        .join(other, (other.event_id == other_event.id) & (other.target == mine.target))
        .join(NotificationDelivery, NotificationDelivery.id == other.delivery_id)
        .where(mine.delivery_id == waiting.id, NotificationDelivery.id != waiting.id)
    )
    rows = db.session.execute(about_it).all()
    if any(row.id > waiting.id and row.status == WAITING for row in rows):
        return REPLACED
    # an attempt without an answer may have arrived
    may_have_arrived = any(
        row.status == DELIVERED or (row.attempts > 0 and row.response_status is None) for row in rows
    )
    was_skipped = not may_have_arrived and any(row.error == REPLACED for row in rows)
    return ENDED_UNSENT if was_skipped and waiting.content["state"] in (ENDED, OTHER) else None


def _originals(late: Sequence[NotificationDelivery]) -> list[NotificationDelivery]:
    """Return the messages that people know of: in the place of one that was merged before, those that it replaced."""
    replaced = select(NotificationDelivery).where(
        NotificationDelivery.merged_into_id.in_([delivery.id for delivery in late]),
        NotificationDelivery.status == MERGED,
    )
    before = list(db.session.scalars(replaced))
    merged_ids = {delivery.merged_into_id for delivery in before}
    return [delivery for delivery in late if delivery.id not in merged_ids] + before


def _empty_copy(delivery: NotificationDelivery) -> NotificationDelivery:
    """Return a message to the same recipient, without content."""
    return NotificationDelivery(
        channel_id=delivery.channel_id,
        channel_name=delivery.channel_name,
        user_id=delivery.user_id,
        recipient=delivery.recipient,
        kind="message",
        attempts=0,
        created_at=clock.now(),
    )


def _message(late: Sequence[NotificationDelivery], originals: Sequence[NotificationDelivery]) -> ChannelMessage:
    delay = messages.duration_words(clock.now() - min(delivery.created_at for delivery in originals))
    still_open = _still_open([delivery.id for delivery in late])
    lines = [_line(item) for item in still_open[:MAX_LISTED]]
    rest = len(still_open) - len(lines)
    counts = {
        "triggered": sum(delivery.triggered_count for delivery in late),
        "resolved": sum(delivery.resolved_count for delivery in late),
        "other": sum(delivery.other_count for delivery in late),
    }
    count_text = ", ".join(f"{number} {name}" for name, number in counts.items() if number)
    first = ChannelMessage.from_json(late[0].content)
    notices = [line for each in originals if each.kind == deliveries_log.LIMIT for line in each.content["lines"]]
    number = sum(each.kind != deliveries_log.LIMIT for each in originals)
    headline = f"{number} notifications were delayed by {delay}"
    return ChannelMessage(
        headline=headline,
        project=first.project,
        url=first.url,
        lines=(count_text, *lines, *((f"… and {rest} more",) if rest > 0 else ()), *notices),
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
        .where(NotificationEvent.kind.in_(OPENING))
        .where(or_(NotificationItem.delivery_id.in_(delivery_ids), NotificationItem.reminder_id.in_(delivery_ids)))
        .order_by(NotificationEvent.id.desc())
    )
    openings = {(event.subject_type, event.subject_id): event for event in db.session.scalars(events)}
    ended = select(NotificationEvent.subject_type, NotificationEvent.subject_id, NotificationEvent.id).where(
        NotificationEvent.subject_id.in_({number for _, number in openings}), NotificationEvent.kind.in_(ENDING)
    )
    for subject_type, subject_id, event_id in db.session.execute(ended):
        opening = openings.get((subject_type, subject_id))
        if opening is not None and opening.id < event_id:
            del openings[subject_type, subject_id]
    return list(openings.values())


def _line(event: NotificationEvent) -> str:
    environment = f" — {event.environment}" if event.environment else ""
    return f"[{event.severity.upper()}] {messages.one_line(event.snapshot['title'])}{environment}"


def _last_items(late: Sequence[NotificationDelivery]) -> list[dict[str, Any]]:
    items = [item for delivery in late for item in delivery.content["items"]]
    return items[-MAX_ITEMS:]
