"""Authentication by access token or browser session; the order of errors is in the common reference, section 6.2."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import Any

from flask import Request, g, session
from sqlalchemy import Row, bindparam, func, select

from project_service.domain import project_access
from project_service.domain.accounts import last_use, resource_bots, two_factor, user_pictures
from project_service.domain.accounts.tokens import (
    SELF_ROTATE,
    BrowserSession,
    OAuthToken,
    PersonalAccessToken,
    digest_of,
)
from project_service.domain.accounts.users import ACTIVE, BLOCKED, SYSTEM_THEME, User, user_by
from project_service.domain.instance_settings import value_of
from project_service.domain.project_access import ProjectAccess, access_of
from project_service.domain.todos import Todo
from project_service.kit import clock
from project_service.kit.db.base import table_of
from project_service.kit.db.session import db, reading, rollback, unit_of_work
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

ROTATION = re.compile(r"access_tokens/(?:\d+|self)/rotate/?$")
READ_METHODS = ("GET", "HEAD", "OPTIONS")
LARGE_BODY_BYTES = 64 << 10
SESSION_KEY = "session"  # of the secret in the cookie
EXPIRED = "Token is expired. You can either do re-authorization or token refresh."
REVOKED = "Token was revoked. You have to re-authorize from the user."

# Every request executes one of these: built once, of tables instead of mapped classes, they are executed as they are.
_tokens, _users, _sessions = table_of(PersonalAccessToken).c, table_of(User).c, table_of(BrowserSession).c
_todos = table_of(Todo).c
MAX_COUNTED_TODOS = 99
_caller_columns = (
    _users.id.label("user_id"),
    _users.username,
    _users.admin,
    _users.external,
    _users.state,
    _users.last_activity_on,
    user_pictures.switch().label("shows_gravatars"),
)
_token_columns = (_tokens.id, _tokens.scopes, _tokens.expires_at, _tokens.revoked, _tokens.last_used_at)
_tokens_of_users = _tokens.id.table.join(_users.id.table, _users.id == _tokens.user_id)
_is_token = (_tokens.digest == bindparam("digest"), _users.deleting_since.is_(None))
_select_token = select(*_token_columns, *_caller_columns).select_from(_tokens_of_users).where(*_is_token)
# the same with the project of the URL, by whether it is named by its id
_select_token_and_project = {
    by_id: select(*_token_columns, *_caller_columns, *project_access.columns(_users.id))
    .select_from(project_access.joined_to(_tokens_of_users, by_id=by_id))
    .where(*_is_token)
    for by_id in (True, False)
}
_pending_todos = (
    select(func.count())
    .select_from(
        select(_todos.id)
        .where(_todos.user_id == _users.id, _todos.done_at.is_(None))
        .correlate(_users.id.table)
        .limit(MAX_COUNTED_TODOS + 1)
        .subquery()
    )
    .correlate(_users.id.table)
    .scalar_subquery()
)
_select_session = (
    select(
        *_caller_columns,
        _users.theme,
        _users.time_zone,
        _users.password_expired,
        _users.two_factor_enabled,
        _users.two_factor_grace_started_at,
        _pending_todos.label("pending_todos"),
        value_of(two_factor.REQUIRED).scalar_subquery().label("two_factor_required"),
        value_of(two_factor.GRACE_HOURS).scalar_subquery().label("grace_hours"),
    )
    .join_from(_sessions.id.table, _users.id.table, _users.id == _sessions.user_id)
    .where(
        _sessions.digest == bindparam("digest"),
        _sessions.expires_at > bindparam("now"),
        _users.state == ACTIVE,
        _users.deleting_since.is_(None),
    )
)


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated user of a request; an anonymous caller has no ``user_id``."""

    user_id: int | None = None
    username: str = ""
    admin: bool = False
    external: bool = False
    token_id: int | None = None  # of the personal access token
    scopes: tuple[str, ...] = ()
    impersonator: str = ""  # the administrator who acts as this user
    oauth_token_id: int | None = None
    theme: str = SYSTEM_THEME
    time_zone: str = ""  # of the tz database; empty for UTC
    password_expired: bool = False
    pending_todos: int = 0  # at most one more than ``MAX_COUNTED_TODOS``
    two_factor_deadline: dt.datetime | None = None  # from which two-factor authentication has to be set up

    @property
    def lacks_two_factor(self) -> bool:
        """Whether two-factor authentication has to be set up before anything else."""
        return self.two_factor_deadline is not None and self.two_factor_deadline <= clock.now()

    @property
    def uses_token(self) -> bool:
        """Whether the request has a token, by whose scopes it is limited."""
        return self.token_id is not None or self.oauth_token_id is not None

    @classmethod
    def of(cls, user: User) -> Caller:
        """Return the caller for a user."""
        return cls(user.id, user.username, user.admin, user.external)

    def load_user(self) -> User:
        """Return the row of the user; raise ``Unauthorized`` for an anonymous caller."""
        if self.user_id is None:
            raise Unauthorized
        return db.session.get_one(User, self.user_id)


