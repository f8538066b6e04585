"""Authentication of git over HTTP: an access token or a password, as basic or bearer credentials."""

from __future__ import annotations

from flask import Request

from project_service.access.identity import ANONYMOUS, Caller, by_secret, note_activity
from project_service.access.sign_in import password_sign_ins
from project_service.domain import instance_settings

SCOPES_TO_FETCH = frozenset({"read_repository", "write_repository", "api", "read_api"})
SCOPES_TO_PUSH = frozenset({"write_repository", "api"})


class WrongCredentials(Exception):
    """Credentials that are malformed, or a token that is unknown."""


def git_caller(request: Request) -> Caller:
    """Return the caller of a request of git; anonymous without credentials.

    The password of basic credentials is looked up as a token first, whatever the user name is.

    Raises:
        WrongCredentials: they are malformed, or the token is wrong or expired.
        WrongPassword, TooManyFailures: see ``password_sign_ins.authenticate``.

    """
    if "Authorization" not in request.headers:
        return ANONYMOUS
    login, secret = _credentials(request)
    authenticated = by_secret(secret) or _by_password(login, secret)
    if authenticated is None:
        raise WrongCredentials
    return authenticated


def has_scope(caller: Caller, *, push: bool) -> bool:
    """Whether the token of a caller may be used to fetch, or to push; without a token there is no limit."""
    usable = SCOPES_TO_PUSH if push else SCOPES_TO_FETCH
    return not caller.uses_token or not usable.isdisjoint(caller.scopes)


def _credentials(request: Request) -> tuple[str, str]:
    try:
        authorization = request.authorization
    except ValueError:  # basic authentication that is not base64
        authorization = None
    if authorization is None or authorization.type not in ("basic", "bearer"):
        raise WrongCredentials
    login, secret = (
        (authorization.username or "", authorization.password or "")
        if authorization.type == "basic"
        else ("", authorization.token or "")
    )
    if not secret or "\0" in login + secret:
        raise WrongCredentials
    try:
        f"{login}{secret}".encode()
    except UnicodeEncodeError as error:
        raise WrongCredentials from error
    return login, secret


def _by_password(login: str, password: str) -> Caller | None:
    if not login or len(password) > password_sign_ins.MAX_PASSWORD_LENGTH or _is_like_token(password):
        return None
    if not instance_settings.setting("password_authentication_enabled_for_git"):
        return None
    user = password_sign_ins.authenticate(login, password, password_sign_ins.may_use_password)
    note_activity(user)
    return Caller.of(user)


def _is_like_token(text: str) -> bool:
    prefix = instance_settings.setting("personal_access_token_prefix")
    return bool(prefix) and text.startswith(prefix)
