"""When access tokens and accounts were last used; the times are written in transactions of their own."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import structlog
from sqlalchemy import Update, update
from sqlalchemy.exc import OperationalError

from project_service.domain.accounts.tokens import PersonalAccessToken
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.session import db, rollback, unit_of_work

LAST_USED_INTERVAL = dt.timedelta(minutes=10)

log = structlog.get_logger(__name__)


def note_token(token_id: int, last_used_at: dt.datetime | None, user_id: int, last_activity_on: dt.date | None) -> None:
    """Note that a token was used now, at most once in ``LAST_USED_INTERVAL``, and that its user was active."""
    now = clock.now()
    if last_used_at is None or last_used_at < now - LAST_USED_INTERVAL:
        _store(update(PersonalAccessToken).where(PersonalAccessToken.id == token_id).values(last_used_at=now))
    note_activity(user_id, last_activity_on)


def note_activity(user_id: int, last_activity_on: dt.date | None) -> None:
    """Note that a user was active today."""
    if last_activity_on != clock.today():
        _store(update(User).where(User.id == user_id).values(last_activity_on=clock.today()))


def in_own_transaction(act: Callable[[], object]) -> None:
    """Run a function in a transaction that is committed even if the request fails.

    Requests that read take the write lock only for this.
    """
    rollback()
    with unit_of_work():
        act()


def _store(statement: Update) -> None:
    try:
        in_own_transaction(lambda: db.session.execute(statement))
    except OperationalError as error:  # reads are answered on a full disk, too
        log.warning("the last use of an account was not stored", error=str(error))
