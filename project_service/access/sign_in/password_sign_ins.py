"""Authentication of a request with a login and a password: the one way in for pages, git and OAuth."""

from __future__ import annotations

from collections.abc import Callable

from flask import request

from project_service.access import audit
from project_service.domain.accounts import resource_bots, sign_ins, two_factor
from project_service.domain.accounts.sign_ins import WrongPassword
from project_service.domain.accounts.users import ACTIVE, User
from project_service.kit.db.session import unit_of_work

MAX_PASSWORD_LENGTH = 1024


def may_use_password(user: User | None) -> bool:
    """Whether the password of a user is enough for a program; unknown users take the same statements."""
    is_bot, refuses = resource_bots.is_bot(user.id if user else None), two_factor.refuses_passwords(user)
    return user is not None and user.state == ACTIVE and not (is_bot or refuses or user.password_expired)


def authenticate(login: str, password: str, may_sign_in: Callable[[User | None], bool]) -> User:
    """Return the user with this username or e-mail address and password; record the failure if there is none.

    Runs outside of units of work that write, see ``domain.sign_ins.user_with_password``.

    Raises:
        WrongPassword: for unknown logins, wrong passwords and users who may not sign in.
        TooManyFailures: no password was checked.

    """
    try:
        return sign_ins.user_with_password(login, password, request.remote_addr, may_sign_in)
    except WrongPassword:
        with unit_of_work():
            audit.record_failed_sign_in(login)
        raise
