"""Failed sign-ins, counted by account and by address, so that passwords cannot be tried out."""

from __future__ import annotations

import datetime as dt

from sqlalchemy import case, delete, select
from sqlalchemy.orm import Mapped, mapped_column

from project_service.kit import clock
from project_service.kit.db.base import Model
from project_service.kit.db.session import db, insert
from project_service.kit.security import secrets

WINDOW = dt.timedelta(minutes=10)
MOST_FOR_ACCOUNT = 10
MOST_FROM_ADDRESS = 50


class SignInFailures(Model):
    """How often signing in failed lately, for one account or from one address."""

    __tablename__ = "sign_in_failures"

    subject: Mapped[str] = mapped_column(unique=True)
    failures: Mapped[int] = mapped_column(default=0)
    since: Mapped[dt.datetime] = mapped_column(index=True)


def wait_of(login: str, address: str | None) -> dt.timedelta | None:
    """How long nobody may try again, or ``None`` when they may."""
    now = clock.now()
    for subject, most in _subjects(login, address):
        since = db.session.scalar(
            select(SignInFailures.since).where(
                SignInFailures.subject == subject, SignInFailures.failures >= most, SignInFailures.since > now - WINDOW
            )
        )
        if since is not None:
            return since + WINDOW - now
    return None


def note_failure(login: str, address: str | None) -> None:
    """Count a failure."""
    now = clock.now()
    table = SignInFailures
    for subject, _ in _subjects(login, address):
        old = table.since <= now - WINDOW
        statement = insert(table).values(subject=subject, failures=1, since=now)
        db.session.execute(
            statement.on_conflict_do_update(
                index_elements=["subject"],
                set_={
                    "failures": case((old, 1), else_=table.failures + 1),
                    "since": case((old, now), else_=table.since),
                },
            )
        )


def forget_failures(login: str) -> None:
    """Somebody has signed in after all; the address keeps its count."""
    db.session.execute(delete(SignInFailures).where(SignInFailures.subject == _subjects(login, None)[0][0]))


def prune() -> None:
    """Remove what is too old to count."""
    db.session.execute(delete(SignInFailures).where(SignInFailures.since <= clock.now() - WINDOW))


def _subjects(login: str, address: str | None) -> list[tuple[str, int]]:
    # digests: people type passwords into the wrong field
    account = (f"account:{secrets.digest(login.strip().lower())}", MOST_FOR_ACCOUNT)
    return [account, (f"address:{address}", MOST_FROM_ADDRESS)] if address else [account]