ANONYMOUS = Caller()


def caller() -> Caller:
    """Return the caller of the current request."""
    current: Caller = g.get("caller", ANONYMOUS)
    return current


def current_user() -> User:
    """Return the row of the caller; raise ``Unauthorized`` for an anonymous one."""
    return caller().load_user()


def token_of(request: Request, fields: dict[str, Any]) -> str | None:
    """Return the token of a request from headers or parameters (common reference, section 6.1)."""
    bearer = bearer_of(request, fields)
    return str(fields.get("private_token") or "") or header(request, "PRIVATE-TOKEN") or bearer


def bearer_of(request: Request, fields: dict[str, Any]) -> str | None:
    """Return the token that a request has as OAuth clients send it."""
    scheme, _, credential = header(request, "Authorization").partition(" ")
    bearer = credential.strip() if scheme.lower() == "bearer" else ""
    access_token = str(fields.get("access_token") or "")
    if bearer and access_token:
        raise BadParameters("invalid_request")
    return bearer or access_token or None


def by_token(
    request: Request, allowed: tuple[str, ...] | None, *, unread: bool = False, project: str | None = None
) -> Caller:
    """Authenticate an API request; ``allowed`` scopes in addition to ``api`` and ``read_api``, ``None`` for any scope.

    ``unread`` does not read the body, so that a token in it is not found. ``project`` is the id or path of a project
    that is read with the same statement, for ``project_of``.
    """
    fields = query(request) if unread else parameters()
    text = token_of(request, fields)
    if text is None:
        return ANONYMOUS
    token = _find_token(text, project)
    if token is None and text == bearer_of(request, fields):
        return _by_oauth_token(text, allowed, request.method)
    if token is None:
        raise Unauthorized
    user_pictures.note_switch(token.shows_gravatars)
    if token.expires_at is not None and token.expires_at <= clock.today():
        raise InvalidToken(EXPIRED)
    if token.revoked:
        if ROTATION.search(request.path):  # it may be a copy (GitLab's reuse detection)
            last_use.in_own_transaction(lambda: resource_bots.revoke_family(token.id))
        raise InvalidToken(REVOKED)
    refuse_inactive(token.state)
    check_scopes(tuple(token.scopes), allowed, request.method)
    last_use.note_token(token.id, token.last_used_at, token.user_id, token.last_activity_on)
    return Caller(token.user_id, token.username, token.admin, token.external, token.id, tuple(token.scopes))


def refuse_unknown_sender(request: Request, allowed: tuple[str, ...] | None) -> None:
    """Check the token in the headers or the query of a large body before it is parsed, which takes up to a second.

    A token in the body itself is found when it is parsed: without another one the body is limited to 1 MiB.
    """
    if is_large(request, LARGE_BODY_BYTES):
        with reading():
            by_token(request, allowed, unread=True)


def is_large(request: Request, max_bytes: int) -> bool:
    """Whether a body has more bytes than this, or does not say how many."""
    length = request.content_length
    return "Transfer-Encoding" in request.headers if length is None else length > max_bytes


def _by_oauth_token(text: str, allowed: tuple[str, ...] | None, method: str) -> Caller:
    token = find_oauth_token(text)
    if token is None:
        raise Unauthorized
    if token.revoked_at is not None:
        raise InvalidToken(REVOKED)
    if not token.active:
        raise InvalidToken(EXPIRED)
    refuse_inactive(token.user.state)
    check_scopes(tuple(token.scopes), allowed, method)
    note_activity(token.user)
    return _caller_of(token)


def find_oauth_token(text: str) -> OAuthToken | None:
    """Return the OAuth token with this text, revoked and expired ones too."""
    statement = select(OAuthToken).join(User).where(OAuthToken.digest == digest_of(text), User.deleting_since.is_(None))
    return db.session.scalar(statement)


def _caller_of(token: OAuthToken) -> Caller:
    return replace(Caller.of(token.user), oauth_token_id=token.id, scopes=tuple(token.scopes))


def _find_token(text: str, project: str | None) -> Row[*tuple[Any, ...]] | None:
    digest = {"digest": digest_of(text)}
    if project is None:
        return db.session.execute(_select_token, digest).first()
    by_id, project_parameters = project_access.parameters(project)
    token = db.session.execute(_select_token_and_project[by_id], digest | project_parameters).first()
    if token is not None:
        values = token[len(_token_columns) + len(_caller_columns) :]
        g.project_of_caller = (token.user_id, project), access_of(values, token.user_id)
    return token


