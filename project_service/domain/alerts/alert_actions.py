"""Questions about alerts and changes of them from other areas; the factory connects that of alerts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from blinker import Namespace

from project_service.domain.accounts.users import User

_signals = Namespace()
asked = _signals.signal("alerts-open", doc="Sent with ids of alerts and ``acknowledged``; returns those open.")
acknowledged = _signals.signal("alerts-acknowledged", doc="Sent with an ``Acknowledgement``; returns ``Acknowledged``.")


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Alerts to be acknowledged or resolved by a user, or by a bot with a note that says through what."""

    alert_ids: Sequence[int]
    author: User
    note: str | None = None
    resolves: bool = False


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """How many alerts were changed; if none was, the user who changed one last, by name."""

    count: int
    earlier_by: str | None = None


def acknowledge(request: Acknowledgement) -> Acknowledged:
    """Acknowledge the alerts that are still triggered, or resolve those that are open, in the current unit of work."""
    result_of_receiver: Acknowledged = next(result for _, result in acknowledged.send(request))
    return result_of_receiver


def open_among(alert_ids: Sequence[int], *, acknowledged: bool) -> set[int]:
    """Return which of some alerts are triggered or, if these count, acknowledged."""
    open_ids: set[int] = next(result for _, result in asked.send(alert_ids, acknowledged=acknowledged))
    return open_ids
