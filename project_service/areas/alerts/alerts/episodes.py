"""What the page of an alert says of its identity, and of values that were ignored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import load_only

from project_service.areas.alerts.models import Alert
from project_service.areas.alerts.payloads.payloads import parse
from project_service.areas.alerts.receivers.reports import rules_of
from project_service.kit.db.session import NO_LAZY_LOADING, db

MAX_EARLIER_SHOWN = 5
MAX_COUNTED = 1000


@dataclass(frozen=True, slots=True)
class Episodes:
    """The place of an alert among those of its identity: its number from 1, the ones before, the newest after it."""

    number: int
    earlier: Sequence[Alert]
    newest: Alert | None

    @property
    def is_many(self) -> bool:
        """Whether there is another alert of the identity."""
        return self.number > 1 or self.newest is not None

    @property
    def is_counted(self) -> bool:
        """Whether the number is exact."""
        return self.number <= MAX_COUNTED


def episodes_of(alert: Alert) -> Episodes | None:
    """Return the episodes of the identity of an alert, newest first; ``None`` without a fingerprint."""
    if alert.fingerprint is None:
        return None
    columns = load_only(Alert.iid, Alert.status, Alert.started_at, raiseload=True)
    same = select(Alert).where(Alert.project_id == alert.project_id, Alert.fingerprint == alert.fingerprint)
    before = same.where(Alert.id < alert.id).order_by(Alert.id.desc())
    earlier = db.session.scalars(before.options(columns, NO_LAZY_LOADING).limit(MAX_EARLIER_SHOWN)).all()
    after = same.where(Alert.id > alert.id).order_by(Alert.id.desc()).limit(1)
    newest = db.session.scalar(after.options(columns, NO_LAZY_LOADING))
    number = len(earlier)
    if number == MAX_EARLIER_SHOWN:
        counted = before.with_only_columns(Alert.id).limit(MAX_COUNTED).subquery()
        number = db.session.scalar(select(func.count()).select_from(counted)) or 0
    return Episodes(number + 1, earlier, newest)


def still_unreadable(alert: Alert) -> dict[str, Any]:
    """Return the ignored times of an alert that its integration, as it is configured now, would ignore again."""
    stored, integration = alert.unreadable_times or {}, alert.integration
    if (
        not stored or integration is None or "startsAt" in alert.payload
    ):  # an element of a batch, whose fields are fixed
        return stored
    rules = rules_of(
        integration.mapping,
        integration.preset,
        integration.severity_mapping,
        integration.resolved_values,
        integration.time_zone,
    )
    ignored = {field for report in parse(alert.payload, rules).reports for field in report.unreadable_times}
    return {field: stored_time for field, stored_time in stored.items() if field in ignored}
