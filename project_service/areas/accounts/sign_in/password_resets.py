"""Passwords that are reset by mail: a link that works once, for an hour.

The answer to a request does not depend on whether the address belongs to a user: a job looks that up.
"""

from __future__ import annotations

import datetime as dt

from sqlalchemy import delete, func

from project_service.areas.accounts import mails
from project_service.areas.accounts.sign_in import passwords
from project_service.areas.accounts.sign_in.models import PasswordReset
from project_service.domain import rate_limits
from project_service.domain.accounts import sign_ins
from project_service.domain.accounts.tokens import digest_of
from project_service.domain.accounts.users import ACTIVE, DEACTIVATED, User, users
from project_service.domain.audit import recording
from project_service.domain.audit.recording import Author
from project_service.domain.rate_limits import HOUR_SECONDS, LimitExceeded, RateLimit
from project_service.kit import clock, jobs, mail
from project_service.kit.db.session import db
from project_service.kit.http.clients.client_networks import limited_network
from project_service.kit.http.errors import Invalid
from project_service.kit.security import tokens

LIFETIME = dt.timedelta(hours=1)
MAILS = RateLimit("password_reset:mail", 3, HOUR_SECONDS)  # to one address; more requests are answered as usual
REQUESTS = RateLimit("password_reset:client", 20, HOUR_SECONDS)
ATTEMPTS = RateLimit("password_reset:attempts", 20, HOUR_SECONDS)  # of one client to use a token


def request_reset(email: str, address: str | None) -> dt.timedelta | None:
    """Ask for a mail to an address; return how long to wait if the client has asked too often."""
    wait = rate_limits.count(REQUESTS.counter(limited_network(address)))
    if wait is not None:
        return wait
    if rate_limits.count(MAILS.counter(tokens.digest(email.strip().lower()))) is None:
        send_reset.defer(email, address)
    return None


@jobs.job("accounts.password_resets.send_reset", queue=jobs.MAIL)
def send_reset(email: str, address: str | None) -> None:
    """Send the mail, if the address belongs to a user who may sign in."""
    with_address = users().where(func.lower(User.email) == email.strip().lower(), User.state.in_((ACTIVE, DEACTIVATED)))
    user = db.session.scalar(with_address)
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

    The attempt is counted first, and taken back if it succeeds.

    Raises:
        Invalid: the token was used, has expired or is unknown, or the password is not allowed.

    """
    try:
        attempt = rate_limits.reserve(ATTEMPTS.counter(limited_network(address)))
    except LimitExceeded as error:
        raise Invalid(base="Too many attempts. Try again in an hour.") from error
    # of two concurrent requests with the same token only one deletes the row
    used = delete(PasswordReset).where(PasswordReset.digest == digest_of(token)).returning(PasswordReset)
    reset = db.session.scalar(used)
    user = None if reset is None or reset.expires_at <= clock.now() else db.session.get(User, reset.user_id)
    if user is None or user.state not in (ACTIVE, DEACTIVATED) or user.deleting_since is not None:
        raise Invalid(base="This link is not valid any more: ask for a new mail.")
    passwords.set_password(user, password)
    db.session.execute(delete(PasswordReset).where(PasswordReset.user_id == user.id))
    sign_ins.reset_failures(user)
    rate_limits.give_back(attempt)
    return user


def prune() -> None:
    """Delete expired requests."""
    db.session.execute(delete(PasswordReset).where(PasswordReset.expires_at <= clock.now()))
