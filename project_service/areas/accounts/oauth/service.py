"""Exchange passwords and refresh tokens for access tokens, and revoke them (accounts reference, section 7)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from sqlalchemy import or_, select, update

from project_service.access import audit
from project_service.access.identity import note_activity
from project_service.access.sign_in import password_sign_ins
from project_service.areas.accounts.oauth import errors
from project_service.areas.accounts.oauth.errors import OAuthRefused
from project_service.areas.accounts.sign_in import sessions
from project_service.domain import instance_settings
from project_service.domain.accounts.sign_ins import TooManyFailures, WrongPassword
from project_service.domain.accounts.tokens import SCOPES, SELF_ROTATE, OAuthToken, digest_of
from project_service.domain.accounts.users import User
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db, reading, unit_of_work

TOKEN_BYTES = 32  # 64 hexadecimal digits
SWITCHES = ("ropc_without_client_credentials", "password_authentication_enabled_for_git")
DEFAULT_SCOPE = "api"
OFFERED_SCOPES = tuple(scope for scope in SCOPES if scope != SELF_ROTATE)


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A stored token with its secrets, which only its client gets."""

    row: OAuthToken
    access_token: str
    refresh_token: str


def check_switched_on() -> None:
    """Raise ``OAuthRefused`` unless the settings of the instance allow tokens for passwords."""
    with reading():
        values = instance_settings.some_settings(*SWITCHES)
    for name, value in zip(SWITCHES, values, strict=True):
        if not value:
            raise OAuthRefused("unsupported_grant_type", errors.SWITCHED_OFF.format(name))


def checked_scopes(text: str) -> list[str]:
    """Return the scopes that a request names, by default ``api``."""
    scopes = list(dict.fromkeys(text.split())) or [DEFAULT_SCOPE]
    if not set(scopes) <= set(OFFERED_SCOPES):
        raise OAuthRefused("invalid_scope", errors.UNKNOWN_SCOPE)
    return scopes


def issue_for_password(login: str, password: str, scopes: list[str]) -> IssuedToken:
    """Exchange a username or e-mail address and a password for tokens, outside of a unit of work.

    Raises:
        OAuthRefused: the credentials do not count, or there were too many failures.

    """
    if not login or not 0 < len(password) <= password_sign_ins.MAX_PASSWORD_LENGTH or "\0" in login + password:
        raise errors.invalid_grant()
    try:
        with reading():
            user = password_sign_ins.authenticate(login, password, password_sign_ins.may_use_password)
            verified_hash = user.password_hash
            note_activity(user)
        with unit_of_work():
            user = db.session.get_one(User, user.id)
            sessions.lock_for_sign_in(user, verified_hash)
            if not password_sign_ins.may_use_password(user):
                raise WrongPassword
            audit.record("authenticated_with_password", user, "Exchanged the password for an OAuth token", author=user)
            return _issue(user, scopes)
    except TooManyFailures as error:
        raise errors.too_many_failures(error.wait) from error
    except WrongPassword as error:
        raise errors.invalid_grant() from error


def renew(refresh_token: str) -> IssuedToken:
    """Exchange a refresh token, which works once, for a new pair; the old pair ends.

    Raises:
        OAuthRefused: the token is unknown or was used, or its user may not sign in with a password any more.

    """
    with unit_of_work():
        token = db.session.scalar(select(OAuthToken).where(OAuthToken.refresh_digest == digest_of(refresh_token)))
        if token is None:
            raise errors.invalid_grant()
        user = token.user
        is_allowed = user.deleting_since is None and password_sign_ins.may_use_password(user)
        lock_row(token, "revoked_at")
        if token.revoked_at is not None or not is_allowed:
            raise errors.invalid_grant()
        token.revoked_at = clock.now()
        return _issue(user, token.scopes)


def revoke(text: str) -> None:
    """End a pair of tokens, named by either of them."""
    named = or_(OAuthToken.digest == digest_of(text), OAuthToken.refresh_digest == digest_of(text))
    with unit_of_work():
        statement = update(OAuthToken).where(named, OAuthToken.revoked_at.is_(None)).values(revoked_at=clock.now())
        db.session.execute(statement)


def _issue(user: User, scopes: list[str]) -> IssuedToken:
    access, refresh = secrets.token_hex(TOKEN_BYTES), secrets.token_hex(TOKEN_BYTES)
    row = OAuthToken(user_id=user.id, digest=digest_of(access), refresh_digest=digest_of(refresh), scopes=scopes)
    db.session.add(row)
    db.session.flush()
    return IssuedToken(row, access, refresh)
