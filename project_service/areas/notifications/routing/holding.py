"""What holds events back: functions that silences register."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from project_service.domain.notifications.models import NotificationEvent

Holder = Callable[[Sequence[NotificationEvent]], dict[int, list[int]]]
HOLDERS: list[Holder] = []


def add_holder(holder: Holder) -> None:
    """Register a function; it is called with events of one project, in the transaction that routes them."""
    if holder not in HOLDERS:
        HOLDERS.append(holder)


def held(events: Sequence[NotificationEvent]) -> dict[int, list[int]]:
    """Return the ids of the silences that hold back events, by the id of the event."""
    silences: dict[int, list[int]] = {}
    for holder in HOLDERS:
        for event_id, silence_ids in holder(events).items():
            silences[event_id] = sorted({*silences.get(event_id, ()), *silence_ids})
    return silences
