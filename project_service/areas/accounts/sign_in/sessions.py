"""Browser sessions: who may have one, start and end."""

from __future__ import annotations

from sqlalchemy import delete

from project_service.access import audit
from project_service.areas.accounts.sign_in import networks
from project_service.domain.accounts.resource_bots import is_bot
from project_service.domain.accounts.sign_ins import WrongPassword
from project_service.domain.accounts.tokens import SESSION_LENGTH, BrowserSession, OAuthToken, digest_of
from project_service.domain.accounts.users import ACTIVE, DEACTIVATED, User
from project_service.kit import clock
from project_service.kit.db.locking import lock_row
from project_service.kit.db.session import db
from project_service.kit.security import tokens


def may_have_session(user: User | None) -> bool:
    """Whether a user may sign in at the pages; unknown users, given as ``None``, take the same statement."""
    is_a_bot = is_bot(user.id if user else None)
    return user is not None and not is_a_bot and user.state in (ACTIVE, DEACTIVATED)


def lock_for_sign_in(user: User, verified_hash: str | None) -> None:
    """Lock a user whose password was verified with this hash, before a session begins.

    Raises:
        WrongPassword: the password or the state of the user has changed meanwhile.

    """
    lock_row(user, "password_hash", "state", "deleting_since", "two_factor_enabled")
    is_allowed = user.state in (ACTIVE, DEACTIVATED) and user.deleting_since is None
    if user.password_hash != verified_hash or not is_allowed:
        raise WrongPassword


def start_session(user: User, *, second_factor: bool, address: str | None, agent: str | None) -> str:
    """Create a browser session of a user who has signed in, and return its secret; deactivated users become active."""
    if user.state == DEACTIVATED:
        user.state = ACTIVE
    secret = tokens.new_token()
    now = clock.now()
    db.session.add(
        BrowserSession(
            user_id=user.id, digest=digest_of(secret), expires_at=now + SESSION_LENGTH, address=address, agent=agent
        )
    )
    networks.note_sign_in(user, address, agent)
    user.last_sign_in_at, user.last_sign_in_ip = user.current_sign_in_at or now, user.current_sign_in_ip or address
    user.current_sign_in_at, user.current_sign_in_ip = now, address
    user.sign_in_count += 1
    name, method = ("two_factor", "TWO-FACTOR") if second_factor else ("password", "STANDARD")
    audit.record(f"authenticated_with_{name}", user, f"Signed in with {method} authentication", author=user)
    return secret


def sign_out(secret: str) -> None:
    """Delete a browser session."""
    db.session.execute(delete(BrowserSession).where(BrowserSession.digest == digest_of(secret)))


def end_sessions(user: User, *, besides: str = "") -> None:
    """Delete all browser sessions of a user, except that with the secret ``besides``, and the OAuth tokens."""
    own = BrowserSession.user_id == user.id, BrowserSession.digest != digest_of(besides)
    db.session.execute(delete(BrowserSession).where(*own))
    db.session.execute(delete(OAuthToken).where(OAuthToken.user_id == user.id))


def end_session(user: User, session_id: int) -> None:
    """Delete one browser session of a user."""
    own = BrowserSession.user_id == user.id, BrowserSession.id == session_id
    db.session.execute(delete(BrowserSession).where(*own))
