"""Authentication of git over HTTP: an access token or a password, as basic or bearer credentials."""

from __future__ import annotations

import datetime as dt
import threading

from flask import Request

from project_service.access import audit
from project_service.access.identity import ANONYMOUS, Caller, by_secret, note_activity
from project_service.domain import instance_settings, resource_bots, sign_ins, two_factor
from project_service.domain.users import ACTIVE, user_by_login
from project_service.kit.db.session import unit_of_work
from project_service.kit.security import passwords

MAX_PASSWORD_LENGTH = 1024
_password_checks = threading.Lock()
SCOPES_TO_FETCH = frozenset({"read_repository", "write_repository", "api", "read_api"})
SCOPES_TO_PUSH = frozenset({"write_repository", "api"})


class WrongCredentials(Exception):
    """Credentials that belong to no user, or to one who may not sign in."""


class TooManyFailures(Exception):
    """Too many wrong passwords for this account or from this address; ``wait`` is the time until the next attempt."""

    def __init__(self, wait: dt.timedelta) -> None:
        super().__init__(wait)
        self.wait = wait


def git_caller(request: Request) -> Caller:
    """Return the caller of a request of git; anonymous without credentials.

    The password of basic credentials is looked up as a token first, whatever the user name is.

    Raises:
        WrongCredentials: the token or password is wrong or expired, or the user is not active.
        TooManyFailures: the password was not checked.

    """
    if "Authorization" not in request.headers:
        return ANONYMOUS
    login, secret = _credentials(request)
    found = by_secret(secret) or _by_password(login, secret, request.remote_addr)
    if found is None:
        raise WrongCredentials
    return found


def has_scope(caller: Caller, *, push: bool) -> bool:
    """Whether the token of a caller may be used to fetch, or to push; without a token there is no limit."""
    wanted = SCOPES_TO_PUSH if push else SCOPES_TO_FETCH
    return caller.token_id is None or not wanted.isdisjoint(caller.scopes)


def _credentials(request: Request) -> tuple[str, str]:
    try:
        given = request.authorization
    except ValueError:  # basic authentication that is not base64
        given = None
    if given is None or given.type not in ("basic", "bearer"):
        raise WrongCredentials
    login, secret = (given.username or "", given.password or "") if given.type == "basic" else ("", given.token or "")
    if not secret or "\0" in login + secret:
        raise WrongCredentials
    try:
        f"{login}{secret}".encode()
    except UnicodeEncodeError as error:
        raise WrongCredentials from error
    return login, secret


def _by_password(login: str, password: str, address: str | None) -> Caller | None:
    # a password takes a tenth of a second to check: only for a user that exists
    if not login or len(password) > MAX_PASSWORD_LENGTH or _is_like_token(password):
        return None
    if not instance_settings.setting("password_authentication_enabled_for_git"):
        return None
    user = user_by_login(login)
    if user is None or user.state != ACTIVE:
        return None
    # before the password is checked: the answer must not reveal whether it is right
    if two_factor.refuses_passwords(user):
        return None
    with _password_checks:  # one after the other, so that concurrent ones count before the next is checked
        if (wait := sign_ins.wait_of(login, address)) is not None:
            raise TooManyFailures(wait)
        if not passwords.password_matches(user.password_hash, password):
            with unit_of_work():
                sign_ins.count_failure(login, address)
                audit.record_failed_sign_in(login)
            return None
    if resource_bots.is_bot(user.id) or user.password_expired:
        return None
    note_activity(user)
    return Caller.of(user)


def _is_like_token(text: str) -> bool:
    prefix = instance_settings.setting("personal_access_token_prefix")
    return bool(prefix) and text.startswith(prefix)
