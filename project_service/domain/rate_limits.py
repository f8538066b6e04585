"""Rate limits: fixed windows, counted in the database for all processes together (docs/decisions/rate-limits.md).

A window begins with the first call that is counted and ends after a given number of seconds.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import case, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Model
from project_service.kit.db.session import db, insert, unit_of_work
from project_service.kit.http.errors import TooManyRequests

MINUTE_SECONDS = 60


class RateLimit(Model):
    """The number of calls of a subject in its current window."""

    __tablename__ = "rate_limits"

    subject: Mapped[str] = mapped_column(unique=True)
    calls: Mapped[int]
    until: Mapped[dt.datetime] = mapped_column(index=True)


def check(action: str, *subjects: int, limit: int, seconds: int = MINUTE_SECONDS) -> None:
    """Count one call of an action, or raise ``TooManyRequests``; a limit of 0 means none."""
    if limit > 0 and (wait := count(":".join((action, *map(str, subjects))), limit=limit, seconds=seconds)) is not None:
        raise TooManyRequests(max(1, round(wait.total_seconds())))


def count(subject: str, *, limit: int, seconds: int) -> dt.timedelta | None:
    """Count one call; when the limit is exceeded, return the time until the window ends.

    The count is committed on its own, before the request does anything else, so that it survives a refusal. Calls
    beyond the limit are refused without a write.
    """
    wait = wait_of(subject, limit=limit)
    if wait is not None:
        return wait
    with unit_of_work():
        calls, until = increment(subject, seconds=seconds)
    return until - clock.now() if calls > limit else None


def wait_of(subject: str, *, limit: int) -> dt.timedelta | None:
    """Return the time until the window ends when it has reached the limit, else ``None``."""
    now = clock.now()
    until = db.session.scalar(
        select(RateLimit.until).where(RateLimit.subject == subject, RateLimit.calls >= limit, RateLimit.until > now)
    )
    return None if until is None else until - now


def increment(subject: str, *, seconds: int) -> tuple[int, dt.datetime]:
    """Count one call in the current unit of work; return the calls of the window and its end."""
    now = clock.now()
    until = now + dt.timedelta(seconds=seconds)
    is_over = RateLimit.until <= now
    statement = (
        insert(RateLimit)
        .values(subject=subject, calls=1, until=until)
        .on_conflict_do_update(
            index_elements=["subject"],
            set_={
                "calls": case((is_over, 1), else_=RateLimit.calls + 1),
                "until": case((is_over, until), else_=RateLimit.until),
            },
        )
        .returning(RateLimit.calls, RateLimit.until)
    )
    calls, ends_at = db.session.execute(statement).one()
    return calls, ends_at


def reset(subject: str) -> None:
    """Forget the calls of a subject."""
    db.session.execute(delete(RateLimit).where(RateLimit.subject == subject))


def prune() -> None:
    """Remove the windows that are over."""
    db.session.execute(delete(RateLimit).where(RateLimit.until <= clock.now()))
