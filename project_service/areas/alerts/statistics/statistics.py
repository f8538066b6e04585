"""Alerts per hour, and how long people took to acknowledge and resolve them: of a project, or of a group."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, select

from project_service.areas.alerts.models import Alert, Severity, listed_at
from project_service.kit import clock
from project_service.kit.charts import Chart, stacked
from project_service.kit.db.session import db

HOURS_SHOWN = 72
DAYS_OF_MEANS = 30
MAX_ALERTS = 10_000  # the newest; more are not read


@dataclass(frozen=True, slots=True)
class AlertStatistics:
    """The chart of the last hours and the mean times of the last days; ``None`` where there is no such alert."""

    chart: Chart
    count: int
    is_cut: bool
    acknowledged: int
    resolved: int
    mean_to_acknowledge: dt.timedelta | None
    mean_to_resolve: dt.timedelta | None


def statistics_of(of_projects: ColumnElement[bool]) -> AlertStatistics:
    """Return the statistics of alerts under a condition that started in the last 30 days, with one statement."""
    now = clock.now()
    columns = listed_at.label("listed_at"), Alert.severity, Alert.acknowledged_at, Alert.ended_at
    started = select(*columns).where(of_projects, listed_at >= now - dt.timedelta(days=DAYS_OF_MEANS))
    rows = db.session.execute(started.order_by(listed_at.desc(), Alert.id.desc()).limit(MAX_ALERTS + 1)).all()
    is_cut, rows = len(rows) > MAX_ALERTS, rows[:MAX_ALERTS]
    acknowledged = [row.acknowledged_at - row.listed_at for row in rows if row.acknowledged_at is not None]
    resolved = [row.ended_at - row.listed_at for row in rows if row.ended_at is not None]
    return AlertStatistics(
        chart=_per_hour(((row.listed_at, Severity(row.severity)) for row in rows), now),
        count=len(rows),
        is_cut=is_cut,
        acknowledged=len(acknowledged),
        resolved=len(resolved),
        mean_to_acknowledge=_mean(acknowledged),
        mean_to_resolve=_mean(resolved),
    )


def _per_hour(starts: Iterable[tuple[dt.datetime, Severity]], now: dt.datetime) -> Chart:
    last = now.replace(minute=0, second=0, microsecond=0)
    hours = [last - dt.timedelta(hours=number) for number in range(HOURS_SHOWN - 1, -1, -1)]
    counted: dict[dt.datetime, Counter[Severity]] = {hour: Counter() for hour in hours}
    for start, severity in starts:
        hour = start.replace(minute=0, second=0, microsecond=0)
        if hour in counted:
            counted[hour][severity] += 1
    return stacked(list(counted.items()), list(Severity))


def _mean(lengths: list[dt.timedelta]) -> dt.timedelta | None:
    """Return the mean of durations; those below zero, of tools whose clocks are wrong, count as none."""
    zero = dt.timedelta()
    return sum((max(length, zero) for length in lengths), zero) / len(lengths) if lengths else None
