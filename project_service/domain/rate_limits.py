"""The rate limiter: fixed windows, counted in the database for all processes together (docs/decisions/rate-limits.md).

A limit is declared once, as a ``RateLimit``; ``counter()`` names the subject that is counted. Calls are counted before
what they ask for is done, so that concurrent ones cannot exceed a limit.
"""

from __future__ import annotations

import datetime as dt
import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, case, delete, select, update
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Base, Model, Timestamp
from project_service.kit.db.session import db, insert, unit_of_work
from project_service.kit.http.errors import TooManyRequests

MINUTE_SECONDS, HOUR_SECONDS = 60, 3600


class RateLimitWindow(Model):
    """The number of calls of a subject in its current window."""

    __tablename__ = "rate_limits"

    subject: Mapped[str] = mapped_column(unique=True)
    calls: Mapped[int]
    until: Mapped[dt.datetime] = mapped_column(index=True)


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most ``calls`` of each subject in a window of ``seconds``; 0 calls: no limit.

    A window begins with the first call that is counted; ``on_the_clock``, at a multiple of its length.
    """

    action: str
    calls: int
    seconds: int = MINUTE_SECONDS
    on_the_clock: bool = False

    def counter(self, *subject: int | str) -> CallCounter:
        """Return the counter of a subject, such as a user and a project; texts of clients are given as digests."""
        return CallCounter(self, ":".join((self.action, *map(str, subject))))

    def check(self, *subject: int | str) -> None:
        """Count one call, or raise ``TooManyRequests``."""
        if (wait := count(self.counter(*subject))) is not None:
            raise TooManyRequests(seconds_of(wait))

    def window_end(self, now: dt.datetime) -> dt.datetime:
        """Return when a window ends that begins now."""
        if not self.on_the_clock:
            return now + dt.timedelta(seconds=self.seconds)
        epoch = int(now.timestamp())
        return dt.datetime.fromtimestamp(epoch - epoch % self.seconds + self.seconds, dt.UTC)


@dataclass(frozen=True, slots=True)
class CallCounter:
    """The calls of one subject; ``key`` is what they are stored under."""

    limit: RateLimit
    key: str


@dataclass(frozen=True, slots=True)
class CountedCall:
    """A call that was counted, and the end of its window."""

    counter: CallCounter
    until: dt.datetime


class LimitExceeded(Exception):
    """There were too many calls; ``wait`` is the time until the window ends. Raised inside a unit of work."""

    def __init__(self, wait: dt.timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


def count(*counters: CallCounter) -> dt.timedelta | None:
    """Count one call; when a limit is exceeded, return the time until its window ends.

    The count is committed on its own, before the request does anything else, so that it survives a refusal. Calls
    beyond the limit are refused without a write.
    """
    try:
        reserve(*counters)
    except LimitExceeded as error:
        return error.wait
    return None


def reserve(*counters: CallCounter) -> list[CountedCall]:
    """Count one call in all counters or in none, and commit; ``give_back`` takes it back.

    Raises:
        LimitExceeded: a limit is reached.

    """
    if (wait := wait_of(*counters)) is not None:
        raise LimitExceeded(wait)
    if not any(counter.limit.calls for counter in counters):
        return []
    with unit_of_work():
        return count_in_unit(*counters)


def wait_of(*counters: CallCounter) -> dt.timedelta | None:
    """Return the time until the window of a counter ends that has reached its limit, ``None`` without one."""
    now = clock.now()
    limited = [counter for counter in counters if counter.limit.calls > 0]
    if not limited:
        return None
    calls = {counter.key: counter.limit.calls for counter in limited}
    rows = db.session.connection().execute(CURRENT_WINDOWS, {"subjects": list(calls), "now": now})
    ends = [until for subject, counted, until in rows if counted >= calls[subject]]
    return max(ends) - now if ends else None


def count_in_unit(*counters: CallCounter) -> list[CountedCall]:
    """Count one call in the current unit of work, which has to fail when a limit is exceeded.

    Raises:
        LimitExceeded: a limit is exceeded.

    """
    counted = []
    for counter in counters:
        if counter.limit.calls <= 0:
            continue
        calls, until = _increment(counter)
        if calls > counter.limit.calls:
            raise LimitExceeded(until - clock.now())
        counted.append(CountedCall(counter, until))
    return counted


def give_back(calls: Iterable[CountedCall]) -> None:
    """Take calls back that need not count, in the current unit of work."""
    for call in calls:
        window = RateLimitWindow.subject == call.counter.key, RateLimitWindow.until == call.until
        reduced = update(RateLimitWindow).where(*window, RateLimitWindow.calls > 0)
        db.session.execute(reduced.values(calls=RateLimitWindow.calls - 1).execution_options(synchronize_session=False))


def reset(counter: CallCounter) -> None:
    """Forget the calls of a subject, in the current unit of work."""
    db.session.execute(delete(RateLimitWindow).where(RateLimitWindow.subject == counter.key))


def prune() -> None:
    """Remove the windows that are over."""
    db.session.execute(delete(RateLimitWindow).where(RateLimitWindow.until <= clock.now()))


def seconds_of(wait: dt.timedelta) -> int:
    """Return a time to wait in whole seconds, for ``Retry-After``."""
    return max(1, math.ceil(wait.total_seconds()))


def _increment(counter: CallCounter) -> tuple[int, dt.datetime]:
    """Count one call; return the calls of the window and its end."""
    now = clock.now()
    values = {"counted": counter.key, "end": counter.limit.window_end(now), "now": now}
    calls, ends_at = db.session.connection().execute(_increment_statement(db.engine.dialect.name), values).one()
    return calls, ends_at


@functools.cache
def _increment_statement(_dialect: str) -> Any:
    row = insert(WINDOWS).values(subject=bindparam("counted"), calls=1, until=bindparam("end"))
    window = WINDOWS.c
    is_over = window.until <= NOW
    changed = {
        "calls": case((is_over, 1), else_=window.calls + 1),
        "until": case((is_over, row.excluded.until), else_=window.until),
    }
    counted = row.on_conflict_do_update(index_elements=["subject"], set_=changed)
    return counted.returning(window.calls, window.until)


# Core statements that are built once: many requests count, and the ORM takes longer to build them than to send them.
WINDOWS = Base.metadata.tables[RateLimitWindow.__tablename__]
NOW = bindparam("now", type_=Timestamp())
CURRENT_WINDOWS = select(WINDOWS.c.subject, WINDOWS.c.calls, WINDOWS.c.until).where(
    WINDOWS.c.subject.in_(bindparam("subjects", expanding=True)), WINDOWS.c.until > NOW
)