def project_of(caller: Caller, id_or_path: str) -> ProjectAccess | None:
    """Return a project with the caller's role in it: as it was read with the token, or else read now."""
    remembered: tuple[Any, ProjectAccess | None] = g.get("project_of_caller", (None, None))
    if remembered[0] == (caller.user_id, id_or_path):
        return remembered[1]
    return project_access.find_access(caller.user_id, id_or_path)


def by_secret(secret: str) -> Caller | None:
    """Return the caller of a valid token of an active user, else ``None``, and note the use of the token."""
    token = db.session.execute(_select_token, {"digest": digest_of(secret)}).first()
    if token is None:
        return _by_oauth_secret(secret)
    if token.revoked or token.state != ACTIVE:
        return None
    if token.expires_at is not None and token.expires_at <= clock.today():
        return None
    last_use.note_token(token.id, token.last_used_at, token.user_id, token.last_activity_on)
    return Caller(token.user_id, token.username, token.admin, token.external, token.id, tuple(token.scopes))


def _by_oauth_secret(secret: str) -> Caller | None:
    token = find_oauth_token(secret)
    if token is None or not token.active or token.user.state != ACTIVE:
        return None
    note_activity(token.user)
    return _caller_of(token)


def note_activity(user: User) -> None:
    """Note that a user has used the service today, in a transaction of its own."""
    last_use.note_activity(user.id, user.last_activity_on)


def refuse_inactive(state: str) -> None:
    """Raise ``Forbidden`` for a blocked or deactivated user."""
    if state == ACTIVE:
        return
    if state == BLOCKED:
        raise Forbidden("Your account has been blocked.")
    raise Forbidden(
        "Your account has been deactivated by your administrator. "
        f"Please log back in from a web browser to reactivate your account at {urls.base_url()}"
    )


def check_scopes(scopes: tuple[str, ...], allowed: tuple[str, ...] | None, method: str) -> None:
    """Raise ``InsufficientScope`` unless one of the scopes allows the method (common reference, section 6.3)."""
    if allowed is None or "api" in scopes:
        return
    if SELF_ROTATE in allowed:
        if SELF_ROTATE in scopes:
            return
        raise InsufficientScope(f"api {SELF_ROTATE}")
    reading = method in READ_METHODS
    if reading and ("read_api" in scopes or any(scope in scopes for scope in allowed)):
        return
    raise InsufficientScope(" ".join((*allowed, "api", "read_api")))


def sudo(request: Request, authenticated: Caller) -> Caller:
    """Return the user an administrator acts as, if the request names one (common reference, section 6.4)."""
    name = str(parameters().get("sudo") or "") or header(request, "Sudo")
    if not name or authenticated.user_id is None:
        return authenticated
    if not authenticated.admin:
        raise Forbidden("Must be admin to use sudo")
    if "sudo" not in authenticated.scopes:
        raise InsufficientScope("sudo")
    user = user_by(name)
    if user is None:
        raise SudoTargetMissing(name)
    return replace(
        Caller.of(user),
        token_id=authenticated.token_id,
        oauth_token_id=authenticated.oauth_token_id,
        scopes=authenticated.scopes,
        impersonator=authenticated.username,
    )


class SudoTargetMissing(ServiceError):
    """The user to act as does not exist."""

    status = 404

    def __init__(self, name: str) -> None:
        super().__init__(f"404 User with ID or username '{name}' Not Found")


def by_session() -> Caller:
    """Authenticate a browser; without a valid session of an active user it is anonymous."""
    secret = session.get(SESSION_KEY)
    if not secret:
        return ANONYMOUS
    lookup = {"digest": digest_of(str(secret)), "now": clock.now()}
    session_row = db.session.execute(_select_session, lookup).first()
    if session_row is None:
        return ANONYMOUS
    user_pictures.note_switch(session_row.shows_gravatars)
    last_use.note_activity(session_row.user_id, session_row.last_activity_on)
    return Caller(
        session_row.user_id,
        session_row.username,
        session_row.admin,
        session_row.external,
        theme=session_row.theme,
        time_zone=session_row.time_zone,
        pending_todos=session_row.pending_todos,
        password_expired=session_row.password_expired,
        two_factor_deadline=_two_factor_deadline(session_row) if session_row.two_factor_required else None,
    )


def _two_factor_deadline(session_row: Any) -> dt.datetime | None:
    if session_row.two_factor_enabled:
        return None
    if session_row.two_factor_grace_started_at is None:
        rollback()
        with unit_of_work():
            two_factor.start_grace(session_row.user_id)
    return two_factor.deadline(session_row.two_factor_grace_started_at, session_row.grace_hours)
