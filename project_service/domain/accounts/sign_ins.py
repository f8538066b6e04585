"""Checks of passwords: one path for all pages and protocols, with limits by account and by client address.

An attempt is counted before the password is checked, and taken back when it was right. Unknown logins, users who may
not sign in and wrong passwords take the same steps: nothing tells them apart. A password is hashed while no transaction
is open, since one that writes would hold up all others.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable

from project_service.domain import rate_limits
from project_service.domain.accounts.users import User, user_by_login
from project_service.domain.rate_limits import CallCounter, CountedCall, LimitExceeded, RateLimit
from project_service.kit.db.session import unit_of_work
from project_service.kit.http.clients.client_networks import limited_network
from project_service.kit.security import passwords, tokens

WINDOW_SECONDS = 600
MAX_FAILURES_OF_ACCOUNT = 10
MAX_FAILURES_OF_ADDRESS = 50
OF_ACCOUNT = RateLimit("sign_in:account", MAX_FAILURES_OF_ACCOUNT, WINDOW_SECONDS)
OF_UNKNOWN_LOGIN = RateLimit("sign_in:login", MAX_FAILURES_OF_ACCOUNT, WINDOW_SECONDS)
OF_ADDRESS = RateLimit("sign_in:address", MAX_FAILURES_OF_ADDRESS, WINDOW_SECONDS)


class WrongPassword(Exception):
    """The login is unknown, the password is wrong, or the user may not sign in with it."""


class TooManyFailures(Exception):
    """No password was checked; ``wait`` is the time until the next attempt."""

    def __init__(self, wait: dt.timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


def user_with_password(
    login: str, password: str, address: str | None, may_sign_in: Callable[[User | None], bool]
) -> User:
    """Return the user with this username or e-mail address and password, outside of a unit of work that writes.

    ``may_sign_in`` is asked for unknown users too, with ``None``: it has to take as many statements for all.

    Raises:
        WrongPassword: also for users for whom ``may_sign_in`` is false; the attempt is counted.
        TooManyFailures: by account or address.

    """
    with passwords.attempt():  # attempts in flight count, and so must be few
        user = user_by_login(login)
        calls = _counted_attempt(_counter_of(user, login), address)
        stored = user.password_hash if may_sign_in(user) and user is not None else None
        if not passwords.password_matches(stored, password) or user is None:
            raise WrongPassword
        with unit_of_work():
            rate_limits.give_back(calls)
        return user


def check_password(user: User, password: str, address: str | None) -> None:
    """Check the password of a signed-in user, outside of a unit of work that writes.

    Raises:
        WrongPassword: the attempt is counted as a failed sign-in.
        TooManyFailures: by account or address.

    """
    with passwords.attempt():
        calls = _counted_attempt(OF_ACCOUNT.counter(user.id), address)
        if not passwords.password_matches(user.password_hash, password):
            raise WrongPassword
        with unit_of_work():
            rate_limits.give_back(calls)


def reset_failures(user: User) -> None:
    """Forget the failures of an account after a successful sign-in; the address keeps its count."""
    rate_limits.reset(OF_ACCOUNT.counter(user.id))


def _counted_attempt(account: CallCounter, address: str | None) -> list[CountedCall]:
    try:
        return rate_limits.reserve(account, OF_ADDRESS.counter(limited_network(address)))
    except LimitExceeded as error:
        raise TooManyFailures(error.wait) from error


def _counter_of(user: User | None, login: str) -> CallCounter:
    if user is not None:
        return OF_ACCOUNT.counter(user.id)
    # a digest: users type passwords into the wrong field
    return OF_UNKNOWN_LOGIN.counter(tokens.digest(login.strip().lower()))
