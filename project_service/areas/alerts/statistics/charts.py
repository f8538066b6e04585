"""Chart of alerts per day and severity over the last 30 days."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import func, select

from project_service.areas.alerts.models import Alert, Severity, listed_at
from project_service.domain.projects import Project
from project_service.kit import clock
from project_service.kit.charts import Chart, stacked
from project_service.kit.db.session import db

DAYS = 30


def last_days(project: Project) -> Chart:
    """Count the alerts that started in the last 30 days, by day and severity; later starts count when received."""
    today = clock.today()
    first = today - dt.timedelta(days=DAYS - 1)
    since = dt.datetime.combine(first, dt.time(), dt.UTC)
    day = func.date(listed_at)
    rows = db.session.execute(
        select(day, Alert.severity, func.count())
        .where(Alert.project_id == project.id, listed_at >= since)
        .group_by(day, Alert.severity)
    )
    counted: dict[str, dict[Severity, int]] = {}
    for start_day, severity, count in rows:
        counted.setdefault(str(start_day)[:10], {})[Severity(severity)] = count
    dates = (first + dt.timedelta(days=number) for number in range(DAYS))
    return stacked([(date, counted.get(date.isoformat(), {})) for date in dates], list(Severity))
