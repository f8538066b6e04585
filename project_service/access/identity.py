"""Who is asking: a token, or a browser session. The order of outcomes is that of common behaviour, section 6.2."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from flask import Request, g, session
from sqlalchemy import Select, select, update

from project_service.domain.tokens import BrowserSession, PersonalAccessToken, digest_of
from project_service.domain.users import ACTIVE, BLOCKED, User, user_by
from project_service.kit import clock
from project_service.kit.db.session import db, rollback, unit_of_work
from project_service.kit.http import urls
from project_service.kit.http.errors import (
    BadParameters,
    Forbidden,
    InsufficientScope,
    InvalidToken,
    ServiceError,
    Unauthorized,
)
from project_service.kit.http.parameters import header, parameters, query

READ_METHODS = ("GET", "HEAD", "OPTIONS")
USED_EVERY = dt.timedelta(minutes=10)
SESSION_SECRET = "session"  # noqa: S105  # what it is called in the cookie
EXPIRED = "Token is expired. You can either do re-authorization or token refresh."
REVOKED = "Token was revoked. You have to re-authorize from the user."


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is asking; nobody has no ``user_id``."""

    user_id: int | None = None
    username: str = ""
    admin: bool = False
    external: bool = False
    token_id: int | None = None
    scopes: tuple[str, ...] = ()

    @classmethod
    def of(cls, user: User) -> Caller:
        """The caller that a user is, whatever the way in."""
        return cls(user.id, user.username, user.admin, user.external)


NOBODY = Caller()


def caller() -> Caller:
    """Who asks in this request."""
    found: Caller = g.get("caller", NOBODY)
    return found


def current_user() -> User:
    """The row of the caller; ``Unauthorized`` for nobody."""
    asking = caller()
    if asking.user_id is None:
        raise Unauthorized
    return db.session.get_one(User, asking.user_id)


def token_of(asked: Request, given: dict[str, Any]) -> str | None:
    """The token a request carries, wherever clients put it (common behaviour, section 6.1)."""
    scheme, _, credential = header(asked, "Authorization").partition(" ")
    bearer = credential.strip() if scheme.lower() == "bearer" else ""
    access_token = str(given.get("access_token") or "")
    if bearer and access_token:
        raise BadParameters("invalid_request")
    return str(given.get("private_token") or "") or header(asked, "PRIVATE-TOKEN") or bearer or access_token or None


def by_token(asked: Request, allowed: tuple[str, ...] | None, *, unread: bool = False) -> Caller:
    """Authenticate an API request; ``allowed`` scopes beside ``api`` and ``read_api``, ``None`` for any scope.

    ``unread`` leaves the body alone: a token that stands there is not found.
    """
    text = token_of(asked, query(asked) if unread else parameters())
    if text is None:
        return NOBODY
    found = db.session.execute(_token_row(digest_of(text))).first()
    if found is None:
        raise Unauthorized
    if found.expires_at is not None and found.expires_at <= clock.today():
        raise InvalidToken(EXPIRED)
    if found.revoked:
        raise InvalidToken(REVOKED)
    refuse_inactive(found.state)
    check_scopes(tuple(found.scopes), allowed, asked.method)
    _note_use(found.id, found.last_used_at, found.user_id, found.last_activity_on)
    return Caller(found.user_id, found.username, found.admin, found.external, found.id, tuple(found.scopes))


def _token_row(digest: str) -> Select[*tuple[Any, ...]]:
    """Select a token and its user by the digest of the token."""
    return (
        select(
            PersonalAccessToken.id,
            PersonalAccessToken.scopes,
            PersonalAccessToken.expires_at,
            PersonalAccessToken.revoked,
            PersonalAccessToken.last_used_at,
            User.id.label("user_id"),
            User.username,
            User.admin,
            User.external,
            User.state,
            User.last_activity_on,
        )
        .join(User, User.id == PersonalAccessToken.user_id)
        .where(PersonalAccessToken.digest == digest, User.deleting_since.is_(None))
    )


def refuse_inactive(state: str) -> None:
    """Raise ``Forbidden`` for somebody who is blocked or deactivated."""
    if state == ACTIVE:
        return
    if state == BLOCKED:
        raise Forbidden("Your account has been blocked.")
    raise Forbidden(
        "Your account has been deactivated by your administrator. "
        f"Please log back in from a web browser to reactivate your account at {urls.base_url()}"
    )


def check_scopes(scopes: tuple[str, ...], allowed: tuple[str, ...] | None, method: str) -> None:
    """Raise ``InsufficientScope`` unless one of the scopes grants this (common behaviour, section 6.3)."""
    if allowed is None or "api" in scopes:
        return
    reading = method in READ_METHODS
    if reading and ("read_api" in scopes or any(scope in scopes for scope in allowed)):
        return
    raise InsufficientScope(" ".join((*allowed, "api", "read_api")))


def sudo(asked: Request, asking: Caller) -> Caller:
    """The person an administrator acts for, if the request says so (common behaviour, section 6.4)."""
    wanted = str(parameters().get("sudo") or "") or header(asked, "Sudo")
    if not wanted or asking.user_id is None:
        return asking
    if not asking.admin:
        raise Forbidden("Must be admin to use sudo")
    if "sudo" not in asking.scopes:
        raise InsufficientScope("sudo")
    user = user_by(wanted)
    if user is None:
        raise SudoTargetMissing(wanted)
    return replace(Caller.of(user), token_id=asking.token_id, scopes=asking.scopes)


class SudoTargetMissing(ServiceError):
    """Sudo for somebody who is not there."""

    status = 404

    def __init__(self, wanted: str) -> None:
        super().__init__(f"404 User with ID or username '{wanted}' Not Found")


def by_session() -> Caller:
    """Authenticate a browser; a session that ended, or whose user may not sign in any more, is nobody."""
    secret = session.get(SESSION_SECRET)
    if not secret:
        return NOBODY
    found = db.session.execute(_session_row(digest_of(str(secret)))).first()
    if found is None:
        return NOBODY
    _note_activity(found.user_id, found.last_activity_on)
    return Caller(found.user_id, found.username, found.admin, found.external)


def _session_row(digest: str) -> Select[*tuple[Any, ...]]:
    """Select the active user of a browser session by the digest of its secret."""
    return (
        select(
            User.id.label("user_id"),
            User.username,
            User.admin,
            User.external,
            User.last_activity_on,
        )
        .select_from(BrowserSession)
        .join(User, User.id == BrowserSession.user_id)
        .where(
            BrowserSession.digest == digest,
            BrowserSession.expires_at > clock.now(),
            User.state == ACTIVE,
            User.deleting_since.is_(None),
        )
    )


def _note_use(token_id: int, last_used_at: dt.datetime | None, user_id: int, last_activity_on: dt.date | None) -> None:
    now = clock.now()
    if last_used_at is None or last_used_at < now - USED_EVERY:
        _apart(update(PersonalAccessToken).where(PersonalAccessToken.id == token_id).values(last_used_at=now))
    _note_activity(user_id, last_activity_on)


def _note_activity(user_id: int, last_activity_on: dt.date | None) -> None:
    if last_activity_on != clock.today():
        _apart(update(User).where(User.id == user_id).values(last_activity_on=clock.today()))


def _apart(statement: object) -> None:
    # written at once, so that it holds whatever becomes of the request, and no reader keeps a write lock
    rollback()
    with unit_of_work():
        db.session.execute(statement)  # type: ignore[call-overload]  # one of two updates above
