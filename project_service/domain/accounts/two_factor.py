"""Whether users have to set up two-factor authentication, and from when on."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import update

from project_service.domain.accounts.users import User
from project_service.domain.instance_settings import SETTINGS, some_settings
from project_service.kit import clock
from project_service.kit.db.session import db, unit_of_work

REQUIRED, GRACE_HOURS = "require_two_factor_authentication", "two_factor_grace_period"


def deadline(started_at: dt.datetime | None, grace_hours: int | None) -> dt.datetime:
    """The moment from which a user has to set it up; the time of grace begins with the first visit or sign-in."""
    hours = SETTINGS[GRACE_HOURS].default if grace_hours is None else grace_hours
    return (started_at or clock.now()) + dt.timedelta(hours=hours)


def start_grace(user_id: int) -> None:
    """Begin the time of grace of a user, if it has not begun."""
    begun = User.two_factor_grace_started_at
    db.session.execute(update(User).where(User.id == user_id, begun.is_(None)).values({begun: clock.now()}))


def forget_grace() -> None:
    """Start the grace period again for all users, when the instance requires it the next time."""
    begun = User.two_factor_grace_started_at
    db.session.execute(update(User).where(begun.is_not(None)).values({begun: None}))


def refuses_passwords(user: User | None) -> bool:
    """Whether the password of a user does not authenticate without a second factor.

    So it is for users who have set one up, and for those whose time of grace to do so is over. Unknown users take the
    same statement.
    """
    required, grace_hours = some_settings(REQUIRED, GRACE_HOURS)
    if user is None or user.two_factor_enabled:
        return True
    if not required:
        return False
    if user.two_factor_grace_started_at is None:
        with unit_of_work():
            start_grace(user.id)
    return deadline(user.two_factor_grace_started_at, grace_hours) <= clock.now()
