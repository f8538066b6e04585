"""A small picture: alerts a day by severity, the last thirty days."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import func, select

from project_service.alerts.models import Alert, Severity
from project_service.core.projects import Project
from project_service.kit import clock
from project_service.kit.database import db

DAYS = 30
WIDTH, HEIGHT, BAR, GAP = 600, 80, 16, 4


@dataclass(frozen=True, slots=True)
class Bar:
    """One severity of one day, in the units of the picture."""

    severity: Severity
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """The picture, and the numbers it shows."""

    bars: list[Bar]
    days: list[tuple[dt.date, dict[Severity, int]]]
    total: int
    width: int = WIDTH
    height: int = HEIGHT
    bar: int = BAR


def last_days(project: Project) -> Chart:
    """The alerts that started in the last thirty days, by day and severity."""
    today = clock.today()
    first = today - dt.timedelta(days=DAYS - 1)
    since = dt.datetime.combine(first, dt.time(), dt.UTC)
    day = func.date(Alert.started_at)
    rows = db.session.execute(
        select(day, Alert.severity, func.count())
        .where(Alert.project_id == project.id, Alert.started_at >= since)
        .group_by(day, Alert.severity)
    )
    counted: dict[str, dict[Severity, int]] = {}
    for found, severity, count in rows:
        counted.setdefault(str(found)[:10], {})[Severity(severity)] = count
    dates = (first + dt.timedelta(days=number) for number in range(DAYS))
    days = [(date, counted.get(date.isoformat(), {})) for date in dates]
    most = max((sum(found.values()) for _, found in days), default=0)
    bars = [bar for position, (_, found) in enumerate(days) for bar in _stack(position, found, most)]
    return Chart(bars, days, sum(sum(found.values()) for _, found in days))


def _stack(position: int, found: dict[Severity, int], most: int) -> list[Bar]:
    bars, y = [], float(HEIGHT)
    for severity in sorted(found, reverse=True):
        height = found[severity] / most * HEIGHT
        y -= height
        bars.append(Bar(severity, position * (BAR + GAP), round(y, 2), round(height, 2)))
    return bars
