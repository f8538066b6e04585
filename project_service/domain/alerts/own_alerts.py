"""Alerts that this service reports itself, such as those of missing heartbeats; the factory connects the receiver.

They are stored by the ordinary ingestion, in the transaction of the caller, so that grouping and
incidents apply.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

from blinker import Namespace

_signals = Namespace()
reported = _signals.signal("own-alert", doc="Sent with an ``OwnAlert``; the receiver returns the number of the alert.")


@dataclass(frozen=True, slots=True)
class OwnAlert:
    """An alert of a project; with ``ended_at`` it resolves the open alert with its fingerprint, if there is one.

    ``severity`` is a word such as ``critical``; ``payload`` is what the page of the alert shows of it.
    """

    project_id: int
    fingerprint: str
    title: str
    monitoring_tool: str
    started_at: dt.datetime
    severity: str = "critical"
    description: str | None = None
    environment: str | None = None
    ended_at: dt.datetime | None = None
    payload: dict[str, Any] = field(default_factory=dict)


def report(alert: OwnAlert) -> int | None:
    """Store an alert; return its number in the project, ``None`` if there was none to resolve."""
    iid: int | None = next((iid for _, iid in reported.send(alert)), None)
    return iid
