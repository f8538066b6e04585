"""Passwords that are reset by mail: a link that works once, for an hour.

The answer to a request does not depend on whether the address belongs to a user: a job looks that up.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete, func

from project_service.areas.accounts import mails, service
from project_service.areas.accounts.models import PasswordReset
from project_service.domain import rate_limits, sign_ins
from project_service.domain.audit import recording
from project_service.domain.audit.recording import Author
from project_service.domain.tokens import digest_of
from project_service.domain.users import ACTIVE, DEACTIVATED, User, users
from project_service.kit import clock, jobs, mail
from project_service.kit.db.session import db
from project_service.kit.http.errors import Invalid
from project_service.kit.security import tokens

LIFETIME = dt.timedelta(hours=1)
WINDOW_SECONDS = 3600
MAX_MAILS = 3  # to one address within the window; more requests are answered as usual
MAX_REQUESTS = 20  # from one client within the window
MAX_ATTEMPTS = 20  # with unknown tokens, from one client within the window


def request_reset(email: str, address: str | None) -> dt.timedelta | None:
    """Ask for a mail to an address; return how long to wait if the client has asked too often."""
    wait = rate_limits.count(f"password_reset:client:{address}", limit=MAX_REQUESTS, seconds=WINDOW_SECONDS)
    if wait is not None:
        return wait
    subject = f"password_reset:mail:{tokens.digest(email.strip().lower())}"
    if rate_limits.count(subject, limit=MAX_MAILS, seconds=WINDOW_SECONDS) is None:
        send_reset.defer(email, address)
    return None


@jobs.job("accounts.password_resets.send_reset", queue=jobs.MAIL)
def send_reset(email: str, address: str | None) -> None:
    """Send the mail, if the address belongs to a user who may sign in."""
    wanted = users().where(func.lower(User.email) == email.strip().lower(), User.state.in_((ACTIVE, DEACTIVATED)))
    user = db.session.scalar(wanted)
    if user is None or not mail.is_on():
        return
    token = tokens.new_token()
    expires_at = clock.now() + LIFETIME
    db.session.add(PasswordReset(user_id=user.id, digest=digest_of(token), expires_at=expires_at))
    author = Author(name="An unauthenticated user", address=address)
    recording.record("password_reset_requested", user, "Asked for password reset", author=author)
    mails.queue_password_reset(user, token)


def reset_password(token: str, password: str, address: str | None) -> User:
    """Set a new password with the token of a mail, end all sessions, and forget the other tokens of the user.

    Raises:
        Invalid: the token was used, has expired or is unknown, or the password is not allowed.

    """
    subject = f"password_reset:attempts:{address}"
    if rate_limits.wait_of(subject, limit=MAX_ATTEMPTS) is not None:
        raise Invalid(base="Too many attempts. Try again in an hour.")
    # of two concurrent requests with the same token only one deletes the row
    used = delete(PasswordReset).where(PasswordReset.digest == digest_of(token)).returning(PasswordReset)
    reset = db.session.scalar(used)
    user = None if reset is None or reset.expires_at <= clock.now() else db.session.get(User, reset.user_id)
    if user is None or user.state not in (ACTIVE, DEACTIVATED) or user.deleting_since is not None:
        raise UnknownToken
    service.set_password(user, password)
    db.session.execute(delete(PasswordReset).where(PasswordReset.user_id == user.id))
    sign_ins.reset_failures(user.username)
    sign_ins.reset_failures(user.email)
    return user


def count_unknown(address: str | None) -> None:
    """Count an attempt with an unknown token."""
    rate_limits.increment(f"password_reset:attempts:{address}", seconds=WINDOW_SECONDS)


def prune() -> None:
    """Delete expired requests."""
    db.session.execute(delete(PasswordReset).where(PasswordReset.expires_at <= clock.now()))


class UnknownToken(Invalid):
    """The token of a mail is not known; the caller counts the attempt."""

    def __init__(self) -> None:
        super().__init__(base="This link is not valid any more: ask for a new mail.")
