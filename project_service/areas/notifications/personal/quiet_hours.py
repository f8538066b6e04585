"""Quiet hours: when personal messages wait (notifications reference, section 8)."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

from sqlalchemy import select

from project_service.areas.notifications.models import QuietHours
from project_service.areas.notifications.rules.matching import is_within
from project_service.kit.db.session import db

STEP = dt.timedelta(minutes=1)
ALL_DAYS = [1, 2, 3, 4, 5, 6, 7]
PASSING_SEVERITIES = ("critical", "unknown")  # what was not graded counts as critical


def of_user(user_id: int) -> QuietHours | None:
    """Return the quiet hours of a user, if they were ever set."""
    return db.session.scalar(select(QuietHours).where(QuietHours.user_id == user_id))


def end_of(user_id: int, now: dt.datetime) -> dt.datetime | None:
    """Return when the quiet hours of a user end; ``None`` if it is not quiet now."""
    hours = of_user(user_id)
    if hours is None or not hours.enabled:
        return None
    return end_of_period(hours, now)


def end_of_period(hours: QuietHours, now: dt.datetime) -> dt.datetime | None:
    """Return the first minute that is not quiet, at most two weeks ahead; ``None`` if it is not quiet now."""
    period = {"time_zone": hours.time_zone, "days": hours.days, "from": hours.starts, "to": hours.ends}
    if not is_within(period, now):
        return None
    moment = now.astimezone(ZoneInfo("UTC")).replace(second=0, microsecond=0)
    last = moment + dt.timedelta(days=1)
    while moment < last:
        moment += STEP
        if not is_within(period, moment):
            return moment.astimezone(dt.UTC)
    return last.astimezone(dt.UTC)


def lets_critical_pass(user_id: int) -> bool:
    """Whether critical messages are sent all the same."""
    hours = of_user(user_id)
    return hours is None or hours.except_critical
