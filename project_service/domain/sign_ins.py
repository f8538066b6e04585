"""Limits of failed sign-ins, by account and by client address, against guessing of passwords."""

from __future__ import annotations

import datetime as dt

from project_service.domain import rate_limits
from project_service.kit.security import tokens

WINDOW_SECONDS = 600
MAX_FAILURES_OF_ACCOUNT = 10
MAX_FAILURES_OF_ADDRESS = 50


def wait_of(login: str, address: str | None) -> dt.timedelta | None:
    """Return the time until another sign-in may be tried, ``None`` when it may be tried now."""
    waits = (rate_limits.wait_of(subject, limit=limit) for subject, limit in _limits(login, address))
    return next((wait for wait in waits if wait is not None), None)


def count_failure(login: str, address: str | None) -> None:
    """Count a failed sign-in."""
    for subject, _ in _limits(login, address):
        rate_limits.increment(subject, seconds=WINDOW_SECONDS)


def reset_failures(login: str) -> None:
    """Forget the failures of an account after a successful sign-in; the address keeps its count."""
    [(account, _)] = _limits(login, None)
    rate_limits.reset(account)


def _limits(login: str, address: str | None) -> list[tuple[str, int]]:
    # digests: users type passwords into the wrong field
    account = (f"sign_in:account:{tokens.digest(login.strip().lower())}", MAX_FAILURES_OF_ACCOUNT)
    return [account, (f"sign_in:address:{address}", MAX_FAILURES_OF_ADDRESS)] if address else [account]
