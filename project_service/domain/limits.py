"""Limits of how often something may be done: fixed windows, counted in the database for all processes together."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import case, delete
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Model
from project_service.kit.db.session import db, insert, unit_of_work
from project_service.kit.http.errors import TooManyRequests

MINUTE = 60


class RateLimit(Model):
    """How often something was done since its window began."""

    __tablename__ = "rate_limits"

    subject: Mapped[str] = mapped_column(unique=True)
    calls: Mapped[int]
    until: Mapped[dt.datetime] = mapped_column(index=True)


def count(action: str, *subjects: int, most: int, seconds: int = MINUTE) -> None:
    """Count one call of an action by these subjects, or raise ``TooManyRequests``; no limit when ``most`` is 0.

    It is a unit of its own, at the beginning of a request: the call counts whatever becomes of it.
    """
    if most <= 0:
        return
    now = clock.now()
    until = now + dt.timedelta(seconds=seconds)
    name = ":".join((action, *map(str, subjects)))
    old = RateLimit.until <= now
    statement = (
        insert(RateLimit)
        .values(subject=name, calls=1, until=until)
        .on_conflict_do_update(
            index_elements=["subject"],
            set_={
                "calls": case((old, 1), else_=RateLimit.calls + 1),
                "until": case((old, until), else_=RateLimit.until),
            },
        )
        .returning(RateLimit.calls, RateLimit.until)
    )
    with unit_of_work():
        calls, ends = db.session.execute(statement).one()
    if calls > most:
        raise TooManyRequests(max(1, round((ends - now).total_seconds())))


def prune() -> None:
    """Remove the windows that are over."""
    db.session.execute(delete(RateLimit).where(RateLimit.until <= clock.now()))
