"""Change passwords."""

from __future__ import annotations

from project_service.access import audit
from project_service.areas.accounts import mails
from project_service.areas.accounts.sign_in.sessions import end_sessions
from project_service.domain.accounts.users import User
from project_service.domain.paths import path_rules
from project_service.kit.http.errors import Invalid
from project_service.kit.security import passwords

MIN_PASSWORD_LENGTH = 8
MAX_PASSWORD_LENGTH = 128
CURRENT, NEW = "current_password", "new_password"  # fields


def change_password(user: User, *, current: str, new: str, session: str) -> None:
    """Change the own password and end the other browser sessions; the one with the secret ``session`` stays.

    Raises:
        Invalid: the new password is not allowed.

    """
    if current == new:
        raise Invalid(**{NEW: "has to differ from the current one"})
    set_password(user, new, session=session)


def set_password(user: User, new: str, *, session: str = "") -> None:
    """Set a password that the user has chosen, mail that, and end the browser sessions but that with this secret."""
    if text := password_problem(new):
        raise Invalid(**{NEW: text})
    user.password_hash, user.password_expired = passwords.hash_password(new), False
    end_sessions(user, besides=session)
    audit.record("user_password_updated", user, "Changed password", author=user, change="password")
    mails.queue_password_changed(user)


def password_problem(password: str) -> str | None:
    """Return why a new password is refused, or None."""
    if not password:
        return path_rules.BLANK
    if len(password) < MIN_PASSWORD_LENGTH:
        return f"is too short (minimum is {MIN_PASSWORD_LENGTH} characters)"
    return f"is too long (maximum is {MAX_PASSWORD_LENGTH} characters)" if len(password) > MAX_PASSWORD_LENGTH else None
